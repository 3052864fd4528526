"""Blocks against torch with copied weights, the count of parameters, the laws of the whole."""

import copy

import pytest
import torch
from torch import nn

from lib.attention import causal_mask
from lib.decode import greedy
from lib.positional import sinusoidal
from lib.text import BOS, EOS, PAD
from lib.train import next_token_loss
from lib.transformer import (
    DecoderBlock,
    EncoderBlock,
    FeedForward,
    Residual,
    Transformer,
    TransformerConfig,
)

B, T, S, D, H, F = 3, 5, 7, 22, 2, 31
SRC = torch.tensor(
    [[5, 6, 7, 8, 9, 4, EOS], [9, 4, EOS, PAD, PAD, PAD, PAD], [8, 8, 5, 6, EOS, PAD, PAD]]
)
TGT = torch.tensor([[BOS, 4, 5, 6, 7], [BOS, 7, 8, PAD, PAD], [BOS, 10, 4, 8, PAD]])


def model(**overrides):
    torch.manual_seed(0)
    sizes = {"src_vocab": 11, "tgt_vocab": 13, "d_model": D, "n_heads": H, "d_ff": F}
    return Transformer(TransformerConfig(**sizes | overrides)).double()


def copy_attention(ours, theirs):
    theirs.in_proj_weight.copy_(torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.weight.copy_(ours.w_o.weight)
    theirs.out_proj.bias.zero_()


def copy_rest(ours, theirs, norms):
    theirs.linear1.load_state_dict(ours.ffn.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.ffn.w_2.state_dict())
    residuals = [part for part in ours.modules() if isinstance(part, Residual)]
    for residual, norm in zip(residuals, norms, strict=True):
        nn.init.normal_(residual.norm.weight)  # so that a swapped norm is seen
        nn.init.normal_(residual.norm.bias)
        norm.load_state_dict(residual.norm.state_dict())


def torch_encoder(ours, norm_first):
    theirs = nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True, norm_first=norm_first)
    theirs = theirs.double().train()
    with torch.no_grad():
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_rest(ours, theirs, [theirs.norm1, theirs.norm2])
    return theirs


def torch_decoder(ours, norm_first):
    theirs = nn.TransformerDecoderLayer(D, H, F, 0.0, batch_first=True, norm_first=norm_first)
    theirs = theirs.double().train()
    with torch.no_grad():
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        copy_rest(ours, theirs, [theirs.norm1, theirs.norm2, theirs.norm3])
    return theirs


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_block_is_torchs(norm_first):
    torch.manual_seed(1)
    ours = EncoderBlock(D, H, F, 0.0, norm_first).double()
    x = torch.randn(B, S, D, dtype=torch.float64)
    theirs = torch_encoder(ours, norm_first)
    mask = SRC != PAD
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask[:, None, None])[mask], expected[mask])


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_block_is_torchs(norm_first):
    torch.manual_seed(2)
    ours = DecoderBlock(D, H, F, 0.0, norm_first).double()
    theirs = torch_decoder(ours, norm_first)
    x = torch.randn(B, T, D, dtype=torch.float64)
    memory = torch.randn(B, S, D, dtype=torch.float64)
    mask = SRC != PAD
    source = ours.cross_attention.keys_values(memory)
    out, _ = ours(x, None, causal_mask(T), source, mask[:, None, None])
    expected = theirs(x, memory, tgt_mask=~causal_mask(T), memory_key_padding_mask=~mask)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(("vocab", "total"), [(32_000, 60_485_632), (37_000, 63_045_632)])
def test_parameter_count_of_the_base_model(vocab, total):
    config = TransformerConfig(
        src_vocab=vocab,
        tgt_vocab=vocab,
        d_model=512,
        n_heads=8,
        n_layers=6,
        d_ff=2048,
        norm_first=False,
        share_embedding=True,
    )
    with torch.device("meta"):
        base = Transformer(config)
    assert sum(p.numel() for p in base.parameters()) == total
    assert sum(p.numel() for p in base.encoder[0].parameters()) == 3_150_336
    assert sum(p.numel() for p in base.decoder[0].parameters()) == 4_199_936


def test_tying_is_one_parameter_and_untying_is_not():
    tied, untied = model(), model(tie_output=False)
    assert tied.output.weight is tied.tgt_embedding.weight
    assert untied.output.weight is not untied.tgt_embedding.weight
    shared = model(src_vocab=13, share_embedding=True)
    assert shared.src_embedding is shared.tgt_embedding


def test_embeddings_start_small():
    with torch.random.fork_rng():
        wide = Transformer(TransformerConfig(src_vocab=997, tgt_vocab=991, d_model=64))
    for table in (wide.src_embedding, wide.tgt_embedding):
        assert table.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)


@pytest.mark.parametrize("norm_first", [True, False])
def test_later_targets_never_reach_back(norm_first):
    m = model(norm_first=norm_first)
    logits = m(SRC, TGT)
    for t in range(1, 3):
        changed = TGT.clone()
        changed[:, t] = 10
        torch.testing.assert_close(m(SRC, changed)[:, :t], logits[:, :t], rtol=0, atol=0)
        assert (m(SRC, changed)[:, t] - logits[:, t]).abs().max() > 1e-3


@pytest.mark.parametrize("norm_first", [True, False])
def test_padding_and_batch_change_nothing(norm_first):
    m = model(norm_first=norm_first)
    logits = m(SRC, TGT)
    torch.testing.assert_close(m(SRC[1:2, :3], TGT[1:2, :3]), logits[1:2, :3])
    wider = nn.functional.pad(SRC, (0, 5), value=PAD)
    torch.testing.assert_close(m(wider, TGT), logits)
    longer = nn.functional.pad(TGT, (0, 4), value=PAD)
    torch.testing.assert_close(m(SRC, longer)[:, :T], logits)
    loss = next_token_loss(logits[:, :-1], TGT[:, 1:])
    torch.testing.assert_close(next_token_loss(m(wider, longer)[:, :-1], longer[:, 1:]), loss)
    bounds = [11, 5, 7]
    assert greedy(m.step, m.start(wider), bounds) == greedy(m.step, m.start(SRC), bounds)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("norm_first", [True, False])
def test_cached_steps_give_the_logits_of_one_forward_pass(norm_first, dtype, within):
    m = model(norm_first=norm_first, n_layers=3).to(dtype)
    logits, state = m(SRC, TGT), m.start(SRC)
    for t in range(T):
        step, state = m.step(TGT[:, t], state)
        torch.testing.assert_close(step, logits[:, t], rtol=within, atol=within)


def test_a_prefix_may_be_read_at_once_and_continued():
    m = model()
    first, state = m.decode(TGT[:, :2], m.start(SRC))
    rest, state = m.decode(TGT[:, 2:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), m(SRC, TGT), rtol=1e-10, atol=1e-10)
    assert [k.shape for k, _ in state["past"]] == [(B, H, T, D // H)] * 2


def test_a_step_changes_no_older_state_and_the_encoder_runs_once():
    m, calls = model(), []
    m.encoder[0].register_forward_hook(lambda *_: calls.append(1))
    start = m.start(SRC)
    _, once = m.step(TGT[:, 0], start)
    left, _ = m.step(TGT[:, 1], once)
    m.step(torch.full((B,), 9), once)
    again, _ = m.step(TGT[:, 1], once)
    torch.testing.assert_close(again, left, rtol=0, atol=0)
    assert start["past"] == [None, None] and start["past_mask"].shape == (B, 0)
    assert calls == [1]


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("tie_output", [True, False])
def test_every_parameter_gets_a_gradient(norm_first, tie_output):
    m = model(norm_first=norm_first, tie_output=tie_output)
    next_token_loss(m(SRC, TGT)[:, :-1], TGT[:, 1:]).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in m.parameters())


def test_trace_holds_every_step_and_changes_nothing():
    m, trace = model(), {}
    logits = m(SRC, TGT, trace)
    torch.testing.assert_close(logits, m(SRC, TGT), rtol=0, atol=0)
    assert {"encoder", "decoder", "logits", "memory"} <= set(trace)
    assert trace["src_embedding"].shape == trace["memory"].shape == (B, S, D)
    assert trace["tgt_embedding"].shape == trace["decoder"][1]["output"].shape == (B, T, D)
    assert trace["encoder"][1]["self"]["weights"].shape == (B, H, S, S)
    assert trace["decoder"][0]["self"]["weights"].shape == (B, H, T, T)
    assert trace["decoder"][1]["cross"]["weights"].shape == (B, H, T, S)
    assert trace["decoder"][0]["cross"]["k"].shape == (B, H, S, D // H)
    assert trace["decoder"][1]["ffn"]["hidden"].shape == (B, T, F)
    torch.testing.assert_close(trace["logits"], logits)
    block, steps = trace["encoder"][0], ("self", "ffn")  # Pre-LN: the parts' outputs add up
    total = trace["src_embedding"] + sum(block[name]["output"] for name in steps)
    torch.testing.assert_close(block["output"], total)
    one = {}
    m.step(TGT[:, 0], m.start(SRC), one)
    assert one["decoder"][1]["cross"]["weights"].shape == (B, H, 1, S)
    decoder = trace["decoder"][1]  # the second sentence: 3 of 7 and 3 of 5 are words
    assert (decoder["cross"]["weights"][1, :, :, 3:] == 0).all()
    assert (decoder["self"]["weights"][1, :, :, 3:] == 0).all()


def test_pre_ln_has_a_last_norm_and_post_ln_does_not():
    assert isinstance(model().encoder_norm, nn.LayerNorm)
    assert isinstance(model(norm_first=False).decoder_norm, nn.Identity)


def test_feed_forward_by_hand_and_by_position():
    ffn = FeedForward(2, 4).double()
    with torch.no_grad():
        ffn.w_1.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [0, -1], [-1, 0]]))
        ffn.w_2.weight.copy_(torch.tensor([[1.0, 0, 1, 0], [0, 1, 1, 1]]))
        ffn.w_1.bias.zero_()
        ffn.w_2.bias.zero_()
    x = torch.tensor([[[1.0, -1.0]]], dtype=torch.float64)
    assert ffn(x)[0, 0].tolist() == [2, 1]
    sequence = torch.randn(1, T, 2, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(ffn, sequence)[0, :, :, 0]  # (T, D, T, D)
    for t in range(T):
        torch.testing.assert_close(ffn(sequence[:, t : t + 1]), ffn(sequence)[:, t : t + 1])
        for s in range(T):
            assert s == t or (jacobian[t, :, s] == 0).all()


def test_embedding_is_scaled_and_positioned():
    m = model()
    ids = torch.tensor([[4, 5, 6]])
    expected = m.src_embedding(ids) * D**0.5 + sinusoidal(3, D).double()
    torch.testing.assert_close(m.embed(m.src_embedding, ids), expected)
    later = m.embed(m.src_embedding, ids[:, 2:], start=2)
    torch.testing.assert_close(later, expected[:, 2:])


def test_a_source_of_padding_only_is_refused_in_japanese():
    with pytest.raises(ValueError, match="一つもない行"):
        model()(torch.full((1, 3), PAD), TGT[:1])
    with pytest.raises(ValueError, match="一つもない行の数: 1"):
        model().encode(torch.cat([SRC[:1], torch.full((1, S), PAD)]))
    with pytest.raises(ValueError, match="語彙の大きさが同じ"):
        model(share_embedding=True)


def test_a_copy_with_the_same_weights_is_the_same_model():
    m = model()
    torch.testing.assert_close(copy.deepcopy(m)(SRC, TGT), m(SRC, TGT), rtol=0, atol=0)
