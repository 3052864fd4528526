"""Perplexity laws, BLEU against sacrebleu, AER by hand."""

import math
import random

import pytest
import sacrebleu
import torch
from torch.nn import functional as F

from lib import metrics


def test_uniform_gives_the_number_of_choices():
    for choices in (2, 6, 97):
        assert metrics.perplexity([-math.log(choices)] * 5) == pytest.approx(choices)


def test_cross_entropy_is_torchs_and_bits_are_nats_in_another_unit():
    torch.manual_seed(0)
    logits, targets = torch.randn(13, 7, dtype=torch.float64), torch.randint(0, 7, (13,))
    picked = logits.log_softmax(-1)[torch.arange(13), targets]
    nats = metrics.cross_entropy(picked)
    assert nats == pytest.approx(F.cross_entropy(logits, targets).item(), abs=1e-12)
    bits = metrics.cross_entropy(picked, base=2)
    assert 2**bits == pytest.approx(math.exp(nats), rel=1e-12)
    assert metrics.perplexity(picked) == pytest.approx(2**bits, rel=1e-12)
    assert metrics.cross_entropy(picked.tolist()) == pytest.approx(nats, rel=1e-12)


def test_order_and_batches_do_not_matter_and_means_of_perplexities_do():
    values = [-0.1, -3.0, -0.5, -2.2, -1.7]
    assert metrics.perplexity(values[::-1]) == pytest.approx(metrics.perplexity(values))
    apart = (metrics.perplexity(values[:1]) + metrics.perplexity(values[1:])) / 2
    assert abs(apart - metrics.perplexity(values)) > 0.1


def test_zero_probability_is_infinite_and_certainty_is_one():
    assert metrics.perplexity([-1.0, -math.inf]) == math.inf
    assert metrics.cross_entropy([-math.inf], base=2) == math.inf
    assert metrics.perplexity([0.0, 0.0]) == 1.0


def test_bits_per_char_do_not_depend_on_the_tokens():
    words, chars = [math.log(1 / 9)], [math.log(1 / 3), math.log(1 / 3), 0.0]
    assert metrics.bits_per_char(words, 5) == pytest.approx(metrics.bits_per_char(chars, 5))
    assert metrics.bits_per_char(words, 1) == pytest.approx(math.log2(9))


def test_mean_difference_by_hand():
    mean, error = metrics.mean_difference([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    assert mean == pytest.approx(2)
    assert error == pytest.approx(1 / math.sqrt(3))


def reference_bleu(hyps, refs):
    lines = [" ".join(h) for h in hyps], [[" ".join(r) for r in refs]]
    options = {"smooth_method": "none", "tokenize": "none", "force": True}
    return sacrebleu.corpus_bleu(*lines, **options).score


def test_bleu_is_sacrebleus_on_a_thousand_random_corpora():
    rng = random.Random(0)

    def sentence(lengths):
        return rng.choices("abcdef"[: rng.randint(1, 6)], k=rng.choice(lengths))

    positive = 0
    for _ in range(1000):
        refs = [sentence([1, 2, 3, 5, 9, 14]) for _ in range(rng.randint(1, 5))]
        hyps = [list(r) if rng.random() < 0.5 else sentence([0, 1, 2, 3, 5, 9]) for r in refs]
        mine = metrics.bleu(hyps, refs)
        assert mine == pytest.approx(reference_bleu(hyps, refs), abs=1e-9)
        positive += mine > 0
    assert positive > 300


def test_bleu_is_sacrebleus_on_one_corpus_of_a_thousand_pairs():
    rng = random.Random(1)
    refs = [rng.choices("abcdefgh", k=rng.choice([1, 2, 4, 8, 16])) for _ in range(1000)]
    hyps = [[w for w in ref if rng.random() < 0.9] for ref in refs]
    hyps[:90] = [[]] * 30 + [["a"]] * 30 + [["a"] * 9] * 30
    for n in (1000, 30, 90):
        expected = reference_bleu(hyps[:n], refs[:n])
        assert metrics.bleu(hyps[:n], refs[:n]) == pytest.approx(expected, abs=1e-9)
    assert 20 < metrics.bleu(hyps, refs) < 80
    assert metrics.bleu(refs, refs) == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypothesis", "n", "expected"),
    [
        ("the the the the the the the", 4, 0.0),
        ("the cat is on mat", 4, 57.8930),
        ("the cat is on the red mat", 4, 64.3459),
        ("the cat", 2, 13.5335),
    ],
)
def test_worked_bleu(hypothesis, n, expected):
    reference = [["the", "cat", "is", "on", "the", "mat"]]
    assert metrics.bleu([hypothesis.split()], reference, n) == pytest.approx(expected, abs=1e-4)


def test_clipping_and_the_three_token_trap():
    reference = [["the", "cat", "is", "on", "the", "mat"]]
    precisions, penalty = metrics.bleu_parts([["the"] * 7], reference)
    assert precisions[0] == pytest.approx(2 / 7) and penalty == 1
    precisions, penalty = metrics.bleu_parts([["the", "cat", "is", "on", "mat"]], reference)
    assert precisions == pytest.approx([5 / 5, 3 / 4, 2 / 3, 1 / 2])
    assert penalty == pytest.approx(math.exp(-1 / 5))
    precisions, penalty = metrics.bleu_parts(
        [["the", "cat", "is", "on", "the", "red", "mat"]], reference
    )
    assert precisions == pytest.approx([6 / 7, 4 / 6, 3 / 5, 2 / 4]) and penalty == 1
    perfect = [["cats", "like", "fish"]]
    assert metrics.bleu(perfect, perfect) == 0
    assert metrics.bleu(perfect, perfect, max_n=3) == pytest.approx(100)


def test_exact_match():
    assert metrics.exact_match([["a"], ["b", "c"]], [("a",), ("b",)]) == 0.5


def test_alignment_error_by_hand():
    weights = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    links = metrics.argmax_links(weights)
    assert links == {(0, 0), (1, 2)}
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}
    assert metrics.aer([links], [sure], [possible]) == pytest.approx(1 - (1 + 2) / (2 + 2))
    assert metrics.aer([sure], [sure], [possible]) == 0
    assert metrics.aer([{(5, 5)}], [sure], [possible]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.cross_entropy([]), "一つ以上のトークン"),
        (lambda: metrics.cross_entropy([-1.0, math.nan]), "0 以下"),
        (lambda: metrics.cross_entropy([0.5]), "受け取った値: 0.5"),
        (lambda: metrics.bits_per_char([-1.0], 0), "文字数は 1 以上"),
        (lambda: metrics.mean_difference([1.0], [1.0]), "値の数は、同じで 2 以上"),
        (lambda: metrics.mean_difference([1.0, 2.0], [1.0]), "受け取った値: 2, 1"),
        (lambda: metrics.bleu([], []), "文の数は、同じで 1 以上"),
        (lambda: metrics.exact_match([["a"]], []), "値: 1, 0"),
        (lambda: metrics.aer([set()], [], [set()]), "値: 1, 0"),
        (lambda: metrics.aer([set()], [set()], [set()]), "一つ以上の組"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
