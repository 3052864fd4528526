"""n-gram models against exact fractions, nltk.lm, and Kneser-Ney by brute force."""

import itertools
import math
import random
from fractions import Fraction as F

import pytest
import torch
from nltk.lm import MLE, KneserNeyInterpolated, Laplace, Lidstone, Vocabulary

from lib import ngram
from lib.ngram import END, START

TOY = [s.split() for s in ("猫 が 走る", "犬 が 走る", "猫 が 眠る")]
SENTENCE = ["犬", "が", "眠る"]


def perplexity(probs):
    return math.inf if 0 in probs else math.exp(-sum(map(math.log, probs)) / len(probs))


def corpus(seed, n_sentences=40):
    rng = random.Random(seed)
    return [rng.choices("abcde", [5, 3, 2, 1, 1], k=rng.randint(1, 7)) for _ in range(n_sentences)]


MODELS = {
    "mle": lambda data, n: ngram.mle(data, n),
    "add-k": lambda data, n: ngram.add_k(data, n, 0.3),
    "interpolation": lambda data, n: ngram.interpolate(data, [0.6] * (n - 1)),
    "absolute": lambda data, n: ngram.absolute_discount(data, n, 0.7),
    "kneser-ney": lambda data, n: ngram.kneser_ney(data, n, 0.7),
}


@pytest.mark.parametrize(
    ("model", "fractions", "ppl"),
    [
        (ngram.mle(TOY, 1), [F(1, 12), F(1, 4), F(1, 12), F(1, 4)], 6.928203),
        (ngram.mle(TOY, 2), [F(1, 3), 1, F(1, 3), 1], math.sqrt(3)),
        (ngram.mle(TOY, 3), [F(1, 3), 1, 0, 1], math.inf),
        (ngram.add_k(TOY, 2, 1), [F(2, 9), F(2, 7), F(2, 9), F(2, 7)], math.sqrt(63 / 4)),
        (ngram.add_k(TOY, 3, 1), [F(2, 9), F(2, 7), F(1, 7), F(2, 7)], 4.4321),
        (ngram.interpolate(TOY, [0.5]), [F(5, 24), F(5, 8), F(5, 24), F(5, 8)], 2.7713),
        (ngram.kneser_ney(TOY, 2, 0.75), [F(7, 48), F(7, 16), F(7, 48), F(7, 16)], 3.9590),
    ],
    ids=["unigram", "bigram", "trigram", "bi+1", "tri+1", "interpolated", "kneser-ney"],
)
def test_worked_example_of_three_sentences(model, fractions, ppl):
    probs = model.probs(SENTENCE)
    assert probs == pytest.approx([float(f) for f in fractions], abs=1e-12)
    assert perplexity(probs) == pytest.approx(ppl, rel=2e-5)


@pytest.mark.parametrize(
    ("n", "k", "ppl"),
    [
        (2, 0.5, 3.266),
        (2, 0.1, 2.1818),
        (2, 0.01, 1.7832),
        (3, 0.5, 3.8839),
        (3, 0.1, 3.2443),
        (3, 0.01, 4.3368),
    ],
)
def test_add_k_of_three_sentences(n, k, ppl):
    assert perplexity(ngram.add_k(TOY, n, k).probs(SENTENCE)) == pytest.approx(ppl, abs=5e-5)


def test_perplexity_of_the_training_sentences():
    for model, ppl in [
        (ngram.mle(TOY, 2), 1.3747),
        (ngram.mle(TOY, 3), 1.3161),
        (ngram.kneser_ney(TOY, 2), 2.2569),
    ]:
        probs = [p for sentence in TOY for p in model.probs(sentence)]
        assert perplexity(probs) == pytest.approx(ppl, abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", MODELS)
def test_every_seen_context_gives_a_distribution(name, n):
    data = corpus(n)
    model = MODELS[name](data, n)
    for context in ngram.count(data, n):
        assert sum(model.distribution(context).values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["add-k", "interpolation", "absolute", "kneser-ney"])
def test_unseen_context_goes_to_the_lower_order(name):
    data = corpus(7)
    model = MODELS[name](data, 3)
    assert sum(model.distribution(("e", "そこにない語")).values()) == pytest.approx(1)
    known, unknown = model.distribution(("そこにない語", "a")), model.distribution(("x", "a"))
    assert known == unknown


def test_a_longer_context_is_cut_on_the_left():
    model = ngram.kneser_ney(corpus(3), 3)
    assert model.prob("a", ["d", "e", "b", "a"]) == model.prob("a", ["b", "a"])


def nltk_model(model, data, n):
    """Fits on our own n-grams of every order, so that both count the same padded data."""
    grams = [
        (*context, word)
        for sentence in data
        for i in range(1, n + 1)
        for context, word in ngram.ngrams(sentence, i)
    ]
    model.fit([grams])
    return model


def vocabulary(data):
    """nltk always counts its unknown label as one more word: here that is </s>."""
    return Vocabulary([w for s in data for w in s], unk_cutoff=1, unk_label=END)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda data, n: ngram.mle(data, n), lambda n, v: MLE(n, vocabulary=v)),
        (lambda data, n: ngram.add_k(data, n, 1), lambda n, v: Laplace(n, vocabulary=v)),
        (lambda data, n: ngram.add_k(data, n, 0.3), lambda n, v: Lidstone(0.3, n, vocabulary=v)),
    ],
    ids=["mle", "laplace", "lidstone"],
)
def test_every_probability_agrees_with_nltk(ours, theirs, n):
    data = corpus(11)
    mine = ours(data, n)
    other = nltk_model(theirs(n, vocabulary(data)), data, n)
    for context in ngram.count(data, n):
        for word in mine.base:
            assert mine.prob(word, context) == pytest.approx(other.score(word, context), abs=1e-9)


def test_kneser_ney_agrees_with_nltk_at_two():
    data = corpus(13)
    mine = ngram.kneser_ney(data, 2, 0.75)
    other = KneserNeyInterpolated(2, discount=0.75, vocabulary=vocabulary(data))
    nltk_model(other, data, 2)
    for context in ngram.count(data, 2):
        for word in mine.base:
            assert mine.prob(word, context) == pytest.approx(other.score(word, context), abs=1e-9)


def brute_kneser_ney(data, n, discount, word, context):
    """The formula read aloud: every count is taken anew from the list of n-grams."""

    def grams(order):
        return [(*c, w) for sentence in data for c, w in ngram.ngrams(sentence, order)]

    def table(order):
        if order == n:
            return grams(order)
        return [gram[1:] for gram in set(grams(order + 1))]  # one entry for each kind of left word

    def p(order, word, context):
        rows = [gram for gram in table(order) if gram[:-1] == context]
        if order == 1:
            return sum(gram[-1] == word for gram in rows) / len(rows)
        lower = p(order - 1, word, context[1:])
        if not rows:
            return lower
        kinds = {gram[-1] for gram in rows}
        own = max(sum(gram[-1] == word for gram in rows) - discount, 0) / len(rows)
        return own + discount * len(kinds) / len(rows) * lower

    return p(n, word, tuple(context))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_kneser_ney_agrees_with_brute_force(n):
    data = corpus(17, n_sentences=11)
    model = ngram.kneser_ney(data, n, 0.6)
    contexts = [*ngram.count(data, n), ("e",) * (n - 1), ("ない語",) * (n - 1)]
    for context in contexts[:23] + contexts[-2:]:
        for word in model.base:
            expected = brute_kneser_ney(data, n, 0.6, word, context)
            assert model.prob(word, context) == pytest.approx(expected, abs=1e-12)


def test_continuation_counts_of_a_word_tied_to_one_context():
    data = [["サン", "フランシスコ"]] * 50 + [["霧", "の", "町"], ["町", "の", "霧"], ["海"]]
    model = ngram.kneser_ney(data, 2)
    kinds = sum(map(len, ngram.count(data, 2).values()))
    assert model.base["フランシスコ"] == pytest.approx(1 / kinds)
    raw = ngram.mle(data, 1)
    assert raw.prob("フランシスコ", ()) == max(
        raw.prob(w, ()) for w in raw.base if w not in (END, "サン")
    )


def test_em_climbs_and_finds_the_best_lambda_of_a_grid():
    train, held_out = corpus(19), corpus(23)
    history = ngram.fit_lambdas(train, held_out, 2, steps=400)

    def score(data, x):
        probs = [p for s in data for p in ngram.interpolate(train, [x]).probs(s)]
        return sum(map(math.log, probs))

    values = [score(held_out, x) for (x,) in history[:12]]
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values))
    grid = [i / 50 for i in range(1, 50)]
    best = max(grid, key=lambda x: score(held_out, x))
    assert history[-1][0] == pytest.approx(best, abs=0.02)
    curve = [score(held_out, x) for x in grid]
    second = [a - 2 * b + c for a, b, c in zip(curve, curve[1:], curve[2:], strict=False)]
    assert max(second) <= 1e-9  # concave
    assert max(grid, key=lambda x: score(train, x)) == grid[-1]


def test_em_with_three_orders_climbs():
    train, held_out = corpus(29), corpus(31)
    scores = []
    for lambdas in ngram.fit_lambdas(train, held_out, 3, steps=12):
        model = ngram.interpolate(train, lambdas)
        scores.append(sum(math.log(p) for s in held_out for p in model.probs(s)))
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(scores))


def test_maximum_likelihood_is_the_maximum():
    counts = ngram.count(TOY, 2)[("が",)]
    best = sum(c * math.log(c / counts.total()) for c in counts.values())
    for shift in (-0.1, -0.01, 0.01, 0.1):
        p = counts["走る"] / counts.total() + shift
        assert counts["走る"] * math.log(p) + counts["眠る"] * math.log(1 - p) < best


def test_unseen_rate_grows_with_n_and_types_are_bounded():
    train, test = corpus(37), corpus(41)
    rates = [ngram.unseen_rate(train, test, n) for n in range(1, 7)]
    assert rates == sorted(rates)
    assert rates[-1] > rates[0]
    tokens = sum(len(s) + 1 for s in train)
    for n in range(1, 7):
        assert sum(map(len, ngram.count(train, n).values())) <= tokens


def test_add_k_goes_from_mle_to_uniform():
    tiny, huge = ngram.add_k(TOY, 2, 1e-9), ngram.add_k(TOY, 2, 1e9)
    assert tiny.prob("走る", ["が"]) == pytest.approx(2 / 3)
    assert huge.prob("走る", ["が"]) == pytest.approx(1 / 6)


def test_sampling_follows_the_distribution_and_stops():
    model = ngram.mle(TOY, 2)
    generator = torch.Generator().manual_seed(0)
    sentences = [ngram.sample(model, generator) for _ in range(600)]
    assert {len(s) for s in sentences} == {3}
    share = sum(s[0] == "猫" for s in sentences) / 600
    assert share == pytest.approx(2 / 3, abs=5 * math.sqrt(2 / 9 / 600))
    cold = [ngram.sample(model, generator, temperature=0.01) for _ in range(20)]
    assert cold == [["猫", "が", "走る"]] * 20
    endless = ngram.add_k([["a"] * 50], 2, 0.001)
    assert len(ngram.sample(endless, generator, temperature=0.1, max_len=7)) == 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ngram.count([], 2), "文が一つ以上"),
        (lambda: ngram.count([["a"]], 0), "n は 1 以上"),
        (lambda: ngram.count([[START, "a"]], 2), "入れないで"),
        (lambda: ngram.add_k(TOY, 2, 0), "正の数"),
        (lambda: ngram.interpolate(TOY, [1.2]), "0 以上 1 以下"),
        (lambda: ngram.kneser_ney(TOY, 2, 1.5), "割引 D"),
        (lambda: ngram.mle(TOY, 2).prob("鳥", ["が"]), "語彙にない語"),
        (lambda: ngram.mle(TOY, 2, words=["猫"]), "語彙にない語"),
        (
            lambda: ngram.sample(ngram.mle(TOY, 2), torch.Generator(), temperature=0),
            "温度は正の数",
        ),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
