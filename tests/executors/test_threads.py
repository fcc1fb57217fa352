"""Work shared out over threads: each piece once, and of several errors always the same."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from variegate.executors.batches import share_out


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("number", [0, 1, 7, 64, 131])
def test_every_row_is_done_once(number: int, threads: int) -> None:
    done = np.zeros(number, np.int64)

    def work(rows: np.ndarray) -> None:
        done[rows] += 1

    share_out(work, number, threads)
    assert (done == 1).all()


def test_the_error_of_the_first_rows_is_raised_whichever_comes_first() -> None:
    later = threading.Event()

    def work(rows: np.ndarray) -> None:
        if rows[0] == 0:
            later.wait(20)
            raise ValueError("the first rows")
        later.set()
        raise ValueError("later rows")

    with pytest.raises(ValueError, match="the first rows"):
        share_out(work, 64, 2)


def test_nothing_more_is_begun_after_an_error() -> None:
    begun: list[int] = []

    def work(rows: np.ndarray) -> None:
        begun.append(int(rows[0]))
        if rows[0] == 0:
            raise ValueError("the first rows")
        time.sleep(0.05)

    with pytest.raises(ValueError, match="the first rows"):
        share_out(work, 800, 2)
    assert len(begun) < 10
