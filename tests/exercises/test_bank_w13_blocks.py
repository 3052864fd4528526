"""Week 13's questions 13-3 to 13-7: oracles against lib and torch, points, what the cells print."""

import json
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from exercises.checks import week13
from exercises.checks import week13_blocks as blocks
from exercises.grading import judge, public
from exercises.grading.callers import InProcess
from exercises.grading.check import Draw
from lib import text
from lib.attention import (
    AdditiveAttention,
    MultiHeadAttention,
    attention,
    causal_mask,
    dot_attention,
)
from lib.transformer import FeedForward, Transformer, TransformerConfig
from lib.variants import LanguageModelConfig, TransformerLM
from tests.exercises.test_release import solved
from tools import exercises as tool
from tools import lint_text

QUESTIONS = {q.id: q for q in blocks.QUESTIONS}


def tensors(arrays):
    return [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays]


def linear(layer, weight, bias=None):
    """nn.Linear keeps (out, in)."""
    with torch.no_grad():
        layer.weight.copy_(weight.mT)
        if bias is not None:
            layer.bias.copy_(bias)


def test_the_week_is_whole():
    assert [q.id for q in week13.QUESTIONS] == [f"13-{i}" for i in range(1, 8)]
    linter = lint_text.Linter(tool.ROOT)
    linter.plain_file(tool.COURSE / "checks" / "week13_blocks.py")
    assert not [str(f) for f in linter.findings if not f.warning]


POINTS = {
    ("13-3", "interleaved"): [0, 3, 2, 1],
    ("13-3", "mask-first-head"): [2, 0, 2, 1],
    ("13-3", "parts-columns"): [2, 3, 0, 1],
    ("13-3", "answer-one-head-out"): [2, 3, 2, 0],
    ("13-4", "mask-never"): [0, 2, 2, 1, 1],
    ("13-4", "leak-own-position"): [2, 0, 2, 1, 1],
    ("13-4", "not-shifted"): [2, 2, 0, 1, 1],
    ("13-4", "forgets"): [2, 2, 2, 0, 1],
    ("13-4", "answer-cannot-train"): [2, 2, 2, 1, 0],
    ("13-5", "value-is-key"): [0, 2, 2, 1],
    ("13-5", "additive-value"): [3, 0, 2, 1],
    ("13-5", "root-missing"): [3, 2, 0, 1],
    ("13-5", "answer-value-is-context"): [3, 2, 2, 0],
    ("13-6", "no-activation"): [0, 2, 3, 1],
    ("13-6", "no-recurrence"): [2, 0, 3, 1],
    ("13-6", "neighbour-only"): [2, 2, 0, 1],
    ("13-6", "answer-layers-share"): [2, 2, 3, 0],
    ("13-7", "causal-strict"): [0, 2, 2, 2],
    ("13-7", "no-residual"): [2, 0, 2, 2],
    ("13-7", "hole-seen"): [2, 2, 0, 2],
    ("13-7", "answer-gpt-has-cross"): [2, 2, 2, 0],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_wrong_function_costs_only_its_own_points(name):
    for (question, wrong), expected in POINTS.items():
        if question == name:
            report = judge.verdict(QUESTIONS[name], judge.bank(QUESTIONS[name], 0)[wrong], 0)
            assert [part.points for part in report.parts] == expected, wrong


@pytest.mark.parametrize("name", QUESTIONS)
def test_thought_answers_are_not_given_away(name):
    """No case of the notebook asks for them; other answers get nothing, and no wrong cause."""
    question, function = QUESTIONS[name], f"answer_{name.replace('-', '_')}"
    assert function not in json.dumps(public.cases(question), ensure_ascii=False)
    (check,) = (c for c in question.checks if not c.calls(1, public=True))
    for value in ("None", "17", "'か'", "(1, 2, 3, 4)", "[]", "{}[0]"):
        code = f"{question.model()}\n\ndef {function}():\n    return {value}\n"
        report = judge.judge(question, InProcess(code), 3)
        (result,) = (r for r in report.results if not r.passed)
        assert result.name == check.name and not result.cause, value
        (part,) = (p for p in question.parts if check in p.checks)
        assert report.points == question.points - part.points


# 13-3


@pytest.mark.parametrize("masked", [False, True])
def test_heads_are_libs_and_torchs(masked):
    x, *w, h = tensors(blocks._head_args(Draw(3, "t"), 2))
    t, d = x.shape[-2:]
    ours = MultiHeadAttention(d, h).double()
    theirs = nn.MultiheadAttention(d, h, bias=False, batch_first=True).double()
    for part, weight in zip((ours.w_q, ours.w_k, ours.w_v, ours.w_o), w, strict=True):
        linear(part, weight)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([m.mT for m in w[:3]]))
        linear(theirs.out_proj, w[3])
    mask = causal_mask(t) if masked else None
    made = blocks._multi_head(x, *w, h, mask)
    blocked = None if mask is None else ~mask
    torch_made = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
    for mine, libs, torchs in zip(made, ours(x, x, mask), torch_made, strict=True):
        torch.testing.assert_close(mine, libs)
        torch.testing.assert_close(mine, torchs)
    if not masked:
        torch.testing.assert_close(blocks._parts(x, *w, h).sum(-3), made[0])
    torch.testing.assert_close(blocks._split(x, h), ours.split(x))


def test_counted_dimensions_are_libs():
    big = MultiHeadAttention(768, 12)
    heads, _ = big.keys_values(torch.zeros(1, 1, 768))
    out, _ = big(torch.zeros(1, 1, 768), torch.zeros(1, 1, 768))
    count = sum(p.numel() for p in big.parameters())
    model = InProcess(QUESTIONS["13-3"].model()).namespace["answer_13_3"]()
    assert model == (heads.shape[-1], out.shape[-1], count) == (64, 768, 2_359_296)


# 13-4


@pytest.mark.parametrize("masked", [False, True])
def test_training_by_hand_is_autograds(masked):
    draw = Draw(1, "train")
    scores, table, t, v, b = blocks._tables(draw)
    targets = torch.from_numpy(blocks._clock(draw, b, t, v))
    pair = tensors((scores, table))
    made = blocks._train(*pair, targets, masked, 0.7, 4)
    inputs = torch.cat([torch.full((b, 1), v), targets[:, :-1]], 1)

    def loss_of(s, u):
        logits = blocks._decode(s, u, inputs, masked)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    for _ in range(4):
        pair = [w.detach().requires_grad_() for w in pair]
        slopes = torch.autograd.grad(loss_of(*pair), pair)
        pair = [w - 0.7 * g for w, g in zip(pair, slopes, strict=True)]
    torch.testing.assert_close(made[:2], tuple(w.detach() for w in pair))
    assert made[2] == pytest.approx(loss_of(*pair).item())


def test_only_the_masked_decoder_learns_the_rule():
    """Loss below what the rule itself must pay; all but the last target are in the input."""
    kinds, length, share = 7, 8, []
    for seed in range(3):
        draw = Draw(seed, "clock")
        data = torch.from_numpy(blocks._clock(draw, 300, length, kinds))
        p_step = 0.75 + 0.25 / kinds
        floor = -p_step * math.log(p_step) - (1 - p_step) * math.log(0.25 / kinds)
        floor = (math.log(kinds) + (length - 1) * floor) / length
        start = tensors((draw.normal(length, length) / 10, draw.normal(kinds + 1, kinds) / 10))
        for masked in (True, False):
            scores, table, loss = blocks._train(*start, data, masked, 10.0, 300)
            firsts = torch.arange(kinds)[:, None]
            rows = [blocks._write(scores, table, f, length, masked) for f in firsts]
            right = (torch.stack(rows).diff(dim=1) % kinds == 1).double().mean().item()
            leaked = blocks._leak(scores, table, data[0], 3, masked)
            assert (leaked == 0) == masked and (leaked > 1) != masked
            if masked:
                assert abs(loss - floor) < 0.1 and right == 1
            else:
                assert math.log(kinds) / length - 0.02 < loss < 0.3 * floor
                share.append(right)
    assert max(share) < 0.1


# 13-5


def test_cross_attention_is_libs_and_week_12s():
    states, memory, w_q, w_k, w_v = tensors(blocks._cross_args(Draw(2, "t"), 3))
    mask = torch.from_numpy(Draw(2, "mask").mask(3, 1, memory.shape[-2]))
    made = blocks._cross(states, memory, w_q, w_k, w_v, mask)
    for mine, libs in zip(
        made, attention(states @ w_q, memory @ w_k, memory @ w_v, mask), strict=True
    ):
        torch.testing.assert_close(mine, libs)
    e = memory.shape[-1]
    w, eye = torch.randn(states.shape[-1], e, dtype=torch.float64), torch.eye(e).double()
    made = blocks._cross(states, memory, blocks._query_weight(w), eye, eye)
    for mine, libs in zip(made, dot_attention(states @ w, memory, memory), strict=True):
        torch.testing.assert_close(mine, libs)


def test_additive_attention_is_libs_and_has_the_known_values():
    lib_one = AdditiveAttention(3, 5, 7).double()
    w_1, w_2, v = (torch.randn(*s, dtype=torch.float64) for s in ((3, 7), (5, 7), (7, 1)))
    for layer, weight in ((lib_one.w_q, w_1), (lib_one.w_k, w_2), (lib_one.v, v)):
        linear(layer, weight)
    states, memory = torch.randn(2, 4, 3).double(), torch.randn(2, 6, 5).double()
    made = blocks._additive(states, memory, w_1, w_2, v[:, 0])
    for mine, libs in zip(made, lib_one(states, memory, memory), strict=True):
        torch.testing.assert_close(mine, libs)
    h = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    context, weights = blocks._additive(h[:1], h, torch.eye(2), torch.eye(2), torch.ones(2))
    assert weights[0].tolist() == pytest.approx([0.204462, 0.357645, 0.437893], abs=1e-6)
    assert context[0].tolist() == pytest.approx([0.642355, 0.795538], abs=1e-6)
    plain = blocks._cross(h[:1], h, blocks._query_weight(torch.eye(2)), torch.eye(2), torch.eye(2))
    assert plain[0][0].tolist() == pytest.approx([0.844638, 0.577681], abs=1e-6)


# 13-6


def test_networks_are_libs_and_torchs():
    x, w_1, b_1, w_2, b_2 = tensors(blocks._layer(Draw(4, "t"), 2))
    theirs = FeedForward(x.shape[-1], len(b_1)).double()
    linear(theirs.w_1, w_1, b_1)
    linear(theirs.w_2, w_2, b_2)
    torch.testing.assert_close(blocks._ffn(x, w_1, b_1, w_2, b_2), theirs(x))
    x, w_x, w_h, b = tensors(blocks._chain(Draw(4, "r"), 2))
    cell = nn.RNN(x.shape[-1], len(b), batch_first=True).double()
    with torch.no_grad():
        cell.weight_ih_l0.copy_(w_x.mT)
        cell.weight_hh_l0.copy_(w_h.mT)
        cell.bias_ih_l0.copy_(b)
        cell.bias_hh_l0.zero_()
    torch.testing.assert_close(blocks._rnn(x, w_x, w_h, b), cell(x)[0])


def test_influences_are_jacobians():
    jacobian = torch.autograd.functional.jacobian
    x, *w = tensors(blocks._layer(Draw(5, "t")))
    table = jacobian(lambda a: blocks._ffn(a, *w), x).norm(dim=(1, 3))
    torch.testing.assert_close(blocks._ffn_influence(x, *w), table)
    x, *w = tensors(blocks._chain(Draw(5, "r")))
    table = jacobian(lambda a: blocks._rnn(a, *w), x).norm(dim=(1, 3))
    torch.testing.assert_close(blocks._rnn_influence(x, *w), table)
    assert (table.triu(1) == 0).all() and (table.tril() > 0).sum() == len(x) * (len(x) + 1) / 2


def test_an_encoder_has_one_network_a_layer():
    model = Transformer(TransformerConfig(src_vocab=9, tgt_vocab=9, n_layers=6))
    networks = {id(m) for m in model.encoder.modules() if isinstance(m, FeedForward)}
    assert InProcess(QUESTIONS["13-6"].model()).namespace["answer_13_6"]() == (len(networks), 1, 19)


# 13-7


@pytest.mark.parametrize("causal", [False, True])
def test_masks_are_libs_and_depth_shows_no_future(causal):
    ids = text.pad([[5, 6, 7, 8], [5, 6]])
    mask = blocks._may_see(ids, text.PAD, causal)
    expected = text.padding_mask(ids)[:, None].expand(2, 4, 4)
    torch.testing.assert_close(mask, expected & causal_mask(4) if causal else expected)
    torch.manual_seed(0)
    model = TransformerLM(LanguageModelConfig(vocab_size=9, n_layers=3, causal=causal)).eval()
    assert not [n for n, _ in model.named_parameters() if "cross" in n]
    with torch.no_grad():
        before = model(ids)[0]
        for s in range(4):
            other = ids.clone()
            other[0, s] = 4
            moved = (model(other)[0] - before).abs().amax(-1) > 1e-6
            assert moved.equal(blocks._reach(mask[0], 3)[:, s])


def test_more_context_never_hurts():
    for seed in range(5):
        world = blocks._sentences(Draw(seed, "w"), 60, 1, 4)
        for position in range(4):
            left, both = (blocks._cloze(world, position, side) for side in (False, True))
            longest = max(s[position] for s in world if len(s) > position)
            assert longest and 0 < left <= both <= 1


def test_what_the_cells_print_is_what_the_text_says(courses, tmp_path):
    out = solved(week13.QUESTIONS, courses("week13"), tmp_path)

    def column(pattern):
        return [float(x) for x in re.findall(pattern, out)]

    assert column(r"ヘッド一つの広さ +(\d+)") == [16, 8, 4, 2, 1], "13-3: narrower"
    assert set(column(r"出力の広さ (\d+)")) == {16} and set(column(r"行列の成分 (\d+)")) == {1024}
    (rule,), loss = column(r"規則の驚き　([\d.]+)"), column(r"損失 ([\d.]+)　漏れ")
    assert loss[0] > rule > 3 * loss[1], "13-4: below the floor"
    assert loss[1] == pytest.approx(math.log(7) / 8, abs=0.02), "13-4: the last target is left"
    assert column(r"規則どおり ([\d.]+)") == [1, 0]
    leaks = column(r"漏れ (\S+?)　")
    assert leaks[0] == 0 < 1 < leaks[1]
    assert "書いたもの [2, 2, 2, 2, 2, 2, 2, 2]" in out, "13-4: repeats what is there"
    gaps = column(r"文脈ベクトルの変化 (\S+?)　")
    assert gaps[0] < 1e-12 and min(gaps[1:]) > 0.1, "13-5: together, nothing moves"
    assert "重み 0.2045 0.3576 0.4379" in out and "重み 0.4223 0.1554 0.4223" in out
    rows = [
        [float(v) for v in r.split("  ")] for r in re.findall(r"^    (\d\.\d\d  .*)$", out, re.M)
    ]
    one, three, chain = torch.tensor(rows).reshape(3, 6, 6)
    off = ~torch.eye(6, dtype=torch.bool)
    assert (one[off] == 0).all() and (three[off] == 0).all(), "13-6: only the diagonal"
    assert (chain.triu(1) == 0).all() and (chain[5].diff() > 0).all(), "13-6: fades to the left"
    assert column(r"の穴　左だけ ([\d.]+)") == [0.33, 0.33, 1], "13-7"
    assert column(r"の穴　左だけ \S+　両側 ([\d.]+)") == [0.33, 1, 1]
    future = column(r"そのうち右から左へ +(\d+)")
    assert future[:3] == [0, 0, 0] and len(set(future[3:6])) == 1
    assert future[6] < future[7] < future[8]
