"""Encoder-decoder laws: padding, batch, teacher forcing, one step for training and generation."""

import pytest
import torch

from lib.attention import AdditiveAttention, attention, dot_attention
from lib.seq2seq import Seq2Seq, Seq2SeqConfig
from lib.text import BOS, EOS, PAD

D = 14
SRC = torch.tensor([[5, 6, 7, 8, EOS], [9, 4, EOS, PAD, PAD]])
TGT = torch.tensor([[BOS, 4, 5, 6], [BOS, 7, 8, 9]])


def models():
    torch.manual_seed(0)
    for cell in ("rnn", "lstm"):
        for bidirectional in (True, False):
            for name in ("fixed", "additive", "dot", "scaled", "luong"):
                attend = {
                    "fixed": None,
                    "additive": AdditiveAttention(D, D, 5),
                    "scaled": attention,
                }.get(name, dot_attention)
                config = Seq2SeqConfig(
                    src_vocab=11,
                    tgt_vocab=13,
                    d_emb=3,
                    d_hidden=D,
                    cell=cell,
                    bidirectional=bidirectional,
                    score_first=name != "luong",
                )
                label = f"{cell}-{name}-{'both' if bidirectional else 'one'}"
                yield pytest.param(Seq2Seq(config, attend).double(), id=label)


@pytest.mark.parametrize("model", list(models()))
def test_padding_and_batch_change_nothing(model):
    logits = model(SRC, TGT)
    torch.testing.assert_close(model(SRC[1:, :3], TGT[1:]), logits[1:])
    wider = torch.nn.functional.pad(SRC, (0, 3), value=PAD)
    torch.testing.assert_close(model(wider, TGT), logits)


@pytest.mark.parametrize("model", list(models()))
def test_later_targets_do_not_reach_back_and_every_parameter_learns(model):
    logits = model(SRC, TGT)
    changed = TGT.clone()
    changed[:, 3] = 10
    torch.testing.assert_close(model(SRC, changed)[:, :3], logits[:, :3], rtol=0, atol=0)
    logits.pow(2).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("model", list(models()))
def test_free_running_is_feeding_back_the_argmax(model):
    free = model(SRC, TGT, gold=0.0)
    state, tokens = model.start(SRC), TGT[:, 0]
    for t in range(TGT.shape[1]):
        logits, state = model.step(tokens, state)
        torch.testing.assert_close(free[:, t], logits)
        tokens = logits.argmax(-1)
    mixed = model(SRC, TGT, gold=0.5, generator=torch.Generator().manual_seed(1))
    assert mixed.shape == free.shape


def test_weights_are_a_distribution_over_the_source_without_padding():
    config = Seq2SeqConfig(src_vocab=11, tgt_vocab=13, d_emb=3, d_hidden=D)
    trace = {}
    Seq2Seq(config, dot_attention)(SRC, TGT, trace=trace)
    weights = torch.stack(trace["weights"], 1)  # (B, T, S)
    assert weights.shape == (2, 4, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))
    assert (weights[1, :, 3:] == 0).all()


def test_with_and_without_attention_the_other_parameters_are_the_same():
    config = Seq2SeqConfig(src_vocab=11, tgt_vocab=13, d_emb=3, d_hidden=D)
    fixed, dot = Seq2Seq(config), Seq2Seq(config, dot_attention)
    assert [p.shape for p in fixed.parameters()] == [p.shape for p in dot.parameters()]


def test_bad_input_is_refused_in_japanese():
    with pytest.raises(ValueError, match="偶数"):
        Seq2Seq(Seq2SeqConfig(src_vocab=5, tgt_vocab=5, d_hidden=7))
    model = Seq2Seq(Seq2SeqConfig(src_vocab=11, tgt_vocab=13, d_hidden=D))
    with pytest.raises(ValueError, match="0 以上 1 以下"):
        model(SRC, TGT, gold=1.5)
