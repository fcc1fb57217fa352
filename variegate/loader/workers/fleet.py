"""Workers of a loader, driven by a thread of their own and kept from epoch to epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from queue import Queue

from variegate.errors import DecodeError
from variegate.loader.making import MadeRows
from variegate.loader.workers.parts import BatchPart, MadePart
from variegate.threads import at_fork
from variegate.workers.protocol import WorkerPool
from variegate.workers.run import FailedItem, Finished, run_tasks
from variegate.workers.scheduler import Rules, Scheduler, Snapshot

# A request for a batch waits so long at most while others are being made.
_TURN_SECONDS = 0.01
_JOIN_SECONDS = 10.0


class _Stopped(Exception):
    """Nobody wants any more of what the workers do."""


class BatchInMaking:
    """A batch that a worker makes, or, after a failure, several in parts. ``base``: the number of its first row among
    those of all batches; ``names``: of its rows."""

    def __init__(self, base: int, part: BatchPart, names: Callable[[int], str]) -> None:
        self.base = base
        self.part = part
        self.names = names
        self.future: Future[list[MadePart]] = Future()
        self.is_dropped = False
        self._made: list[MadePart] = []

    def add(self, made: Finished) -> bool:
        """Take the next rows that were made, or a row that no worker could make -> whether that is all."""
        if isinstance(made, FailedItem):
            stop = made.item + 1
            row = made.item - self.base
            numbers = self.part.numbers[row : row + 1]
            error = DecodeError(self.names(int(numbers[0])), made.reason)
            self._made.append(MadePart(1, numbers, MadeRows([None], [None], {int(numbers[0]): error}, set())))
        else:
            stop = made.stop
            self._made += [part for part in made.outputs if part is not None]
        if stop < self.base + len(self.part):
            return False
        self.future.set_result(self._made)
        return True


class Fleet:
    """Workers that make batches: started at the first, and ended by ``close``.

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

    def submit(self, part: BatchPart, names: Callable[[int], str]) -> BatchInMaking:
        """Begin to make a batch, or what stands in for a row of one; ``names``: of its rows."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._queue: Queue[BatchInMaking | None] = Queue()
                self._making: dict[int, BatchInMaking] = {}
                self._next = 0
                self._is_stopped = threading.Event()
                self._thread = threading.Thread(target=self._run, name="variegate-workers", daemon=True)
                self._thread.start()
            making = self._making[self._next] = BatchInMaking(self._next, part, names)
            self._queue.put(making)
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
        batch: BatchInMaking | None = None
        try:
            for made in run_tasks(
                self._start(),
                Scheduler(self.devices, self._rules),
                self._feed(queue, making),
                on_turn=self._on_turn,
                has_room=lambda: not queue.empty(),
                wait_seconds=_TURN_SECONDS,
            ):
                # The rows of a batch come one after another.
                batch = making.get(made.item if isinstance(made, FailedItem) else made.start, batch)
                if batch is not None and batch.add(made):
                    del making[batch.base]
                    batch = None  # must not stay in memory while the next batch is awaited
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
        self, queue: Queue[BatchInMaking | None], making: dict[int, BatchInMaking]
    ) -> Generator[tuple[int, int, BatchPart], None, None]:
        while (batch := queue.get()) is not None:
            if not batch.is_dropped:
                yield batch.base, batch.base + len(batch.part), batch.part
            else:
                del making[batch.base]
                # A thread may wait for it, and would hold up the end of the interpreter.
                batch.future.set_exception(RuntimeError("nobody wants this batch any more"))

    def _on_turn(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        if self._is_stopped.is_set():
            raise _Stopped
