"""Single images: one native call draws, lowers and runs a program in a workspace of the thread.

Allocating and packing the arrays of a batch takes longer than computing the pixels of one image. Therefore each thread
has a workspace: the arrays of one program, allocated and packed once. Programs that do not fit it run as batches.
Native part: ``native/kernels/single.cpp``.
"""

from __future__ import annotations

import threading
from ctypes import c_void_p
from struct import Struct
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, ImageArray
from variegate.executors.batches import depth_of_batch
from variegate.executors.cpu.executor import STREAM_FROM_BYTES, run
from variegate.executors.cpu.kernels import result_format, scratch_address
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import (
    BATCH,
    DRAW_CALL,
    FUSED_ARRAYS,
    SINGLE_CALL,
    SingleStatus,
    pack_struct,
)
from variegate.program.depth import Depth
from variegate.program.draws.instructions import LANES, DrawFailure
from variegate.program.draws.record import Record
from variegate.program.lowering.rewrites import empty_program, new_work
from variegate.program.ops import NUM_ARGS
from variegate.program.program import INSTRUCTION_ARRAYS, MAX_SIDE, RECORD, Output, Tables
from variegate.program.rng import SEGMENTS
from variegate.program.scalar_draw import ScalarDraw

# Capacity of a workspace: instructions and rectangles.
SLOTS = 16
RECTANGLES = 16
# Initial number of registers for draws.
_REGISTERS = 256
# Results below this size in bytes are cheaper to allocate than to pool.
_SMALL_BYTES = 1 << 15

# Height, width and channels; height and width; length; id; key.
_PROGRAM = Struct("3i2iiQ2I")
_FLOAT = np.dtype(np.float32)
_FIELD = {name: i for i, (name, _) in enumerate(BATCH)}
_DRAW_FIELD = {name: i for i, (name, _) in enumerate(DRAW_CALL)}
_CALL_FIELD = {name: 8 * i for i, (name, _) in enumerate(SINGLE_CALL)}
# Fields of a SingleCall that change per image: all before "lowering".
_CALL = Struct("9q")
_SIZE = Struct("2q")
_NO_TABLES = Tables()

_make_one = entry("vg_make_one", c_void_p)


class SingleImageWorkspace:
    """The memory of one thread, at fixed addresses."""

    def __init__(self) -> None:
        records = np.zeros(SLOTS, RECORD)
        header = np.zeros(_PROGRAM.size, np.uint8)
        self.header = memoryview(header.data).cast("B")
        image, size, length = (part.view(np.int32) for part in np.split(header[:24], [12, 20]))
        program = empty_program(1, SLOTS)._replace(
            in_shape=image.reshape(1, 3),
            length=length,
            ids=header[24:32].view(np.uint64),
            key=header[32:].view(np.uint32).reshape(1, 2),
        )
        self.work = new_work(program, _NO_TABLES)
        self.records_at = data_ptr(records)
        self.records = memoryview(records.view(np.uint8).data)
        self.rectangles = np.zeros((RECTANGLES, 4), np.int32)
        self.scale, self.bias = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
        call = np.zeros(len(SINGLE_CALL), np.int64)
        self.call = memoryview(call.data).cast("B")
        self.call_at = data_ptr(call)
        self.batch = pack_struct(
            BATCH,
            **{name: getattr(program, name) for name in FUSED_ARRAYS},
            rows=1,
            slots=SLOTS,
            max_passes=SLOTS,
            luts=self.work.luts,
            curves=0,
            matrices=0,
            kernels=self.work.kernels,
            rectangles=self.rectangles,
            grids=0,
            grid_values=0,
            pixel_functions=0,
            segments=SEGMENTS,
            sources=self.call_at + _CALL_FIELD["source"],
            targets=self.call_at + _CALL_FIELD["target"],
            scale=self.scale,
            bias=self.bias,
            storage=0,
            streams=0,
            depth=0,
        )
        call[-3:] = data_ptr(self.work.memory), data_ptr(self.batch), scratch_address()
        self._format: tuple[Output, Depth] | None = None
        self.registers = np.empty((_REGISTERS, LANES), np.float64)
        self.failure = np.zeros(2 + NUM_ARGS, np.float64)
        self._counts, self._bases = np.zeros(1, np.int64), np.zeros(4, np.float64)
        self.draws = pack_struct(
            DRAW_CALL,
            **dict.fromkeys((name for name, _ in DRAW_CALL), 0)
            | {name: getattr(program, name) for name in INSTRUCTION_ARRAYS}
            | {"rows": 1, "slots": SLOTS, "max_side": MAX_SIDE, "registers": self.registers, "failure": self.failure}
            | {"length": length, "in_shape": image, "size": size, "ids": program.ids, "key": program.key}
            | {"bases": self._bases, "rectangles": self.rectangles, "num_rectangles": self._counts},
        )
        self.draws_at = data_ptr(self.draws)
        self._record: Record | None = None
        # Height and width of the record's last result, if they differ from the image's: the guess for the next one.
        self._other_size: tuple[int, int] | None = None

    def draw(
        self, record: Record, pixels: ImageArray, sample_id: int, key: tuple[int, int], composed: bool
    ) -> AnyArray:
        """Draw and run one image. Raises the error of a failed check of the record."""
        if record is not self._record:
            self._set_record(record)
        height, width, channels = pixels.shape
        _PROGRAM.pack_into(self.header, 0, height, width, channels, height, width, 0, sample_id, *key)
        self._counts[0] = 0
        size = self._other_size or (height, width)
        return self._make(self.draws_at, 0, pixels, size, record.output, composed)

    def run(self, image: ScalarDraw, pixels: ImageArray, output: Output, composed: bool) -> AnyArray:
        """Run the instructions of one image."""
        height, width, channels = pixels.shape
        header = (height, width, channels, height, width, len(image.records), image.sample_id, *image.stream)
        _PROGRAM.pack_into(self.header, 0, *header)
        records = b"".join(image.records)
        self.records[: len(records)] = records
        if (rectangles := image.rectangles) is not None:
            self.rectangles[: len(rectangles)] = rectangles
        return self._make(0, self.records_at, pixels, (image.height, image.width), output, composed)

    def _make(
        self, draws: int, records: int, pixels: ImageArray, size: tuple[int, int], output: Output, composed: bool
    ) -> AnyArray:
        """Allocate the result and make it by a native call. ``size``: its expected height and width; the call is
        repeated if it reports another size."""
        depth = depth_of_batch(pixels)
        known = self._format
        if known is None or output is not known[0] or depth is not known[1]:
            self._set_format(output, depth)
        dtype = pixels.dtype if output.mean is None else _FLOAT
        is_lowered = 0
        while True:
            result = _new_result(size, pixels.shape[2], output.layout, dtype)
            streams = result.nbytes >= STREAM_FROM_BYTES
            addresses = data_ptr(pixels), data_ptr(result)
            _CALL.pack_into(self.call, 0, draws, records, is_lowered, composed, streams, *addresses, *size)
            status = _make_one(self.call_at)
            if not status:
                return result
            is_lowered = 1
            if status == SingleStatus.OTHER_SIZE:
                size = self._other_size = _SIZE.unpack_from(self.call, _CALL_FIELD["height"])
                if size == pixels.shape[:2]:
                    self._other_size = None
            elif status == SingleStatus.NO_ROOM_FOR_WEIGHTS:
                self.work.lower()
                self.batch[_FIELD["kernels"]] = data_ptr(self.work.kernels)
            else:
                raise self._error(status, is_drawn=bool(draws))

    def _error(self, status: int, is_drawn: bool) -> Exception:
        check_status(status)
        if is_drawn and self._record is not None and status >= DrawFailure.CHECK_FAILED:
            return self._record.error(status, self.failure, MAX_SIDE)
        return self.work.unknown_opcode()

    def _set_record(self, record: Record) -> None:
        if record.num_registers > len(self.registers):
            self.registers = np.empty((record.num_registers, LANES), np.float64)
        fields = {
            "code": data_ptr(record.code),
            "end": len(record.code),
            "constants": data_ptr(record.constants),
            "num_constants": len(record.constants),
            "arrays": data_ptr(record.arrays),
            "emissions": data_ptr(record.emissions),
            "registers": data_ptr(self.registers),
        }
        for name, value in fields.items():
            self.draws[_DRAW_FIELD[name]] = value
        curves = data_ptr(record.tables.get("curves", _NO_TABLES.curves))
        self.work.set("curves", curves)
        self.batch[_FIELD["curves"]] = curves
        self.work.set("filters", data_ptr(record.tables.get("filters", _NO_TABLES.filters)))
        self.batch[_FIELD["matrices"]] = data_ptr(record.tables.get("matrices", _NO_TABLES.matrices))
        self._record = record
        self._other_size = None

    def _set_format(self, output: Output, depth: Depth) -> None:
        result = result_format(output, depth)
        self.scale[:], self.bias[:] = result.scale, result.bias
        self.batch[_FIELD["storage"]] = result.storage
        self.batch[_FIELD["depth"]] = depth
        self.work.set("is_deep", int(depth.is_deep))
        self._format = output, depth


def _new_result(size: tuple[int, int], channels: int, layout: str, dtype: np.dtype[Any]) -> AnyArray:
    shape = (channels, *size) if layout == "NCHW" else (*size, channels)
    count = size[0] * size[1] * channels
    if count < _SMALL_BYTES:
        return np.empty(shape, dtype)
    return RESULTS.take(count * dtype.itemsize).view(dtype).reshape(shape)


_local = threading.local()


def _workspace() -> SingleImageWorkspace:
    try:
        workspace: SingleImageWorkspace = _local.workspace
    except AttributeError:
        workspace = _local.workspace = SingleImageWorkspace()
    return workspace


def fits_workspace(record: Record) -> bool:
    """True if ``draw_one`` can run the record."""
    has_room = record.max_emissions <= SLOTS and record.num_rectangles <= RECTANGLES
    return record.is_native and "grids" not in record.tables and has_room


def draw_one(
    record: Record, pixels: ImageArray, sample_id: int, key: tuple[int, int], composed: bool = True
) -> AnyArray:
    """Draw and run one image -> its result, CHW or HWC, of the image's dtype or float32.

    ``pixels``: contiguous [H, W, C], C = 1 or 3. ``record`` must pass ``fits_workspace``.
    """
    return _workspace().draw(record, pixels, sample_id, key, composed)


def run_one(image: ScalarDraw, pixels: ImageArray, output: Output, composed: bool = True) -> AnyArray:
    """Execute the instructions of one image -> its result, CHW or HWC, of the image's dtype or float32.

    ``pixels``: contiguous [H, W, C] of the image's shape. Raises ValueError for instructions that need 256 levels.
    """
    depth = depth_of_batch(pixels)
    if depth.is_deep:
        image.check_levels(depth)
    rectangles = image.rectangles
    has_room = len(image.records) <= SLOTS and (rectangles is None or len(rectangles) <= RECTANGLES)
    if image.has_tables or not has_room:
        return run(image.finish(output).for_depth(depth), [pixels], 1, "composed" if composed else "exact")[0]
    return _workspace().run(image, pixels, output, composed)
