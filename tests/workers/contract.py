"""What workers of every kind must do, as whoever runs them sees it.

A kind joins the suite with a subclass of ``WorkersContract`` whose name begins with Test.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers.toys import Echo, Give, Made, Toy
from variegate.workers.protocol import FatalError, WorkerPool
from variegate.workers.run import FailedItem, FinishedItems, run_tasks
from variegate.workers.scheduler import Scheduler, SchedulerSettings

NAMES = ("cpu:0", "cpu:1")


def tasks(number: int, size: int = 4) -> Iterator[tuple[int, int, list[str]]]:
    """Items 0..number-1 with payloads "p0", "p1", ..."""
    for start in range(0, number, size):
        stop = min(start + size, number)
        yield start, stop, [f"p{item}" for item in range(start, stop)]


def made_of(results: Iterable[FinishedItems | FailedItem]) -> list[Made]:
    return [output for done in results if isinstance(done, FinishedItems) for output in done.outputs]


def bad_of(results: Iterable[FinishedItems | FailedItem]) -> dict[int, str]:
    return {bad.item: bad.reason for bad in results if isinstance(bad, FailedItem)}


class Run:
    """A work on workers of some kind, driven to its end."""

    def __init__(self, workers: WorkerPool, names: tuple[str, ...] = NAMES, **rules: Any) -> None:
        self.workers = workers
        self.scheduler = Scheduler(names, SchedulerSettings(**rules))

    def __call__(self, feed: Any, **options: Any) -> Generator[FinishedItems | FailedItem, None, None]:
        return run_tasks(self.workers, self.scheduler, feed, **options)

    @property
    def losses(self) -> int:
        return sum(device.losses for device in self.scheduler.snapshot().devices)


def check_made(results: list[FinishedItems | FailedItem], number: int, bad: Iterable[int] = ()) -> None:
    """Everything once, in order, each from its own payload."""
    items = [item for done in results if isinstance(done, FinishedItems) for item in range(done.start, done.stop)]
    assert items == [item for item in range(number) if item not in set(bad)]
    assert [(made.item, made.payload) for made in made_of(results)] == [(item, f"p{item}") for item in items]
    assert sorted(bad_of(results)) == sorted(bad)


class WorkersContract:
    """What follows holds for all kinds.

    ``kind``: the class of the workers; ``crash``: how a toy takes one along, and ``death``: what is said of it, as a
    pattern; ``names``: devices where it does not matter how many there are; ``patience``: seconds in which a worker
    that lives gives a sign of it, however busy the machine.
    """

    kind: Any
    crash = "signal"
    death: str
    names: tuple[str, ...] = NAMES
    patience = 0.5

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[str]:
        yield str(tmp_path)
        (tmp_path / "over").touch()

    def run(self, work: Any, names: tuple[str, ...] = (), **rules: Any) -> Run:
        return Run(self.kind(work, names or self.names, 1), names or self.names, **rules)

    def test_everything_comes_out_in_order_from_its_own_payload(self) -> None:
        # Nobody steals, so both have something to do however late one of them begins.
        run = self.run(Toy(slow={"cpu:1": 0.01}), NAMES, steal=False, allocation="round_robin")
        results = list(run(tasks(100, size=7)))
        check_made(results, 100)
        assert {made.device for made in made_of(results)} == set(NAMES)

    def test_items_that_fail_are_named_and_all_else_comes_out(self, folder: str) -> None:
        """By themselves, with their task, with their worker, or only once: with the worker, and for want of memory."""
        what = {3: "fail", 10: "raise", 17: "crash", 24: "crash once"}
        run = self.run(Toy(folder, self.crash, what, largest=2), max_failures=1)
        results = list(run(tasks(40, size=4)))
        check_made(results, 40, bad=[3, 10, 17])
        bad = bad_of(results)
        assert bad[3] == "3 is not to be made"
        assert bad[10] == "LookupError: 10 is odd"
        assert re.search(self.death, bad[17]), bad[17]
        assert run.losses >= 3

    def test_a_worker_that_hangs_is_replaced_and_an_item_that_hangs_them_all_is_named(self, folder: str) -> None:
        run = self.run(Toy(folder, items={5: "hang once", 14: "hang"}), max_failures=1, heartbeat_timeout=self.patience)
        results = list(run(tasks(24, size=1)))
        check_made(results, 24, bad=[14])
        assert bad_of(results)[14] == f"gave no sign of life for {self.patience:g} s"

    def test_a_device_that_cannot_be_opened_leaves_the_work_to_the_others(self) -> None:
        # Nobody steals: what waits for the closed device is free when that is given up.
        run = self.run(Toy(closed=("cpu:1",)), NAMES, max_failed_starts=2, steal=False, allocation="round_robin")
        results = list(run(tasks(40)))
        check_made(results, 40)
        assert {made.device for made in made_of(results)} == {"cpu:0"}

    def test_a_fatal_error_ends_the_run_in_its_own_words(self) -> None:
        with pytest.raises(FatalError, match=r"^the disk is full at 13$"):
            list(self.run(Toy(items={13: "fatal"}))(tasks(1000)))

    def test_large_payloads_and_results_pass_each_other(self) -> None:
        """Both directions are full at once, several tasks deep: nobody waits for the other to read first."""
        arrays: list[Any] = [np.full(2 << 20, item, np.uint8) for item in range(16)]
        arrays[1::2] = [array.reshape(2, -1).T for array in arrays[1::2]]
        feed = ((item, item + 2, arrays[item : item + 2]) for item in range(0, 16, 2))
        run = self.run(Echo(2 << 20))
        results = [output for done in run(feed) for output in done.outputs]  # type: ignore[union-attr]
        assert len(results) == 16
        for array, (echoed, extra) in zip(arrays, results, strict=True):
            np.testing.assert_array_equal(echoed, array[::-1])
            assert extra.shape == (2 << 20,)
        assert run.losses == 0

    def test_tensors_come_as_they_were_sent(self) -> None:
        sent = [
            torch.arange(20_000, dtype=torch.float32).reshape(2, 100, 100),
            torch.arange(20_000, dtype=torch.float32).reshape(2, 100, 100).permute(2, 0, 1),
            torch.linspace(-1, 1, 9000).to(torch.bfloat16),
            torch.zeros(0, 3),
            torch.tensor(7),
        ]
        (done,) = self.run(Give(), NAMES[:1])([(0, len(sent), sent)])
        assert isinstance(done, FinishedItems)
        for before, after in zip(sent, done.outputs, strict=True):
            assert after.dtype == before.dtype
            assert torch.equal(after, before)
            after += 1  # it is the receiver's own

    def test_a_consumer_that_stops_early_leaves_nothing_behind(self) -> None:
        iterator = self.run(Toy())(tasks(10**9))
        pid = made_of([next(iterator)])[0].pid
        iterator.close()
        self.check_nothing_left(pid)

    def check_nothing_left(self, pid: int) -> None:
        """No worker outlives ``close``; one was in that process."""
        raise NotImplementedError
