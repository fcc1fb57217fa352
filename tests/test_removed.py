"""Removed names: the error says what to use instead."""

from __future__ import annotations

import pytest

import variegate as vg
from variegate import transforms as T


def test_a_removed_method_says_what_to_use() -> None:
    augmenter = vg.Augmenter(T.Invert())
    with pytest.raises(AttributeError, match=r"^Augmenter.capture was removed: call the Augmenter itself"):
        augmenter.capture()  # type: ignore[operator]
    assert not hasattr(augmenter, "no_such_method")
