"""Cells against nn.RNN and nn.LSTM with copied weights, padding, gradients through time."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lib.rnn import RNNLM, LSTMCell, RNNCell, make_cell, unroll, unroll_both
from lib.text import BOS, PAD

B, T, E, D = 3, 7, 5, 11
LENGTHS = [7, 2, 5]


def torch_twin(cell, kind, *, reverse=None):
    """nn.RNN or nn.LSTM holding the same weights (its second bias is 0)."""
    twin = kind(E, D, batch_first=True, bidirectional=reverse is not None).double()
    for suffix, ours in (("", cell), ("_reverse", reverse)):
        if ours is None:
            continue
        with torch.no_grad():
            getattr(twin, f"weight_ih_l0{suffix}").copy_(ours.w_x.weight)
            getattr(twin, f"weight_hh_l0{suffix}").copy_(ours.w_h.weight)
            getattr(twin, f"bias_ih_l0{suffix}").copy_(ours.w_x.bias)
            getattr(twin, f"bias_hh_l0{suffix}").zero_()
    return twin


def inputs():
    torch.manual_seed(0)
    x = torch.randn(B, T, E, dtype=torch.float64)
    mask = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    return x, mask


@pytest.mark.parametrize(("ours", "kind"), [(RNNCell, nn.RNN), (LSTMCell, nn.LSTM)])
def test_unroll_is_torchs_with_variable_lengths(ours, kind):
    x, mask = inputs()
    cell = ours(E, D).double()
    hidden, end = unroll(cell, x, cell.start(torch.zeros(B, D, dtype=torch.float64)), mask)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    out, last = torch_twin(cell, kind)(packed)
    expected, _ = pad_packed_sequence(out, batch_first=True)
    torch.testing.assert_close(hidden[mask], expected[mask])
    last = last if isinstance(last, tuple) else (last,)
    for mine, theirs in zip(end, last, strict=True):
        torch.testing.assert_close(mine, theirs[0])


@pytest.mark.parametrize(("ours", "kind"), [(RNNCell, nn.RNN), (LSTMCell, nn.LSTM)])
def test_both_directions_are_torchs(ours, kind):
    x, mask = inputs()
    right, left = ours(E, D).double(), ours(E, D).double()
    hidden, ends = unroll_both(right, left, x, torch.zeros(B, D, dtype=torch.float64), mask)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    out, last = torch_twin(right, kind, reverse=left)(packed)
    expected, _ = pad_packed_sequence(out, batch_first=True)
    torch.testing.assert_close(hidden[mask], expected[mask])
    last = last[0] if isinstance(last, tuple) else last
    torch.testing.assert_close(ends, torch.cat([last[0], last[1]], dim=-1))


def test_worked_example_of_two_steps():
    cell = RNNCell(2, 2).double()
    with torch.no_grad():
        cell.w_x.weight.copy_(torch.eye(2))
        cell.w_h.weight.copy_(torch.eye(2) / 2)
        cell.w_x.bias.zero_()
    x = torch.eye(2, dtype=torch.float64)[None]
    hidden, _ = unroll(cell, x, cell.start(torch.zeros(1, 2, dtype=torch.float64)))
    expected = torch.tensor([[[0.761594, 0.0], [0.363399, 0.761594]]], dtype=torch.float64)
    torch.testing.assert_close(hidden, expected, rtol=0, atol=1e-6)
    swapped, _ = unroll(cell, x.flip(1), cell.start(torch.zeros(1, 2, dtype=torch.float64)))
    assert swapped[0, 1].tolist() == pytest.approx([0.761594, 0.363399], abs=1e-6)


def test_gradient_of_the_shared_matrix_is_the_sum_over_copies():
    torch.manual_seed(1)
    cell = RNNCell(E, D).double()
    x = torch.randn(1, T, E, dtype=torch.float64)
    unroll(cell, x, cell.start(torch.zeros(1, D, dtype=torch.float64)))[1][0].pow(
        2
    ).sum().backward()
    copies = [cell.w_h.weight.detach().clone().requires_grad_() for _ in range(T)]
    h = torch.zeros(1, D, dtype=torch.float64)
    for t in range(T):
        h = torch.tanh(x[:, t] @ cell.w_x.weight.T + cell.w_x.bias + h @ copies[t].T)
    h.pow(2).sum().backward()
    total = sum(copy.grad for copy in copies)
    torch.testing.assert_close(cell.w_h.weight.grad, total, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_language_model_laws(kind):
    torch.manual_seed(2)
    model = RNNLM(13, E, D, kind).double()
    ids = torch.tensor([[BOS, 5, 7, 4], [BOS, 6, PAD, PAD]])
    logits = model(ids)
    alone = model(ids[1:, :2])
    torch.testing.assert_close(logits[1:, :2], alone)  # padding and batch change nothing
    later = ids.clone()
    later[0, 3] = 9
    torch.testing.assert_close(model(later)[0, :3], logits[0, :3], rtol=0, atol=0)
    state, steps = model.start(2), []
    for t in range(2):
        step, state = model.step(ids[:, t], state)
        steps.append(step)
    torch.testing.assert_close(torch.stack(steps, 1), logits[:, :2])


def test_parameters_do_not_depend_on_length():
    for kind, gates in (("rnn", 1), ("lstm", 4)):
        n = sum(p.numel() for p in make_cell(kind, E, D).parameters())
        assert n == gates * D * (D + E + 1)


def test_jacobian_through_time_by_finite_differences():
    torch.manual_seed(3)
    cell = RNNCell(2, 3).double()
    x = torch.randn(1, 5, 2, dtype=torch.float64, requires_grad=True)

    def last(x):
        return unroll(cell, x, cell.start(x.new_zeros(1, 3)))[1][0]

    assert torch.autograd.gradcheck(last, (x,), atol=1e-6)
    assert not math.isclose(torch.autograd.functional.jacobian(last, x)[:, :, :, 0].norm(), 0)


def test_unknown_cell_is_refused_in_japanese():
    with pytest.raises(ValueError, match="rnn か lstm"):
        make_cell("gru", 2, 2)
