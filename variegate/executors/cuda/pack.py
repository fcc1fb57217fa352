"""Pack a fused program into one buffer, for a single copy to the device (``native/cuda``)."""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Float32Array, Int64Array, UInt8Array
from variegate.executors.cuda import layout as L
from variegate.executors.cuda.images import DeviceImages
from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.native.structs import DEVICE_PROGRAM, FUSED_ARRAYS, PACK_CALL, TABLES, pack_struct
from variegate.program.depth import Depth
from variegate.program.ops import Op
from variegate.program.program import BlendEntries, Output, Program
from variegate.program.rng import SEGMENTS

_plan_buffer = entry("vg_plan_buffer", c_void_p)
_pack = entry("vg_pack", c_void_p)

_PROGRAM_ARRAYS = (*FUSED_ARRAYS, "source")
# Field of BlendEntries -> field of the struct, which is null without a blend.
_BLEND_ARRAYS = {
    "begins": "begins", "row": "entry_row", "weight": "weight", "box": "box", "start": "start", "alpha_at": "alpha_at",
    "alpha": "alpha",
}  # fmt: skip
_NO_BLEND = dict.fromkeys(_BLEND_ARRAYS.values(), 0) | {"outputs": 0, "alpha_size": 0}
NO_REGION = (0, 0, 0, 0)
NO_TABLES = np.zeros((0, L.TABLE), np.uint8)
# Fields at the end of the struct, which vg_plan_buffer writes.
_RESULTS = ("depth", "draws_noise", "list_length", "uploaded", "buffer_size", "canvas_size")
_NO_RESULTS = dict.fromkeys(_RESULTS, 0)


def refuse_jpeg(program: Program) -> None:
    """Raise ValueError if a fused program has a JPEG operation, for which there is no GPU kernel."""
    if (program.opcode == Op.JPEG).any():
        raise ValueError(
            "JPEG: runs on device='cpu' alone, and is not done behind your back on the host; use device='cpu' for this "
            "transform, or leave JPEG out of it on a GPU"
        )


class Packer:
    """The buffer layout of one fused program.

    Sizes in bytes: ``uploaded``, which ``fill`` writes; ``buffer``, with the sections that kernels write;
    ``canvases``, the images between passes. ``at``: offsets of the sections. Raises ValueError for a JPEG operation.
    """

    def __init__(self, program: Program) -> None:
        values: dict[str, Any] = {name: as_c_contiguous(getattr(program, name)) for name in _PROGRAM_ARRAYS}
        for name in TABLES:
            values[name] = table = as_c_contiguous(getattr(program.tables, name))
            values[f"{name}_size"] = table.nbytes
        if program.depth.is_deep:
            curves = program.tables.curves.astype(np.float32)
            values |= {"luts": curves, "luts_size": curves.nbytes}
        values["scale_and_bias"] = _scale_and_bias(program.output, program.depth)
        values |= _NO_BLEND if program.blend is None else _blend_values(program.blend.entries())
        rows, slots = program.opcode.shape
        offsets = np.empty(len(L.Sections._fields), np.int64)
        self._program = pack_struct(
            DEVICE_PROGRAM,
            rows=rows,
            slots=slots,
            max_passes=values["passes"].shape[1],
            segments=SEGMENTS,
            segments_size=SEGMENTS.nbytes,
            lut_size=3 * 256 * values["luts"].itemsize,
            canvas_pixel=3 * program.depth.dtype.itemsize if program.depth.is_deep else 4,
            at=offsets,
            **values,
            **_NO_RESULTS,
        )
        # Owns the arrays whose addresses are in the struct.
        self._arrays = (values, offsets)
        if _plan_buffer(data_ptr(self._program)):
            refuse_jpeg(program)
        results = self._program[-len(_RESULTS) :].tolist()
        self.num_passes, _, self._list_length, self.uploaded, self.buffer, self.canvases = results
        self.at = L.Sections(*offsets.tolist())
        self.is_blended = program.blend is not None
        self.has_alpha = values["alpha_size"] > 0
        self._rows = rows
        self._outputs = values["outputs"] or rows

    def header_at(self, p: int) -> int:
        """Return the offset of the headers of pass ``p``."""
        return self.at.headers + 8 * L.HEADER * self._rows * p

    def list_at(self, launch: int) -> int:
        """Return the offset of the row list of a launch: 0 for the preparation, 1 + p for pass p."""
        return self.at.lists + 4 * self._list_length * launch

    def fill(
        self,
        memory: UInt8Array,
        images: DeviceImages,
        targets: Int64Array,
        canvases: int,
        block: tuple[int, int],
        region: tuple[int, int, int, int] = NO_REGION,
    ) -> AnyArray:
        """Write the bytes to upload -> the launches, int64[1 + P + 1, LAUNCH], with the fields of ``layout.NUM_ROWS``.

        The launches are the preparation, every pass, and the blend. Raises IndexError if a row reads an image that is
        not in the batch.

        Args:
            memory: uint8[uploaded], aligned to 16 bytes.
            images: the images of the batch.
            targets: addresses [outputs] of the results.
            canvases: address of ``self.canvases`` bytes.
            block: height and width of a tile.
            region: column and line at which all rows begin in a larger image, and its height and width.
        """
        assert len(memory) >= self.uploaded
        assert len(targets) >= self._outputs
        read = [as_c_contiguous(values) for values in (images.addresses, images.strides, targets)]
        launches = np.empty((2 + self.num_passes, L.LAUNCH), np.int64)
        call = pack_struct(
            PACK_CALL,
            program=self._program,
            memory=memory,
            addresses=read[0],
            strides=read[1],
            images=len(images.addresses),
            targets=read[2],
            canvases=canvases,
            block_y=block[0],
            block_x=block[1],
            region_x=region[0],
            region_y=region[1],
            whole_height=region[2],
            whole_width=region[3],
            launches=launches,
        )
        if _pack(data_ptr(call)):
            raise IndexError(f"a row reads an image that is not among the {len(images.addresses)} of the batch")
        return launches


def _blend_values(entries: BlendEntries) -> dict[str, Any]:
    values: dict[str, Any] = {name: as_c_contiguous(getattr(entries, field)) for field, name in _BLEND_ARRAYS.items()}
    return values | {"outputs": len(entries.begins) - 1, "alpha_size": entries.alpha.nbytes}


def _scale_and_bias(output: Output, depth: Depth) -> Float32Array:
    """Return scale and bias of the output, float32[4, 3]: for images of one channel, then of three."""
    if not output.is_float:
        return _UNCHANGED
    return np.stack([*output.scale_and_bias(1, depth), *output.scale_and_bias(3, depth)])


_UNCHANGED = np.repeat(np.array([1, 0, 1, 0], np.float32)[:, None], 3, axis=1)
