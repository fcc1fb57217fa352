"""Works whose items do what tests want of them, in workers of any kind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from variegate.workers.protocol import FatalError, Job, Result


class Made(NamedTuple):
    """What comes of an item."""

    item: int
    payload: Any
    device: str
    pid: int


@dataclass(frozen=True)
class Toy:
    """Makes items, or misbehaves.

    Args:
        folder: where items leave marks, so that they can tell their first time from the next ones.
        crash: how an item takes its worker along, "signal" or "exit".
        items: what certain items do: "raise", "fail", "fatal", "crash", "hang", and "crash once", "hang once".
        closed: devices on which it cannot be opened.
        largest: there is no memory for tasks of more items.
        slow: seconds that each item takes, by device.
    """

    folder: str = ""
    crash: str = "signal"
    items: Mapping[int, str] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    largest: int | None = None
    slow: Mapping[str, float] = field(default_factory=dict)

    def open(self, device: str, num_threads: int) -> ToyJob:
        if device in self.closed:
            raise OSError(f"nobody is at home on {device}")
        return ToyJob(self, device)


class ToyJob(Job):
    def __init__(self, toy: Toy, device: str) -> None:
        self._toy, self._device = toy, device

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        toy = self._toy
        if toy.largest is not None and len(items) > toy.largest:
            raise MemoryError(f"no room for {len(items)}")
        outputs: list[Made | None] = []
        failed = {}
        for place, item in enumerate(items):
            beat()
            time.sleep(toy.slow.get(self._device, 0.0))
            outputs.append(Made(item, payload and payload[place], self._device, os.getpid()))
            what = toy.items.get(item, "")
            if what == "fail":
                outputs[-1], failed[item] = None, f"{item} is not to be made"
            elif what and (not what.endswith("once") or self._is_first_time(item)):
                self._misbehave(item, what.split()[0])
        return Result(outputs, failed)

    def _is_first_time(self, item: int) -> bool:
        try:
            Path(self._toy.folder, f"{item}.mark").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _misbehave(self, item: int, what: str) -> None:
        if what == "raise":
            raise LookupError(f"{item} is\nodd")
        if what == "fatal":
            raise FatalError(f"the disk is full at {item}")
        if what == "crash" and self._toy.crash == "signal":
            signal.raise_signal(signal.SIGSEGV)
        if what == "crash":
            raise SystemExit(3)
        # Hang. A thread cannot be ended from outside, so it looks whether the test is over.
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not Path(self._toy.folder, "over").exists():
            time.sleep(0.01)
        raise SystemExit(4)


@dataclass(frozen=True)
class Echo(Job):
    """Gives back what it gets, reversed, and so much more beside it."""

    extra_bytes: int

    def open(self, device: str, num_threads: int) -> Echo:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        import numpy as np

        beat()
        extra = np.arange(self.extra_bytes, dtype=np.uint8)
        return Result([(array[::-1], extra) for array in payload], {})


class Give(Job):
    """Gives back what it gets."""

    def open(self, device: str, num_threads: int) -> Give:
        return self

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        beat()
        return Result(list(payload), {})
