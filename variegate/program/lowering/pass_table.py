"""The pass table of a program whose passes are assigned: see ``program.passes``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program import passes as P
from variegate.program.compiled import kernel
from variegate.program.coordinate_tables import moves_whole_pixels, seen_by_statistics
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.program import Program

_GEOMETRY, _RESAMPLE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind) for kind in (Kind.GEOMETRY, Kind.RESAMPLE, Kind.STATISTIC, Kind.NEIGHBOURHOOD, Kind.POSITION)
)
_FIXED, _SCALE, _PAD, _CONTRAST = (int(op) for op in (Op.MAP_FIXED, Op.MAP_SCALE, Op.MAP_PAD, Op.CONTRAST))
_DIRECT, _STRETCH, _ONE_FIXED, _CHAIN, _TABLE, _INTERPOLATED, _FILTER, _RESIZE = (int(s) for s in P.PassSource)


def describe_passes(program: Program, breaks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """int32[R, P, PASS_FIELDS] of ``pass_of`` and ``num_passes``; zeros for passes that a row does not have.

    ``breaks[R, K]``: for the first instruction of a pass, why it is that, and the slot that it could not join.
    """
    table = np.zeros((program.num_rows, int(program.num_passes.max(initial=1)), P.PASS_FIELDS), np.int32)  # type: ignore[union-attr]
    _describe(
        program.opcode, program.args, program.out_size, program.window, program.pass_of, program.length,
        program.num_passes, program.in_shape, breaks, table,
    )  # fmt: skip
    return table


@kernel
def _describe(
    opcode: Any,
    args: Any,
    out_size: Any,
    window: Any,
    pass_of: Any,
    length: Any,
    num_passes: Any,
    in_shape: Any,
    breaks: Any,
    table: Any,
) -> None:
    for r in range(opcode.shape[0]):
        height, width, begin = in_shape[r, 0], in_shape[r, 1], 0
        for p in range(num_passes[r]):
            end = begin
            while end < length[r] and pass_of[r, end] == p:
                end += 1
            row = table[r, p]
            row[P.BEGIN], row[P.END], row[P.BREAKER] = begin, end, -1
            if p > 0:
                row[P.BREAK], row[P.BREAKER] = breaks[r, begin, 0], breaks[r, begin, 1]
            _describe_source(opcode[r], args[r], row)
            _describe_statistics(opcode[r], args[r], out_size[r], window[r], height, width, row)
            if end > begin:
                height, width = out_size[r, end - 1, 0], out_size[r, end - 1, 1]
            begin = end


@kernel
def _describe_source(op: Any, args: Any, row: Any) -> None:
    begin, end = row[P.BEGIN], row[P.END]
    source, first, maps_end, values, position = _DIRECT, begin, begin, begin, end
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == _NEIGHBOURHOOD:
            source, first, maps_end, values = _FILTER, k, k, k
        elif kind == _RESAMPLE:
            source, first, maps_end = _RESIZE, k, k
        elif kind == _GEOMETRY:
            maps_end = k + 1
            if source == _DIRECT:
                first = k
                source = _source_of_first(op[k], args[k])
                if source == _INTERPOLATED:
                    values = k
            elif source == _STRETCH or source == _ONE_FIXED:
                source = _CHAIN
        elif kind == _POSITION and position == end:
            position = k
    row[P.SOURCE], row[P.FIRST], row[P.MAPS_END] = source, first, maps_end
    row[P.VALUES], row[P.POSITION] = values, position


@kernel
def _source_of_first(op: Any, a: Any) -> int:
    if op == _SCALE or op == _PAD:
        return _TABLE
    if op != _FIXED:
        return _INTERPOLATED
    # A quarter turn moves whole pixels too, but its rows are columns of the source.
    return _STRETCH if moves_whole_pixels(a) and a[1] == 0.0 else _ONE_FIXED


@kernel
def _describe_statistics(op: Any, args: Any, out_size: Any, window: Any, height: Any, width: Any, row: Any) -> None:
    begin, end = row[P.BEGIN], row[P.END]
    row[P.STATISTICS], row[P.STATISTICS_END] = end, end
    map_slot, needs = -1, 0
    for k in range(begin, end):
        kind = KIND_OF[op[k]]
        if kind == _GEOMETRY:
            map_slot = k
        elif kind == _STATISTIC:
            if needs == 0:
                row[P.STATISTICS] = k
                top, left, bottom, right, outside = seen_by_statistics(args, out_size, window, map_slot, height, width)
                row[P.TOP], row[P.LEFT], row[P.BOTTOM], row[P.RIGHT], row[P.OUTSIDE] = top, left, bottom, right, outside
            needs |= P.NEEDS_LUMA if op[k] == _CONTRAST else P.NEEDS_COUNTS
            row[P.STATISTICS_END] = k + 1
    row[P.NEEDS] = needs
