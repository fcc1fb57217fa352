"""Bytes that a loader and its workers exchange, counted in the loader's process by functions put around its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from variegate.jobs import blocks, ray_workers, wire

_LOCK = threading.Lock()  # every worker has a thread that receives


def _size(parts: Any) -> int:
    return sum(memoryview(part).nbytes for part in parts or ())


class WireBytes:
    """``sent`` to workers and ``received`` from them, of which ``mapped`` lie in memory that both map. Without the few
    bytes by which Ray's own calls and messages grow."""

    def __init__(self) -> None:
        self.sent = self.received = self.mapped = 0
        # A socket's messages; the arrays of Ray's.
        self._around(wire, "send_parts", sent=lambda given, _: _size(given[1]))
        self._around(wire, "receive_parts", received=lambda _, found: _size(found))
        mapped = lambda given, _: sum(place.nbytes for place in given[2].places if place is not None)  # noqa: E731
        self._around(blocks.MappedBlocks, "receive", received=mapped, mapped=mapped)
        self._around(ray_workers, "_as_arrays", sent=lambda given, _: _size(given[0]))
        self._around(ray_workers, "_copied", received=lambda given, _: _size(given[0]))

    def _around(self, owner: Any, name: str, **counters: Callable[[tuple[Any, ...], Any], int]) -> None:
        inner = getattr(owner, name)

        def counting(*given: Any) -> Any:
            found = inner(*given)
            with _LOCK:
                for counter, size in counters.items():
                    setattr(self, counter, getattr(self, counter) + size(given, found))
            return found

        setattr(owner, name, counting)
