"""Memory of results that is used again.

A fresh allocation of a batch costs more than filling it: the kernel hands out zeroed pages one fault at a time. So
the memory of a result goes back to a pool when the last tensor (or view) over it is gone, and the next batch takes it
from there.
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
    """Of a block, for as long as an array lives."""

    __slots__ = ("block", "room")
    block: memoryview
    room: int


class ResultPool:
    """Hands out uint8 buffers and takes them back when nobody refers to them any more.

    At most ``limit`` bytes wait to be used again; the sizes asked for longest ago go first.
    """

    def __init__(self, limit: int = 1 << 29) -> None:
        self._limit = limit
        self.allocate: Callable[[int], UInt8Array] = lambda size: np.empty(size, np.uint8)  # fresh memory
        self._free: OrderedDict[int, list[memoryview]] = OrderedDict()
        self._held = 0
        self._leases: dict[int, _Lease] = {}  # kept: one that is gone tells nobody of the death of its array
        # Reentrant: a lease may end at any allocation, also at one made under the lock.
        self._lock = threading.RLock()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def take(self, size: int) -> UInt8Array:
        """uint8[size], 64-byte aligned, uninitialized."""
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
        # An array of its own: every tensor made of the result refers to it, and its death returns the block.
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
            # One batch is always kept, however large.
            while self._held > self._limit and self._held > room:
                oldest = next(iter(self._free))
                if self._free[oldest]:
                    self._free[oldest].pop()
                    self._held -= oldest
                if not self._free[oldest]:
                    del self._free[oldest]


def _size_class(size: int) -> int:
    """``size`` rounded up by less than an eighth, so that images of nearly one size share their memory."""
    step = 1 << max(6, size.bit_length() - 4)
    return -(-max(size, 1) // step) * step


RESULTS = ResultPool()
