"""Probabilistic grammars against values by hand, enumeration, draws, and nltk's chart parser."""

import math
import random
from collections import Counter

import nltk
import pytest
from nltk.grammar import CFG, Nonterminal, Production

from lib.grammar import (
    Grammar,
    draw,
    entropy,
    expected_length,
    length_distribution,
    sentence_log_prob,
)
from tests.derivations import derivations, enumerate_sentences

# 0.6: NP V, 0.4: NP.  NP: "cat" 0.25, "the cat" 0.75.  V: "runs".
PLAIN = Grammar(
    "S",
    {
        "S": [(3, "NP V"), (2, "NP")],
        "NP": [(1, "cat"), (3, "the cat")],
        "V": [(1, "runs"), (0, "sleeps")],
    },
)
SENTENCES = {"cat": 0.1, "the cat": 0.3, "cat runs": 0.15, "the cat runs": 0.45}

# "a a a" has two derivations, a + aa and aa + a; MAYBE can vanish.
AMBIGUOUS = Grammar(
    "S", {"S": [(1, "X X MAYBE")], "X": [(1, "a"), (1, "a a")], "MAYBE": [(1, "b"), (3, "")]}
)


def test_probabilities_by_hand():
    for sentence, prob in SENTENCES.items():
        assert sentence_log_prob(PLAIN, sentence.split()) == pytest.approx(math.log(prob))
        assert derivations(PLAIN, sentence.split()) == 1
    for wrong in ("runs", "cat cat", "the", "cat sleeps", "cat runs runs"):
        assert sentence_log_prob(PLAIN, wrong.split()) == -math.inf
        assert derivations(PLAIN, wrong.split()) == 0


def test_entropy_and_lengths_by_hand():
    assert entropy(PLAIN) == pytest.approx(-sum(p * math.log(p) for p in SENTENCES.values()))
    assert expected_length(PLAIN) == pytest.approx(0.1 * 1 + 0.45 * 2 + 0.45 * 3)
    assert length_distribution(PLAIN, 4) == pytest.approx([0, 0.1, 0.45, 0.45, 0])
    assert length_distribution(PLAIN, 2) == pytest.approx([0, 0.1, 0.45])


def test_all_derivations_of_an_ambiguous_sentence_count():
    assert derivations(AMBIGUOUS, ["a"] * 3) == 2
    assert sentence_log_prob(AMBIGUOUS, ["a"] * 3) == pytest.approx(math.log(0.5 * 0.75))
    sentences = enumerate_sentences(AMBIGUOUS)
    assert len(sentences) == 6 and sum(sentences.values()) == pytest.approx(1)
    # the closed form counts derivations: too large by the choice between the two
    exact = -sum(p * math.log(p) for p in sentences.values())
    assert entropy(AMBIGUOUS) == pytest.approx(exact + 0.5 * math.log(2))


@pytest.mark.parametrize("grammar", [PLAIN, AMBIGUOUS], ids=["plain", "ambiguous"])
def test_enumeration_agrees_with_every_other_way(grammar):
    sentences = enumerate_sentences(grammar)
    lengths = [sum(p for s, p in sentences.items() if len(s) == n) for n in range(7)]
    assert length_distribution(grammar, 6) == pytest.approx(lengths, abs=1e-15)
    assert expected_length(grammar) == pytest.approx(sum(p * len(s) for s, p in sentences.items()))
    for sentence, p in sentences.items():
        assert sentence_log_prob(grammar, sentence) == pytest.approx(math.log(p), abs=1e-12)


@pytest.mark.parametrize("grammar", [PLAIN, AMBIGUOUS], ids=["plain", "ambiguous"])
def test_draws_have_the_probabilities_of_the_grammar(grammar):
    rng, n = random.Random(0), 20_000
    counts = Counter(tuple(draw(grammar, rng)[0]) for _ in range(n))
    sentences = enumerate_sentences(grammar)
    assert counts.keys() == sentences.keys()
    for sentence, p in sentences.items():
        assert abs(counts[sentence] / n - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_a_draw_is_consistent_with_its_tree():
    def leaves(tree):
        for x, child in zip(tree.rule.rhs, tree.children, strict=True):
            yield from [(child, x)] if isinstance(child, int) else leaves(child)

    def log_prob(tree):
        below = [child for child in tree.children if not isinstance(child, int)]
        return math.log(tree.rule.prob) + sum(map(log_prob, below))

    for seed in range(50):
        words, tree, found = draw(AMBIGUOUS, random.Random(seed))
        assert list(leaves(tree)) == list(enumerate(words))
        assert found == pytest.approx(log_prob(tree), abs=1e-12)
        assert draw(AMBIGUOUS, random.Random(seed)) == (words, tree, found)


def random_grammar(seed):
    """Symbols 0 to 5, each rewritten to later ones, words and nothing, at random weights."""
    rng = random.Random(seed)
    rows = {}
    for i in range(6):
        rows[str(i)] = [
            (rng.randint(1, 5), " ".join(rng.choices([*"ab", *map(str, range(i + 1, 6))], k=k)))
            for k in rng.choices(range(4), k=3)
        ]
    return Grammar("0", rows)


def all_derivations(grammar, words):
    """(probability, number) of the derivations that nltk finds."""
    weight, times = Counter(), Counter()  # the same rule may have been drawn twice
    for symbol, rules in grammar.rules.items():
        for rule in rules:
            right = [Nonterminal(x) if x in grammar.rules else x for x in rule.rhs]
            weight[Production(Nonterminal(symbol), right)] += rule.prob
            times[Production(Nonterminal(symbol), right)] += 1
    parser = nltk.EarleyChartParser(CFG(Nonterminal(grammar.start), list(weight)))
    trees = [tree.productions() for tree in parser.parse(words)]
    products = [[math.prod(table[p] for p in tree) for tree in trees] for table in (weight, times)]
    return tuple(map(sum, products))


def test_probability_and_number_of_derivations_are_those_of_nltk():
    compared, ambiguous = 0, 0
    for seed in range(20):
        grammar, rng = random_grammar(seed), random.Random(seed)
        drawn = sorted({tuple(draw(grammar, rng)[0]) for _ in range(20)})
        for words in [words for words in drawn if 0 < len(words) < 7][:5]:
            prob, number = all_derivations(grammar, words)
            assert sentence_log_prob(grammar, words) == pytest.approx(math.log(prob), abs=1e-12)
            assert derivations(grammar, words) == number
            compared, ambiguous = compared + 1, ambiguous + (number > 1)
    assert compared > 40 and ambiguous > 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sentence_log_prob(PLAIN, []), r"一語以上が必要です。受け取った値: \[\]"),
        (lambda: Grammar("S", {"S": [(1.5, "a"), (-0.5, "b")]}), r"S の重み: \[1.5, -0.5\]"),
        (lambda: Grammar("S", {"S": [(0, "a")]}), "重みは 0 以上で、和は正が必要です"),
        (lambda: Grammar("S", {"S": []}), r"S の重み: \[\]"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
