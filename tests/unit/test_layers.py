"""The feed-forward layer in its three kinds, against the formulas written out."""

import pytest
import torch
from torch.nn import functional as F

from lib.layers import FeedForward

D, D_FF, B, T = 5, 11, 3, 7


def written_out(ffn, x, kind):
    a = x @ ffn.w_1.weight.mT + ffn.w_1.bias
    hidden = {
        "relu": lambda: a.clamp(min=0),
        "gelu": lambda: a * (1 + torch.erf(a / 2**0.5)) / 2,
        "swiglu": lambda: a / (1 + (-a).exp()) * (x @ ffn.w_3.weight.mT + ffn.w_3.bias),
    }[kind]()
    return F.linear(hidden, ffn.w_2.weight, ffn.w_2.bias)


@pytest.mark.parametrize("kind", ["relu", "gelu", "swiglu"])
def test_each_kind_is_its_formula(kind):
    torch.manual_seed(1)
    ffn = FeedForward(D, D_FF, kind=kind).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    torch.testing.assert_close(ffn(x), written_out(ffn, x, kind))
    trace = {}
    ffn(x, trace)
    assert trace["hidden"].shape == (B, T, D_FF)


def test_a_third_matrix_costs_half_as_much_again():
    plain, gated = FeedForward(D, D_FF), FeedForward(D, D_FF, kind="swiglu")
    count = [sum(p.numel() for p in ffn.parameters()) for ffn in (plain, gated)]
    assert count == [2 * D * D_FF + D_FF + D, 3 * D * D_FF + 2 * D_FF + D]


def test_an_unknown_kind_is_refused_in_japanese():
    with pytest.raises(ValueError, match="'tanh'"):
        FeedForward(D, D_FF, kind="tanh")
