"""Preconditions: what passes, and what the message tells."""

import pytest

from lib.checks import require


def test_a_precondition_is_told_with_what_was_got():
    assert require([0], "一つ以上が必要です", 1) is None
    with pytest.raises(ValueError, match=r"^名前は a か b です。受け取った値: 'c', \[\]$"):
        require("c" in ("a", "b"), "名前は a か b です", "c", [])
