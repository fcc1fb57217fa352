"""Workers of a loader, driven by a thread of their own and kept from epoch to epoch."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from queue import Queue
from typing import Any

from variegate.errors import DecodeError
from variegate.loader.making import MadeRows
from variegate.loader.workers.parts import BatchPart, MadePart
from variegate.threads import at_fork
from variegate.workers.protocol import WorkerPool
from variegate.workers.run import FailedItem, run_tasks
from variegate.workers.scheduler import Rules, Scheduler, Snapshot

# A request for a batch waits so long at most while others are being made.
_TURN_SECONDS = 0.01
_JOIN_SECONDS = 10.0


class _Stopped(Exception):
    """Nobody wants any more of what the workers do."""


class BatchInMaking:
    """A batch of which parts are under way. ``base``: the number of its first row among those of all batches."""

    def __init__(self, base: int, parts: Sequence[BatchPart], names: Callable[[int], str]) -> None:
        self.base = base
        self.parts = parts
        self.names = names
        self.future: Future[list[MadePart]] = Future()
        self.is_dropped = False
        self._left = self._rows = sum(map(len, parts))
        self._made: dict[int, MadePart] = {}

    @property
    def stop(self) -> int:
        return self.base + self._rows

    def add(self, start: int, made: MadePart) -> bool:
        """Rows from ``start`` on, among those of all batches -> whether that is all."""
        self._made[start] = made
        self._left -= made.length
        if self._left:
            return False
        self.future.set_result([self._made[place] for place in sorted(self._made)])
        return True

    def lose(self, item: int, reason: str) -> bool:
        """A row that no worker could make."""
        start = self.base
        for part in self.parts:
            if item < start + len(part):
                break
            start += len(part)
        row = int(part.numbers[item - start])
        error = DecodeError(self.names(row), reason)
        made = MadeRows([None], [None], {row: error}, set())
        return self.add(item, MadePart(1, part.numbers[item - start :][:1], made))


class Fleet:
    """Workers that make parts of batches: started at the first, and ended by ``close``.

    ``start``: makes the pool of workers, in the thread that drives them.
    """

    def __init__(self, devices: Sequence[str], rules: Rules, start: Callable[[], WorkerPool]) -> None:
        self.devices = devices
        self._rules = rules
        self._start = start
        self.snapshot: Snapshot | None = None
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, parts: Sequence[BatchPart], names: Callable[[int], str]) -> BatchInMaking:
        """Begin to make a batch, or what stands in for rows of one; ``names``: of its rows."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._queue: Queue[tuple[BatchInMaking, int, BatchPart] | None] = Queue()
                self._making: dict[int, BatchInMaking] = {}
                self._next = 0
                self._is_stopped = threading.Event()
                self._thread = threading.Thread(target=self._run, name="variegate-workers", daemon=True)
                self._thread.start()
            making = self._making[self._next] = BatchInMaking(self._next, parts, names)
            for part in parts:
                self._queue.put((making, self._next, part))
                self._next += len(part)
        return making

    def close(self) -> None:
        """End the workers, whatever they do. Returns in bounded time."""
        if (thread := self._thread) is not None and thread.is_alive():
            self._is_stopped.set()
            self._queue.put(None)
            if thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        queue = self._queue
        making = self._making
        error: BaseException
        try:
            for made in run_tasks(
                self._start(),
                Scheduler(self.devices, self._rules),
                self._feed(queue, making),
                on_turn=self._on_turn,
                has_room=lambda: not queue.empty(),
                wait_seconds=_TURN_SECONDS,
            ):
                item = made.item if isinstance(made, FailedItem) else made.start
                starts = list(making)
                batch = making[starts[max(bisect_right(starts, item) - 1, 0)]] if starts else None
                if batch is None or not batch.base <= item < batch.stop:
                    continue  # it was dropped
                if isinstance(made, FailedItem):
                    is_whole = batch.lose(made.item, made.reason)
                else:
                    parts = [(made.start + row, part) for row, part in enumerate(made.outputs) if part is not None]
                    is_whole = [batch.add(row, part) for row, part in parts][-1]
                if is_whole:
                    del making[batch.base]
            error = RuntimeError("the loader's workers were ended")
        except _Stopped:
            error = RuntimeError("the loader's workers were ended")
        except BaseException as caught:
            error = caught
        with self._lock:
            left = list(making.values())
            self._thread = None
        for batch in left:
            batch.future.set_exception(error)

    def _feed(
        self, queue: Queue[Any], making: dict[int, BatchInMaking]
    ) -> Generator[tuple[int, int, BatchPart], None, None]:
        while (given := queue.get()) is not None:
            batch, start, part = given
            if not batch.is_dropped:
                yield start, start + len(part), part
            elif making.pop(batch.base, None) is not None:
                # A thread may wait for it, and would hold up the end of the interpreter.
                batch.future.set_exception(RuntimeError("nobody wants this batch any more"))

    def _on_turn(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        if self._is_stopped.is_set():
            raise _Stopped
