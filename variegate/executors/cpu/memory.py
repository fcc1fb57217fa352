"""Memory that is used again: scratch per thread, and result buffers.

A fresh allocation of a batch costs more than filling it: the kernel hands out zeroed pages one fault at a time. So
the memory of a result goes back to a pool when the last tensor (or view) over it is gone, and the next batch takes it
from there.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.layout import Scratch, make_scratch, padded
from variegate.program.ops import KIND_OF, Interpolation, Kind, Op
from variegate.program.program import Program
from variegate.threads import at_fork

_ALIGNMENT = 64


class ResultPool:
    """Hands out uint8 buffers and takes them back when nobody refers to them any more.

    At most ``limit`` bytes wait to be used again; the sizes asked for longest ago go first.
    """

    def __init__(self, limit: int = 1 << 29) -> None:
        self._limit = limit
        self._free: OrderedDict[int, list[npt.NDArray[np.uint8]]] = OrderedDict()
        self._held = 0
        # Reentrant: a finalizer may run on any allocation, also on one made under the lock.
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
            block = np.empty(room + _ALIGNMENT, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        # A view of its own: every tensor made of the result refers to it, and its death returns the block.
        result = np.frombuffer(block.data[start : start + size], np.uint8)
        weakref.finalize(result, self._give_back, room, block).atexit = False
        return result

    def _give_back(self, room: int, block: npt.NDArray[np.uint8]) -> None:
        with self._lock:
            self._free.setdefault(room, []).append(block)
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


def scratch_for(needs: tuple[int, ...]) -> Scratch:
    """This thread's scratch, grown to ``scratch_needs``. Call it on the thread that runs the kernel."""
    have: tuple[int, ...] = getattr(_local, "sizes", (0,) * len(needs))
    if any(h < n for h, n in zip(have, needs, strict=True)):
        sizes = tuple(max(h, n) for h, n in zip(have, needs, strict=True))
        _local.scratch = make_scratch(*sizes)
        _local.sizes = sizes
    scratch: Scratch = _local.scratch
    return scratch


def scratch_needs(program: Program) -> tuple[int, ...]:
    """Arguments of make_scratch for a program."""
    in_size, out_size = program.in_shape[:, :2], program.out_size.reshape(-1, 2)
    side = int(max(in_size.max(initial=1), out_size.max(initial=1)))
    canvas = 0
    if int(program.num_passes.max(initial=1)) > 1:  # type: ignore[union-attr]
        canvas = 3 * int(out_size.prod(axis=1, dtype=np.int64).max(initial=0))
    kinds = KIND_OF[program.opcode]
    filtered_lines, resized = 0, 0
    # Sharpness and blurs hold the whole image in planes, as wide as the thread's rows; a resize holds rows at the new
    # width.
    if (kinds == Kind.NEIGHBOURHOOD).any():
        filtered_lines = 3 * side
    weights, taps = 0, 0
    if (kinds == Kind.RESAMPLE).any():
        weights, taps = _resize_needs(program, kinds == Kind.RESAMPLE)
        width = int(program.out_size[..., 1][kinds == Kind.RESAMPLE].max())
        resized = 4 * side * padded(width)
    kernel, row = 0, side
    blurs = program.opcode == Op.CONVOLVE
    if blurs.any():
        sizes, is_full = program.args[..., 1:6][blurs], program.args[..., 3][blurs] == 0.0
        # Kernel sizes, and the number of a full one's cells.
        kernel = int(sizes[:, [0, 1, 4]].max())
        if is_full.any():
            # Full kernels see rows in planes continued to both sides.
            row += int(sizes[is_full, :2].max())
    return row, canvas, filtered_lines, resized, program.opcode.shape[1], kernel, weights, taps


def _resize_needs(program: Program, is_resize: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Room for the weights of the largest resize along one axis, and for those of one output.

    See ``resize_weights.coefficients``. Weights come in groups of four, outputs in vectors of sixteen.
    """
    args = program.args[is_resize]
    extent, size = args[:, 2:4], args[:, 4:6]
    radius = np.where(program.flags[is_resize] == Interpolation.BICUBIC, 2.0, 1.0)[:, None]
    # One more than Pillow's formula, for a scale that rounds up in float32.
    taps = 2 * np.ceil(radius * np.maximum(extent / size, 1.0)) + 2
    taps = np.ceil(taps / 4) * 4
    outputs = np.ceil(size / 16) * 16
    return int((taps * outputs).max()), int(taps.max())
