"""Drawing and lowering of a batch in one native call, with reused memory."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, Int32Array, UInt32Array, UInt64Array
from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.native.structs import DRAW_CALL, PLAN_CALL, SAMPLED_ARRAYS, pack_struct
from variegate.program.depth import Depth
from variegate.program.draws.instructions import LANES, DrawFailure
from variegate.program.draws.record import Record, add_names
from variegate.program.draws.recorder import SIDE_TABLES
from variegate.program.lowering.rewrites import empty_program, new_work
from variegate.program.ops import NUM_ARGS
from variegate.program.program import MAX_SIDE, Blend, Grouping, Program, Tables

_plan = entry("vg_plan", c_void_p)
_FIELD = {name: i for i, (name, _) in enumerate(PLAN_CALL)}
_NO_TABLES = Tables()


class ViewDraw(NamedTuple):
    """A record, and the indices of the views that it draws for each image."""

    record: Record
    views: Sequence[int]


class LoweringOptions(NamedTuple):
    """Options of lowering, see ``lowering.lower``."""

    composed: bool = True
    measured_once: bool = False
    nearest: bool = False
    depth: Depth = Depth.UINT8


class BatchPlan:
    """Reusable memory for the programs of batches of ``images`` images.

    Each call of ``program`` overwrites the arrays of the previous program.

    Args:
        draws: native records (``Record.is_native``) with equal output formats and numbers of copies.
        images: number of images of a batch.
        grouping: groups of views; None if each image has one output.
        rewriting: options of lowering.
    """

    def __init__(
        self,
        draws: Sequence[ViewDraw],
        images: int,
        grouping: Grouping | None,
        rewriting: LoweringOptions,
    ) -> None:
        records = [draw.record for draw in draws]
        views = (grouping or Grouping()).places
        copies = records[0].copies
        rows = images * len(views) * copies
        weights = np.ones(rows, np.float32)
        arrays = empty_program(rows, max([1, *(record.max_emissions for record in records)]))
        self._records = records
        self._rectangles = np.empty((rows * max(record.num_rectangles for record in records), 4), np.int32)
        self._num_rectangles = np.zeros(1, np.int64)
        self._failure = np.zeros(2 + NUM_ARGS, np.float64)
        self._tables, bases = _join_tables(records)
        self._work = new_work(arrays, self._tables, *rewriting)
        names: list[str] = []
        shared: dict[str, Any] = {name: getattr(arrays, name) for name, _ in SAMPLED_ARRAYS} | {
            "size": np.zeros((rows, 2), np.int32),
            "registers": np.empty((max(record.num_registers for record in records), LANES), np.float64),
            "rectangles": self._rectangles,
            "num_rectangles": self._num_rectangles,
            "failure": self._failure,
            "chain_rows": rows // copies,
            "weights": weights,
        }
        each = [
            self._pack_draw(draw, images * copies, len(views), arrays.opcode.shape[1], names, base, shared)
            for draw, base in zip(draws, bases, strict=True)
        ]
        calls, indices = np.stack([call for call, _ in each]), [index for _, index in each]
        places = np.array(views, np.int32)
        self._call = pack_struct(
            PLAN_CALL,
            **dict.fromkeys(("shapes", "ids", "keys", "key_step", "failed", "height", "width", "channels"), 0),
            images=images,
            views=places,
            num_views=len(views),
            copies=copies,
            draws=calls,
            num_draws=len(draws),
            lowering=self._work.memory,
        )
        # Keep the arrays alive: the packed structs hold their addresses.
        self._memory = shared, calls, indices, bases, places, records
        outputs = np.arange(rows // copies, dtype=np.int32)
        self._program = Program(
            **arrays._asdict(),
            source=np.tile(outputs // np.int32(len(views)), copies),
            blend=Blend(np.tile(outputs, copies), weights) if copies > 1 else None,
            output=records[0].output,
            tables=self._tables,
            grouping=grouping,
            names=tuple(names),
            depth=rewriting.depth,
            stage="fused",
        )

    @staticmethod
    def _pack_draw(
        draw: ViewDraw, images: int, views: int, slots: int, names: list[str], base: AnyArray, shared: dict[str, Any]
    ) -> tuple[AnyArray, AnyArray]:
        """Return a record's DrawCall and the rows that it draws. Appends the record's names to ``names``."""
        record = draw.record
        is_all = len(draw.views) == views
        index = (np.arange(images)[:, None] * views + np.array(draw.views, np.int64)).reshape(-1)
        code, constants, num_constants, values, emissions = record.addresses
        call = pack_struct(
            DRAW_CALL,
            **shared,
            code=code,
            constants=constants,
            num_constants=num_constants,
            arrays=values,
            emissions=emissions,
            begin=0,
            end=len(record.code),
            register_stride=0,
            rows=len(index),
            row_index=0 if is_all else index,
            first_slot=0,
            slots=slots,
            columns=0,
            column_rows=0,
            bases=base,
            first_label=add_names(names, record.names),
            first_rectangle=0,
            max_side=MAX_SIDE,
        )
        return call, index

    def program(self, shapes: Int32Array, ids: UInt64Array, keys: UInt32Array) -> Program:
        """Draw and lower a batch.

        ``shapes``: int32[N, 3] of height, width, channels. ``ids``: uint64[N]. ``keys``: uint32[N or 1, 2].

        Raises the error of a transform's check that fails.
        """
        read = as_c_contiguous(shapes), as_c_contiguous(ids), as_c_contiguous(keys)
        self._call[1:5] = (*map(data_ptr, read), 0 if len(keys) == 1 else 2)
        status = _plan(data_ptr(self._call))
        if status >= DrawFailure.CHECK_FAILED:
            raise self._records[self._call[_FIELD["failed"]]].error(status, self._failure, MAX_SIDE)
        self._work.complete(status)
        tables = self._work.tables(self._tables)
        if len(self._rectangles):
            tables.rectangles = self._rectangles[: self._num_rectangles[0]]
        height, width, channels = self._call[-3:].tolist()
        return self._program.replace(tables=tables, result_size=(height, width, channels) if height else None)


def _join_tables(records: Sequence[Record]) -> tuple[Tables, AnyArray]:
    """Concatenate side tables of records. Returns them and each record's first indices, float64[records, tables]."""
    bases = np.zeros((len(records), len(SIDE_TABLES)))
    joined: dict[str, Any] = {}
    for i, name in enumerate(SIDE_TABLES):
        parts = [record.tables.get(name, getattr(_NO_TABLES, name)) for record in records]
        bases[1:, i] = np.cumsum([len(part) for part in parts])[:-1]
        joined[name] = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return Tables(**joined), bases
