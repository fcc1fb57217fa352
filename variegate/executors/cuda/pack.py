"""A fused program in one run of bytes: laid out, filled, ready for a single copy to the device."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.images import DeviceImages
from variegate.executors.cuda.records import (
    Offsets,
    PassRecords,
    RowAddresses,
    fill_blend_headers,
    fill_headers,
    fill_instructions,
    fill_maps,
    measure,
)
from variegate.program.ops import SPECS, Op
from variegate.program.places import RECORD
from variegate.program.program import Program
from variegate.program.rng import SEGMENTS

Array = npt.NDArray[Any]
# Sections begin at multiples of this, which lets the compiler assume aligned reads.
_ALIGNMENT = 16
# Sections that the host does not fill: made on the device behind the others; and the images between passes, elsewhere.
_MADE_THERE = ("statistics", "resize_weights")
_ELSEWHERE = "canvases"
# Side tables that are copied as they are.
_TABLES = ("luts", "matrices", "kernels", "rectangles", "grids")
# By opcode: reads the table of normal numbers always, or where its rectangles are filled with noise.
_NOISE, _ERASES = 1, 2
_DRAWS = np.zeros(max(SPECS) + 1, np.uint8)
_DRAWS[[Op.GAUSSIAN_NOISE, Op.SHOT_NOISE]] = _NOISE
_DRAWS[Op.ERASE] = _ERASES


def refuse_jpeg(program: Program) -> None:
    """Raises ValueError if a fused program has a JPEG, which there is on the host alone."""
    if (program.opcode == Op.JPEG).any():
        raise ValueError(
            "JPEG: runs on device='cpu' and 'reference' alone, and is not done behind your back on the host; use "
            "device='cpu' for this transform, or leave JPEG out of it on a GPU"
        )


class Packer:
    """Lays out one fused program: ``uploaded`` bytes that the host fills, ``buffer`` bytes in all, and ``canvases``
    bytes of images between passes. Then ``fill`` takes memory of that size.
    """

    def __init__(self, program: Program) -> None:
        assert program.num_passes is not None
        self.num_passes = int(program.num_passes.max(initial=1))
        self.program, self.is_blended = program, program.blend is not None
        self._arrays, self._draws_noise = program.arrays(), self._find_noise()
        self.sections = self._needed_sections()
        self.at: dict[str, int] = {}
        end = 0
        for name, size in self.sections.items():
            self.at[name] = end
            end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self.uploaded = self.at[_MADE_THERE[0]]
        self.buffer = self.at[_ELSEWHERE] + _ALIGNMENT
        self.canvases = self.sections[_ELSEWHERE]

    def header_at(self, p: int) -> int:
        """Offset of the headers of pass ``p``."""
        return self.at["headers"] + 8 * L.HEADER * self.program.num_rows * p

    def list_at(self, launch: int) -> int:
        """Offset of the list of rows of a launch: 0 for the preparation, 1 + p for pass p."""
        return self.at["lists"] + 4 * self._list_length * launch

    @property
    def _list_length(self) -> int:
        """Entries that a list has place for, in whole groups of four."""
        return -(-self.program.num_rows * self.num_passes // 4) * 4

    def _find_noise(self) -> bool:
        draws = _DRAWS[self.program.opcode]
        erases = draws == _ERASES
        return bool((draws == _NOISE).any() or (erases.any() and self.program.args[erases, 2].any()))

    def _needed_sections(self) -> dict[str, int]:
        """Bytes of every section, in order."""
        indices, maps, statistics, weights, pixels = measure(self._arrays, self.is_blended)
        rows, slots, passes = self.program.num_rows, self.program.opcode.shape[1], self.num_passes
        tables = self.program.tables
        sections = {
            "headers": 8 * L.HEADER * passes * rows,
            "code": 4 * L.CODE * rows * slots,
            "args": 64 * rows * slots,
            "constants": 4 * L.SEGMENTS + (SEGMENTS.nbytes if self._draws_noise else 0),
            "lists": 4 * (1 + passes) * self._list_length,
            **{name: getattr(tables, name).nbytes for name in _TABLES},
            "indices": 4 * indices,
            "maps": 8 * RECORD * maps,
        }
        if self.is_blended:
            assert self.program.blend is not None
            outputs, entries = self.program.num_outputs, len(self.program.blend.target)
            sections |= {"blend_headers": 8 * L.HEADER * outputs, "begins": 4 * (outputs + 1), "starts": 4 * outputs}
            sections |= {"last_canvases": 8 * entries, "blend_weights": 4 * entries, "boxes": 16 * entries}
            alpha = self.program.blend.alpha
            sections |= {"alpha_at": 8 * entries, "alpha": 0 if alpha is None else len(alpha)}
        return sections | {"statistics": L.TABLE * statistics, "resize_weights": 4 * weights, "canvases": 4 * pixels}

    def fill(
        self,
        memory: npt.NDArray[np.uint8],
        images: DeviceImages,
        targets: npt.NDArray[np.int64],
        canvases: int,
        block: tuple[int, int],
        region: tuple[int, int, int] = (0, 0, 0),
    ) -> Array:
        """Write the uploaded bytes -> the launches, int64[1 + P + 1, 3], see ``layout.NUM_ROWS``: of the preparation,
        of every pass, of the blend.

        Args:
            memory: uint8[uploaded].
            images: those of the batch.
            targets: addresses [outputs] of the results.
            canvases: address of as many bytes.
            block: height and width of a tile.
            region: see ``RowAddresses``.
        """
        program, rows = self.program, self.program.num_rows
        launches = np.zeros((2 + self.num_passes, 3), np.int64)
        records = PassRecords(
            headers=self._view(memory, "headers", np.int64, self.num_passes, rows, L.HEADER),
            last_canvas=np.zeros(rows, np.int64),
            lists=self._view(memory, "lists", np.int32, 1 + self.num_passes, self._list_length),
            launches=launches[:-1],
        )
        records.lists[:] = -1
        row_targets = np.zeros(rows, np.int64) if self.is_blended else targets
        sources, weights_at = program.source, self.at["resize_weights"]
        addresses = RowAddresses(
            images.addresses[sources], images.strides[sources], row_targets, canvases, weights_at, region
        )
        fill_headers(self._arrays, addresses, self.is_blended, block, records)
        self._fill_tables(memory)
        if program.blend is not None:
            entries = program.blend.entries()
            blend_headers = self._view(memory, "blend_headers", np.int64, program.num_outputs, L.HEADER)
            fill_blend_headers(
                self._arrays, records.headers, entries.row, entries.begins, targets, block, blend_headers, launches[-1]
            )
            self._write(memory, "begins", entries.begins.astype(np.int32))
            self._write(memory, "starts", entries.start)
            self._write(memory, "last_canvases", records.last_canvas[entries.row])
            self._write(memory, "blend_weights", entries.weight)
            self._write(memory, "boxes", entries.box)
            self._write(memory, "alpha_at", entries.alpha_at)
            self._write(memory, "alpha", entries.alpha)
        return launches

    def _fill_tables(self, memory: npt.NDArray[np.uint8]) -> None:
        program, tables, at = self.program, self.program.tables, self.at
        offsets = Offsets(**{name: at[name] for name in Offsets._fields})
        code = self._view(memory, "code", np.int32, *program.opcode.shape, L.CODE)
        indices = self._view(memory, "indices", np.int32, self.sections["indices"] // 4)
        fill_instructions(self._arrays, offsets, code, indices)
        records = self._view(memory, "maps", np.int64, self.sections["maps"] // (8 * RECORD), RECORD)
        fill_maps(self._arrays, at["maps"], code, records)
        self._write(memory, "args", program.args)
        for name in _TABLES:
            self._write(memory, name, getattr(tables, name))
        constants = np.zeros(12, np.float32)
        if program.output.is_float:
            constants = np.concatenate([part for c in (1, 3) for part in program.output.scale_and_bias(c)])
        if self._draws_noise:
            constants = np.concatenate([constants, SEGMENTS.reshape(-1)])
        self._write(memory, "constants", constants)

    def _view(self, memory: npt.NDArray[np.uint8], name: str, dtype: Any, *shape: int) -> Array:
        size = prod(shape) * np.dtype(dtype).itemsize
        return memory[self.at[name] : self.at[name] + size].view(dtype).reshape(shape)

    def _write(self, memory: npt.NDArray[np.uint8], name: str, values: Array) -> None:
        if values.size:
            self._view(memory, name, values.dtype, *values.shape)[...] = values
