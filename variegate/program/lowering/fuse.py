"""Assign instructions to fused passes. A pass reads an image once and writes one once; fewer passes, less memory
traffic.

One pass is, in order: at most one *source* (a chain of maps, or a resample, or a neighbourhood filter), value
operations anywhere around a nearest chain, and last the operations that depend on position. What starts a new pass:

- a map after a resample, a filter, a table map or an operation that depends on position;
- nearest and interpolating maps in one chain; in ``exact`` mode any two interpolating maps;
- a real-valued map or a filter after value operations that are not per-channel (those before it, being LUTs, are
applied to
  what it reads);
- statistics, or a filter, unless only LUTs and one whole-pixel map come before it in the pass: there the histogram is
  taken of the source's window and remapped;
- a resample that is not first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.program.compiled import kernel
from variegate.program.coordinate_tables import moves_whole_pixels
from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.program import Program

_FIXED, _FLOAT, _PERSPECTIVE, _LUT, _CONTRAST = (
    int(op) for op in (Op.MAP_FIXED, Op.MAP_FLOAT, Op.MAP_PERSPECTIVE, Op.LUT, Op.CONTRAST)
)
_GEOMETRY, _RESAMPLE, _VALUE, _STATISTIC, _NEIGHBOURHOOD, _POSITION = (
    int(kind)
    for kind in (
        Kind.GEOMETRY,
        Kind.RESAMPLE,
        Kind.VALUE,
        Kind.STATISTIC,
        Kind.NEIGHBOURHOOD,
        Kind.POSITION,
    )
)

# What a pass reads through so far.
_DIRECT, _WHOLE, _CHAIN, _INTERPOLATING, _CLOSED = range(5)


def assign_passes(program: Program, composed: bool = True, contrast_first: bool = False) -> Program:
    """Set ``pass_of`` and ``num_passes``; a row without instructions still has the one pass that writes it out.

    ``contrast_first``: a CONTRAST must be the first statistic of its pass. Executors that measure a whole image before
    they know any table of the pass need it: levels counted can be sent through a table later, a sum of lumas cannot.
    """
    pass_of = np.full(program.opcode.shape, -1, np.int16)
    num_passes = np.ones(program.num_rows, np.int32)
    _assign(program.opcode, program.args, program.flags, program.length, composed, contrast_first, pass_of, num_passes)
    return program.replace(pass_of=pass_of, num_passes=num_passes, stage="fused")


@kernel
def _assign(
    opcode: Any,
    args: Any,
    flags: Any,
    length: Any,
    composed: Any,
    contrast_first: Any,
    pass_of: Any,
    num_passes: Any,
) -> None:
    for r in range(opcode.shape[0]):
        current, source, flag = 0, _DIRECT, 0
        is_empty, only_luts, has_position, has_statistic = True, True, False, False
        for k in range(length[r]):
            op = opcode[r, k]
            kind = KIND_OF[op]
            joins = True
            if kind == _GEOMETRY:
                joins = not has_position and _map_joins(op, args[r, k], flags[r, k], source, flag, only_luts, composed)
            elif kind == _STATISTIC or kind == _NEIGHBOURHOOD:
                joins = not has_position and only_luts and (source == _DIRECT or source == _WHOLE)
                joins = joins and not (contrast_first and has_statistic and op == _CONTRAST)
            elif kind == _RESAMPLE:
                joins = is_empty
            if not joins:
                current += 1
                source, is_empty, only_luts, has_position, has_statistic = _DIRECT, True, True, False, False
            pass_of[r, k] = current
            is_empty = False
            if kind == _GEOMETRY:
                source, flag = _source_of(op, args[r, k], flags[r, k], source), flags[r, k]
            elif kind == _RESAMPLE or kind == _NEIGHBOURHOOD:
                source = _CLOSED
            elif kind == _POSITION:
                has_position = True
            elif kind == _STATISTIC:
                has_statistic = True
            elif kind == _VALUE and op != _LUT:
                only_luts = False
        num_passes[r] = current + 1


@kernel
def _map_joins(op: Any, a: Any, flag: Any, source: Any, chain_flag: Any, only_luts: Any, composed: Any) -> bool:
    if op == _FIXED:
        return bool(source == _DIRECT or source == _WHOLE or source == _CHAIN)
    if op == _FLOAT or op == _PERSPECTIVE:
        if source == _INTERPOLATING and flag != 0:
            return bool(composed and flag == chain_flag)
        return bool(source == _DIRECT and only_luts)
    return bool(source == _DIRECT)


@kernel
def _source_of(op: Any, a: Any, flag: Any, source: Any) -> int:
    if op == _FIXED:
        return _WHOLE if source == _DIRECT and moves_whole_pixels(a) else _CHAIN
    if (op == _FLOAT or op == _PERSPECTIVE) and flag != 0:
        return _INTERPOLATING
    return _CLOSED
