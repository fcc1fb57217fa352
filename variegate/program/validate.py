"""What every Program must satisfy, whatever stage of lowering it is in. Tests call it after each rewrite."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program import passes as P
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.program import Program

_STAGES = ("sampled", "compact", "mapped", "tabled", "merged", "composed", "fused")
_TO_MAPS = {op for op, spec in SPECS.items() if spec.becomes is Op.MAP_FIXED}
_TO_TABLES = {op for op, spec in SPECS.items() if spec.becomes is not None} - _TO_MAPS


class InvalidProgram(AssertionError):
    """A rewrite (or a transform) left a program that no executor could run as meant."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidProgram(message)


def validate(program: Program) -> Program:
    """Raise InvalidProgram on the first broken rule; return the program, so that calls can be chained."""
    rows, slots = program.opcode.shape
    _require(program.stage in _STAGES, f"unknown stage {program.stage!r}")
    at = _STAGES.index(program.stage)
    for name, tail in (("args", (8,)), ("flags", ()), ("fill", (3,)), ("out_size", (2,)), ("label", ())):
        shape = getattr(program, name).shape
        _require(shape == (rows, slots, *tail), f"{name} has shape {shape}, not {(rows, slots, *tail)}")
    for name in ("length", "source", "in_shape", "ids", "key"):
        _require(len(getattr(program, name)) == rows, f"{name} does not have {rows} rows")
    _require(bool((program.in_shape > 0).all()), "an input image has no pixels")
    for r in range(rows):
        n = int(program.length[r])
        _require(0 <= n <= slots, f"row {r} holds {n} of {slots} instructions")
        _require(bool((program.opcode[r, n:] == Op.NOP).all()) or at == 0, f"row {r}: instructions after its length")
        for k in range(n):
            _check_instruction(program, r, k, at)
        if at == _STAGES.index("fused"):
            _check_passes(program, r)
    if program.blend is not None:
        _require(len(program.blend.weight) == rows, "the blend does not weigh every row")
    return program


def _check_instruction(program: Program, r: int, k: int, at: int) -> None:
    op = Op(int(program.opcode[r, k]))
    where = f"row {r} instruction {k} ({op.name})"
    _require(op in SPECS, f"{where}: not an instruction")
    _require(bool((program.out_size[r, k] > 0).all()), f"{where}: empty output {program.out_size[r, k]}")
    _require(bool(np.isfinite(program.args[r, k]).all()) or op is Op.ROTATE, f"{where}: arguments not finite")
    spec = SPECS[op]
    if spec.kind not in (Kind.GEOMETRY, Kind.RESAMPLE):
        before = program.out_size[r, k - 1] if k else program.in_shape[r, :2]
        _require(bool((before == program.out_size[r, k]).all()), f"{where}: changes the size")
    _require(op < Op.MAP_FIXED or at > 0, f"{where}: a primitive in a sampled program")
    _require(at < _STAGES.index("mapped") or op not in _TO_MAPS, f"{where}: should be a map by now")
    _require(at < _STAGES.index("tabled") or op not in _TO_TABLES, f"{where}: should be a table by now")
    first = int(program.args[r, k, 0]) if op is not Op.ROTATE else 0
    if op is Op.LUT:
        _require(0 <= first < len(program.tables.luts), f"{where}: LUT {first} does not exist")
    elif op is Op.COLOR_MATRIX:
        _require(0 <= first < len(program.tables.matrices), f"{where}: matrix {first} does not exist")
    elif op is Op.CONVOLVE:
        _require(0 <= first < len(program.tables.kernels), f"{where}: kernel {first} does not exist")
    elif op is Op.POINT:
        _require(0 <= first < len(program.tables.points), f"{where}: point function {first} does not exist")
    elif op is Op.ERASE:
        last = first + int(program.args[r, k, 1])
        _require(0 <= first <= last <= len(program.tables.rectangles), f"{where}: rectangles do not exist")


def _check_passes(program: Program, r: int) -> None:
    if program.pass_of is None or program.num_passes is None or program.window is None or program.passes is None:
        raise InvalidProgram("a fused program lacks pass_of, num_passes, passes or window")
    n = int(program.length[r])
    passes = program.pass_of[r, :n].astype(int)
    count = int(program.num_passes[r])
    _require(bool((program.pass_of[r, n:] == -1).all()), f"row {r}: unused slots belong to a pass")
    _require(count == (int(passes.max()) + 1 if n else 1), f"row {r}: says {count} passes, holds {passes}")
    _require(set(passes) == set(range(count)) if n else True, f"row {r}: a pass is empty: {passes}")
    _require(bool((np.diff(passes) >= 0).all()), f"row {r}: passes out of order: {passes}")
    for p in range(count):
        kinds = [SPECS[Op(int(op))].kind for op in program.opcode[r, :n][passes == p]]
        _require(Kind.RESAMPLE not in kinds[1:], f"row {r} pass {p}: a resample that is not first")
        sources = [kind for kind in kinds if kind in (Kind.RESAMPLE, Kind.NEIGHBOURHOOD)]
        _require(len(sources) <= 1, f"row {r} pass {p}: two filters")
        if Kind.POSITION in kinds:
            after = kinds[kinds.index(Kind.POSITION) :]
            _require(
                all(kind in (Kind.POSITION, Kind.VALUE) for kind in after),
                f"row {r} pass {p}: a map or statistic after an operation that depends on position",
            )
    for p in range(count):
        _check_plan(program, r, p, np.flatnonzero(passes == p))


def _check_plan(program: Program, r: int, p: int, slots: npt.NDArray[np.intp]) -> None:
    """The pass table says of pass ``p`` what its instructions are."""
    assert program.passes is not None
    plan, where = program.passes[r, p].tolist(), f"row {r} pass {p}"
    begin, end = plan[P.BEGIN], plan[P.END]
    _require(list(range(begin, end)) == slots.tolist(), f"{where}: {begin}..{end} by its table, {slots} by slots")
    _require(begin <= plan[P.FIRST] <= plan[P.MAPS_END] <= end, f"{where}: maps outside of the pass")
    _require(begin <= plan[P.VALUES] <= plan[P.POSITION] <= end, f"{where}: value operations outside of the pass")
    kinds = [SPECS[Op(int(op))].kind for op in program.opcode[r, begin:end]]
    needs = [kind for kind in kinds if kind is Kind.STATISTIC]
    _require(bool(plan[P.NEEDS]) == bool(needs), f"{where}: {len(needs)} statistics, which need {plan[P.NEEDS]}")
    source = P.PassSource(plan[P.SOURCE])
    counts = {kind: kinds.count(kind) for kind in (Kind.GEOMETRY, Kind.NEIGHBOURHOOD, Kind.RESAMPLE)}
    expected = {
        P.PassSource.DIRECT: not any(counts.values()),
        P.PassSource.FILTER: counts[Kind.NEIGHBOURHOOD] == 1,
        P.PassSource.RESAMPLE: counts[Kind.RESAMPLE] == 1,
    }.get(source, counts[Kind.GEOMETRY] >= 1)
    _require(expected, f"{where}: read as {source.name}, holds {kinds}")
    _require((plan[P.BREAK] == P.PassBreak.NONE) == (p == 0), f"{where}: no reason for a pass of its own")
