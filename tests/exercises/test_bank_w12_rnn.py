"""12-1 to 12-4: oracles against lib, torch and hand values; points; what the try cells print."""

import itertools
import math
import re

import pytest
import torch
from test_bank import graded, namespace, week_of

from exercises.checks import week12_rnn as w12
from exercises.grading import judge
from exercises.grading.check import PUBLIC_SEED, Draw
from lib import ngram
from lib.attention import attend, masked_softmax
from lib.decode import greedy
from lib.rnn import RNNCell, unroll
from lib.text import BOS, EOS

QUESTIONS = {q.id: q for q in w12.QUESTIONS}
F64 = {"dtype": torch.float64}


@pytest.fixture(params=QUESTIONS)
def question(request):
    return QUESTIONS[request.param]


# points and the answers that are looked at only when graded


@pytest.mark.parametrize(
    ("name", "wrong", "points"),
    [
        ("12-1", "n-words", [0, 2, 2, 1]),
        ("12-1", "transposed-w-h", [2, 0, 2, 1]),
        ("12-1", "summed-output", [2, 2, 0, 1]),
        ("12-1", "window-five", [2, 2, 2, 0]),
        ("12-2", "count-with-length", [0, 3, 2, 1]),
        ("12-2", "gradient-mean", [1, 0, 2, 1]),
        ("12-2", "fit-on-train", [1, 3, 0, 1]),
        ("12-2", "choice-order", [1, 3, 2, 0]),
        ("12-3", "inverted", [0, 2, 2, 1]),
        ("12-3", "same-prefix", [3, 0, 2, 1]),
        ("12-3", "linear-decay", [3, 2, 0, 1]),
        ("12-3", "choice-bias", [3, 2, 2, 0]),
        ("12-4", "plain-sum", [0, 2, 3, 1]),
        ("12-4", "nan-at-zero", [1, 0, 3, 1]),
        ("12-4", "hot-unnormalised", [1, 2, 0, 1]),
        ("12-4", "choice-sum", [1, 2, 3, 0]),
    ],
)
def test_a_wrong_function_costs_only_its_own_points(name, wrong, points):
    code = next(w for w in QUESTIONS[name].wrong if w.id == wrong).source(QUESTIONS[name].model())
    report = graded(QUESTIONS[name], code, 0)
    assert [part.points for part in report.parts] == points


def hidden(question) -> set[str]:
    """Checks that have no public example."""
    return {c.name for c in question.checks if not c.calls(PUBLIC_SEED, public=True)}


def test_choices_are_told_only_when_graded(question):
    """Each has its wrong choices; the notebook says that something stands there, nothing more."""
    (check,) = hidden(question)
    assert question.parts[-1].points == 1
    assert [c.name for c in question.parts[-1].checks] == [check]
    found = {}
    for wrong in question.wrong:
        outcomes = judge.bank(question, 0)[wrong.id]
        failed = {r.name for r in judge.verdict(question, outcomes, 0).results if not r.passed}
        found.setdefault(failed == {check}, []).append(wrong)
    assert len(found[True]) >= 3
    for wrong in found[True]:
        names = namespace(question, wrong.source(question.model()))
        assert not [text for _, text, _ in names["findings"](question.id, names) if text]
    function = f"answer_{question.id.replace('-', '_')}"
    unwritten = question.model() + f"\n\ndef {function}():\n    raise NotImplementedError()\n"
    names = namespace(question, unwritten)
    told = [name for name, text, _ in names["findings"](question.id, names) if text]
    assert told == ["記号の答えが書いてあるか"]


# 12-1


def rnn(seed: int, *lead: int):
    return tuple(map(torch.from_numpy, w12._rnn(Draw(seed, "rnn"), *lead)))


def cell_of(W_x, W_h, b):
    cell = RNNCell(W_x.shape[1], len(b)).double()
    with torch.no_grad():
        cell.w_x.weight.copy_(W_x)
        cell.w_x.bias.copy_(b)
        cell.w_h.weight.copy_(W_h)
    return cell


def test_context_oracle_is_libs_and_knows_the_sentence():
    words = ["彼女", "は", "昨日", "公園", "で", "走った"]
    ids = torch.arange(4, 10)
    spelled = dict(enumerate(words, 4)) | {1: "<s>"}
    for n in (1, 2, 3, 5, 9):
        for t, (context, _) in enumerate(ngram.ngrams(words, n)):
            mine = tuple(spelled[i] for i in w12._context(ids, t, n).tolist())
            assert mine == context
    assert [spelled[i] for i in w12._context(ids, 5, 3).tolist()] == ["公園", "で"]
    assert [spelled[i] for i in w12._context(ids, 5, 5).tolist()] == ["は", "昨日", "公園", "で"]
    needed = [n for n in range(1, 9) if 4 in w12._context(ids, 5, n)]
    assert (min(needed), 5 - 1) == (6, 4)


def test_state_oracle_is_libs_torchs_and_the_hand_values():
    x, W_x, W_h, b = rnn(1, 2)
    cell = cell_of(W_x, W_h, b)
    hidden, _ = unroll(cell, x, cell.start(torch.zeros(2, len(b), **F64)))
    torch.testing.assert_close(w12._states(x, W_x, W_h, b), hidden)
    zero = torch.zeros(1, 2, len(b), **F64)
    flat = [W_x, W_h, b, b * 0]
    theirs, _ = torch.rnn_tanh(x, zero, flat, True, 1, 0.0, False, False, True)
    torch.testing.assert_close(hidden, theirs)
    one = torch.eye(2, **F64)
    states = w12._states(one, one, one / 2, torch.zeros(2, **F64))
    expected = torch.tensor([[0.761594, 0], [0.363399, 0.761594]], **F64)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)


def test_influence_oracle_by_differences():
    x, W_x, W_h, b = rnn(2)
    nudge, sizes = 1e-6, []
    for s in range(len(x)):
        total = 0.0
        for e in range(x.shape[1]):
            moved, back = x.clone(), x.clone()
            moved[s, e] += nudge
            back[s, e] -= nudge
            ends = [w12._states(y, W_x, W_h, b)[-1] for y in (moved, back)]
            total += ((ends[0] - ends[1]) / (2 * nudge)).square().sum()
        sizes.append(total.sqrt())
    mine = w12._influence(x, W_x, W_h, b)
    torch.testing.assert_close(mine, torch.stack(sizes), rtol=1e-6, atol=1e-8)


# 12-2


def test_copy_oracle_sums_to_the_shared_gradient():
    x, W_x, W_h, b = rnn(3)
    g = torch.randn(len(b), generator=torch.Generator().manual_seed(0), **F64)
    cell = cell_of(W_x, W_h, b)
    hidden, _ = unroll(cell, x[None], cell.start(torch.zeros(1, len(b), **F64)))
    (hidden[0, -1] @ g).backward()
    copies = w12._copies(x, W_x, W_h, b, g)
    torch.testing.assert_close(copies.sum(0), cell.w_h.weight.grad, rtol=1e-10, atol=1e-10)
    assert not copies[0].any(), "the first copy is multiplied by h_0 = 0"
    count = sum(p.numel() for p in cell.parameters())
    assert w12._counts(x.shape[1], len(b), 7) == (count, 7 * count)
    assert w12._counts(24, 64, 100) == (5696, 569_600)


def test_fit_oracle_is_the_best_fit():
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 9, 4, generator=g, **F64)
    shared, own = w12._fits(x, y, x, y)
    assert own < shared
    for a in torch.linspace(-3, 3, 61):
        assert (a * x - y).square().mean() >= shared - 1e-12
    with pytest.raises(ValueError):
        w12._fits(x[:, :3], y[:, :3], x, y)


def test_sharing_does_not_lose_the_place():
    """A state of one number that is above zero at odd places only: the hint says so."""
    x, one = torch.zeros(50, 1, **F64), torch.ones(1, 1, **F64)
    h = w12._states(x, one, -3 * one, torch.ones(1, **F64))[:, 0]
    assert (h[::2] > 0).all() and (h[1::2] < 0).all()


# 12-3


def decoder(seed: int):
    draw = Draw(seed, "decoder")
    t, v, d, batch = draw.sizes(4)
    weights = [torch.from_numpy(w) for w in w12._decoder(draw, v, d, batch)]
    return weights, torch.from_numpy(draw.rng.integers(0, v, (batch, t + 1)))


def test_decoder_oracle_is_an_rnn_and_libs_greedy():
    weights, tgt = decoder(1)
    E, W_h, W_y, h0 = weights
    steps = tgt.shape[1] - 1
    flat = [torch.eye(E.shape[1], **F64), W_h, torch.zeros(len(W_h), **F64)]
    flat.append(flat[-1])
    forced, _ = torch.rnn_tanh(E[tgt[:, :-1]], h0[None], flat, True, 1, 0.0, False, False, True)
    always = torch.ones(len(tgt), steps).bool()
    torch.testing.assert_close(w12._decoded(*weights, tgt, always), forced @ W_y.T)

    def step(tokens, h):
        h = torch.tanh(E[tokens] + h @ W_h.T)
        return h @ W_y.T, h

    free = w12._decoded(*weights, torch.full_like(tgt, BOS), ~always).argmax(-1).tolist()
    until_end = [row[: row.index(EOS) + 1] if EOS in row else row for row in free]
    assert greedy(step, h0, [steps] * len(tgt)) == until_end


def test_whole_sentences_do_not_feel_the_prefix():
    for seed in range(10):
        for probe in w12._prefixes(Draw(seed, "prefixes")):
            values = w12._accuracies(*map(torch.from_numpy, probe.args))
            assert values[0] > values[1] and values[2] == values[3]


def test_survival_oracle_by_enumeration():
    eps, length = 0.3, 6
    alive = reached = 0.0
    for errors in itertools.product((False, True), repeat=length):
        p = math.prod(eps if e else 1 - eps for e in errors)
        alive += p * (not any(errors))
        reached += p * (errors.index(True) if any(errors) else length)
    assert w12._survival(eps, length) == pytest.approx((alive, reached))
    assert w12._survival(0.05, 20)[0] == pytest.approx(0.3585, abs=5e-5)
    g = torch.Generator().manual_seed(0)
    share = (torch.rand(10_000, 20, generator=g) >= 0.05).all(1).double().mean().item()
    assert abs(share - 0.3585) < 3 * math.sqrt(0.3585 * 0.6415 / 10_000)


# 12-4


def test_context_and_entropy_oracles_know_the_two_ends():
    H = torch.arange(12, **F64).reshape(4, 3)
    ends = torch.tensor([[0, 0, 1, 0], [0.25] * 4], **F64)
    assert w12._context_vector(ends, H).tolist() == [[6, 7, 8], [4.5, 5.5, 6.5]]
    entropy = w12._entropy(ends)
    torch.testing.assert_close(entropy, torch.tensor([0, math.log(4)], **F64))
    random = torch.from_numpy(w12._weights(Draw(1, "weights"), 6, 5, zeros=True))
    torch.testing.assert_close(w12._entropy(random), torch.special.entr(random).sum(-1))


@pytest.mark.parametrize("masked", [False, True])
def test_temperature_oracle_is_libs_and_reaches_its_limits(masked):
    g = torch.Generator().manual_seed(0)
    scores, H = torch.randn(3, 7, generator=g, **F64), torch.randn(7, 2, generator=g, **F64)
    scores[1, 2] = scores[1, 5] = 9.0  # two largest
    mask = torch.tensor([True, False, True, True, False, True, True]) if masked else None
    for tau in (0.3, 1.0, 4.0):
        mine = w12._tempered(scores, H, tau, mask)
        theirs = attend(scores / tau, H, mask)
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(mine[1], masked_softmax(scores / tau, mask))
    for tau, near in ((0.0, 1e-4), (math.inf, 1e9)):
        limit, close = (w12._tempered(scores, H, x, mask)[1] for x in (tau, near))
        torch.testing.assert_close(limit, close, rtol=0, atol=1e-7)
    assert w12._tempered(scores, H, 0.0, mask)[1][1, [2, 5]].tolist() == [0.5, 0.5]


# the try cells


def printed(name: str, capsys) -> str:
    question = QUESTIONS[name]
    names = namespace(question, question.model())
    exec(week_of(question).find("try", name), names)
    out = capsys.readouterr().out
    assert "飛ばします" not in out
    return out


def column(pattern: str, out: str) -> list[float]:
    found = [float(x) for x in re.findall(pattern, out)]
    assert found, pattern
    return found


def test_the_first_word_fades_but_never_to_nothing(capsys):
    out = printed("12-1", capsys)
    assert "文脈は同じ True" in out and column(r"RNN の変わり方 (\S+)", out)[0] > 1e-3
    first, last = column(r"最初の語 (\S+)", out), column(r"直前の語 (\S+)", out)
    assert first == sorted(first, reverse=True) and 0 < first[-1] < 1e-3 < 0.5 < min(last)


def test_sharing_wins_with_few_examples_and_in_the_even_world(capsys):
    out = printed("12-2", capsys)
    flipped, even = (
        [*zip(column(rf"{w}.*共有 (\S+)　", out), column(rf"{w}.*別々 (\S+)", out), strict=True)]
        for w in ("位置で違う", "どこも同じ")
    )
    assert all(shared < own for shared, own in even)
    gaps = [own - shared for shared, own in even]
    assert gaps == sorted(gaps, reverse=True), "worse, the fewer the examples"
    assert flipped[-1][0] > flipped[-1][1] + 0.2
    assert "共有 5,696　別々 569,600" in out


def test_training_on_its_own_outputs_closes_the_gap_and_is_slower(capsys):
    out = printed("12-3", capsys)
    rows = re.findall(r"(教師強制|自分だけ)　 *(\d+) 回　語 (\S+) と (\S+)　文 (\S+) と (\S+)", out)
    assert len(rows) == 6
    words = {(name, int(n)): (float(a), float(b), float(c)) for name, n, a, b, c, _ in rows}
    assert all(c == d for *_, c, d in rows)
    for n in (50, 100):
        gold, own, _ = words["教師強制", n]
        assert gold - own > 0.1
    for n in (50, 100, 200):
        gold, own, whole = words["自分だけ", n]
        assert gold - own < 0.05 and whole <= words["教師強制", n][2]
    assert words["教師強制", 200][2] > words["自分だけ", 200][2] + 0.2
    assert column(r"20 語　全部正しい (\S+)", out) == [0.3585]


def test_temperature_moves_from_one_place_to_all_places(capsys):
    out = printed("12-4", capsys)
    entropy, apart, moved = (
        column(rf"{name} ([\d.]+)", out) for name in ("エントロピー", "行の差", "替えた差")
    )
    assert entropy == sorted(entropy) and entropy[0] == 0
    assert entropy[-1] == column(r"ln 5 = (\S+)", out)[0]
    assert apart == sorted(apart, reverse=True) and apart[-1] == 0
    assert moved == sorted(moved, reverse=True) and moved[-1] == 0
