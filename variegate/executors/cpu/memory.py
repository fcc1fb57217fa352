"""Pool of memory for results.

A fresh allocation of a batch costs more than filling it: the kernel zeroes pages one fault at a time. Therefore the
memory of a result returns to a pool when the last tensor or view of it is freed, and later batches reuse it.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from variegate.arrays import UInt8Array
from variegate.native.library import data_ptr
from variegate.threads import at_fork

_ALIGNMENT = 64


class _Lease(weakref.ref[UInt8Array]):
    """Weak reference to an array, which owns the array's block until the array is freed."""

    __slots__ = ("block", "room")
    block: memoryview
    room: int


class ResultPool:
    """Allocates uint8 buffers, and reuses each when the last reference to it is gone.

    Caches at most ``limit`` free bytes; evicts the least recently used sizes first.
    """

    def __init__(self, limit: int = 1 << 29) -> None:
        self._limit = limit
        self.allocate: Callable[[int], UInt8Array] = lambda size: np.empty(size, np.uint8)  # fresh memory
        self._free: OrderedDict[int, list[memoryview]] = OrderedDict()
        self._held = 0
        self._leases: dict[int, _Lease] = {}  # a weak reference that is freed never calls back
        # Reentrant: garbage collection may end a lease at any allocation, also at one made under the lock.
        self._lock = threading.RLock()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def take(self, size: int) -> UInt8Array:
        """Return an uninitialized uint8[size], aligned to 64 bytes."""
        room = _size_class(size)
        with self._lock:
            waiting = self._free.get(room)
            block = waiting.pop() if waiting else None
            if block is not None:
                self._held -= room
        if block is None:
            fresh = self.allocate(room + _ALIGNMENT)
            start = -data_ptr(fresh) % _ALIGNMENT
            block = fresh.data[start : start + room]
        # A new array per result: all its tensors refer to this array, and freeing it returns the block.
        result: UInt8Array = np.frombuffer(block, np.uint8, size)
        lease = _Lease(result, self._end)
        lease.block = block
        lease.room = room
        self._leases[id(lease)] = lease
        return result

    def _end(self, lease: _Lease) -> None:
        del self._leases[id(lease)]
        room = lease.room
        with self._lock:
            self._free.setdefault(room, []).append(lease.block)
            self._free.move_to_end(room)
            self._held += room
            # The latest block is always cached, whatever its size.
            while self._held > self._limit and self._held > room:
                oldest = next(iter(self._free))
                if self._free[oldest]:
                    self._free[oldest].pop()
                    self._held -= oldest
                if not self._free[oldest]:
                    del self._free[oldest]


def _size_class(size: int) -> int:
    """Round ``size`` up by less than an eighth, so that images of similar sizes reuse each other's memory."""
    step = 1 << max(6, size.bit_length() - 4)
    return -(-max(size, 1) // step) * step


RESULTS = ResultPool()
