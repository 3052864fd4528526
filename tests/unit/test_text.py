"""Vocabulary and batches: round trips, order, padding, refusals."""

from types import SimpleNamespace

import pytest
import torch

from lib.text import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Vocab,
    batches,
    collate,
    encode_pairs,
    pad,
    padding_mask,
)

SENTENCES = [s.split() for s in ("猫 が 走る", "犬 が 走る", "猫 が 眠る")]


def test_specials_come_first_and_words_by_frequency():
    vocab = Vocab.build(SENTENCES)
    assert vocab.words == (*SPECIALS, "が", "猫", "走る", "犬", "眠る")
    assert (SPECIALS[PAD], SPECIALS[BOS], SPECIALS[EOS], SPECIALS[UNK]) == SPECIALS
    assert len(Vocab.build(SENTENCES, min_count=2)) == 7


def test_decode_undoes_encode():
    vocab = Vocab.build(SENTENCES)
    for sentence in SENTENCES:
        ids = vocab.encode(sentence, bos=True, eos=True)
        assert (ids[0], ids[-1]) == (BOS, EOS)
        assert vocab.decode([*ids, PAD, PAD]) == sentence
    assert vocab.decode([4, EOS, 5, 6]) == ["が"]
    assert vocab.decode([4, EOS, 99]) == ["が"] and vocab.decode([]) == []  # unread after the end


def test_unknown_words_follow_the_policy():
    vocab = Vocab.build(SENTENCES)
    assert vocab.encode(["鳥", "が"]) == [UNK, vocab.id("が")]
    assert vocab.decode([UNK]) == ["<unk>"]
    with pytest.raises(ValueError, match="語彙にある語が必要です。受け取った値: '鳥'"):
        vocab.encode(["鳥", "が"], unknown="error")


def test_pad_and_mask():
    table = pad([[4, 5, 6], [7]])
    assert table.tolist() == [[4, 5, 6], [7, PAD, PAD]]
    assert padding_mask(table).tolist() == [[True, True, True], [True, False, False]]
    assert pad([[4]], length=3).tolist() == [[4, PAD, PAD]]


def test_pairs_end_and_begin_as_stated():
    vocab = Vocab.build(SENTENCES)
    pairs = [SimpleNamespace(ja=s, en=s[::-1]) for s in SENTENCES]
    examples = encode_pairs(pairs, vocab, vocab)
    src, tgt = collate(examples)
    assert src.shape == (3, 4) and tgt.shape == (3, 5)
    assert (src[:, -1] == EOS).all() and (tgt[:, 0] == BOS).all() and (tgt[:, -1] == EOS).all()
    assert vocab.decode(tgt[0].tolist()) == SENTENCES[0][::-1]


def test_batches_visit_every_example_once_a_round_and_reshuffle():
    order = batches(11, 4, torch.Generator().manual_seed(0))
    rounds = [[i for _ in range(3) for i in next(order)] for _ in range(3)]
    for visited in rounds:
        assert sorted(visited) == list(range(11))
    assert rounds[0] != rounds[1]
    again = batches(11, 4, torch.Generator().manual_seed(0))
    assert [next(again) for _ in range(3)] == [rounds[0][:4], rounds[0][4:8], rounds[0][8:]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Vocab(("猫", "が")), "先頭は .*必要です: .'猫', 'が'"),
        (lambda: Vocab((*SPECIALS, "猫", "猫")), "語に重なりなし"),
        (lambda: Vocab.build([["<s>"]]), "特別な記号を入れないでください.*'<s>'"),
        (lambda: Vocab.build(SENTENCES, min_count=9), "9 回以上"),
        (lambda: Vocab.build(SENTENCES).encode([]), r"一語以上.*受け取った値: \[\]"),
        (lambda: Vocab.build(SENTENCES).encode(["猫"], unknown="skip"), '"replace" か "error"'),
        (lambda: Vocab.build(SENTENCES).decode([4, 99]), "9 未満です。受け取った値: 4, 99"),
        (lambda: Vocab.build(SENTENCES).decode([-1]), "受け取った値: -1"),
        (lambda: pad([]), r"受け取った値: \[\]"),
        (lambda: pad([[4], []]), r"長さはどれも 1 以上.*\[1, 0\]"),
        (lambda: pad([[4, 5, 6]], length=2), "3 以上"),
        (lambda: collate([]), "列は一つ以上"),
        (lambda: next(batches(0, 3, torch.Generator())), "1 以上.*受け取った値: 0, 3"),
        (lambda: next(batches(3, 0, torch.Generator())), "1 以上.*受け取った値: 3, 0"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
