"""A record: a transform's drawing as instructions, which the native draw machine runs for batches and single images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_void_p
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float64Array
from variegate.native.library import data_ptr, entry
from variegate.program.depth import Depth, needs_levels
from variegate.program.draws.instructions import EMISSION, INSTRUCTION, LANES, DrawFailure, DrawOp
from variegate.program.draws.recorder import (
    NONE,
    SIDE_TABLES,
    Callback,
    Emission,
    NeedsPythonCopies,
    PythonDraw,
    Recorder,
)
from variegate.program.draws.row_draw import draw_in_python, emit_in_python
from variegate.program.ops import NUM_ARGS
from variegate.program.program import Output, Tables
from variegate.program.sampling import Rows, Sampling, too_large

_NOTHING = np.zeros(1, np.float64)
_NO_BASES = np.zeros(len(SIDE_TABLES), np.float64)

_draw = entry("vg_draw", c_void_p)


@dataclass(frozen=True, eq=False)
class Record:
    """Recorded instructions of a transform's ``draw``. ``output``: the output format after it."""

    code: AnyArray
    emissions: AnyArray
    constants: Float64Array
    arrays: Float64Array
    callbacks: tuple[Callback, ...]
    columns: tuple[Callable[[Sampling], npt.ArrayLike], ...]
    names: tuple[str, ...]
    tables: dict[str, AnyArray]
    output: Output
    num_registers: int
    num_rectangles: int
    max_emissions: int
    copies: int
    uses_epoch: bool
    notes: tuple[Emission, ...]
    needs_levels: tuple[str, ...]  # names of instructions that are defined on 256 levels only
    # Records the transform again, for the given output formats after its first callbacks.
    again: Callable[[tuple[Output, ...]], Record]

    def for_output(self, number: int, output: Output) -> Record:
        """Return the record for another output format after callback ``number``."""
        return self.again((*(callback.next_output for callback in self.callbacks[:number]), output))

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """First fields of a DrawCall: addresses of the record's arrays."""
        arrays = (self.code, self.constants, self.arrays, self.emissions)
        code, constants, values, emissions = map(data_ptr, arrays)
        return code, constants, len(self.constants), values, emissions

    @property
    def is_native(self) -> bool:
        """True if the native machine suffices: the record has no Python callbacks and no columns."""
        return not (self.callbacks or self.columns)

    def check_levels(self, depth: Depth) -> None:
        """Raise ValueError if an instruction needs 256 levels and images of ``depth`` have more."""
        if depth.is_deep and self.needs_levels:
            raise needs_levels(self.needs_levels[0], depth)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        """Draw for rows of a batch, with random slots starting at ``slot``. Raises the errors of failed checks."""
        # Run even for an empty batch, because columns are checked.
        if len(rows) == 0 and not self.columns:
            return
        call = _Call(self, sampling, rows, slot)
        begin = number = 0
        while number < len(call.record.callbacks):
            callback = call.record.callbacks[number]
            call.run(begin, callback.at)
            begin = callback.at
            call.call_back(number, callback)
            number += 1
        record = call.record
        call.run(begin, len(record.code))
        sampling.output = record.output

    def error(self, status: int, failure: Float64Array, max_side: int) -> Exception:
        """Return the error for a status of vg_draw."""
        number, row, *values = failure.tolist()
        note = self.notes[int(number)]
        if status == DrawFailure.CHECK_FAILED and note.error is not None:
            return note.error(*values[: len(note.args)])
        if status == DrawFailure.TOO_LARGE:
            return too_large(note.title, int(values[0]), int(values[1]), max_side)
        return RuntimeError(f"vg_draw: status {status} in row {int(row)}")


class _Call:
    """One run of a record. Callbacks divide it into segments, which share registers."""

    def __init__(self, record: Record, sampling: Sampling, rows: Rows, slot: int) -> None:
        self.sampling, self.rows, self.slot = sampling, rows, slot
        self.failure = np.zeros(2 + NUM_ARGS, np.float64)
        self.counts = np.zeros(1, np.int64)
        self._set_record(record)

    def _set_record(self, record: Record) -> None:
        self.record, sampling = record, self.sampling
        self.bases = _NO_BASES
        if record.tables:
            bases = [_add_table(sampling, name, record.tables.get(name)) for name in SIDE_TABLES]
            self.bases = np.array(bases, np.float64)
        self.columns = _NOTHING
        if record.columns:
            self.columns = np.stack([np.asarray(values(sampling), np.float64) for values in record.columns])
        self.label = add_names(sampling._names, record.names)
        self._allocate()

    def _allocate(self) -> None:
        blocks = -(-len(self.rows) // LANES) if self.record.callbacks else 1
        self.registers = np.empty((blocks, self.record.num_registers, LANES), np.float64)
        self.register_stride = self.record.num_registers * LANES if blocks > 1 else 0

    def run(self, begin: int, end: int) -> None:
        """Run instructions ``begin`` up to ``end``. Raises the error of a check that fails."""
        record, sampling, rows = self.record, self.sampling, self.rows
        is_all = len(rows) == len(sampling.length)
        length = sampling.length if is_all else sampling.length[rows]
        sampling.reserve(int(length.max(initial=0)) + record.max_emissions)
        rectangles = np.empty((len(rows) * record.num_rectangles, 4), np.int32)
        self.counts[0] = 0
        index = np.ascontiguousarray(rows, np.int64)
        arrays = (
            *sampling.instructions.values(),
            *(sampling.length, sampling.shape, sampling.row_ids, sampling.row_keys, sampling.size),
        )
        memory = np.array(
            (
                *record.addresses,
                *(begin, end, data_ptr(self.registers), self.register_stride),
                *(len(rows), 0 if is_all else data_ptr(index), self.slot, sampling.slots),
                *map(data_ptr, arrays),
                *(data_ptr(self.columns), self.columns.shape[-1], data_ptr(self.bases), self.label),
                *(data_ptr(rectangles), data_ptr(self.counts), sampling.table_size("rectangles")),
                *(sampling.max_side, 1, 0, data_ptr(self.failure)),
            ),
            np.int64,
        )
        before = sampling.length.copy() if sampling.is_blended else None
        status = _draw(data_ptr(memory))
        if status:
            raise record.error(status, self.failure, sampling.max_side)
        if before is not None:
            sampling.check_after_blend(before)
        if self.counts[0]:
            sampling.add_rectangles(rectangles[: self.counts[0]])

    def call_back(self, number: int, callback: Callback) -> None:
        """Run a callback, which may add rows and change the output format."""
        sampling, chosen = self.sampling, self.rows
        meant: Any = slice(None)
        if callback.where != NONE:
            meant = np.flatnonzero(self._numbers(callback.where))
            chosen = self.rows[meant]
        if not len(chosen):
            return
        known = len(sampling.length)
        sampling.output = callback.output
        values = [self._numbers(register)[meant] for register in callback.values]
        _function_of(callback)(sampling, chosen, self.slot + callback.slot, *values)
        self.follow_forks(known)
        if sampling.output != callback.next_output:
            self._continue_with(self.record.for_output(number, sampling.output))

    def _continue_with(self, record: Record) -> None:
        """Switch to another record with the same instructions so far."""
        before, first, to = self.registers, len(self.record.constants), len(record.constants)
        number = min(self.record.num_registers - first, record.num_registers - to)
        self._set_record(record)
        self.registers[:, to : to + number] = before[:, first : first + number]

    def _numbers(self, register: int) -> Float64Array:
        """Return the values of a register, float64[rows]."""
        return self.registers[:, register].reshape(-1)[: len(self.rows)]

    def follow_forks(self, first: int) -> None:
        """Include rows from ``first``, which a callback forked. Their registers are copies of the original rows'."""
        sampling, known = self.sampling, len(self.rows)
        if len(sampling.length) == first:
            return
        forked = np.arange(first, len(sampling.length))
        position = np.empty(first, np.intp)
        position[sampling.source[self.rows]] = np.arange(known)
        before, number = self.registers, np.concatenate([np.arange(known), position[sampling.source[forked]]])
        self.rows = np.concatenate([self.rows, forked])
        self._allocate()
        block, lane = np.divmod(number, LANES)
        to_block, to_lane = np.divmod(np.arange(len(number)), LANES)
        self.registers[to_block, :, to_lane] = before[block, :, lane]


def _function_of(callback: Callback) -> Callable[..., None]:
    function = callback.function
    if not isinstance(function, PythonDraw):
        return function
    return partial(emit_in_python if function.is_at_number else draw_in_python, function.transform)


def _add_table(sampling: Sampling, name: str, values: AnyArray | None) -> int:
    return 0 if values is None else sampling.add(name, values)


def add_names(known: list[str], names: Sequence[str]) -> int:
    """Return the index of a record's names in a batch's ``known`` names. Appends them if missing."""
    for first in range(len(known) - len(names) + 1):
        if tuple(known[first : first + len(names)]) == tuple(names):
            return first
    known.extend(names)
    return len(known) - len(names)


# -- making a record -----------------------------------------------------------------------------------------------


class DrawOf:
    """Wraps a transform that defines ``sample`` as well, to record its ``draw``."""

    _is_recorded = True
    _mixers = ()

    def __init__(self, transform: Any) -> None:
        self.draw = transform.draw


def record_of(
    transform: Any,
    output: Output,
    num_channels: int,
    epoch: int,
    next_outputs: tuple[Output, ...] = (),
    may_copy: bool = False,
) -> Record:
    """Return the record of a transform, cached in the transform.

    Args:
        transform: the transform.
        output: the output format so far.
        num_channels: length of a color, 3 for gray and color images.
        epoch: the epoch. Transforms that depend on it have a record per epoch.
        next_outputs: output formats after the first callbacks, if these change it.
        may_copy: whether the record may have several rows per image (``Record.copies``).
    """
    records: dict[Any, Record] = transform.__dict__.setdefault("_records", {})
    key = (output, num_channels, next_outputs, may_copy)
    known = records.get(key) or records.get((*key, epoch))
    if known is None:
        known = _record(transform, output, num_channels, epoch, next_outputs, may_copy)
        if len(records) > _MAX_RECORDS:
            records.clear()
        records[(*key, epoch) if known.uses_epoch else key] = known
    return known


# Cached records per transform. A bound is needed because some transforms have a record per epoch.
_MAX_RECORDS = 64


def _record(
    transform: Any,
    output: Output,
    num_channels: int,
    epoch: int,
    next_outputs: tuple[Output, ...],
    may_copy: bool,
) -> Record:
    recorder = Recorder(num_channels, epoch, output=output, next_outputs=next_outputs, may_copy=may_copy)
    try:
        recorder.run(transform, NONE, 0)
        needs_python = recorder.copies > 1 and bool(recorder.callbacks or recorder.columns)
    except NeedsPythonCopies:
        needs_python = True
    if needs_python:
        return record_of(transform, output, num_channels, epoch, next_outputs)
    first = len(recorder.constants)

    def register(number: int) -> int:
        """Return the final register: constants first, then results of instructions."""
        return number if number == NONE else -2 - number if number < NONE else first + number

    code = np.zeros(len(recorder.code), INSTRUCTION)
    for i, (op, to, a, b, c, k) in enumerate(recorder.code):
        is_length = op in COUNTED
        code[i] = (op, register(to), register(a), b if is_length else register(b), register(c), k)
    emissions = np.zeros(len(recorder.emissions), EMISSION)
    for i, each in enumerate(recorder.emissions):
        head = (each.opcode, each.flags, each.where, each.height, each.width)
        args = [*map(register, each.args), *[NONE] * (NUM_ARGS - len(each.args))]
        emissions[i] = (*map(register, head), len(each.args), each.label, args, [*map(register, each.fill)])
    for callback in recorder.callbacks:
        callback.where = register(callback.where)
        callback.values = tuple(map(register, callback.values))
    return Record(
        code,
        emissions,
        np.array([float.fromhex(key) for key in recorder.constants], np.float64),
        np.concatenate([_NOTHING, *recorder.arrays])[1:] if recorder.arrays else _NOTHING,
        tuple(recorder.callbacks),
        tuple(recorder.columns),
        tuple(recorder.names),
        {name: _table(name, parts) for name, parts in recorder.tables.items()},
        recorder.output,
        first + recorder.num_registers,
        recorder.num_rectangles,
        recorder.max_emissions,
        recorder.copies,
        recorder.uses_epoch,
        tuple(recorder.emissions),
        tuple(recorder.needs_levels),
        partial(record_of, transform, output, num_channels, epoch),
    )


def _table(name: str, parts: Sequence[AnyArray]) -> AnyArray:
    like = getattr(Tables(), name)
    return np.ascontiguousarray(np.concatenate(parts), like.dtype)


# Instructions whose ``b`` is a count, not a register.
COUNTED = {DrawOp.LOOKUP, DrawOp.SEARCH, DrawOp.SORT}
