"""Week 12, questions 5 to 8: their oracles, their points, and what their cells print."""

import contextlib
import io
import itertools
import math
import re

import numpy as np
import pytest
import torch
from test_bank import namespace
from torch.nn import functional as F

from exercises.checks import week12_attention as week12
from exercises.grading import judge, source
from exercises.grading.check import Draw
from lib import attention, decode

QUESTIONS = {q.id: q for q in week12.QUESTIONS}


def test_a_wrong_function_costs_only_its_own_points():
    points = {
        ("12-5", "whole-sentence"): [0, 2, 2, 1],
        ("12-5", "no-end"): [2, 0, 2, 1],
        ("12-5", "same-length"): [2, 2, 0, 1],
        ("12-5", "factors-of-source"): [2, 2, 2, 0],
        ("12-6", "variance-by-divisor"): [0, 2, 2, 1, 1],
        ("12-6", "variances-multiplied"): [2, 0, 2, 1, 1],
        ("12-6", "copies-ignored"): [2, 2, 0, 1, 1],
        ("12-6", "power-of-variance"): [2, 2, 2, 0, 1],
        ("12-6", "reason-overflow"): [2, 2, 2, 1, 0],
        ("12-7", "rows-summed"): [0, 2, 3, 1],
        ("12-7", "by-largest-weight"): [2, 0, 3, 1],
        ("12-7", "weights-as-effect"): [2, 2, 0, 1],
        ("12-7", "nothing-can-be-said"): [2, 2, 3, 0],
        ("12-8", "self-kept"): [0, 3, 2, 1],
        ("12-8", "hidden-from-all"): [2, 0, 2, 1],
        ("12-8", "cols-ignored"): [2, 3, 0, 1],
        ("12-8", "claims-weights"): [2, 3, 2, 0],
    }
    for (name, wrong), expected in points.items():
        report = judge.verdict(QUESTIONS[name], judge.bank(QUESTIONS[name], 0)[wrong], 0)
        assert [part.points for part in report.parts] == expected, wrong


# the oracles, against lib, torch and the known values


def tensors(*arrays):
    return [torch.from_numpy(a) for a in arrays]


def test_sequence_oracles_are_torchs_and_libs():
    for seed in range(5):
        draw = Draw(seed, "sequence")
        *arrays, words = week12._model(draw, "float64", 4, lambda _, y: len(y) > 3)
        source_E, source_A, E, A, U = tensors(*arrays)
        start = week12._read(source_E, source_A, torch.zeros_like(source_E[0]), words)
        target = [2, 3, 2]
        states = [week12._read(E, A, start, (0, *target[:n])) for n in range(4)]
        loss = F.cross_entropy(torch.stack(states) @ U.T, torch.tensor([*target, 1]))
        torch.testing.assert_close(week12._log_prob(E, A, U, start, target), -4 * loss)
        p = week12._distribution(E, A, U, start, (2, 3))
        torch.testing.assert_close(p, (U @ states[2]).softmax(0))

        def step(tokens, state, E=E, A=A, U=U):
            state = torch.tanh(state @ A.T + E[tokens - 1])
            return F.pad(state @ U.T, (1, 0), value=-math.inf), state

        (expected,) = decode.greedy(step, start[None], [12])  # lib's 0 is <pad>
        got = week12._greedy(source_E, source_A, E, A, U, words, 12)
        assert [token + 1 for token in got] == expected


def test_probabilities_of_all_sentences_add_up():
    _, d, arrays = week12._decoder(Draw(2, "adds"))
    E, A, U = tensors(*arrays)
    E, U, start = E[:4], U[:4], torch.zeros(d, dtype=E.dtype)
    total = sum(
        week12._log_prob(E, A, U, start, words).exp()
        for n in range(3)
        for words in itertools.product((0, 2, 3), repeat=n)
    )
    going = sum(
        week12._log_prob(E, A, U, start, words).exp()
        / week12._distribution(E, A, U, start, words)[1]
        for words in itertools.product((0, 2, 3), repeat=3)
    )
    assert float(total + going) == pytest.approx(1)


def test_variance_oracles_know_the_facts():
    coin = ((-1.0, 0.5), (1.0, 0.5))
    for d in (1, 4, 16, 64, 256):
        assert week12._exact(coin, coin, d) == pytest.approx((0, d))
        generator = torch.Generator().manual_seed(d)
        scores = torch.randn(2, 20_000, d, generator=generator).prod(0).sum(-1)
        band = week12._variance_band(d, 0, 1, 20_000, 0)
        assert band.value == d and abs(scores.var() - d) < band.width < 0.12 * d
        assert abs((scores / math.sqrt(d)).var() - 1) < 0.1
    assert week12._variance_band(64, 1, 1, 20_000, 0).value == pytest.approx(0.0156, abs=5e-5)
    steps = tuple((float(n), 1 / 301) for n in range(301))  # nearly uniform between 0 and 1
    mean, variance = (
        x / 300 ** (2 * n) for n, x in enumerate(week12._exact(steps, steps, 1), start=1)
    )
    assert 64 * mean == pytest.approx(16)
    assert 64 * variance == pytest.approx(3.1111, rel=0.01)
    assert week12._power(16, 16, 64, 64) == pytest.approx(0.5)
    assert week12._power(16, 256, 64, 4096) == pytest.approx(1)


def test_band_of_equal_components():
    for d, copies in ((4, 4), (12, 3), (5, 5)):
        generator = torch.Generator().manual_seed(copies)
        drawn = torch.randn(2, 300_000, d // copies, generator=generator, dtype=torch.float64)
        scores = drawn.repeat_interleave(copies, -1).prod(0).sum(-1)
        band = week12._variance_band(d, 0, copies, 300_000, 0)
        assert abs(scores.var() - band.value) < band.width
        spread = scores.square().reshape(100, -1).mean(1).std() * 5 / math.sqrt(100)
        assert band.width == pytest.approx(float(spread), rel=0.35)


def test_occlusion_oracle_is_libs():
    for probe in week12._drops(Draw(4, "drops")):
        args, mask = tensors(*probe.args), probe.kwargs.get("mask")
        scores, values, U, targets = args
        allowed = torch.ones(scores.shape[1], dtype=torch.bool)
        allowed = allowed if mask is None else torch.from_numpy(mask)
        if allowed.sum() < 2:
            with pytest.raises(ValueError):
                week12._drop(*args, allowed)
            continue

        def log_p(seen, scores=scores, values=values, U=U, targets=targets):
            context, _ = attention.attend(scores, values, seen)
            return -F.cross_entropy(context @ U.T, targets, reduction="none")

        drop = week12._drop(*args, allowed)
        for s in range(len(allowed)):
            seen = allowed & (torch.arange(len(allowed)) != s)
            torch.testing.assert_close(drop[:, s], log_p(allowed) - log_p(seen))
        assert (drop[:, ~allowed] == 0).all()


def test_coverage_adds_up_to_the_outputs():
    weights = torch.from_numpy(week12._alpha(Draw(1, "alpha"), 6, 30))
    cover = week12._coverage(weights)
    assert float(cover.sum()) == pytest.approx(6)
    assert (cover >= 0.5).sum() <= 12, "no model can light more columns"
    most = torch.zeros(6, 30)
    most[torch.arange(12) // 2, torch.arange(12)] = 0.5
    assert (week12._coverage(most) < 0.5).sum() == 18


def test_hiding_oracle_is_torchs():
    for probe in week12._one_cell(Draw(6, "cell")):
        x, w_q, w_k, w_v = tensors(*probe.args)
        t = x.shape[-2]
        if t == 1:
            continue
        mask = torch.ones(t, t, dtype=torch.bool)
        if probe.kwargs:
            mask[probe.kwargs["row"], probe.kwargs["col"]] = False
        expected = F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, attn_mask=mask)
        torch.testing.assert_close(week12._without(x, w_q, w_k, w_v, **probe.kwargs), expected)


def test_hiding_the_referent_leaves_chance():
    draw, right = Draw(0, "chance"), {0: [], 1: [], 2: [], None: []}
    for _ in range(20):
        story = week12._stories(draw, 20, 8, 4)
        args = tensors(*story["args"])
        for column, found in right.items():
            cols = None if column is None else torch.from_numpy(story["spots"][:, column])
            found.append(week12._accuracy(*args, cols))
    hidden, other, head, whole = (np.mean(right[c]) for c in (0, 1, 2, None))
    assert whole > 0.99 and other > 0.99 and head > 0.99
    assert abs(hidden - 1 / 4) < 5 * math.sqrt(3 / 16 / 400)


# what the cells print


@pytest.fixture(scope="module")
def printed():
    """What the comparing cell of each question prints after the model answer."""
    out = {}
    for name, question in QUESTIONS.items():
        names = namespace(question, question.model())
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(source.load("week12").find("try", name), names)
        out[name] = text.getvalue()
    return out


def column(text, pattern):
    return [float(x) for x in re.findall(pattern, text)]


def test_source_decides_the_sentence(printed):
    text = printed["12-5"]
    assert min(column(text, r"原文あり ([\d.]+)")) > 0.9
    assert all(0.15 < p < 0.35 for p in column(text, r"原文なし ([\d.]+)"))
    lengths = re.findall(r"(\d) 語 → (\d) 語", text)
    assert lengths == [("3", "2"), ("3", "4"), ("5", "3"), ("3", "2")]
    assert "和 1.000" in text


def test_only_the_root_keeps_the_spread(printed):
    text = printed["12-6"]
    spread, top = column(text, r"分散 +([\d.]+)　最大"), column(text, r"最大の重み ([\d.]+)")
    dims = (1, 4, 16, 64, 256)
    for i, d in enumerate(dims):
        assert spread[i] == pytest.approx(d, rel=0.1)
        assert spread[5 + i] == pytest.approx(1, rel=0.1)
        assert spread[10 + i] == pytest.approx(1 / d, rel=0.1)
    assert top[4] > 0.9 and 0.25 < min(top[5:10]) < max(top[5:10]) < 0.35 and top[14] < 0.12
    assert column(text, r"√d で割った分散 ([\d.]+)") == pytest.approx([1, 4, 64], rel=0.1)
    assert column(text, r"指数 ([\d.]+)") == pytest.approx([1], abs=0.05)
    assert column(text, r"平均 [\d.]+　分散 ([\d.]+)") == [1, 0.1875]


def test_the_heaviest_column_is_not_needed(printed):
    text = printed["12-7"]
    translation, summary = column(text, r"使われない列 ([\d.]+)")
    assert translation <= 0.2 and summary >= 0.5
    assert column(text, r"戻らない割合 ([\d.]+)")[1] > 0.5
    assert text.splitlines()[2].split()[0] == "." and column(text, r"困り方 (\S+)")[0] < 0
    assert min(column(text, r"困り方 (\S+)")[1:]) > 0


def test_the_intervention_tells_and_the_weight_does_not(printed):
    text = printed["12-8"]
    assert text.count("2 層目の it → <s>") == 2
    assert "tired　答え animal" in text and "wide　答え street" in text
    assert column(text, r"二層目の it から隠す　正解率 ([\d.]+)") == [1, 0.25, 1, 1, 1]
    assert column(text, r"一層目の it から隠す　正解率 ([\d.]+)") == [0.5]
