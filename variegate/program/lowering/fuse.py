"""Assign instructions to fused passes. A pass reads an image once and writes one once; fewer passes, less memory
traffic.

One pass is, in order: at most one *source* (a chain of maps, or a resample, or a neighbourhood filter), value
operations anywhere around a nearest chain, and last the operations that depend on position. What starts a new pass
(``passes.PassBreak`` names each):

- a map after a resample, a filter, a table map or an operation that depends on position;
- nearest and interpolating maps in one chain; in ``exact`` mode any two interpolating maps;
- a real-valued map or a filter after value operations that are not per-channel (those before it, being LUTs, are
  applied to what it reads);
- statistics, or a filter, unless only LUTs and one whole-pixel map come before it in the pass: there the histogram is
  taken of the source's window and remapped;
- a resample that is not first;
- a JPEG, which the image goes through before the pass reads it;
- with ``measured_once``, as on a GPU: statistics that see another image than those before them in the pass, and a
  contrast after other statistics.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from variegate.program import passes as P
from variegate.program.compiled import inner_kernel, pixel_kernel
from variegate.program.ops import INTERPOLATION_MASK, IS_REAL_MAP, KIND_OF, Interpolation, Kind, Op
from variegate.program.passes import PassBreak, PassSource
from variegate.program.places import moves_whole_pixels, seen_by_statistics


@pixel_kernel
def describe(program: Any, breaks: Any, table: Any) -> None:
    """Write the pass table. ``breaks[R, K]``: why a pass begins with an instruction, and the slot that the instruction
    could not join."""
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
            if end > begin and KIND_OF[program.opcode[r, begin]] == Kind.CODEC:
                row[P.QUALITY], row[P.BEGIN] = int(program.args[r, begin, 0]), begin + 1
            _describe_source(program.opcode[r], program.args[r], program.flags[r], row)
            _describe_statistics(program, r, height, width, row)
            if end > begin:
                height, width = program.out_size[r, end - 1, 0], program.out_size[r, end - 1, 1]
            row[P.HEIGHT], row[P.WIDTH] = height, width
            begin = end


@inner_kernel()
def _describe_source(op: Any, args: Any, flags: Any, row: Any) -> None:
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
            if op[k] == Op.MAP_FIXED and flags[k] > INTERPOLATION_MASK:
                source = PassSource.FOLDED
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


@pixel_kernel
def describe_filter_input(opcode: Any, args: Any, plan: Any, out: Any) -> None:
    """Describe what comes before the filter of the pass ``plan`` as a pass of its own: tables, and at most one map.

    ``opcode``, ``args``: of the row; ``out``: a row of the pass table, cleared.
    """
    begin, end = plan[P.BEGIN], plan[P.FIRST]
    out[P.SOURCE], out[P.FIRST], out[P.MAPS_END] = PassSource.DIRECT, begin, begin
    for k in range(begin, end):
        if KIND_OF[opcode[k]] == Kind.GEOMETRY:
            out[P.SOURCE], out[P.FIRST], out[P.MAPS_END] = _source_of_first(opcode[k], args[k]), k, k + 1
    out[P.BEGIN], out[P.VALUES] = begin, begin
    out[P.END], out[P.POSITION], out[P.STATISTICS], out[P.STATISTICS_END] = end, end, end, end


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


class _Source(IntEnum):
    """Maps that a pass reads through so far."""

    DIRECT = 0
    WHOLE = 1  # one map that moves whole pixels
    CHAIN = 2  # other nearest maps in fixed point
    INTERPOLATING = 3
    CLOSED = 4  # what no map can join


@pixel_kernel
def assign(program: Any, composed: Any, measured_once: Any, breaks: Any) -> None:
    """Set ``pass_of`` and ``num_passes``; rows without instructions have one pass. ``measured_once``: statistics of a
    pass are measured together, of one image, a CONTRAST first: its sum knows no table."""
    for r in range(program.opcode.shape[0]):
        current, source, flag = 0, _Source.DIRECT, 0
        # Slots of this pass, -1 for none: the last map (or filter, or resample), the last value operation that is no
        # LUT, the last operation on positions, and the first statistic.
        at_source, at_values, at_position, at_statistic = -1, -1, -1, -1
        begin = 0
        for k in range(program.length[r]):
            op = program.opcode[r, k]
            kind = KIND_OF[op]
            reason, breaker = PassBreak.NONE, -1
            if kind == Kind.GEOMETRY:
                if at_position >= 0:
                    reason, breaker = PassBreak.MAP_AFTER_POSITION, at_position
                else:
                    reason = _map_break(
                        op, program.flags[r, k] & INTERPOLATION_MASK, source, flag, at_values < 0, composed
                    )
                    breaker = at_values if reason == PassBreak.MAP_AFTER_VALUES else at_source
            elif kind == Kind.STATISTIC or kind == Kind.NEIGHBOURHOOD:
                if at_position >= 0 or at_values >= 0 or (source != _Source.DIRECT and source != _Source.WHOLE):
                    is_filter = kind == Kind.NEIGHBOURHOOD
                    reason = PassBreak.FILTER_OF_NEW_IMAGE if is_filter else PassBreak.STATISTIC_OF_NEW_IMAGE
                    breaker = at_position if at_position >= 0 else (at_values if at_values >= 0 else at_source)
                elif kind == Kind.STATISTIC and _needs_pixels_again(op, at_source, at_statistic, measured_once):
                    reason, breaker = PassBreak.STATISTIC_MEASURED_BEFORE, at_statistic
            elif kind == Kind.RESAMPLE and k > begin:
                reason, breaker = PassBreak.RESAMPLE_NOT_FIRST, k - 1
            elif kind == Kind.CODEC and k > 0:
                reason, breaker = PassBreak.CODEC, k - 1
            if reason != PassBreak.NONE:
                current += 1
                source, at_source, at_values, at_position, at_statistic = _Source.DIRECT, -1, -1, -1, -1
                begin = k
                breaks[r, k, 0], breaks[r, k, 1] = reason, breaker
            program.pass_of[r, k] = current
            if kind == Kind.GEOMETRY:
                flag, folds = program.flags[r, k] & INTERPOLATION_MASK, program.flags[r, k] > INTERPOLATION_MASK
                source, at_source = _source_of(op, program.args[r, k], flag, folds, source), k
            elif kind == Kind.RESAMPLE or kind == Kind.NEIGHBOURHOOD:
                source, at_source = _Source.CLOSED, k
            elif kind == Kind.CODEC:
                begin = k + 1
            elif kind == Kind.POSITION:
                at_position = k
            elif kind == Kind.STATISTIC and at_statistic < 0:
                at_statistic = k
            elif kind == Kind.VALUE and op != Op.LUT:
                at_values = k
        for k in range(program.length[r], program.opcode.shape[1]):
            program.pass_of[r, k] = -1
        program.num_passes[r] = current + 1


@inner_kernel()
def _needs_pixels_again(op: Any, at_source: Any, at_statistic: Any, measured_once: Any) -> bool:
    """True if what was measured for the first statistic of the pass does not serve this one."""
    return bool(measured_once and at_statistic >= 0 and (op == Op.CONTRAST or at_source > at_statistic))


@inner_kernel()
def _map_break(op: Any, flag: Any, source: Any, chain_flag: Any, only_luts: Any, composed: Any) -> Any:
    """Why a map cannot join what the pass reads through."""
    if source == _Source.CLOSED:
        return PassBreak.MAP_AFTER_SOURCE
    if op == Op.MAP_FIXED:
        return PassBreak.MAP_OF_ANOTHER_KIND if source == _Source.INTERPOLATING else PassBreak.NONE
    if IS_REAL_MAP[op]:
        if source == _Source.DIRECT:
            return PassBreak.NONE if only_luts else PassBreak.MAP_AFTER_VALUES
        if source == _Source.INTERPOLATING and flag == chain_flag:
            return PassBreak.NONE if composed else PassBreak.MAP_STAGE_BY_STAGE
        return PassBreak.MAP_OF_ANOTHER_KIND
    return PassBreak.NONE if source == _Source.DIRECT else PassBreak.MAP_AFTER_SOURCE


@inner_kernel()
def _source_of(op: Any, a: Any, flag: Any, folds: Any, source: Any) -> Any:
    if op == Op.MAP_FIXED:
        is_whole = source == _Source.DIRECT and moves_whole_pixels(a) and not folds
        return _Source.WHOLE if is_whole else _Source.CHAIN
    return _Source.INTERPOLATING if IS_REAL_MAP[op] and flag != Interpolation.NEAREST else _Source.CLOSED
