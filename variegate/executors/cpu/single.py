"""One image at a time: a thread's own memory for one program, in which an image is drawn, lowered and made by three
native calls.

A batch's arrays are made anew for every batch, and kernels get their addresses. For one image that takes longer than
its pixels; so each thread keeps a workspace: the arrays of one program, at addresses that kernels know. Programs that
do not fit it are run as batches.
"""

from __future__ import annotations

import threading
from ctypes import c_void_p
from struct import Struct

import numpy as np

from variegate.arrays import AnyArray, UInt8Array
from variegate.executors.cpu.executor import STREAM_FROM_BYTES, run
from variegate.executors.cpu.kernels import result_format, run_rows
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import data_ptr, entry
from variegate.native.structs import BATCH, DRAW_CALL, FUSED_ARRAYS, pack_struct
from variegate.program import lowering
from variegate.program.draws.instructions import LANES
from variegate.program.draws.record import Record
from variegate.program.lowering.rewrites import RECORD, empty_program, new_work
from variegate.program.one_image import OneImage
from variegate.program.ops import NUM_ARGS
from variegate.program.program import INSTRUCTION_ARRAYS, MAX_SIDE, Output, Tables
from variegate.program.rng import SEGMENTS

# Instructions, rectangles and, to begin with, weights of blurs that a workspace has room for.
SLOTS = 16
RECTANGLES = 16
WEIGHTS = 1024
# Registers of draws, to begin with.
_REGISTERS = 256
# Results below this many bytes are not worth a place in the pool.
_SMALL_BYTES = 1 << 15

_RECORD = Struct("8q8d")
_HEADER = Struct("3qQ3q")
_ENDS = Struct("2q")
# Height, width and channels; height and width; length; id; key.
_DRAWN = Struct("3i2iiQ2I")
_SIZE = Struct("2i")
_SIZE_AT = 12
_BYTE = np.dtype(np.uint8)
_FLOAT = np.dtype(np.float32)
_FIELD = {name: i for i, (name, _) in enumerate(BATCH)}
_DRAW_FIELD = {name: i for i, (name, _) in enumerate(DRAW_CALL)}
_NO_TABLES = Tables()

_draw = entry("vg_draw", c_void_p)


class SingleImageWorkspace:
    """The memory of one thread."""

    def __init__(self) -> None:
        records = np.zeros((SLOTS + 1, RECORD), np.int64)
        self._header = np.zeros(_DRAWN.size, np.uint8)
        self.header = memoryview(self._header.data).cast("B")
        image, size, length = (part.view(np.int32) for part in np.split(self._header[:24], [12, 20]))
        program = empty_program(1, SLOTS)._replace(
            in_shape=image.reshape(1, 3),
            length=length,
            ids=self._header[24:32].view(np.uint64),
            key=self._header[32:].view(np.uint32).reshape(1, 2),
        )
        self.work = new_work(program, SLOTS, WEIGHTS, _NO_TABLES.luts, _NO_TABLES.filters, records)
        self.records_at = data_ptr(records)
        self.records = memoryview(records.data).cast("B")
        self.rectangles = np.zeros((RECTANGLES, 4), np.int32)
        self._ends = np.zeros(2, np.int64)  # addresses of the image and of its result
        self.ends = memoryview(self._ends.data).cast("B")
        self.scale, self.bias = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
        self.batch = pack_struct(
            BATCH,
            **{name: getattr(program, name) for name in FUSED_ARRAYS},
            rows=1,
            slots=SLOTS,
            max_passes=SLOTS,
            luts=self.work.luts,
            matrices=0,
            kernels=self.work.kernels,
            rectangles=self.rectangles,
            grids=0,
            grid_values=0,
            points=0,
            segments=SEGMENTS,
            sources=self._ends[:1],
            targets=self._ends[1:],
            scale=self.scale,
            bias=self.bias,
            storage=0,
            streams=0,
        )
        self._output: Output | None = None
        self.registers = np.empty((_REGISTERS, LANES), np.float64)
        self.failure = np.zeros(2 + NUM_ARGS, np.float64)
        self._counts, self._bases = np.zeros(1, np.int64), np.zeros(4, np.float64)
        self.call = pack_struct(
            DRAW_CALL,
            **dict.fromkeys((name for name, _ in DRAW_CALL), 0)
            | {name: getattr(program, name) for name in INSTRUCTION_ARRAYS}
            | {"rows": 1, "slots": SLOTS, "max_side": MAX_SIDE, "registers": self.registers, "failure": self.failure}
            | {"length": length, "in_shape": image, "size": size, "ids": program.ids, "key": program.key}
            | {"bases": self._bases, "rectangles": self.rectangles, "num_rectangles": self._counts},
        )
        self._record: Record | None = None

    # -- drawing -------------------------------------------------------------------------------------------------

    def draw(
        self, record: Record, shape: tuple[int, int, int], sample_id: int, key: tuple[int, int]
    ) -> tuple[int, int]:
        """Draw the program of one image -> height and width of its result. Raises what the record's checks say."""
        if record is not self._record:
            self._set_record(record)
        _DRAWN.pack_into(self.header, 0, *shape, shape[0], shape[1], 0, sample_id, *key)
        self._counts[0] = 0
        if status := _draw(data_ptr(self.call)):
            raise record.error(status, self.failure, MAX_SIDE)
        height, width = _SIZE.unpack_from(self.header, _SIZE_AT)
        return height, width

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
            self.call[_DRAW_FIELD[name]] = value
        self.work.set("emitted", data_ptr(record.tables.get("luts", _NO_TABLES.luts)))
        self.work.set("filters", data_ptr(record.tables.get("filters", _NO_TABLES.filters)))
        self.batch[_FIELD["matrices"]] = data_ptr(record.tables.get("matrices", _NO_TABLES.matrices))
        self._record = record

    # -- running -------------------------------------------------------------------------------------------------

    def lower(self, composed: bool, from_records: bool) -> None:
        """Lower the program that was drawn, or whose records were written."""
        self.work.set("composed", composed)
        self.work.set("records", self.records_at if from_records else 0)
        self.work.lower()
        self.batch[_FIELD["kernels"]] = data_ptr(self.work.kernels)

    def run(self, pixels: UInt8Array, size: tuple[int, int], output: Output, streams: bool) -> AnyArray:
        """Run the lowered program -> its result."""
        self._set_output(output, streams)
        height, width, channels = *size, pixels.shape[2]
        kind = _FLOAT if output.mean is not None else _BYTE
        shape = (channels, height, width) if output.layout == "NCHW" else (height, width, channels)
        if height * width * channels < _SMALL_BYTES:
            result: AnyArray = np.empty(shape, kind)
        else:
            result = RESULTS.take(height * width * channels * kind.itemsize).view(kind).reshape(shape)
        _ENDS.pack_into(self.ends, 0, data_ptr(pixels), data_ptr(result))
        run_rows(self.batch, 0, 1)
        return result

    def _set_output(self, output: Output, streams: bool) -> None:
        self.batch[_FIELD["streams"]] = streams
        if output is not self._output:
            result = result_format(output)
            self.scale[:], self.bias[:] = result.scale, result.bias
            self.batch[_FIELD["storage"]] = result.storage
            self._output = output


_local = threading.local()


def _workspace() -> SingleImageWorkspace:
    try:
        workspace: SingleImageWorkspace = _local.workspace
    except AttributeError:
        workspace = _local.workspace = SingleImageWorkspace()
    return workspace


def fits_workspace(record: Record) -> bool:
    """True if ``draw_one`` runs what the record draws."""
    has_room = record.max_emissions <= SLOTS and record.num_rectangles <= RECTANGLES
    return record.is_for_one and has_room and not lowering.DEBUG


def draw_one(
    record: Record, pixels: UInt8Array, sample_id: int, key: tuple[int, int], composed: bool = True
) -> AnyArray:
    """Draw and run one image -> its result: uint8 or float32, CHW or HWC.

    ``pixels``: contiguous uint8[H, W, C], C = 1 or 3. ``record``: one that ``fits_workspace``.
    """
    workspace = _workspace()
    size = workspace.draw(record, pixels.shape, sample_id, key)
    workspace.lower(composed, from_records=False)
    return workspace.run(pixels, size, record.output, _streams(size))


def run_one(image: OneImage, pixels: UInt8Array, output: Output, composed: bool = True) -> AnyArray:
    """Execute the instructions of one image -> its result: uint8 or float32, CHW or HWC.

    ``pixels``: contiguous uint8[H, W, C] of the image's shape.
    """
    records = image.records
    if lowering.DEBUG or len(records) > SLOTS or image.has_tables or image.num_rectangles > RECTANGLES:
        return run(image.finish(output), [pixels], 1, "composed" if composed else "exact")[0]
    workspace = _workspace()
    height, width, channels = image.in_shape
    _HEADER.pack_into(workspace.records, 0, height, width, channels, image.sample_id, *image.stream, len(records))
    at = 8 * RECORD
    for record in records:
        _RECORD.pack_into(workspace.records, at, *record)
        at += 8 * RECORD
    if image.num_rectangles:
        workspace.rectangles[: image.num_rectangles] = image.rectangles()
    workspace.lower(composed, from_records=True)
    size = (image.height, image.width)
    return workspace.run(pixels, size, output, _streams(size))


def _streams(size: tuple[int, int]) -> bool:
    return 12 * size[0] * size[1] >= STREAM_FROM_BYTES
