"""The garden corpus: exact probabilities, one derivation a sentence, English, gold links, splits."""

import math
from collections import Counter
from functools import cache

import pytest

from lib.corpus import (
    HELD_OUT,
    PRESETS,
    _pair,
    capitalize,
    hakoniwa,
    lm_split,
    mt_split,
    sample_pairs,
    sentence_log_prob,
)
from lib.grammar import (
    Tree,
    entropy,
    enumerate_sentences,
    expected_length,
    inside,
    length_distribution,
    make_grammar,
)
from lib.metrics import aer


def tiny():
    return hakoniwa(
        depth=1, n_words=1, adj=0, det=0, place=0, past=0, pronoun=0.1, verbs=("食べる", "見る")
    )


def test_every_sentence_of_a_tiny_grammar():
    grammar = tiny()
    sentences = enumerate_sentences(grammar)
    assert len({s for s, _ in sentences}) == len(sentences) > 10_000
    assert sum(p for _, p in sentences) == pytest.approx(1, abs=1e-12)
    by_hand = -sum(p * math.log(p) for _, p in sentences)
    assert entropy(grammar) == pytest.approx(by_hand, abs=1e-9)
    assert expected_length(grammar) == pytest.approx(sum(p * len(s) for s, p in sentences))
    lengths = length_distribution(grammar, 30)
    assert sum(lengths) == pytest.approx(1, abs=1e-12)
    assert lengths[5] == pytest.approx(sum(p for s, p in sentences if len(s) == 5))
    for sentence, p in sentences[:: len(sentences) // 23]:
        assert inside(grammar, sentence) == (pytest.approx(p), 1)


@pytest.mark.parametrize("preset", PRESETS)
def test_closed_forms_agree_with_draws(preset):
    grammar, n = hakoniwa(preset), 20_000
    pairs = sample_pairs(grammar, n, seed=11)
    for exact, values in (
        (entropy(grammar), [-p.log_prob for p in pairs]),
        (expected_length(grammar), [len(p.ja) for p in pairs]),
    ):
        mean = sum(values) / n
        error = math.sqrt(sum((v - mean) ** 2 for v in values) / n / n)
        assert abs(mean - exact) < 5 * error


@pytest.mark.parametrize("preset", PRESETS)
def test_one_derivation_a_sentence_and_its_exact_probability(preset):
    grammar = hakoniwa(preset)
    for pair in sample_pairs(grammar, 60, seed=5):
        prob, derivations = inside(grammar, pair.ja)
        assert derivations == 1
        assert math.log(prob) == pytest.approx(pair.log_prob, abs=1e-12)


def test_a_japanese_sentence_has_one_english():
    english = {}
    for pair in sample_pairs(hakoniwa(), 20_000, seed=3):
        assert english.setdefault(pair.ja, (pair.en, pair.sure)) == (pair.en, pair.sure)


def test_no_mass_is_lost():
    assert sum(length_distribution(hakoniwa("short"), 40)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("japanese", "english"),
    [
        ("猫 は 魚 が 好き", "Cats like fish"),
        ("この 猫 は 魚 が 好き", "This cat likes fish"),
        ("私 は 魚 が 好き", "I like fish"),
        ("彼女 は 魚 が 好き", "She likes fish"),
        ("私 は 若い", "I am young"),
        ("その 大きい 犬 は 白い", "The big dog is white"),
        ("猫 と 犬 は 公園 で 遊んだ", "Cats and dogs played in the park"),
        ("魚 を 追う 猫 は 眠る", "Cats that chase fish sleep"),
        ("猫 が 追う 魚 は", None),
        ("学生 は 本 を 先生 に あげる", "Students give books to teachers"),
        ("馬 は 駅 に 行く", "Horses go to the station"),
        (
            "花子 は 子供 が 公園 で 買った 白い 帽子 が 嫌い",
            "Hanako dislikes white hats that children bought in the park",
        ),
        ("魚 が 好き な 猫 は 眠る", "Cats that like fish sleep"),
    ],
)
def test_sentences_that_a_reader_can_check(japanese, english):
    tokens = tuple(japanese.split())
    log_prob = sentence_log_prob(hakoniwa(), tokens)
    assert (log_prob > -math.inf) == (english is not None)
    if english is not None:
        grammar = hakoniwa()
        found = find(grammar, tokens)
        assert capitalize(found.en) == english
        assert found.log_prob == pytest.approx(log_prob)


def find(grammar, tokens):
    """The pair of a given sentence, from a grammar narrowed to its own words."""

    @cache
    def parse(symbol, begin):
        return list(trees(symbol, begin))

    def trees(symbol, begin):
        for prob, rhs in grammar.rules[symbol]:
            partial = [((), begin, math.log(prob))]
            for x in rhs:
                longer = []
                for children, end, lp in partial:
                    if isinstance(x, str):
                        if tokens[end : end + 1] == (x,):
                            longer.append(((*children, end), end + 1, lp))
                    else:
                        for child, stop, q in parse(x, end):
                            longer.append(((*children, child), stop, lp + q))
                partial = longer
            for children, end, lp in partial:
                yield Tree(symbol, rhs, children), end, lp

    whole = [(t, lp) for t, end, lp in parse(grammar.start, 0) if end == len(tokens)]
    assert len(whole) == 1
    return _pair(tokens, *whole[0])


def test_gold_links():
    pairs = sample_pairs(hakoniwa(), 2000, seed=7)
    diagonal = []
    for pair in pairs:
        assert pair.sure <= pair.possible
        assert all(0 <= i < len(pair.en) and 0 <= j < len(pair.ja) for i, j in pair.possible)
        assert {i for i, _ in pair.possible} == set(range(len(pair.en)))  # every English word
        assert max(Counter(i for i, _ in pair.sure).values()) == 1
        diagonal.append({(i, min(i, len(pair.ja) - 1)) for i in range(len(pair.en))})
    sure, possible = [p.sure for p in pairs], [p.possible for p in pairs]
    perfect = []
    for pair in pairs:
        links = dict(sorted(pair.possible)) | dict(pair.sure)  # one link a word, a sure one first
        perfect.append(set(links.items()))
    assert aer(perfect, sure, possible) == 0
    assert 0.6 < aer(diagonal, sure, possible) < 0.75


def test_seeds_lengths_and_presets():
    grammar = hakoniwa("long")
    assert sample_pairs(grammar, 5, seed=1) == sample_pairs(grammar, 5, seed=1)
    assert sample_pairs(grammar, 5, seed=1) != sample_pairs(grammar, 5, seed=2)
    window = sample_pairs(grammar, 3, seed=1, min_len=38, max_len=44)
    assert all(38 <= len(p.ja) <= 44 for p in window)
    assert max(len(p.ja) for p in window) >= 40 or sample_pairs(grammar, 1, seed=1, min_len=40)


def test_splits():
    mt = mt_split(2000, n_dev=100, n_test=200, seed=1)
    sets = [{p.ja for p in part} for part in (mt.train, mt.dev, mt.test)]
    assert [len(s) for s in sets] == [2000, 100, 200]
    assert len(set.union(*sets)) == 2300
    assert HELD_OUT.ja not in set.union(*sets)
    lm, larger = lm_split(500, n_test=300), lm_split(900, n_test=300)
    assert (lm.test, lm.dev) == (larger.test, larger.dev)
    assert larger.train[:500] == lm.train
    assert len({p.ja for p in lm.train}) < 500  # i.i.d.: repeats stay


def test_held_out_sentence():
    assert (HELD_OUT.ja, HELD_OUT.en) == (
        ("猫", "は", "魚", "が", "好き"),
        ("cats", "like", "fish"),
    )
    assert HELD_OUT.log_prob == pytest.approx(sentence_log_prob(hakoniwa(), HELD_OUT.ja))
    assert {(0, 0), (1, 4), (2, 2)} == HELD_OUT.sure


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hakoniwa("huge"), "preset は"),
        (lambda: hakoniwa(colour=1), "設定は"),
        (lambda: sample_pairs(hakoniwa(), 0, 1), "n は 1 以上"),
        (lambda: sample_pairs(hakoniwa(), 1, 1, min_len=5, max_len=3), "範囲"),
        (lambda: sample_pairs(tiny(), 1, 1, min_len=90), "ほとんど作りません"),
        (lambda: sentence_log_prob(hakoniwa(), ()), "空の文"),
        (lambda: mt_split(0), "1 以上"),
        (lambda: make_grammar(("S",), lambda symbol: [(0.0, ("a",))]), "使える規則がありません"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_outside_the_grammar_the_probability_is_zero():
    assert sentence_log_prob(hakoniwa(), ("魚", "が", "が")) == -math.inf
