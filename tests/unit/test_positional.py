"""Sinusoids: the worked tables, the rotation, the norm."""

import math

import pytest
import torch

from lib.positional import sinusoidal


def test_worked_table_of_four_dimensions():
    expected = [
        [0.000000, 1.000000, 0.000000, 1.000000],
        [0.841471, 0.540302, 0.010000, 0.999950],
        [0.909297, -0.416147, 0.019999, 0.999800],
        [0.141120, -0.989992, 0.029996, 0.999550],
        [-0.756802, -0.653644, 0.039989, 0.999200],
    ]
    torch.testing.assert_close(sinusoidal(5, 4), torch.tensor(expected), rtol=0, atol=1e-6)


def test_worked_row_of_eight_dimensions():
    row = sinusoidal(2, 8)[1].tolist()
    expected = [0.841471, 0.540302, 0.099833, 0.995004, 0.010000, 0.999950, 0.001000, 1.000000]
    assert row == pytest.approx(expected, abs=1e-6)
    base_1000 = sinusoidal(2, 8, base=1000.0)[1]
    assert base_1000[2:4].tolist() == pytest.approx([0.1769, 0.9842], abs=1e-4)
    assert base_1000.norm() == pytest.approx(2, abs=1e-6)  # the norm does not see the wrong base


def test_norm_and_inner_product_depend_on_distance_only():
    pe = sinusoidal(1001, 64).double()
    torch.testing.assert_close(
        pe.norm(dim=1), torch.full((1001,), math.sqrt(32)).double(), rtol=0, atol=1e-5
    )
    for k in (1, 5, 50):
        dots = (pe[:-k] * pe[k:]).sum(1)
        torch.testing.assert_close(dots, dots[:1].expand_as(dots), rtol=0, atol=1e-4)


def test_a_shift_is_a_rotation_of_each_pair():
    pe, k = sinusoidal(60, 8).double(), 7
    for i in range(4):
        angle = k / 10000 ** (2 * i / 8)
        c, s = math.cos(angle), math.sin(angle)
        rotation = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)
        pair = pe[:, 2 * i : 2 * i + 2]
        torch.testing.assert_close(pair[:-k] @ rotation.T, pair[k:], rtol=0, atol=1e-5)


def test_start_continues_the_table():
    torch.testing.assert_close(sinusoidal(3, 6, start=11), sinusoidal(14, 6)[11:])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(3, 5), "偶数"),
        (lambda: sinusoidal(3, 0), "偶数"),
        (lambda: sinusoidal(0, 4), "length は 1 以上"),
        (lambda: sinusoidal(3, 4, start=-1), "start は 0 以上"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
