"""The graders themselves: right ones pass, the empty one gets nothing, wrong ones their hint."""

import math
import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises.checks import week13
from exercises.grading import judge, public, selfcheck, source
from exercises.grading.callers import InProcess
from exercises.grading.check import PUBLIC_SEED, Draw

SEEDS = range(int(os.environ.get("EXERCISE_SEEDS", "20")))
FULL_SIZE = 2  # seeds whose statistics are drawn at their full size; the others take 2,000 draws
QUESTIONS = {q.id: q for q in week13.QUESTIONS}


@pytest.fixture
def draws(monkeypatch):
    def size(seed):
        monkeypatch.setattr(week13, "DRAWS", 20_000 if seed < FULL_SIZE else 2000)

    return size


@pytest.fixture(params=QUESTIONS)
def question(request):
    return QUESTIONS[request.param]


def graded(question, code, seed):
    return judge.verdict(question, judge.outcomes(question, InProcess(code), seed), seed)


def test_right_answers_get_full_marks(question, draws):
    model = question.model()
    answers = {"model": model} | {r.id: r.source(model) for r in question.right}
    assert len(answers) >= 4
    for seed in SEEDS:
        draws(seed)
        for name, code in answers.items():
            report = graded(question, code, seed)
            assert report.points == question.points, f"{name}, seed {seed}\n{report.text()}"
            assert "×" not in report.text()


def test_each_wrong_answer_fails_with_its_own_hint(question, draws):
    assert len(question.wrong) >= 12
    hints = {wrong.id: wrong.hint for wrong in question.wrong}
    assert len(set(hints.values())) == len(hints)
    codes = {wrong.id: wrong.source(question.model()) for wrong in question.wrong}
    for seed in SEEDS:
        draws(seed)
        for name, outcomes in judge.bank(question, seed).items():
            if seed == 0:  # a second run, as a student's own would be
                outcomes = judge.outcomes(question, InProcess(codes[name]), seed)
            report = judge.verdict(question, outcomes, seed)
            assert report.points < question.points, f"{name} passes at seed {seed}"
            assert report.causes == [name], f"seed {seed}: {name} is taken for {report.causes}"
            assert hints[name] in report.text()


def test_empty_answer_gets_nothing(question):
    start = source.starting(source.load("week13").find("answer", question.id))
    for code in (start, "", "x = 1", "import torch\nraise SystemExit"):
        report = graded(question, code, 0)
        assert report.points == 0
        assert not report.causes
    assert "まだ書かれていません" in graded(question, start, 0).text()
    assert "見つかりません" in graded(question, "", 0).text()


def test_a_wrong_function_costs_only_its_own_points():
    """Later functions are judged with the earlier ones put right."""
    points = {
        ("13-1", "no-scale"): [0, 0, 3],
        ("13-1", "mask-ignored"): [3, 0, 3],
        ("13-1", "gap-inverse"): [3, 2, 0],
        ("13-2", "plus"): [0, 3, 2],
        ("13-2", "divide-by-dk"): [3, 0, 2],
        ("13-2", "ratio-inverse"): [3, 3, 0],
    }
    for (name, wrong), expected in points.items():
        report = judge.verdict(QUESTIONS[name], judge.bank(QUESTIONS[name], 0)[wrong], 0)
        assert [part.points for part in report.parts] == expected, wrong


def test_the_report_names_no_hidden_value(question):
    seed = 5
    hidden = set()
    for _, probe, want in judge.plan(question, seed):
        values = [*probe.args, *probe.kwargs.values(), getattr(want, "value", None)]
        arrays = [v for v in values if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
        hidden |= {f"{x:.4f}" for a in arrays for x in a.ravel() if abs(x) > 1e-3}
    for name, outcomes in judge.bank(question, seed).items():
        text = judge.verdict(question, outcomes, seed).text()
        assert not [number for number in hidden if number in text], name
        assert str(seed) * 8 not in text


def test_public_examples_are_mentioned(question):
    wrong = question.wrong[0]
    caller = InProcess(wrong.source(question.model()))
    text = judge.judge(question, caller, 1).text()
    assert f'check("{question.id}") の「' in text
    assert "考えられる原因" in text and "読み直す所" in text


def test_points_are_as_stated(question):
    info = source.load("week13").questions[question.id]
    assert question.points == info.code in (7, 8)
    assert len({check.name for check in question.checks}) == len(question.checks)


def namespace(question, code):
    """The notebook after its first cell, the answer and the check cell."""
    names = vars(selfcheck).copy() | {"VISIBLE": {}, "CASES": {question.id: public.cases(question)}}
    caller = InProcess(code)
    check = source.load("week13").find("check", question.id)
    caller.namespace.update({k: v for k, v in names.items() if not k.startswith("__")})
    own = (source.ROOT / "grading" / "selfcheck.py").read_text(encoding="utf-8")
    exec(own, caller.namespace)
    exec(code, caller.namespace)
    caller.namespace["CASES"][question.id] = public.cases(question)
    exec(check.replace(f'check("{question.id}")', ""), caller.namespace)
    return caller.namespace


def test_self_check_in_the_notebook_says_the_same(question):
    """In the notebook, too: right ones pass, wrong ones fail and are told their own hint."""
    model = question.model()
    answers = [(r.id, r.source(model), None) for r in question.right] + [("model", model, None)]
    answers += [(w.id, w.source(model), w.hint) for w in question.wrong]
    unnamed = []
    for name, code, hint in answers:
        names = namespace(question, code)
        found = names["findings"](question.id, names)
        texts = [(check, text) for check, text, _ in found if text]
        hints = {cause for _, _, cause in found if cause}
        assert bool(texts) == (hint is not None), (name, texts)
        assert hints <= {hint}, name
        unnamed += [name] if hint and not hints else []
    assert len(unnamed) <= 1, unnamed


def test_self_check_of_the_empty_answer(question, capsys):
    start = source.starting(source.load("week13").find("answer", question.id))
    names = namespace(question, start)
    names["check"](question.id)
    assert capsys.readouterr().out == f"{question.id}：まだ書かれていません\n"
    assert names["ready"](question.id) is False


# the oracles, against torch and against the known values


@pytest.mark.parametrize("masked", [False, True])
def test_attention_oracle_is_torchs(masked):
    x, *w = (torch.from_numpy(a) for a in week13._self(Draw(3, "t"), 2))
    t = x.shape[-2]
    mask = torch.ones(t, t, dtype=torch.bool).tril() if masked else None
    out, weights = week13._attention(x, *w, mask)
    expected = F.scaled_dot_product_attention(x @ w[0], x @ w[1], x @ w[2], attn_mask=mask)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_gap_is_zero_only_without_positions_and_mask():
    gaps = {"none": [], "positions": [], "mask": []}
    for seed in SEEDS:
        draw = Draw(seed, "gap")
        x, *w = (torch.from_numpy(a) for a in week13._self(draw))
        t, d = x.shape
        perm = torch.from_numpy(draw.permutation(t))
        positions, causal = torch.from_numpy(draw.normal(t, d)), torch.ones(t, t).bool().tril()
        gaps["none"].append(week13._gap(x, perm, *w))
        gaps["positions"].append(week13._gap(x, perm, *w, positions=positions))
        gaps["mask"].append(week13._gap(x, perm, *w, mask=causal))
    assert max(gaps["none"]) < 1e-12
    assert min(gaps["positions"]) > 1e-2 and min(gaps["mask"]) > 1e-2


def test_jacobian_oracle_is_the_formula():
    z = torch.randn(3, 5, dtype=torch.float64)
    p = z.softmax(-1)
    formula = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    torch.testing.assert_close(week13._jacobian(z), formula, rtol=0, atol=1e-10)
    assert torch.allclose(week13._size(p), formula.flatten(-2).norm(dim=-1))


def test_saturation_is_as_known():
    """32 keys, 20,000 draws: the values of the fact check; smaller without scaling only from 64."""
    generator = torch.Generator().manual_seed(0)
    length = torch.randn(20_000, 64, generator=generator).norm(dim=-1, keepdim=True)
    scores = length * torch.randn(20_000, 32, generator=generator)
    for z, largest, entropy in ((scores, 0.816, 0.496), (scores / 8, 0.164, 3.021)):
        p = z.softmax(-1)
        assert abs(p.amax(-1).mean() - largest) < 0.03
        assert abs(torch.special.entr(p).sum(-1).mean() - entropy) < 0.03
    ratios = {d_k: week13._ratio(d_k, 32, 20_000, 1).value for d_k in (4, 16, 64, 1024)}
    assert ratios[4] > 1 and ratios[16] > 1 and ratios[64] < 1 and ratios[1024] < 0.5


def test_bands_separate_the_belief_that_scaling_always_helps():
    """ratio-clamped is far outside the band, so it fails whatever the draws are."""
    for seed in range(60):
        band = week13._ratio(3, 13 + seed % 3, 2000, seed)
        assert band.value - 1 > band.width
        assert math.isfinite(band.width)


def test_public_seed_is_not_a_grading_seed():
    from exercises.grading.nbgrader_plugin import seed_number

    assert seed_number("a", "week13") != seed_number("b", "week13") != PUBLIC_SEED
    assert seed_number("a", "week13") == seed_number("a", "week13")
