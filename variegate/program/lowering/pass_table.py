"""The pass table of a program whose passes are assigned: see ``program.passes``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program import passes as P
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.coordinate_tables import moves_whole_pixels, seen_by_statistics
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import PassSource
from variegate.program.program import ProgramArrays


def describe_passes(program: ProgramArrays, breaks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """int32[R, P, PASS_FIELDS] of ``pass_of`` and ``num_passes``; zeros for passes that a row does not have.

    ``breaks[R, K]``: for the first instruction of a pass, why it is that, and the slot that it could not join.
    """
    table = np.zeros((len(program.opcode), int(program.num_passes.max(initial=1)), P.PASS_FIELDS), np.int32)
    describe(program, breaks, table)
    return table


@pixel_kernel
def describe(program: Any, breaks: Any, table: Any) -> None:
    for r in range(program.opcode.shape[0]):
        height, width, begin = program.in_shape[r, 0], program.in_shape[r, 1], 0
        for p in range(program.num_passes[r]):
            end = begin
            while end < program.length[r] and program.pass_of[r, end] == p:
                end += 1
            row = table[r, p]
            row[P.BEGIN], row[P.END], row[P.BREAKER] = begin, end, -1
            if p > 0:
                row[P.BREAK], row[P.BREAKER] = breaks[r, begin, 0], breaks[r, begin, 1]
            _describe_source(program.opcode[r], program.args[r], row)
            _describe_statistics(program, r, height, width, row)
            if end > begin:
                height, width = program.out_size[r, end - 1, 0], program.out_size[r, end - 1, 1]
            row[P.HEIGHT], row[P.WIDTH] = height, width
            begin = end


@inner_kernel()
def _describe_source(op: Any, args: Any, row: Any) -> None:
    begin, end = row[P.BEGIN], row[P.END]
    source, first, maps_end, values, position = PassSource.DIRECT, begin, begin, begin, end
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == Kind.NEIGHBOURHOOD:
            source, first, maps_end, values = PassSource.FILTER, k, k, k
        elif kind == Kind.RESAMPLE:
            source, first, maps_end = PassSource.RESAMPLE, k, k
        elif kind == Kind.GEOMETRY:
            maps_end = k + 1
            if source == PassSource.DIRECT:
                first = k
                source = _source_of_first(op[k], args[k])
                if source == PassSource.INTERPOLATED:
                    values = k
            elif source == PassSource.STRETCH or source == PassSource.FIXED:
                source = PassSource.CHAIN
        elif kind == Kind.POSITION and position == end:
            position = k
    row[P.SOURCE], row[P.FIRST], row[P.MAPS_END] = source, first, maps_end
    row[P.VALUES], row[P.POSITION] = values, position


@inner_kernel()
def _source_of_first(op: Any, a: Any) -> Any:
    if op == Op.MAP_SCALE or op == Op.MAP_PAD:
        return PassSource.TABLE
    if op != Op.MAP_FIXED:
        return PassSource.INTERPOLATED
    # A quarter turn moves whole pixels too, but its rows are columns of the source.
    return PassSource.STRETCH if moves_whole_pixels(a) and a[1] == 0.0 else PassSource.FIXED


@inner_kernel()
def _describe_statistics(program: Any, r: Any, height: Any, width: Any, row: Any) -> None:
    begin, end = row[P.BEGIN], row[P.END]
    row[P.STATISTICS], row[P.STATISTICS_END] = end, end
    map_slot = -1
    for k in range(begin, end):
        op = program.opcode[r, k]
        if KIND_OF[op] == Kind.GEOMETRY:
            map_slot = k
        elif KIND_OF[op] == Kind.STATISTIC:
            if row[P.NEEDS] == 0:
                row[P.STATISTICS] = k
                row[P.TOP], row[P.LEFT], row[P.BOTTOM], row[P.RIGHT], row[P.OUTSIDE] = seen_by_statistics(
                    program.args[r], program.out_size[r], program.window[r], map_slot, height, width
                )
            row[P.NEEDS] |= P.NEEDS_LUMA if op == Op.CONTRAST else P.NEEDS_COUNTS
            row[P.STATISTICS_END] = k + 1
