"""Attention against torch, by hand, and by its laws."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lib.attention import (
    AdditiveAttention,
    MultiHeadAttention,
    attend,
    attention,
    causal_mask,
    dot_attention,
    dot_scores,
    masked_softmax,
    scaled_dot_scores,
)

B, T, S, D, H, J = 3, 5, 7, 22, 2, 13


def qkv(dtype, *lead, scale=1.0):
    torch.manual_seed(0)
    sizes = ((*lead, T, D), (*lead, S, D), (*lead, S, J))
    return [scale * torch.randn(size, dtype=dtype) for size in sizes]


def masks():
    torch.manual_seed(1)
    random = torch.rand(B, T, S) < 0.5
    random[..., 0] = True
    padding = (torch.arange(S) < torch.tensor([7, 2, 5])[:, None])[:, None]
    return {"none": None, "random": random, "padding": padding, "causal": causal_mask(S)[:T]}


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["none", "random", "padding", "causal"])
def test_attention_is_torchs(name, dtype, scale):
    q, k, v = qkv(dtype, B, scale=scale)
    mask = masks()[name]
    context, weights = attention(q, k, v, mask)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(context, expected, rtol=1e-4, atol=1e-4 * scale)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T, dtype=dtype))
    if mask is not None:
        assert (weights[~mask.expand_as(weights)] == 0).all()


def test_attention_with_leading_axes_and_none():
    q, k, v = qkv(torch.float64, 2, B)
    both, _ = attention(q, k, v)
    for i in range(2):
        for j in range(B):
            torch.testing.assert_close(attention(q[i, j], k[i, j], v[i, j])[0], both[i, j])


def test_leading_axes_and_a_mask_that_is_spread_over_them():
    q, k, v = qkv(torch.float64, 2, B)
    random = masks()["random"]
    context, weights = attention(q, k, v, random)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=random)
    torch.testing.assert_close(context, expected)
    assert weights.shape == (2, B, T, S)


def test_a_masked_key_is_the_same_as_no_key():
    q, k, v = qkv(torch.float64, B)
    keep = torch.tensor([0, 2, 3, 6])
    mask = torch.zeros(S, dtype=torch.bool).index_fill(0, keep, True)
    torch.testing.assert_close(
        attention(q, k, v, mask.expand(T, S))[0], attention(q, k[:, keep], v[:, keep])[0]
    )


def test_worked_scores_of_three_kinds():
    h = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    H3 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    expected = {
        "dot": ((0.422319, 0.155362, 0.422319), (0.844638, 0.577681)),
        "scaled": ((0.401112, 0.197776, 0.401112), (0.802224, 0.598888)),
        "additive": ((0.204462, 0.357645, 0.437893), (0.642355, 0.795538)),
    }
    additive = AdditiveAttention(2, 2, 2).double()
    with torch.no_grad():
        additive.w_q.weight.copy_(torch.eye(2))
        additive.w_k.weight.copy_(torch.eye(2))
        additive.v.weight.fill_(1)
    got = {
        "dot": dot_attention(h, H3, H3),
        "scaled": attention(h, H3, H3),
        "additive": [x[0] for x in additive(h[None], H3[None], H3[None])],
    }
    for name, (weights, context) in expected.items():
        assert got[name][1][0].tolist() == pytest.approx(weights, abs=1e-6), name
        assert got[name][0][0].tolist() == pytest.approx(context, abs=1e-6), name


def test_cat_fish_it():
    scores = torch.tensor([[0.0, 4.0, 0.0]], dtype=torch.float64) / math.sqrt(2)
    values = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    context, weights = attend(scores, values)
    assert weights[0].tolist() == pytest.approx([0.052857, 0.894285, 0.052857], abs=1e-6)
    assert context[0].tolist() == pytest.approx([0.158572, 1.841428], abs=1e-6)


def test_context_is_a_convex_combination_with_its_limits():
    values = torch.arange(12, dtype=torch.float64).reshape(4, 3)
    hard = torch.tensor([[-1e9, -1e9, 0.0, -1e9]], dtype=torch.float64)
    assert attend(hard, values)[0][0].tolist() == [6, 7, 8]
    assert attend(torch.zeros(1, 4, dtype=torch.float64), values)[0][0].tolist() == [4.5, 5.5, 6.5]
    q, k, v = qkv(torch.float64, B)
    context, _ = attention(q, k, v)
    assert (context <= v.max(1, keepdim=True).values + 1e-12).all()
    assert (context >= v.min(1, keepdim=True).values - 1e-12).all()


def test_scores_are_the_formulas():
    q, k, _ = qkv(torch.float64)
    expected = torch.tensor([[sum(a * b for a, b in zip(x, y, strict=True)) for y in k] for x in q])
    torch.testing.assert_close(dot_scores(q, k), expected)
    torch.testing.assert_close(scaled_dot_scores(q, k), expected / math.sqrt(D))
    torch.manual_seed(2)
    additive = AdditiveAttention(D, D, 3).double()
    one = additive.v.weight @ torch.tanh(additive.w_q.weight @ q[2] + additive.w_k.weight @ k[4])
    torch.testing.assert_close(additive.scores(q[None], k[None])[0, 2, 4], one[0])


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_is_torchs_with_copied_weights(cross, masked):
    torch.manual_seed(3)
    ours = MultiHeadAttention(D, H).double()
    theirs = nn.MultiheadAttention(D, H, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]))
        theirs.out_proj.weight.copy_(ours.w_o.weight)
    x = torch.randn(B, T, D, dtype=torch.float64)
    memory = torch.randn(B, S, D, dtype=torch.float64) if cross else x
    length = memory.shape[1]
    mask = torch.rand(T, length) < 0.5
    mask[:, 1] = True
    out, weights = ours(x, memory, mask if masked else None)
    expected, expected_weights = theirs(
        x, memory, memory, attn_mask=~mask if masked else None, average_attn_weights=False
    )
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_multi_head_parameters_do_not_depend_on_the_number_of_heads():
    for heads in (1, 2, 4, 8):
        assert sum(p.numel() for p in MultiHeadAttention(512, heads).parameters()) == 4 * 512**2


def test_equivariance_and_its_end_under_a_causal_mask():
    torch.manual_seed(4)
    ours = MultiHeadAttention(D, H).double()
    x = torch.randn(1, T, D, dtype=torch.float64)
    perm = torch.tensor([2, 0, 4, 1, 3])
    torch.testing.assert_close(ours(x[:, perm], x[:, perm])[0], ours(x, x)[0][:, perm])
    causal = causal_mask(T)
    gap = ours(x[:, perm], x[:, perm], causal)[0] - ours(x, x, causal)[0][:, perm]
    assert gap.abs().max() > 1e-2


def test_a_row_that_may_see_nothing_is_refused_in_japanese():
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[3] = False
    with pytest.raises(ValueError, match="一つもない行"):
        masked_softmax(torch.zeros(T, S), mask)
    with pytest.raises(ValueError, match="割り切れる"):
        MultiHeadAttention(10, 3)


def test_causal_mask_by_hand():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    assert causal_mask(2, past=2).tolist() == [[True, True, True, False], [True] * 4]
    assert causal_mask(5)[2:].equal(causal_mask(3, past=2))


def test_what_is_masked_may_be_anything():
    q, k, v = (x.requires_grad_() for x in qkv(torch.float64, B))
    mask = masks()["padding"]
    context, _ = attention(q, k, v, mask)
    context.pow(2).sum().backward()
    hidden = ~mask[:, 0, :, None]
    assert q.grad.isfinite().all()
    assert (k.grad[hidden.expand_as(k)] == 0).all() and (v.grad[hidden.expand_as(v)] == 0).all()
    with torch.no_grad():
        loud = k.masked_fill(hidden, 1e30), v.masked_fill(hidden, 1e30)
    torch.testing.assert_close(attention(q, *loud, mask)[0], context, rtol=0, atol=0)


def test_every_parameter_gets_a_gradient():
    torch.manual_seed(5)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    for part in (MultiHeadAttention(D, H), AdditiveAttention(D, D, J)):
        out, _ = (
            part(x, memory) if isinstance(part, MultiHeadAttention) else part(x, memory, memory)
        )
        out.pow(2).sum().backward()
        assert all(p.grad.abs().sum() > 0 for p in part.parameters())


def test_gradient_through_a_mask_is_finite_and_right():
    q, k, v = (x[0, :3].requires_grad_() for x in qkv(torch.float64, B))
    mask = causal_mask(3)
    assert torch.autograd.gradcheck(lambda *x: attention(*x, mask)[0], (q, k, v), atol=1e-6)
