"""Sinusoids: the worked tables, the rotation, the norm."""

import math

import pytest
import torch

from lib.positional import LearnedPositions, Positions, integer, normalized, rotate, sinusoidal


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


def test_integer_and_normalized_by_hand():
    assert integer(3, 2).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert integer(2, 2, start=7).tolist() == [[7, 7], [8, 8]]
    assert normalized(4, 2)[:, 0].tolist() == [0, 0.25, 0.5, 0.75]
    assert normalized(2, 2, start=2)[:, 0].tolist() == [0.5, 0.75]
    assert normalized(8, 2)[3, 0] != normalized(4, 2)[3, 0]  # the same place, another value


def test_rope_is_a_complex_rotation():
    x = torch.randn(2, 3, 7, 10, dtype=torch.float64)
    pairs = torch.view_as_complex(x.unflatten(-1, (5, 2)))
    speed = 10000 ** (-torch.arange(5, dtype=torch.float64) / 5)
    angle = torch.arange(4, 11, dtype=torch.float64)[:, None] * speed
    turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
    torch.testing.assert_close(rotate(x, start=4), turned)
    torch.testing.assert_close(rotate(x, start=4).norm(dim=-1), x.norm(dim=-1))


def test_rope_scores_depend_on_the_distance_only():
    q, k = torch.randn(2, 1, 6, dtype=torch.float64).unbind(0)
    score = {(m, n): rotate(q, start=m) @ rotate(k, start=n).T for m in (0, 3) for n in (2, 5)}
    torch.testing.assert_close(score[0, 2], score[3, 5])
    assert not torch.allclose(score[0, 2], score[0, 5])


def test_learned_positions_end():
    learned = LearnedPositions(5, 6)
    torch.testing.assert_close(learned(2, 3), learned.table[3:5])
    with pytest.raises(ValueError, match=r"0 から 4 まで.*受け取った値: 5"):
        learned(3, 3)


@pytest.mark.parametrize("kind", ["integer", "normalized", "sinusoidal", "learned", "rope", "none"])
def test_one_interface_for_every_kind(kind):
    positions, x = Positions(kind, 6, max_len=11), torch.randn(2, 5, 6)
    tables = {"integer": integer, "normalized": normalized, "sinusoidal": sinusoidal}
    if kind in tables:
        added = tables[kind](5, 6, start=3)
    else:
        added = positions.learned.table[3:8] if kind == "learned" else torch.zeros(5, 6)
    torch.testing.assert_close(positions(x, 3), x + added)
    expected = rotate(x, start=3) if kind == "rope" else x
    torch.testing.assert_close(positions.rotate(x, 3), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(3, 5), "偶数"),
        (lambda: rotate(torch.zeros(3, 5)), "偶数"),
        (lambda: integer(0, 4), "length は 1 以上"),
        (lambda: Positions("clock", 4), "'clock'"),
        (lambda: sinusoidal(3, 0), "偶数"),
        (lambda: sinusoidal(0, 4), "length は 1 以上"),
        (lambda: sinusoidal(3, 4, start=-1), "start は 0 以上"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
