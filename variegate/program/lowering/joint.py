"""All rewrites of lowering in one compiled call, for batches and single images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.held import held_as, plain, tuple_kind, words_of
from variegate.program.lowering.blurs import blurs_to_kernels
from variegate.program.lowering.fuse import assign, describe
from variegate.program.lowering.maps import rewrite_maps
from variegate.program.lowering.merge import compact, merge_rows
from variegate.program.lowering.tables import ADDRESSES, NOT_COMPILED, build, compile_fill, compose
from variegate.program.ops import IS_BLUR, IS_TABLE, NEUTRAL_OF, NUM_ARGS, Op
from variegate.program.passes import PASS_FIELDS
from variegate.program.program import INSTRUCTION_ARRAYS, Program, ProgramArrays, empty_instructions

# Of an instruction that is written as one record: its opcode, flags, height, width, label and fill colour, then its
# arguments; and of the record before the first instruction, the image.
RECORD = 16


class Work(NamedTuple):
    """All that the rewrites read and write."""

    program: ProgramArrays
    emitted: Any  # uint8[E, 3, 256]: the tables of LUTs as they were emitted
    luts: Any  # uint8[T, 3, 256]: room for the tables of all that become LUTs
    fills: Any  # int64[MAX_OPCODE]: ADDRESSES
    neutral: Any  # float64[MAX_OPCODE, 2]: NEUTRAL_OF
    breaks: Any  # int32[R, K, 2]
    records: Any  # int64[K + 1, RECORD]: where there is one row and it comes as records, else empty
    numbers: Any  # float64[K + 1, RECORD]: the same memory
    report: Any  # int64[REPORT]: see below


# What a call says of its work: the instructions of the longest row before maps and tables were merged; blurs that still
# have no weights; tables in use; an operation, or NOP, whose kernel that fills its table is not compiled yet.
LONGEST, BLURS, TABLES, UNFILLED = range(4)
REPORT = 4


def new_work(rows: int, slots: int, luts: int, records: int = 0, program: ProgramArrays | None = None) -> Work:
    """Room for ``rows`` programs of ``slots`` instructions and ``luts`` tables. ``program``: arrays that are there
    already."""
    made = {
        "window": np.zeros((rows, slots, 4), np.int32),
        "pass_of": np.empty((rows, slots), np.int16),
        "num_passes": np.empty(rows, np.int32),
        "passes": np.zeros((rows, slots, PASS_FIELDS), np.int32),
    }
    if program is None:
        program = ProgramArrays(
            **empty_instructions(rows, slots),
            length=np.zeros(rows, np.int32),
            in_shape=np.zeros((rows, 3), np.int32),
            ids=np.zeros(rows, np.uint64),
            key=np.zeros((rows, 2), np.uint32),
            **made,
        )
    else:
        program = program._replace(**made)
    written = np.zeros((records, RECORD), np.int64)
    return Work(
        program=program,
        emitted=np.empty((0, 3, 256), np.uint8),
        luts=np.empty((luts, 3, 256), np.uint8),
        fills=ADDRESSES,
        neutral=NEUTRAL_OF,
        breaks=np.empty((rows, slots, 2), np.int32),
        records=written,
        numbers=written.view(np.float64),
        report=np.zeros(REPORT, np.int64),
    )


KIND = tuple_kind(new_work(1, 1, 1))
_WORDS = words_of(KIND)
_keep, _kept = held_as(KIND)


@pixel_kernel
def keep_work(address: Any, work: Any) -> None:
    """Write down ``work`` at ``address``, for ``rewrite_all``."""
    _keep(address, work)


def held_work(work: Work) -> npt.NDArray[np.int64]:
    """Memory that holds ``work``, whose arrays must outlive it."""
    memory = np.zeros(_WORDS, np.int64)
    keep_work(memory.ctypes.data, work)
    return memory


@pixel_kernel
def rewrite_all(address: Any, composed: Any, measured_once: Any) -> int:
    """Every rewrite of the work at ``address`` -> 1 where ``report`` is to be read: a kernel to be compiled (nothing is
    done), blurs."""
    work = _kept(address)
    program, report = work.program, work.report
    if len(work.records):
        _unpack(program, work.records, work.numbers)
    compact(program, work.neutral)
    longest, tables, blurs, unfilled = 1, 0, 0, 0
    for r in range(program.opcode.shape[0]):
        longest = max(longest, program.length[r])
        for k in range(program.length[r]):
            op = program.opcode[r, k]
            tables += op == Op.LUT or work.fills[op] != 0
            blurs += IS_BLUR[op]
            if work.fills[op] == NOT_COMPILED:
                unfilled = op
    report[LONGEST], report[TABLES], report[BLURS], report[UNFILLED] = longest, tables, blurs, unfilled
    if unfilled > 0:
        return 1
    rewrite_maps(program)
    build(program, work.emitted, work.luts, work.fills)
    merge_rows(program)
    compose(program, work.luts)
    assign(program, composed != 0, measured_once != 0, work.breaks)
    describe(program, work.breaks, program.passes)
    return 1 if blurs > 0 else 0


@inner_kernel()
def _unpack(program: Any, records: Any, numbers: Any) -> None:
    """One row from records: height, width, channels, id, key (two words), length; then the instructions."""
    for i in range(3):
        program.in_shape[0, i] = records[0, i]
    program.ids[0] = np.uint64(records[0, 3])
    program.key[0, 0], program.key[0, 1] = np.uint32(records[0, 4]), np.uint32(records[0, 5])
    program.length[0] = records[0, 6]
    for k in range(records[0, 6], program.opcode.shape[1]):
        program.opcode[0, k] = Op.NOP
    for k in range(records[0, 6]):
        record = records[k + 1]
        program.opcode[0, k], program.flags[0, k] = record[0], record[1]
        program.out_size[0, k, 0], program.out_size[0, k, 1], program.label[0, k] = record[2], record[3], record[4]
        for i in range(3):
            program.fill[0, k, i] = record[5 + i]
        for i in range(NUM_ARGS):
            program.args[0, k, i] = numbers[k + 1, RECORD - NUM_ARGS + i]
        for i in range(PASS_FIELDS):
            program.passes[0, k, i] = 0
        for i in range(4):
            program.window[0, k, i] = 0


def rewrite(work: Work, address: int, composed: bool, measured_once: bool) -> int:
    """``rewrite_all`` the work that is kept at ``address``, and compile what it needs."""
    while (has_news := rewrite_all(address, composed, measured_once)) and (op := work.report[UNFILLED]):
        compile_fill(op)
    return has_news


def rewrite_program(program: Program, composed: bool, measured_once: bool) -> Program:
    """Run all rewrites on a sampled program, which stays as it is."""
    own = {name: plain(getattr(program, name)).copy() for name in (*INSTRUCTION_ARRAYS, "length")}
    given = {name: plain(getattr(program, name)) for name in ("in_shape", "ids", "key")}
    rows, slots = program.opcode.shape
    luts = int(np.count_nonzero(IS_TABLE[program.opcode]))
    work = new_work(rows, slots, luts, program=program.arrays()._replace(**own, **given))
    work = work._replace(emitted=plain(program.tables.luts))
    memory = held_work(work)
    has_news = rewrite(work, memory.ctypes.data, composed, measured_once)
    report = work.report.tolist()
    longest, passes = report[LONGEST], int(work.program.num_passes.max(initial=1))
    arrays = {name: _cut(getattr(work.program, name), longest) for name in (*INSTRUCTION_ARRAYS, "window", "pass_of")}
    tables = replace(program.tables, luts=work.luts[: report[TABLES]], kernels=np.empty(0, np.int16))
    fused = program.replace(
        **arrays,
        length=work.program.length,
        num_passes=work.program.num_passes,
        passes=_cut(work.program.passes, passes),
        tables=tables,
        stage="fused",
    )
    if has_news:
        tables.kernels = blurs_to_kernels(fused)
    return fused


def _cut(array: npt.NDArray[Any], slots: int) -> npt.NDArray[Any]:
    """[R, slots, ...]"""
    return array if array.shape[1] == slots else np.ascontiguousarray(array[:, :slots])
