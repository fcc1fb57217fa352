"""A pass of one row of a fused program, as kernels take it, for one rectangle after another."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.batch import SCRATCH, form_of, held_batch, keep_scratch, measure, new_batch, side_tables
from variegate.executors.cpu.layout import BYTES_HWC, NEEDS, Instructions, make_scratch
from variegate.executors.cpu.memory import place_of
from variegate.executors.cpu.passes import run_rows
from variegate.executors.cpu.tiled import parts as T
from variegate.executors.cpu.tiled.areas import Area, Image
from variegate.executors.cpu.tiled.parts import tile_part_addresses
from variegate.program import passes as P
from variegate.program.compiled import TURN
from variegate.program.held import words_of
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import PASS_FIELDS
from variegate.program.places import RECORD
from variegate.program.program import Program

_FREE = np.int16(Op.NOP)


class TileWorkspace:
    """``plan``: the pass's row of the pass table; slots outside of it are emptied, and statistics become tables, which
    are 0 until somebody writes them into ``tables_of`` their slots. ``is_last``: results are what the program's output
    says, whose layout is NHWC; else bytes. ``records``: see ``words.py``.
    """

    def __init__(
        self,
        program: Program,
        row: int,
        plan: npt.NDArray[np.int32],
        size: tuple[int, int],
        is_last: bool,
        records: npt.NDArray[np.int64],
    ) -> None:
        arrays = {name: getattr(program, name)[row : row + 1].copy() for name in Instructions._fields}
        begin, end = int(plan[P.BEGIN]), int(plan[P.END])
        opcode = arrays["opcode"][0]
        opcode[:begin] = opcode[end:] = _FREE
        # Room is made for the largest of all sizes.
        arrays["out_size"][0, :begin] = 1
        arrays["passes"] = np.zeros((1, 1, PASS_FIELDS), np.int32)
        arrays["passes"][0, 0] = plan
        arrays["passes"][0, 0, P.NEEDS] = 0
        arrays["num_passes"][:], arrays["length"][:] = 1, end
        self.program = Instructions(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        self.begin, self.end, self.plan = begin, end, self.program.passes[0, 0]
        side = side_tables(program.tables)
        statistics = np.flatnonzero(KIND_OF[opcode] == Kind.STATISTIC)
        luts = np.zeros((len(side.luts) + len(statistics), 3, 256), np.uint8)
        luts[: len(side.luts)] = side.luts
        self.tables_of = {int(k): luts[len(side.luts) + i] for i, k in enumerate(statistics)}
        # What they were, and their first arguments.
        self.statistics = {int(k): (int(opcode[k]), float(self.program.args[0, k, 0])) for k in statistics}
        for i, k in enumerate(statistics):
            opcode[k], self.program.args[0, k, 0] = Op.LUT, len(side.luts) + i
        points = np.concatenate([side.points, records.reshape(-1), np.zeros(T.HEADER, np.int64)])
        self._header = points[-T.HEADER :]
        self._header[T.MAPS] = len(records) // RECORD if records.ndim == 1 else len(records)
        self._header[T.IMAGE_HEIGHT], self._header[T.IMAGE_WIDTH] = size
        self._rectangles = side.rectangles
        side = side._replace(luts=luts, points=points, rectangles=side.rectangles.copy())
        self._side = side
        self._erased = [
            (int(a[0]), int(a[0]) + int(a[1])) for a in self.program.args[0, np.flatnonzero(opcode == Op.ERASE)]
        ]
        self._sources, self._targets = np.zeros(1, np.int64), np.zeros(1, np.int64)
        form = form_of(program.output)
        is_float = is_last and program.output.is_float
        self._kind = form.kind if is_float else BYTES_HWC
        self.dtype: npt.DTypeLike = np.float32 if is_float else np.uint8
        batch = new_batch(self.program, side, self._sources, self._targets)
        self._batch = batch._replace(scale=form.scale, bias=form.bias)
        self._memory = held_batch(self._batch)
        self.tile_luts: npt.NDArray[np.uint8] | None = None  # of a CLAHE

    @property
    def colours(self) -> npt.NDArray[np.uint8]:
        return self.program.fill[0]

    @property
    def luts(self) -> npt.NDArray[np.uint8]:
        return self._side.luts

    @property
    def grids(self) -> npt.NDArray[np.int16]:
        return self._side.grids

    def run(self, area: Area, levels: Image, source: Area | None) -> Image:
        """``area`` of the image that the pass makes, of ``levels`` uint8[H, W, C], which are ``source`` of the image
        before it. Sizes that slots make, and maps, are those of the rectangles already."""
        header, program = self._header, self.program
        header[T.TILE_X], header[T.TILE_Y] = area.left, area.top
        header[T.SOURCE_X], header[T.SOURCE_Y] = (0, 0) if source is None else (source.left, source.top)
        program.in_shape[0] = levels.shape
        for begin, end in self._erased:
            moved = self._rectangles[begin:end].astype(np.int64)
            moved[:, 0] -= area.top
            moved[:, 1] -= area.left
            self._side.rectangles[begin:end] = moved
        made = np.empty((area.height, area.width, levels.shape[2]), self.dtype)
        self._sources[0], self._targets[0] = place_of(levels), place_of(made)
        at = place_of(self._memory)
        measure(at)
        scratch = _own_scratch().take(tuple(self._batch.needs.tolist()), self.tile_luts)
        run_rows(0, 1, at, scratch, self._kind, False)
        TURN.finish()
        return made


class _TileScratch:
    """Of one thread."""

    def __init__(self) -> None:
        self._sizes = (0,) * NEEDS
        self._held = np.zeros(words_of(SCRATCH), np.int64)

    def take(self, needs: tuple[int, ...], tile_luts: npt.NDArray[np.uint8] | None) -> int:
        """The address of a scratch that is large enough, with the parts for tiles."""
        if any(have < need for have, need in zip(self._sizes, needs, strict=True)):
            self._sizes = tuple(map(max, zip(self._sizes, needs, strict=True)))
            self._scratch = make_scratch(*self._sizes)
            keep_scratch(place_of(self._held), self._scratch)
        self._scratch.parts[:] = tile_part_addresses(tile_luts is not None)
        if tile_luts is not None:
            self._scratch.tile_luts[: len(tile_luts)] = tile_luts
        return place_of(self._held)


_local = threading.local()


def _own_scratch() -> _TileScratch:
    scratch: _TileScratch | None = getattr(_local, "scratch", None)
    if scratch is None:
        scratch = _local.scratch = _TileScratch()
    return scratch
