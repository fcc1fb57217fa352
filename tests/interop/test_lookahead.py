"""Batches made ahead: the right one whoever asks for what, and none in vain where order is not kept."""

from __future__ import annotations

import threading

import pytest

from variegate.interop.keras import BatchesAhead


def test_the_next_are_made_while_one_is_used() -> None:
    made: list[int] = []
    reached = threading.Event()

    def record(epoch: int, index: int) -> None:
        made.append(index)
        if index == 3:
            reached.set()

    ahead = BatchesAhead(record, 1, depth=3)
    ahead.get(0, 0, 5)
    assert reached.wait(10)
    assert made == [0, 1, 2, 3]
    for index in range(1, 5):
        ahead.get(0, index, 5)
    assert made == [0, 1, 2, 3, 4]  # each once, and none beyond the last


def test_an_error_is_raised_when_its_batch_is_asked_for() -> None:
    def fail(epoch: int, index: int) -> int:
        if index == 1:
            raise ValueError("batch 1")
        return index

    ahead = BatchesAhead(fail, 2, depth=2)
    assert ahead.get(0, 0, 3) == 0
    with pytest.raises(ValueError, match="batch 1"):
        ahead.get(0, 1, 3)
    assert ahead.get(0, 2, 3) == 2
