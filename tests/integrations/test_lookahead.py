"""Batches made ahead: the right one whoever asks for what, and none in vain where order is not kept."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings

import pytest

from variegate.integrations.keras import BatchesAhead


def make(epoch: int, index: int) -> tuple[int, int]:
    return epoch, index


@pytest.mark.parametrize("workers", [1, 3])
def test_any_order_gives_what_is_asked_for(workers: int) -> None:
    ahead = BatchesAhead(make, workers, depth=2)
    asked = [(0, 0), (0, 1), (0, 2), (0, 5), (0, 5), (1, 0), (1, 1), (0, 2), (1, 2), (1, 6)]
    assert [ahead.get(*key, 7) for key in asked] == asked


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


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_goes_on() -> None:
    """It has none of the threads, and may have inherited a lock that was taken."""
    ahead = BatchesAhead(make, 2, depth=2)
    assert ahead.get(0, 0, 5) == (0, 0)
    with ahead._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork of a process with threads
        child = multiprocessing.get_context("fork").Process(target=_go_on, args=(ahead,))
        child.start()
    child.join(60)
    alive = child.is_alive()
    child.kill()
    assert not alive
    assert child.exitcode == 0


def _go_on(ahead: BatchesAhead[tuple[int, int]]) -> None:
    assert [ahead.get(0, index, 5) for index in range(1, 5)] == [(0, index) for index in range(1, 5)]
