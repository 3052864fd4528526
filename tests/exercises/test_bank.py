"""The graders themselves: right ones pass, the empty one gets nothing, wrong ones their hint."""

import importlib
import itertools
import math
import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from exercises.checks import week11, week13
from exercises.grading import judge, public, selfcheck, source
from exercises.grading.callers import InProcess
from exercises.grading.check import PUBLIC_SEED, Draw
from lib import ngram
from lib.neural_lm import NPLM

SEEDS = range(int(os.environ.get("EXERCISE_SEEDS", "20")))
SEEDS_OF_WRONG = SEEDS[: max(5, len(SEEDS) // 4)]  # a bank is ten times as many answers
MODULES = {
    name: importlib.import_module(f"exercises.checks.{name}")
    for name in source.weeks()
    if (source.ROOT / "checks" / f"{name}.py").exists()
}
QUESTIONS = {q.id: q for module in MODULES.values() for q in module.QUESTIONS}


def test_every_week_has_its_checks_and_a_hundred_points():
    assert sorted(MODULES) == source.weeks()
    for name, module in MODULES.items():
        week = source.load(name)
        assert [q.id for q in module.QUESTIONS] == list(week.questions)
        assert sum(i.code + i.text for i in week.questions.values()) == 100


def week_of(question):
    return source.load(f"week{question.id.split('-')[0]}")


@pytest.fixture(params=QUESTIONS)
def question(request):
    return QUESTIONS[request.param]


def graded(question, code, seed):
    return judge.verdict(question, judge.outcomes(question, InProcess(code), seed), seed)


def test_right_answers_get_full_marks(question):
    model = question.model()
    answers = {"model": model} | {r.id: r.source(model) for r in question.right}
    assert len(answers) >= 4
    for seed in SEEDS:
        for name, code in answers.items():
            report = graded(question, code, seed)
            assert report.points == question.points, f"{name}, seed {seed}\n{report.text()}"
            assert "×" not in report.text()


def test_each_wrong_answer_fails_with_its_own_hint(question):
    assert len(question.wrong) >= 12
    hints = {wrong.id: wrong.hint for wrong in question.wrong}
    assert len(set(hints.values())) == len(hints)
    codes = {wrong.id: wrong.source(question.model()) for wrong in question.wrong}
    for seed in SEEDS_OF_WRONG:
        for name, outcomes in judge.bank(question, seed).items():
            if seed == 0:  # a second run, as a student's own would be
                outcomes = judge.outcomes(question, InProcess(codes[name]), seed)
            report = judge.verdict(question, outcomes, seed)
            assert report.points < question.points, f"{name} passes at seed {seed}"
            assert report.causes == [name], f"seed {seed}: {name} is taken for {report.causes}"
            assert hints[name] in report.text()


def test_empty_answer_gets_nothing(question):
    start = source.starting(week_of(question).find("answer", question.id))
    for code in (start, "", "x = 1", "import torch\nraise SystemExit"):
        report = graded(question, code, 0)
        assert report.points == 0
        assert not report.causes
    assert "まだ書かれていません" in graded(question, start, 0).text()
    assert "見つかりません" in graded(question, "", 0).text()


def test_a_wrong_function_costs_only_its_own_points():
    """Later functions are judged with the earlier ones put right."""
    points = {
        ("11-1", "no-eos"): [0, 3, 2],
        ("11-1", "skip-zero"): [3, 0, 2],
        ("11-2", "v-without-eos"): [0, 3, 2],
        ("11-2", "mass-one"): [3, 3, 0],
        ("11-3", "mean-of-perplexities"): [2, 0, 2],
        ("11-4", "share-seen"): [2, 0, 2],
        ("11-5", "frequency"): [0, 3, 3],
        ("11-5", "no-followers"): [2, 0, 3],
        ("11-6", "unseen-zero"): [0, 2, 3],
        ("11-6", "tuned-on-test"): [2, 2, 0],
        ("11-7", "bag-of-words"): [2, 0, 3],
        ("11-8", "unk-swapped"): [2, 2, 0, 2],
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


def numbers(value):
    """Every number that is not whole, inside an argument or a right value."""
    value = getattr(value, "data", value) if not isinstance(value, np.ndarray) else value
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return set(value.ravel().tolist())
    if isinstance(value, tuple | list):
        return set().union(*map(numbers, value))
    return {value} if isinstance(value, float) and value % 1 else set()


def test_the_report_names_no_hidden_value(question):
    seed = 5
    hidden = set()
    for _, probe, want in judge.plan(question, seed):
        values = [*probe.args, *probe.kwargs.values(), getattr(want, "value", None)]
        found = {x for v in values for x in numbers(v)}
        hidden |= {f"{x:.4f}" for x in found if abs(x) > 1e-3 and math.isfinite(x)}
    hidden -= {"0.5000", "0.7500", "0.2500"}  # named in some hints
    assert hidden
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
    info = week_of(question).questions[question.id]
    assert question.points == info.code in (7, 8)
    assert len({check.name for check in question.checks}) == len(question.checks)


def namespace(question, code):
    """The notebook after its first cell, the answer and the check cell."""
    names = vars(selfcheck).copy() | {"VISIBLE": {}, "CASES": {question.id: public.cases(question)}}
    caller = InProcess(code)
    check = week_of(question).find("check", question.id)
    caller.namespace.update({k: v for k, v in names.items() if not k.startswith("__")})
    own = (source.ROOT / "grading" / "selfcheck.py").read_text(encoding="utf-8")
    exec(own, caller.namespace)
    exec(code, caller.namespace)
    caller.namespace["CASES"][question.id] = public.cases(question)
    exec(check.replace(f'check("{question.id}")', ""), caller.namespace)
    return caller.namespace


def graded_only(question):
    """Wrong choices of a sub-answer that the notebook must not give away."""
    silent = {c.name for c in question.checks if not c.calls(PUBLIC_SEED, public=True)}
    reports = {
        name: judge.verdict(question, outcomes, 0)
        for name, outcomes in judge.bank(question, 0).items()
    }
    return {n for n, r in reports.items() if {x.name for x in r.results if not x.passed} <= silent}


def test_choices_are_not_told_in_the_notebook(question):
    hidden, hints = graded_only(question), public.cases(question)["hints"]
    for wrong, told in zip(question.wrong, hints, strict=True):
        assert told in ("", wrong.hint)
        if wrong.id in hidden:
            answer = InProcess(wrong.source(question.model()))
            text = judge.judge(question, answer, 0).text()
            assert told == "" and wrong.hint in text and "公開の例" not in text


def test_self_check_in_the_notebook_says_the_same(question):
    """In the notebook, too: right ones pass, wrong ones fail and are told their own hint."""
    model = question.model()
    answers = [(r.id, r.source(model), None) for r in question.right] + [("model", model, None)]
    answers += [(w.id, w.source(model), w.hint) for w in question.wrong]
    unnamed, hidden = [], graded_only(question)
    for name, code, hint in answers:
        hint = None if name in hidden else hint
        names = namespace(question, code)
        found = names["findings"](question.id, names)
        texts = [(check, text) for check, text, _ in found if text]
        hints = {cause for _, _, cause in found if cause}
        assert bool(texts) == (hint is not None), (name, texts)
        assert hints <= {hint}, name
        unnamed += [name] if hint and not hints else []
    assert len(unnamed) <= max(1, len(question.wrong) // 10), unnamed


def test_self_check_of_the_empty_answer(question, capsys):
    start = source.starting(week_of(question).find("answer", question.id))
    names = namespace(question, start)
    names["check"](question.id)
    assert capsys.readouterr().out == f"{question.id}：まだ書かれていません\n"
    assert names["ready"](question.id) is False


# the oracles of week 11, against lib and against the known values

TOY = tuple(tuple(s.split()) for s in ("猫 が 走る", "犬 が 走る", "猫 が 眠る"))
SENTENCE = (("犬", "が", "眠る"),)


def corpora():
    for seed in range(5):
        yield week11._train(Draw(seed, "corpus"))[1:]


def test_ngram_oracles_know_the_three_sentences():
    assert week11._mle(TOY, "が", "走る") == week11._mle(TOY, "<s>", "猫") == 2 / 3
    assert week11._mle_perplexity(TOY, SENTENCE) == pytest.approx(math.sqrt(3))
    for n, k, value in ((2, 1, 3.9686), (3, 1, 4.4321), (2, 0.01, 1.7832), (3, 0.01, 4.3368)):
        assert week11._add_k_perplexity(TOY, SENTENCE, n, k) == pytest.approx(value, abs=5e-5)
    assert week11._add_k_perplexity(TOY, SENTENCE, 3, 0) == math.inf
    assert week11._continuation(TOY, "が") == 2 / 8
    probs = [
        week11._discounted(TOY, c[0], w, 0.75, week11._continuation(TOY, w))
        for c, w in week11._grams(SENTENCE, 2)
    ]
    assert probs == pytest.approx([7 / 48, 7 / 16, 7 / 48, 7 / 16])
    long, short = map(np.array, week11._evidence(TOY, SENTENCE))
    assert ((long + short) / 2).tolist() == pytest.approx([5 / 24, 5 / 8, 5 / 24, 5 / 8])


def test_ngram_oracles_are_libs():
    for corpus, context in corpora():
        models = {
            "mle": ngram.mle(corpus, 2),
            "add": ngram.add_k(corpus, 2, 0.3),
            "kn": ngram.kneser_ney(corpus, 2, 0.6),
        }
        for word in week11._vocabulary(corpus):
            lower = week11._continuation(corpus, word)
            mine = {
                "mle": week11._mle(corpus, context[0], word),
                "add": week11._add_k(corpus, context, word, 0.3),
                "kn": week11._discounted(corpus, context[0], word, 0.6, lower),
            }
            for name, model in models.items():
                assert mine[name] == pytest.approx(model.prob(word, context), abs=1e-12)
        tests = (*corpus[:2], ("象", corpus[0][0]))
        for n in (1, 2, 3):
            assert week11._unseen(corpus, tests, n) == ngram.unseen_rate(corpus, tests, n)


def test_replacing_a_row_never_helps_and_counts_match_only_by_kinds():
    for corpus, (busy,) in corpora():
        row = week11._rows(Draw(1, busy), corpus, busy, "象")
        assert week11._increase(corpus, busy, row) > 0
        for word in week11._vocabulary(corpus):
            expected = [0.0, 0.0]
            pairs = week11._pairs(corpus)
            count = sum(w == word for _, w in pairs)
            for i, lower in enumerate((count / len(pairs), week11._continuation(corpus, word))):
                each = [week11._discounted(corpus, v, word, 0.7, lower) for v, _ in pairs]
                expected[i] = sum(each) - count
            assert expected == pytest.approx(week11._overshoot(corpus, word, 0.7), abs=1e-9)


def test_lambda_oracle_is_the_end_of_em():
    train, held, test = week11._splits(Draw(3, "splits"))
    history = ngram.fit_lambdas(train, held, 2, steps=200)
    assert week11._best(*week11._evidence(train, held)) == pytest.approx(history[-1][0], abs=1e-3)
    assert week11._best(*week11._evidence(train, train)) == pytest.approx(1, abs=1e-6)
    assert math.isfinite(week11._tuned(train, held, test)[1])


def test_missing_mass_oracle_by_enumeration():
    p = [0.5, 0.3, 0.2]
    brute = sum(
        math.prod(p[i] for i in draws) * sum(p[i] for i in range(3) if i not in draws)
        for draws in itertools.product(range(3), repeat=4)
    )
    assert week11._missing(torch.tensor(p, dtype=torch.float64) * 7, 4) == pytest.approx(brute)


@pytest.mark.parametrize("direct", [False, True])
def test_nplm_oracles_are_libs(direct):
    torch.manual_seed(0)
    model = NPLM(7, 4, 3, 5, direct=direct).double()
    weights = [model.embedding.weight, model.hidden.weight, model.hidden.bias]
    weights += [model.output.weight, model.output.bias]
    ids = torch.randint(0, 7, (6, 3))
    extra = model.direct.weight if direct else None
    torch.testing.assert_close(week11._scores(*weights, ids, extra), model(ids))
    count = sum(p.numel() for p in model.parameters())
    assert week11._parameters(7, 4, 3, 5, direct) == count
    assert week11._parameters(10_000, 5, 60, 50, True) == 3_522_050
    if direct:
        return
    first, second, target = ids[0], ids[1], 2
    before = model(second[None]).log_softmax(-1)[0, target].item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    given = [w.detach().clone() for w in weights]
    F.cross_entropy(model(first[None]), torch.tensor([target])).backward()
    optimizer.step()
    after = model(second[None]).log_softmax(-1)[0, target].item()
    assert week11._transfer(*given, first, target, second, 0.3) == pytest.approx(after - before)


def test_comparing_oracles():
    assert week11._bits(("犬", "が", "眠る"), (1 / 3, 1, 1 / 3, 1)) == pytest.approx(
        week11._bits(tuple("犬が眠る"), (1 / 3, 1, 1 / 3, 1, 1))
    )
    assert week11._convert(9 ** (1 / 4), 4, 5) == pytest.approx(9 ** (1 / 5))
    for corpus, _ in corpora():
        values = [week11._unk(corpus, corpus, c) for c in range(1, 12)]
        for (cheap, paid), (cheaper, dearer) in itertools.pairwise(values):
            assert cheaper <= cheap + 1e-12 and dearer >= paid - 1e-12


# the oracles of week 13, against torch and against the known values


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
