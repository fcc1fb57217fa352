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
- a resample that is not first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import kernel
from variegate.program.coordinate_tables import moves_whole_pixels
from variegate.program.lowering.pass_table import describe_passes
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.passes import PassBreak
from variegate.program.program import Program

_FIXED, _FLOAT, _PERSPECTIVE, _LUT, _CONTRAST = (
    int(op) for op in (Op.MAP_FIXED, Op.MAP_FLOAT, Op.MAP_PERSPECTIVE, Op.LUT, Op.CONTRAST)
)
_GEOMETRY, _RESAMPLE, _VALUE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind)
    for kind in (
        *(Kind.GEOMETRY, Kind.RESAMPLE, Kind.VALUE, Kind.STATISTIC, Kind.NEIGHBOURHOOD),
        Kind.POSITION,
    )
)
(
    _AFTER_POSITION,
    _AFTER_SOURCE,
    _ANOTHER_KIND,
    _STAGE_BY_STAGE,
    _AFTER_VALUES,
    _NEW_IMAGE,
    _MEASURED_BEFORE,
    _FILTER_NEW_IMAGE,
    _RESAMPLE_NOT_FIRST,
) = (int(reason) for reason in list(PassBreak)[1:])

# What a pass reads through so far.
_DIRECT, _WHOLE, _CHAIN, _INTERPOLATING, _CLOSED = range(5)


def assign_passes(program: Program, composed: bool = True, measured_once: bool = False) -> Program:
    """Set ``pass_of``, ``num_passes`` and ``passes``; a row without instructions still has the one pass that writes it.

    ``measured_once``: all statistics of a pass are measured at once, before any of its tables is known. So they must
    see the same image, and a CONTRAST must be the first of them: levels counted can be sent through a table later, a
    sum of lumas cannot.
    """
    pass_of = np.full(program.opcode.shape, -1, np.int16)
    num_passes = np.ones(program.num_rows, np.int32)
    # Why, and after which slot, the pass of an instruction begins with it.
    breaks = np.zeros((*program.opcode.shape, 2), np.int32)
    _assign(
        program.opcode,
        program.args,
        program.flags,
        program.length,
        composed,
        measured_once,
        pass_of,
        num_passes,
        breaks,
    )
    fused = program.replace(pass_of=pass_of, num_passes=num_passes, stage="fused")
    return fused.replace(passes=describe_passes(fused, breaks))


@kernel
def _assign(
    opcode: Any,
    args: Any,
    flags: Any,
    length: Any,
    composed: Any,
    measured_once: Any,
    pass_of: Any,
    num_passes: Any,
    breaks: Any,
) -> None:
    for r in range(opcode.shape[0]):
        current, source, flag = 0, _DIRECT, 0
        # Slots of this pass, -1 for none: the last map (or filter, or resample), the last value operation that is no
        # LUT, the last operation on positions, and the first statistic.
        at_source, at_values, at_position, at_statistic = -1, -1, -1, -1
        begin = 0
        for k in range(length[r]):
            op = opcode[r, k]
            kind = KIND_OF[op]
            reason, breaker = 0, -1
            if kind == _GEOMETRY:
                if at_position >= 0:
                    reason, breaker = _AFTER_POSITION, at_position
                else:
                    reason = _map_break(op, flags[r, k], source, flag, at_values < 0, composed)
                    breaker = at_values if reason == _AFTER_VALUES else at_source
            elif kind == _STATISTIC or kind == _NEIGHBOURHOOD:
                if at_position >= 0 or at_values >= 0 or (source != _DIRECT and source != _WHOLE):
                    reason = _NEW_IMAGE if kind == _STATISTIC else _FILTER_NEW_IMAGE
                    breaker = at_position if at_position >= 0 else (at_values if at_values >= 0 else at_source)
                elif (
                    measured_once
                    and kind == _STATISTIC
                    and at_statistic >= 0
                    and (op == _CONTRAST or at_source > at_statistic)
                ):
                    reason, breaker = _MEASURED_BEFORE, at_statistic
            elif kind == _RESAMPLE and k > begin:
                reason, breaker = _RESAMPLE_NOT_FIRST, k - 1
            if reason != 0:
                current += 1
                source, at_source, at_values, at_position, at_statistic = _DIRECT, -1, -1, -1, -1
                begin = k
                breaks[r, k, 0], breaks[r, k, 1] = reason, breaker
            pass_of[r, k] = current
            if kind == _GEOMETRY:
                source, flag = _source_of(op, args[r, k], flags[r, k], source), flags[r, k]
                at_source = k
            elif kind == _RESAMPLE or kind == _NEIGHBOURHOOD:
                source, at_source = _CLOSED, k
            elif kind == _POSITION:
                at_position = k
            elif kind == _STATISTIC and at_statistic < 0:
                at_statistic = k
            elif kind == _VALUE and op != _LUT:
                at_values = k
        num_passes[r] = current + 1


@kernel
def _map_break(op: Any, flag: Any, source: Any, chain_flag: Any, only_luts: Any, composed: Any) -> int:
    """Why a map cannot join what the pass reads through; 0 where it can."""
    if op == _FIXED:
        if source == _INTERPOLATING:
            return _ANOTHER_KIND
        return 0 if source != _CLOSED else _AFTER_SOURCE
    if op == _FLOAT or op == _PERSPECTIVE:
        if source == _INTERPOLATING and flag != 0:
            if flag != chain_flag:
                return _ANOTHER_KIND
            return 0 if composed else _STAGE_BY_STAGE
        if source == _DIRECT:
            return 0 if only_luts else _AFTER_VALUES
        return _AFTER_SOURCE if source == _CLOSED else _ANOTHER_KIND
    return 0 if source == _DIRECT else _AFTER_SOURCE


@kernel
def _source_of(op: Any, a: Any, flag: Any, source: Any) -> int:
    if op == _FIXED:
        return _WHOLE if source == _DIRECT and moves_whole_pixels(a) else _CHAIN
    if (op == _FLOAT or op == _PERSPECTIVE) and flag != 0:
        return _INTERPOLATING
    return _CLOSED
