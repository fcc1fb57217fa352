"""Memory that is used again: scratch per thread, with the addresses of the parts of ``run_rows``, and result buffers.

A fresh allocation of a batch costs more than filling it: the kernel hands out zeroed pages one fault at a time. So
the memory of a result goes back to a pool when the last tensor (or view) over it is gone, and the next batch takes it
from there.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import kernel as calls
from variegate.executors.cpu.batch import SCRATCH, keep_scratch
from variegate.executors.cpu.displace import displaced_row, prepare_maps, real_nearest_row
from variegate.executors.cpu.fold import folded_row, seam_row
from variegate.executors.cpu.jpeg import code_jpeg
from variegate.executors.cpu.kernel import PART
from variegate.executors.cpu.layout import NEEDS, make_scratch
from variegate.executors.cpu.neighbourhood import filtered_row
from variegate.executors.cpu.resample import prepare_resize
from variegate.executors.cpu.statistics import build_tables
from variegate.executors.cpu.values import add_noise, erase_normalized
from variegate.program.held import words_of
from variegate.threads import at_fork

PART_KERNELS = {
    calls.STATISTICS: build_tables,
    calls.MAPS: prepare_maps,
    calls.NEAREST: real_nearest_row,
    calls.FILTER: filtered_row,
    calls.RESIZE: prepare_resize,
    calls.NOISE: add_noise,
    calls.ERASED: erase_normalized,
    calls.DISPLACED: displaced_row,
    calls.FOLDED: folded_row,
    calls.SEAM: seam_row,
    calls.CODEC: code_jpeg,
}


@cache
def part_addresses(has_jpeg: bool = True) -> tuple[int, ...]:
    """By number; compiled, or loaded, where that was not done yet. Few programs have a JPEG: 0 without ``has_jpeg``."""
    needed = [number != calls.CODEC or has_jpeg for number in range(calls.PARTS)]
    return tuple(address_of_part(PART_KERNELS[number]) if needed[number] else 0 for number in range(calls.PARTS))


def address_of_part(part: Any) -> int:
    part.compile(PART)
    result = part.overloads[PART]
    address: int = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    return address


_ALIGNMENT = 64

# An array object begins with its head, as every object does, and then has the address of its elements; NumPy promises
# that to all compiled extensions. Asked for by ``array.ctypes.data`` it takes five times longer.
_HEAD = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def place_of(array: npt.NDArray[Any]) -> int:
    """The address of an array's first element."""
    return _word_at(id(array) + _HEAD).value


class _Lease(weakref.ref[npt.NDArray[np.uint8]]):
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
        self.allocate: Callable[[int], npt.NDArray[np.uint8]] = lambda size: np.empty(size, np.uint8)  # fresh memory
        self._free: OrderedDict[int, list[memoryview]] = OrderedDict()
        self._held = 0
        self._leases: dict[int, _Lease] = {}  # kept: one that is gone tells nobody of the death of its array
        # Reentrant: a lease may end at any allocation, also at one made under the lock.
        self._lock = threading.RLock()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """uint8[size], 64-byte aligned, uninitialised."""
        room = _size_class(size)
        with self._lock:
            waiting = self._free.get(room)
            block = waiting.pop() if waiting else None
            if block is not None:
                self._held -= room
        if block is None:
            fresh = self.allocate(room + _ALIGNMENT)
            start = -place_of(fresh) % _ALIGNMENT
            block = fresh.data[start : start + room]
        # An array of its own: every tensor made of the result refers to it, and its death returns the block.
        result: npt.NDArray[np.uint8] = np.frombuffer(block, np.uint8, size)
        lease = _Lease(result, self._end)
        lease.block, lease.room = block, room
        self._leases[id(lease)] = lease
        return result

    def give_up(self, buffers: Iterable[memoryview]) -> None:
        """Never use the memory of these again, as somebody else still reads it."""
        starts = [np.frombuffer(buffer, np.uint8).ctypes.data for buffer in buffers if buffer.nbytes]
        for lease in list(self._leases.values()):
            first = np.frombuffer(lease.block, np.uint8).ctypes.data
            if any(first <= start < first + lease.room for start in starts):
                lease.room = 0

    def _end(self, lease: _Lease) -> None:
        del self._leases[id(lease)]
        if not (room := lease.room):
            return
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

_local = threading.local()


def scratch_for(needs: tuple[int, ...]) -> int:
    """The address of this thread's scratch, which stays, grown to ``needs``, the arguments of make_scratch. Call it on
    the thread that runs the kernel."""
    have: tuple[int, ...] = getattr(_local, "sizes", (0,) * len(needs))
    if any(h < n for h, n in zip(have, needs, strict=True)):
        sizes = tuple(max(h, n) for h, n in zip(have, needs, strict=True))
        _local.scratch = make_scratch(*sizes)
        _local.scratch.parts[:] = part_addresses(has_jpeg=sizes[-1] > 1)
        if not hasattr(_local, "held"):
            _local.held = np.zeros(words_of(SCRATCH), np.int64)
            _local.address = place_of(_local.held)
        keep_scratch(_local.address, _local.scratch)
        _local.sizes = sizes
    address: int = _local.address
    return address


def scratch_sizes() -> tuple[int, ...]:
    """Sizes that this thread's scratch was made with."""
    sizes: tuple[int, ...] = getattr(_local, "sizes", (0,) * NEEDS)
    return sizes
