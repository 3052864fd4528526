"""One stack, two masks: causality, both sides, the step, holes, the oracle of torch."""

import pytest
import torch
from torch import nn

from lib.decode import greedy
from lib.text import BOS, EOS, PAD
from lib.transformer import EncoderBlock
from lib.variants import LanguageModelConfig, TransformerLM

V, D, H, F, N = 13, 12, 3, 17, 2
IDS = torch.tensor([[BOS, 5, 6, 7, 8, 9, 4], [BOS, 9, 4, EOS, PAD, PAD, PAD]])
KINDS = ["none", "integer", "normalized", "sinusoidal", "learned", "rope"]


def model(**overrides):
    torch.manual_seed(0)
    sizes = {"vocab_size": V, "d_model": D, "n_heads": H, "d_ff": F, "n_layers": N, "max_len": 11}
    return TransformerLM(LanguageModelConfig(**sizes | overrides)).double()


@pytest.mark.parametrize("causal", [True, False])
def test_equal_to_torch_with_copied_weights(causal):
    ours = model(causal=causal, position="learned")
    theirs = []
    for block in ours.blocks:
        layer = nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True, norm_first=True)
        attention, own = layer.self_attn, block.self_attention
        with torch.no_grad():
            weights = [own.w_q.weight, own.w_k.weight, own.w_v.weight]
            attention.in_proj_weight.copy_(torch.cat(weights))
            attention.in_proj_bias.zero_()
            attention.out_proj.weight.copy_(own.w_o.weight)
            attention.out_proj.bias.zero_()
        layer.linear1.load_state_dict(block.ffn.w_1.state_dict())
        layer.linear2.load_state_dict(block.ffn.w_2.state_dict())
        theirs.append(layer.double().train())
    x = ours.embedding(IDS) * D**0.5 + ours.positions.learned.table[: IDS.shape[1]]
    hidden_future = torch.ones(IDS.shape[1], IDS.shape[1], dtype=torch.bool).triu(1)
    for layer in theirs:
        future = hidden_future if causal else None
        x = layer(x, src_mask=future, src_key_padding_mask=IDS == PAD)
    expected = nn.functional.layer_norm(x, (D,)) @ ours.embedding.weight.T
    words = IDS != PAD
    torch.testing.assert_close(ours(IDS)[words], expected[words])


@pytest.mark.parametrize("position", KINDS)
def test_gpt_sees_the_left_only_and_bert_both_sides(position):
    changed = IDS[:1].clone()
    changed[0, 4] = 10
    causal, both = model(position=position), model(position=position, causal=False)
    difference = (causal(changed) - causal(IDS[:1])).abs().amax(-1)[0]
    assert (difference[:4] == 0).all() and (difference[4:] > 0).all()
    assert ((both(changed) - both(IDS[:1])).abs().amax(-1) > 0).all()


@pytest.mark.parametrize("position", KINDS)
def test_padding_and_batch_change_nothing(position):
    m = model(position=position, norm_first=False)
    same = torch.allclose(m(IDS)[1:, :4], m(IDS[1:, :4]))
    assert same == (position != "normalized")  # t / n: the padded length is in every position


@pytest.mark.parametrize("position", ["integer", "normalized"])
def test_layer_norm_erases_a_number_added_to_every_component(position):
    plain, numbered = model(position="none"), model(position=position)
    torch.testing.assert_close(numbered(IDS[:1]), plain(IDS[:1]))
    plain = model(position="none", norm_first=False)
    numbered = model(position=position, norm_first=False)
    assert not torch.allclose(numbered(IDS[:1]), plain(IDS[:1]))


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rope", "none"])
def test_step_by_step_is_the_whole_forward(position):
    m = model(position=position)
    state, logits = m.start(1), []
    for token in IDS[0]:
        out, state = m.step(token[None], state)
        logits.append(out)
    torch.testing.assert_close(torch.stack(logits, 1), m(IDS[:1]))
    assert greedy(m.step, m.start(2), [3, 5])[0] == greedy(m.step, m.start(1), [3])[0]


def test_order_is_seen_with_rope_and_not_without_positions():
    swapped = IDS[:1, [0, 2, 1, 3, 4, 5, 6]]
    none, rope = model(position="none", causal=False), model(position="rope", causal=False)
    torch.testing.assert_close(none(swapped)[0, 3:], none(IDS[:1])[0, 3:])
    assert not torch.allclose(rope(swapped)[0, 3:], rope(IDS[:1])[0, 3:])


def test_both_shapes_have_the_same_parts():
    gpt, bert = model(), model(causal=False)
    assert [n for n, _ in gpt.named_parameters()] == [n for n, _ in bert.named_parameters()]
    assert all(isinstance(block, EncoderBlock) for block in gpt.blocks)
    assert gpt.output.weight is gpt.embedding.weight


def test_trace_holds_the_weights_of_each_block():
    trace = {}
    m = model()
    m(IDS, trace)
    assert trace["blocks"][1]["self"]["weights"].shape == (2, H, 7, 7)
    torch.testing.assert_close(trace["logits"], m(IDS))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: model(causal=False).step(IDS[:, 0], IDS[:, :0]), "causal=True"),
        (lambda: model(position="clock"), "'clock'"),
        (lambda: model(position="learned", max_len=5)(IDS), "0 から 4 まで"),
        (lambda: model()(torch.full((1, 3), PAD)), "一つもない行"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
