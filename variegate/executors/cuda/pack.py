"""A fused program in one run of bytes: laid out, filled, ready for a single copy to the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.blend import rows_by_output
from variegate.executors.cuda import layout as L
from variegate.executors.cuda.heads import fill_blend_heads, fill_heads
from variegate.executors.cuda.instructions import fill_instructions
from variegate.executors.cuda.plan import TABLE, measure
from variegate.executors.cuda.room import DoesNotFit, Room, lists_size, widened
from variegate.program.program import Program

Array = npt.NDArray[Any]
# Sections begin at multiples of this, which lets the compiler assume aligned reads.
_ALIGNMENT = 16


@dataclass
class Needs:
    """Room a program takes on the device."""

    uploaded: int  # bytes that the host fills
    buffer: int  # bytes in all: tables of statistics and resize weights, made on the device, lie behind
    canvases: int  # bytes of images between passes


@dataclass
class Packed:
    """Where sections begin (bytes), and the launches: ``plan.NUM_ROWS`` and so on of preparation, passes and blend."""

    code: int
    args: int
    constants: int
    heads: list[int]  # per pass
    lists: list[int]  # of the preparation, then of every pass
    launches: Array  # int64[1 + P + 1, 3]; the last is the blend's
    blend_heads: int = 0
    begins: int = 0
    canvases: int = 0
    weights: int = 0


class Packer:
    """Lays out one fused program. ``needs`` first, then ``fill`` with memory of that size.

    ``room``: take that much in every section. Raises DoesNotFit where it is not enough.
    """

    def __init__(self, program: Program, room: Room | None = None) -> None:
        self.num_passes = int(program.num_passes.max(initial=1))  # type: ignore[union-attr]
        if room is not None:
            program = widened(program, room)
            self.num_passes = room.passes
        self.program = program
        self.is_blended = program.blend is not None
        indices, self.statistics, self.weights, pixels = measure(
            program.opcode, program.args, program.flags, program.out_size, program.length, program.passes,
            program.num_passes, program.in_shape, self.is_blended,
        )  # fmt: skip
        self.sizes = self._sizes(indices)
        canvases = 4 * pixels
        if room is not None:
            canvases = self._take(room, canvases)
        self._at: dict[str, int] = {}
        end = 0
        for name, size in self.sizes.items():
            self._at[name] = end
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._weights_at = end + TABLE * self.statistics
        self.needs = Needs(uploaded=end, buffer=self._weights_at + 4 * self.weights + _ALIGNMENT, canvases=canvases)

    def _sizes(self, indices: int) -> dict[str, int]:
        """Bytes of the uploaded sections, in order."""
        rows, slots, passes = self.program.num_rows, self.program.opcode.shape[1], self.num_passes
        tables = self.program.tables
        sizes = {
            "heads": 8 * L.HEAD * passes * rows,
            "code": 4 * L.CODE * rows * slots,
            "args": 64 * rows * slots,
            "constants": 48,
            "lists": lists_size(rows, passes),
            "luts": tables.luts.nbytes,
            "matrices": tables.matrices.nbytes,
            "kernels": sum(kernel.nbytes for kernel in tables.kernels),
            "rectangles": tables.rectangles.nbytes,
            "indices": 4 * indices,
        }
        if self.is_blended:
            outputs = self.program.num_outputs
            sizes |= {"blend_heads": 8 * L.HEAD * outputs, "begins": 4 * (outputs + 1), "canvases": 8 * rows}
            sizes["weights"] = 4 * rows
        return sizes

    def _take(self, room: Room, canvases: int) -> int:
        """Everything as large as the room -> bytes of canvases."""
        has, takes = (self.statistics, self.weights, canvases), (room.statistics, room.weights, room.canvases)
        if self.sizes.keys() != room.sections.keys() or any(h > t for h, t in zip(has, takes, strict=True)):
            raise DoesNotFit
        if any(size > room.sections[name] for name, size in self.sizes.items()):
            raise DoesNotFit
        self.sizes = room.sections
        self.statistics, self.weights = room.statistics, room.weights
        return room.canvases

    def fill(
        self,
        memory: npt.NDArray[np.uint8],
        sources: npt.NDArray[np.int64],
        strides: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int64],
        canvases: int,
        block: tuple[int, int],
    ) -> Packed:
        """Write the uploaded bytes.

        Args:
            memory: uint8[needs.uploaded].
            sources, strides: addresses [R], and bytes along y, x and channels [R, 3], of the rows' images.
            targets: addresses [outputs] of the results.
            canvases: address of ``needs.canvases`` bytes.
            block: height and width of a tile.
        """
        program, rows, slots = self.program, self.program.num_rows, self.program.opcode.shape[1]
        view = self._viewer(memory)
        heads = view("heads", np.int64, (self.num_passes, rows, L.HEAD))
        lists = view("lists", np.int32, (1 + self.num_passes, -1))
        lists[:] = -1
        launches = np.zeros((2 + self.num_passes, 3), np.int64)
        last_canvas = np.zeros(rows, np.int64)
        given = np.zeros(rows, np.int64) if self.is_blended else targets
        fill_heads(
            program.opcode, program.args, program.flags, program.out_size, program.passes, program.num_passes,
            program.in_shape, program.ids, program.key, sources, strides, given, canvases,
            self._weights_at, self.is_blended, block, heads, last_canvas, lists, launches[:-1],
        )  # fmt: skip
        self._fill_tables(view, slots)
        packed = Packed(
            code=self._at["code"],
            args=self._at["args"],
            constants=self._at["constants"],
            heads=[self._at["heads"] + 8 * L.HEAD * rows * p for p in range(self.num_passes)],
            lists=[self._at["lists"] + p * lists.strides[0] for p in range(1 + self.num_passes)],
            launches=launches,
        )
        if program.blend is not None:
            order, begins = rows_by_output(program)
            blend_heads = view("blend_heads", np.int64, (program.num_outputs, L.HEAD))
            fill_blend_heads(
                program.opcode, program.args, program.length, program.num_passes, heads, order, begins, targets, block,
                blend_heads, launches[-1],
            )  # fmt: skip
            view("begins", np.int32, begins.shape)[:] = begins
            view("canvases", np.int64, (rows,))[:] = last_canvas[order]
            view("weights", np.float32, (rows,))[:] = program.blend.weight[order]
            packed.blend_heads, packed.begins = self._at["blend_heads"], self._at["begins"]
            packed.canvases, packed.weights = self._at["canvases"], self._at["weights"]
        return packed

    def _viewer(self, memory: npt.NDArray[np.uint8]) -> Callable[[str, Any, tuple[int, ...]], Array]:
        def view(name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
            size = self.sizes[name] if -1 in shape else int(np.prod(shape)) * np.dtype(dtype).itemsize
            return memory[self._at[name] : self._at[name] + size].view(dtype).reshape(shape)

        return view

    def _fill_tables(self, view: Callable[..., Array], slots: int) -> None:
        program, rows, tables = self.program, self.program.num_rows, self.program.tables
        starts = np.cumsum([0, *(kernel.size for kernel in tables.kernels)])[:-1]
        fill_instructions(
            program.opcode, program.args, program.flags, program.fill, program.out_size, program.window,
            program.in_shape, program.length, self._at["kernels"] + 4 * starts.astype(np.int64), self._at["luts"],
            self._at["matrices"], self._at["rectangles"], self._at["indices"],
            self._weights_at - TABLE * self.statistics, view("code", np.int32, (rows, slots, L.CODE)),
            view("indices", np.int32, (-1,)),
        )  # fmt: skip
        view("args", np.float64, program.args.shape)[:] = program.args
        view("luts", np.uint8, tables.luts.shape)[:] = tables.luts
        view("matrices", np.float32, tables.matrices.shape)[:] = tables.matrices
        view("rectangles", np.int32, tables.rectangles.shape)[:] = tables.rectangles
        if tables.kernels:
            kernels = np.concatenate([kernel.reshape(-1) for kernel in tables.kernels])
            view("kernels", np.float32, kernels.shape)[:] = kernels
        constants = view("constants", np.float32, (12,))
        constants[:] = 0.0
        if program.output.is_float:
            for at, channels in ((0, 1), (6, 3)):
                constants[at : at + 3], constants[at + 3 : at + 6] = program.output.scale_and_bias(channels)
