"""Infinity is equal to itself only, in the grader and in the notebook's own check."""

import math

import numpy as np
import pytest
import torch

from exercises.grading import selfcheck
from exercises.grading.compare import difference
from exercises.grading.wire import Item

INF = math.inf


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [(INF, INF, True), (INF, 5.0, False), (5.0, INF, False), (-INF, INF, False), (5.0, 5.0, True)],
)
def test_infinity_is_equal_to_itself_only(want, got, same):
    tolerance = (1e-4, 1e-6)
    assert (difference(Item("float", want), Item("float", got), tolerance) == "") == same
    arrays = [Item("Tensor", np.array([1.0, x])) for x in (want, got)]
    assert (difference(*arrays, tolerance) == "") == same
    assert (selfcheck.differs(want, got, tolerance) == "") == same
    tensors = [torch.tensor([1.0, x]) for x in (want, got)]
    assert (selfcheck.differs(*tensors, tolerance) == "") == same


@pytest.mark.parametrize(("told", "number", "same"), [(INF, 3.0, False), (INF, INF, True)])
def test_an_infinite_fingerprint_matches_infinity_only(told, number, same):
    case = {"wrong": {"0": ("float", told)}, "width": None}
    assert selfcheck.matches(case, 0, "float", number) is same
