"""The comparisons that exercises use: what passes, what fails, and what the message tells."""

import math

import pytest
import torch

from lib.checks import expect_close, expect_shape


def test_equal_shapes_and_close_values_pass():
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    assert expect_shape(x, (3, 5), "x") is None
    assert expect_close(x, x + 1e-8) is None
    assert expect_close(0.1 + 0.2, 0.3) is None
    assert expect_close([1, 2], torch.tensor([1.0, 2.0])) is None
    assert expect_close(torch.tensor([math.inf]), [math.inf]) is None


def test_a_wrong_shape_is_told_with_both_shapes():
    with pytest.raises(
        AssertionError, match=r"重み の形が違います。期待: \(5, 3\)、実際: \(3, 5\)"
    ):
        expect_shape(torch.zeros(3, 5), (5, 3), "重み")


def test_a_shape_that_would_broadcast_is_still_wrong():
    with pytest.raises(AssertionError, match=r"期待: \(3,\)、実際: \(1, 3\)"):
        expect_close(torch.zeros(1, 3), torch.zeros(3))


def test_the_first_wrong_place_both_values_and_the_hint_are_told():
    actual, expected = torch.zeros(3, 5), torch.zeros(3, 5)
    actual[1, 2] = actual[2, 4] = 0.25
    with pytest.raises(AssertionError) as caught:
        expect_close(actual, expected, hint="softmax の軸を確かめてください。")
    message = str(caught.value)
    assert "最初に違う位置: (1, 2)、期待: 0、実際: 0.25" in message
    assert message.endswith("softmax の軸を確かめてください。")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 1.0 + 1e-4])
def test_values_that_are_not_close_fail(bad):
    with pytest.raises(AssertionError, match="値が違います"):
        expect_close(bad, 1.0)


def test_tolerances_are_those_given():
    assert expect_close(1.01, 1.0, rtol=0.02) is None
    assert expect_close(0.01, 0.0, atol=0.02) is None
    with pytest.raises(AssertionError, match="値が違います"):
        expect_close(1.01, 1.0, rtol=0.0, atol=0.005)
