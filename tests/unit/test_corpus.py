"""The garden corpus: exact probabilities, one derivation each, English, gold links, splits."""

import math
import random
from collections import Counter
from functools import cache

import nltk
import pytest
from nltk.grammar import CFG, Nonterminal, Production

from lib import corpus
from lib.corpus import (
    HELD_OUT,
    PRESETS,
    Pair,
    capitalize,
    entropy,
    expected_length,
    hakoniwa,
    lm_split,
    mt_split,
    sample_pairs,
    sentence_log_prob,
)
from lib.grammar import Tree, draw, length_distribution
from lib.metrics import aer
from tests.derivations import derivations, enumerate_sentences


@pytest.fixture
def tiny(monkeypatch):
    """One word a class, two transitive verbs, no adjective, place, determiner, past."""
    words = {kind: row if kind == "LIKE" else row.split()[0] for kind, row in corpus.WORDS.items()}
    monkeypatch.setattr(corpus, "WORDS", words)
    monkeypatch.setattr(corpus, "TRANSITIVE", {"EAT": 1, "SEE": 1})
    return hakoniwa(depth=1, adj=0, det=0, place=0, past=0, pronoun=0)


def test_every_sentence_of_a_tiny_grammar(tiny):
    sentences = enumerate_sentences(tiny)
    assert len(sentences) == 58_092  # the number and the entropy of an independent prototype
    assert entropy(tiny) == pytest.approx(7.3314174583, abs=1e-10)
    assert math.fsum(sentences.values()) == pytest.approx(1, abs=1e-12)
    by_hand = -math.fsum(p * math.log(p) for p in sentences.values())
    # equal only if every sentence has one derivation
    assert entropy(tiny) == pytest.approx(by_hand, abs=1e-9)
    mean = math.fsum(p * len(s) for s, p in sentences.items())
    assert expected_length(tiny) == pytest.approx(mean, abs=1e-9)
    for sentence in list(sentences)[::997]:
        exact = math.log(sentences[sentence])
        assert sentence_log_prob(tiny, sentence) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("preset", "nats", "length", "ppl", "held_out"),
    [
        ("short", 13.187, 6.57, 5.716, 1.1e-3),
        ("default", 20.396, 9.92, 6.471, 2.2e-4),
        ("long", 26.576, 13.32, 6.399, 4.0e-5),
    ],
)
def test_without_pronouns_the_numbers_are_those_of_the_prototype(
    preset, nats, length, ppl, held_out
):
    grammar = hakoniwa(preset, pronoun=0)
    assert entropy(grammar) == pytest.approx(nats, abs=6e-4)
    assert expected_length(grammar) == pytest.approx(length, abs=6e-3)
    found = math.exp(entropy(grammar) / (expected_length(grammar) + 1))
    assert found == pytest.approx(ppl, abs=6e-4)
    assert math.exp(sentence_log_prob(grammar, HELD_OUT.ja)) == pytest.approx(held_out, rel=0.03)


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("preset", PRESETS)
def test_closed_forms_agree_with_draws(preset, n):
    grammar, rng = hakoniwa(preset), random.Random(0)
    draws = [draw(grammar, rng) for _ in range(n)]
    for exact, values in (
        (entropy(grammar), [-log_prob for _, _, log_prob in draws]),
        (expected_length(grammar), [len(words) for words, _, _ in draws]),
    ):
        mean = sum(values) / n
        error = math.sqrt(sum((v - mean) ** 2 for v in values)) / n
        assert abs(mean - exact) < 5 * error


@pytest.mark.parametrize("preset", PRESETS)
def test_lengths_have_a_distribution(preset):
    grammar = hakoniwa(preset)
    lengths = length_distribution(grammar, 100)
    assert math.fsum(lengths) == pytest.approx(1, abs=1e-12)
    mean = math.fsum(n * p for n, p in enumerate(lengths))
    assert mean == pytest.approx(expected_length(grammar), abs=1e-9)
    assert lengths[:3] == [0, 0, 0] and lengths[3] > 0  # the shortest: 猫 は 白い


@pytest.mark.parametrize("preset", PRESETS)
def test_one_derivation_a_sentence_and_its_exact_probability(preset):
    grammar = hakoniwa(preset)
    for pair in sample_pairs(grammar, 500, seed=5):
        assert derivations(grammar, pair.ja) == 1
        assert sentence_log_prob(grammar, pair.ja) == pytest.approx(pair.log_prob, abs=1e-12)


def test_outside_the_grammar_the_probability_is_zero():
    for sentence in ("魚 が が", "猫 が 魚 は 好き", "猫 は 魚 が 好き 好き", "猫 は cats が 好き"):
        assert sentence_log_prob(hakoniwa(), sentence.split()) == -math.inf


@cache
def chart_parser():
    """nltk's parser for the default grammar, and the way back from a production to our rule."""
    rules = {}
    for symbol, some in hakoniwa().rules.items():
        for rule in some:
            right = [Nonterminal(x) if x in hakoniwa().rules else x for x in rule.rhs]
            rules[Production(Nonterminal(symbol), right)] = rule
    return nltk.EarleyChartParser(CFG(Nonterminal("S"), list(rules))), rules


def translate(sentence):
    """The pair of a sentence, from the only tree that nltk's parser finds."""
    parser, rules = chart_parser()
    (found,) = parser.parse(sentence.split())
    position = iter(range(len(sentence.split())))

    def ours(tree):
        if isinstance(tree, str):
            return next(position)
        right = [Nonterminal(x.label()) if isinstance(x, nltk.Tree) else x for x in tree]
        rule = rules[Production(Nonterminal(tree.label()), right)]
        return Tree(tree.label(), rule, [ours(child) for child in tree])

    log_prob = sum(math.log(rules[p].prob) for p in found.productions())
    return corpus._pair(sentence.split(), ours(found), log_prob)


@pytest.mark.parametrize(
    ("japanese", "english"),
    [
        ("猫 は 魚 が 好き", "Cats like fish"),
        ("この 猫 は 魚 が 好き", "This cat likes fish"),
        ("その 白い 犬 は この 猫 と 鳥 が 嫌い", "The white dog dislikes this cat and birds"),
        ("この 猫 と この 犬 は 魚 が 嫌い", "This cat and this dog dislike fish"),
        ("私 は 魚 が 好き", "I like fish"),
        ("彼女 は 魚 が 好き", "She likes fish"),
        ("私 は 賢い", "I am clever"),
        ("彼女 は 優しい", "She is kind"),
        ("うさぎ は かわいい", "Rabbits are cute"),
        ("その 大きい 犬 は 賢い", "The big dog is clever"),
        ("猫 と 犬 は 公園 で 遊んだ", "Cats and dogs played in the park"),
        ("友達 は 静かな 図書館 で パン を 食べる", None),  # the place stands before its verb
        ("友達 は パン を 静かな 図書館 で 食べる", "Friends eat bread in the quiet library"),
        ("この 友達 は パン を 食べる", "This friend eats bread"),
        ("魚 を 追う 猫 は 眠る", "Cats that chase fish sleep"),
        ("魚 を 追う この 猫 は 眠る", "This cat that chases fish sleeps"),
        (
            "魚 を 追う この 猫 を 洗う 子供 は 走る",
            "Children that wash this cat that chases fish run",
        ),
        ("太郎 は この 猫 が 追う 魚 を 見た", "Taro saw fish that this cat chases"),
        ("駅 で 歌う 医者 は 本 を 読む", "Doctors that sing in the station read books"),
        ("学生 は 本 を 先生 に あげる", "Students give books to teachers"),
        ("私 は りんご を 太郎 に 送った", "I sent apples to Taro"),
        ("この 馬 は 古い 駅 に 行く", "This horse goes to the old station"),
        ("花子 は 手紙 を 書く", "Hanako writes letters"),
        ("魚 が 好き な 猫 は 眠る", "Cats that like fish sleep"),
        (
            "花子 は 子供 が 公園 で 買った 白い 帽子 が 嫌い",
            "Hanako dislikes white hats that children bought in the park",
        ),
    ],
)
def test_sentences_that_a_reader_can_check(japanese, english):
    log_prob = sentence_log_prob(hakoniwa(), japanese.split())
    assert (log_prob > -math.inf) == (english is not None)
    if english is not None:
        pair = translate(japanese)
        assert capitalize(pair.en) == english
        assert pair.log_prob == pytest.approx(log_prob, abs=1e-12)


def test_the_tree_that_nltk_finds_gives_the_pair_that_was_drawn():
    for pair in sample_pairs(hakoniwa(), 60, seed=2, max_len=14):
        again = translate(" ".join(pair.ja))
        assert (again.en, again.sure, again.possible) == (pair.en, pair.sure, pair.possible)
        assert again.log_prob == pytest.approx(pair.log_prob, abs=1e-12)


@cache
def many():
    return sample_pairs(hakoniwa(), 20_000, seed=3)


def test_a_japanese_sentence_has_one_english():
    english = {}
    for pair in many():
        translation = (pair.en, pair.sure, pair.possible)
        assert english.setdefault(pair.ja, translation) == translation


def test_words_of_both_languages():
    rules = hakoniwa().rules
    words = {x for some in rules.values() for rule in some for x in rule.rhs if x not in rules}
    assert len(words) == 89 and not any(word.isascii() for word in words)  # no undefined symbol
    assert {word for pair in many() for word in pair.ja} == words
    english = {word for pair in many() for word in pair.en}
    assert len(english) == 126 and all(word.isascii() and word.isalpha() for word in english)
    assert {w for w in english if not w.islower()} == {"I", "Taro", "Hanako"}


def test_capital_letter_only_for_display():
    assert capitalize(("cats", "like", "Taro")) == "Cats like Taro"
    assert capitalize(("this", "cat")) == "This cat"
    assert capitalize(()) == ""


def test_links_by_hand():
    pair = translate("この 猫 は 魚 を 公園 で 追う 犬 が 好き")
    # この0 猫1 は2 魚3 を4 公園5 で6 追う7 犬8 が9 好き10
    assert pair.en == tuple(
        ["this", "cat", "likes", "dogs", "that", "chase", "fish", "in", "the", "park"]
    )
    assert pair.sure == {(0, 0), (1, 1), (2, 10), (3, 8), (5, 7), (6, 3), (9, 5)}
    others = {(1, 2), (3, 9), (4, 8), (4, 7), (6, 4), (7, 6), (8, 5), (9, 6)}
    assert pair.possible == pair.sure | others

    pair = translate("猫 と 犬 は 若い")  # and is sure, are may be は or the adjective
    assert pair.sure == {(0, 0), (1, 1), (2, 2), (4, 4)}
    assert pair.possible == pair.sure | {(2, 3), (3, 3), (3, 4)}

    pair = translate("魚 が 好き な 猫 は 本 を 太郎 に 見せる")
    # 魚0 が1 好き2 な3 猫4 は5 本6 を7 太郎8 に9 見せる10
    assert capitalize(pair.en) == "Cats that like fish show books to Taro"
    assert pair.sure == {(0, 4), (2, 2), (3, 0), (4, 10), (5, 6), (7, 8)}
    others = {(0, 5), (1, 4), (1, 2), (1, 3), (2, 3), (3, 1), (5, 7), (6, 9), (7, 9)}
    assert pair.possible == pair.sure | others


def test_laws_of_gold_links():
    pairs = list({pair.ja: pair for pair in many()}.values())
    for pair in pairs:
        assert pair.sure <= pair.possible
        assert all(0 <= i < len(pair.en) and 0 <= j < len(pair.ja) for i, j in pair.possible)
        assert {i for i, _ in pair.possible} == set(range(len(pair.en)))  # every English word
        for side in (0, 1):  # a sure link leaves no other sure one for its two words
            assert max(Counter(link[side] for link in pair.sure).values()) == 1
    sure, possible = [p.sure for p in pairs], [p.possible for p in pairs]
    one_a_word = [set((dict(p.possible) | dict(p.sure)).items()) for p in pairs]
    assert aer(one_a_word, sure, possible) == 0
    diagonal = [{(i, i) for i in range(min(len(p.en), len(p.ja)))} for p in pairs]
    assert aer(diagonal, sure, possible) == pytest.approx(0.677, abs=0.015)


def test_seeds():
    grammar = hakoniwa()
    pairs = sample_pairs(grammar, 20, seed=1)
    assert pairs == sample_pairs(hakoniwa(), 20, seed=1)
    assert pairs[:7] == sample_pairs(grammar, 7, seed=1)
    assert pairs != sample_pairs(grammar, 20, seed=2)


def test_windows_of_length():
    grammar = hakoniwa("long")
    for pair in sample_pairs(grammar, 5, seed=1, min_len=40):
        assert len(pair.ja) >= 40
        assert sentence_log_prob(grammar, pair.ja) == pytest.approx(pair.log_prob, abs=1e-11)
    everything = sample_pairs(grammar, 2000, seed=4)
    window = sample_pairs(grammar, 100, seed=4, min_len=5, max_len=9)
    assert window == [p for p in everything if 5 <= len(p.ja) <= 9][:100]
    assert {len(p.ja) for p in sample_pairs(grammar, 50, seed=4, max_len=5)} == {3, 4, 5}


def test_language_model_split_is_independent_draws_from_the_grammar():
    split, larger = lm_split(1500, n_dev=200, n_test=300), lm_split(1800, n_dev=200, n_test=300)
    assert [len(part) for part in split] == [1500, 200, 300]
    assert (split.dev, split.test) == (larger.dev, larger.test)
    assert larger.train[:1500] == split.train
    assert len({p.ja for p in split.train}) < 1500  # repeats stay
    assert {p.ja for p in split.train} & {p.ja for p in split.test}
    assert split.train[:300] != split.test and split.dev != split.test[:200]
    other = lm_split(300, n_dev=200, n_test=300, seed=1)
    parts = [split.train[:200], split.dev, split.test[:200]]
    assert all(part[:200] not in parts for part in other)
    assert [len(part) for part in lm_split(1, n_dev=1)] == [1, 1, 5000]


def test_translation_split_is_distinct_disjoint_and_without_the_held_out_sentence():
    split = mt_split(4000, n_dev=300, n_test=700, seed=1)
    sets = [{p.ja for p in part} for part in split]
    assert [len(part) for part in split] == [len(s) for s in sets] == [4000, 300, 700]
    assert len(set.union(*sets)) == 5000
    assert HELD_OUT.ja not in set.union(*sets)
    assert split == mt_split(4000, n_dev=300, n_test=700, seed=1)
    # one distribution for all three: the mean length of the test set is not special
    lengths = [[len(p.ja) for p in part] for part in split]
    means = [sum(part) / len(part) for part in lengths]
    spread = math.sqrt(sum((n - means[0]) ** 2 for n in lengths[0]) / 4000)
    assert abs(means[2] - means[0]) < 5 * spread / math.sqrt(700)


def test_held_out_sentence():
    assert (
        Pair(
            ja=("猫", "は", "魚", "が", "好き"),
            en=("cats", "like", "fish"),
            sure=frozenset({(0, 0), (1, 4), (2, 2)}),
            possible=frozenset({(0, 0), (1, 4), (2, 2), (0, 1), (2, 3)}),
            log_prob=HELD_OUT.log_prob,
        )
        == HELD_OUT
    )
    exact = sentence_log_prob(hakoniwa(), HELD_OUT.ja)
    assert HELD_OUT.log_prob == pytest.approx(exact, abs=1e-12)
    without = sentence_log_prob(hakoniwa(pronoun=0), HELD_OUT.ja)
    assert exact == pytest.approx(without + math.log(1 - 0.06), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hakoniwa("huge"), "preset は default, short, long、.*受け取った値: 'huge'"),
        (lambda: hakoniwa(colour=1), "設定は rc, adj, .*'colour': 1"),
        (lambda: hakoniwa(depth=-1), "depth は 0 以上 9 以下の整数です。受け取った値: -1"),
        (lambda: hakoniwa(depth=1.5), "受け取った値: 1.5"),
        (lambda: hakoniwa(rc=0.9, conj=0.2), "重みは 0 以上"),
        (lambda: hakoniwa(past=1.2), "重みは 0 以上"),
        (lambda: sample_pairs(hakoniwa(), 0, 1), "n は 1 以上、.*n=0"),
        (lambda: sample_pairs(hakoniwa(), 1, 1, min_len=5, max_len=3), "min_len=5, max_len=3"),
        (lambda: sample_pairs(hakoniwa("short"), 1, 1, min_len=60), "min_len=60"),
        (lambda: sample_pairs(hakoniwa(), 1, 1, max_len=2), "max_len=2"),
        (lambda: sentence_log_prob(hakoniwa(), ()), "一語以上"),
        (lambda: lm_split(0), "n は 1 以上"),
        (lambda: mt_split(100, n_dev=0), "1 以上が必要です。受け取った値: 100, 0, 1000"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
