"""Drawing for a single image with known numbers, for functions on one image.

Instructions are packed as ``RECORD`` bytes, which ``executors/cpu/single.py`` passes to the native library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.arrays import Int32Array
from variegate.program import rng
from variegate.program.channels import color_of, refuse_color
from variegate.program.depth import Depth, needs_levels
from variegate.program.draws.row_draw import KnownDraw
from variegate.program.ops import NEEDS_LEVELS, NUM_ARGS, SPECS, Op
from variegate.program.program import MAX_SIDE, Output, Program
from variegate.program.sampling import Sampling, check_place, too_large
from variegate.program.table_builder import TableBuilder

_RECORD = Struct("8q8d")
_UNUSED = [(0.0,) * (NUM_ARGS - used) for used in range(NUM_ARGS + 1)]
_BLACK = (0, 0, 0)
_NO_NAME = -1
_NOP = int(Op.NOP)
_UINT8 = Output()


class NeedsBatch(Exception):
    """A transform needs a ``Sampling``, because its drawing is not recorded."""


class ScalarDraw(KnownDraw):
    """Collects the instructions of one image. ``height`` and ``width`` are current, after the instructions so far.

    ``stream``: the stream key of random numbers, including noise.
    """

    __slots__ = ("_tables", "channels", "height", "in_shape", "output", "records", "sample_id", "stream", "width")

    height: int
    width: int
    channels: int
    output: Output

    def __init__(
        self, shape: tuple[int, int, int], sample_id: int, stream: tuple[int, int], tables: TableBuilder | None = None
    ) -> None:
        self.in_shape = shape
        self.height, self.width, self.channels = shape
        self.sample_id, self.stream = sample_id, stream
        self.output = _UINT8
        self.records: list[bytes] = []
        self._tables = tables

    @property
    def num_channels(self) -> int:
        return 3

    @property
    def epoch(self) -> int:
        return 0

    @property
    def max_side(self) -> int:
        """Longest side of an operation's output in pixels."""
        return MAX_SIDE

    @property
    def tables(self) -> TableBuilder:
        if self._tables is None:
            self._tables = TableBuilder()
        return self._tables

    def set_output(self, output: Output, owner: Any, advice: str) -> None:
        self.output = output

    def word(self, slot: int, word: int = 0) -> int:
        ids, keys = np.array([self.sample_id], np.uint64), np.array([self.stream], np.uint32)
        words = rng.words_of_slots(ids, keys, np.array([slot + word // 4], np.uint32))
        return int(words[0, 0, word % 4])

    def run(self, transform: Any, slot: int) -> None:
        if not transform._is_recorded:
            raise NeedsBatch
        transform.draw(self, slot)

    def run_at(self, transform: Any, value: float, slot: int) -> None:
        if not transform._is_magnitude_recorded:
            raise NeedsBatch
        transform.emit_at(self, value, slot)

    def call_back(self, function: Callable[..., None], slot: int, *values: float) -> None:
        raise NeedsBatch

    def table(self, name: str, values: npt.ArrayLike) -> int:
        return self.tables.add(name, values)

    def rectangle(self, top: float, left: float, height: float, width: float) -> int:
        return self.tables.add_rectangles(np.array([[top, left, height, width]], np.int32))

    # -- instructions --------------------------------------------------------------------------------------------

    def add(
        self,
        op: int,
        *args: float,
        flags: int = 0,
        fill: Sequence[float] | None = None,
        size: tuple[float, float] | None = None,
        name: str | None = None,
        title: str | None = None,
        among: Sequence[int] = (),
    ) -> None:
        if op == _NOP:
            return
        if size is not None:
            self.height, self.width = check_size(size, self.max_side, op, title)
        size_after = self.height, self.width
        record = instruction(self, self.output, int(op), args, int(flags), fill, size_after, name, title)
        self.records.append(record)

    # -- as a batch of one ---------------------------------------------------------------------------------------

    def finish(self, output: Output) -> Program:
        sampling = single_sampling(self.in_shape, self.sample_id, self.stream)
        sampling.append_records(np.zeros(1, np.intp), [self.records], [(self.height, self.width)])
        sampling.adopt_tables(self.tables)
        return sampling.finish(output)

    @property
    def rectangles(self) -> Int32Array | None:
        """Rectangles of ERASE instructions, int32[Q, 4] of top, left, height, width; None without rectangles."""
        tables = self._tables
        return tables.joined("rectangles") if tables is not None and tables.table_size("rectangles") else None

    def check_levels(self, depth: Depth) -> None:
        """Raise ValueError if an instruction needs 256 levels and images of ``depth`` have more."""
        for record in self.records:
            opcode = _RECORD.unpack(record)[0]
            if depth.is_deep and NEEDS_LEVELS[opcode]:
                raise needs_levels(SPECS[Op(opcode)].name, depth)

    @property
    def has_tables(self) -> bool:
        """True if instructions refer to side tables other than rectangles."""
        return self._tables is not None and not self._tables.is_empty_but("rectangles")


class EmitContext(Protocol):
    """Access to side tables, and the length of a color."""

    @property
    def num_channels(self) -> int: ...

    @property
    def tables(self) -> TableBuilder: ...

    def table(self, name: str, values: npt.ArrayLike) -> int: ...


def instruction(
    context: EmitContext,
    output: Output,
    op: int,
    args: Sequence[float],
    flags: int,
    fill: Sequence[float] | None,
    size: tuple[int, int],
    name: str | None = None,
    title: str | None = None,
) -> bytes:
    """Pack an instruction into the bytes of a ``RECORD``.

    ``output``: the output format before the instruction. ``size``: height and width after it. ``name``: the operation's
    name if it differs from the instruction's. ``title``: its name in errors.

    Raises ValueError if the instruction may not follow ``output``, or if its fill color has another number of channels.
    """
    refuse_color(op, name, context.num_channels)
    if output.steps or output.mean is not None:
        check_place(title or SPECS[Op(op)].name, op, args, output)
    color: Sequence[float] = _BLACK
    if fill is not None:
        shown_as = name or title or SPECS[Op(op)].name
        color = color_of(f"{shown_as}: fill", fill, context.num_channels, context.table)
    label = _NO_NAME if name is None else context.tables.name_index(name)
    return _RECORD.pack(op, flags, *size, label, *map(int, color), *args, *_UNUSED[len(args)])


def check_size(size: tuple[float, float], max_side: int, op: int, title: str | None = None) -> tuple[int, int]:
    """Return an operation's output height and width as integers. Raises ValueError above ``max_side``."""
    height, width = int(size[0]), int(size[1])
    if height > max_side or width > max_side:
        raise too_large(title or SPECS[Op(op)].name, height, width, max_side)
    return height, width


def single_sampling(shape: tuple[int, int, int], sample_id: int, key: tuple[int, int]) -> Sampling:
    """Return the ``Sampling`` of a batch of one image."""
    ids, keys = np.array([sample_id], np.uint64), np.array([key], np.uint32)
    return Sampling(np.array([shape], np.int32), ids, keys, 0)
