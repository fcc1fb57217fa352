"""Results of a worker process in anonymous shared memory (memfd), which both sides map, and which the kernel frees
even after a crash.

The worker's ``RESULTS`` take their memory from it. A result in such a block is sent as its offset. The worker does not
reuse that memory before the receiver has dropped the result.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import UInt8Array
from variegate.workers.wire import Buffer, Parts

HAS_MEMFD = hasattr(os, "memfd_create")
# Addresses, not memory: that is taken page by page when it is written.
_MAPPED_BYTES = 1 << 37
# Smaller results are sent through the socket.
_MIN_BYTES = 1 << 18


class Places(NamedTuple):
    """``ranges``: (offset, bytes) of each part in shared memory, None for parts that follow in the message. ``ticket``:
    to be returned when the parts in shared memory are dropped."""

    ticket: int
    ranges: Sequence[tuple[int, int] | None]


def create_memory() -> int:
    """Descriptor of the memory of a worker."""
    descriptor = os.memfd_create("variegate")
    os.ftruncate(descriptor, _MAPPED_BYTES)
    return descriptor


class BlockSender:
    """The worker's side, of the memory behind a descriptor. Any thread may call any method."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _MAPPED_BYTES)
        self._start = np.frombuffer(self._memory, np.uint8).ctypes.data
        self._end = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)  # offsets by size
        self._lock = threading.RLock()  # a block may be freed at any allocation, also at one under the lock
        self._sent: dict[int, Parts] = {}
        self._ticket = 0

    def allocate(self, size: int) -> UInt8Array:
        """uint8[size]"""
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        with self._lock:
            if size < _MIN_BYTES or self._end + pages > _MAPPED_BYTES:
                return np.empty(size, np.uint8)
            if self._free[pages]:
                offset = self._free[pages].pop()
            else:
                offset = self._end
                self._end += pages
        block = np.frombuffer(self._memory, np.uint8, size, offset)
        # Not at exit: the receiver may still read it.
        weakref.finalize(block, self._free_block, offset, pages).atexit = False
        return block

    def _free_block(self, offset: int, pages: int) -> None:
        self._memory.madvise(mmap.MADV_REMOVE, offset, pages)
        with self._lock:
            self._free[pages].append(offset)

    def place(self, parts: Parts) -> tuple[Places, Parts]:
        """Places of the parts, and the parts that have to be sent. The others are kept until ``release``."""
        ranges: list[tuple[int, int] | None] = []
        rest = []
        for part in parts:
            view = np.frombuffer(part, np.uint8)
            offset = view.ctypes.data - self._start
            if view.nbytes >= _MIN_BYTES and 0 <= offset < _MAPPED_BYTES:
                ranges.append((offset, view.nbytes))
            else:
                ranges.append(None)
                rest.append(part)
        with self._lock:
            self._ticket += 1
            if any(ranges):
                self._sent[self._ticket] = parts
            return Places(self._ticket, ranges), rest

    def release(self, ticket: int) -> None:
        self._sent.pop(ticket, None)


class BlockReceiver:
    """The parent's side. ``release`` is called with a ticket, by any thread that drops its last array."""

    def __init__(self, descriptor: int, release: Callable[[int], None]) -> None:
        self._memory = mmap.mmap(descriptor, _MAPPED_BYTES)
        self._release = release
        self._leases: dict[int, tuple[weakref.ref[Any], ...]] = {}

    def parts_of(self, places: Places, rest: Parts) -> Parts:
        sent = iter(rest)
        parts: list[Buffer] = []
        arrays = []
        for place in places.ranges:
            if place is None:
                parts.append(next(sent))
            else:
                offset, nbytes = place
                arrays.append(np.frombuffer(self._memory, np.uint8, nbytes, offset))
                parts.append(arrays[-1])
        if arrays:
            self._lease(places.ticket, arrays)
        return parts

    def _lease(self, ticket: int, arrays: Sequence[UInt8Array]) -> None:
        remaining = [None] * len(arrays)

        def end(_: object) -> None:
            remaining.pop()  # a counter would miss one of two threads at once
            if not remaining:
                self._leases.pop(ticket, None)
                self._release(ticket)

        self._leases[ticket] = tuple(weakref.ref(array, end) for array in arrays)
