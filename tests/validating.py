"""Rules that every sampled and every fused program satisfies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from variegate.arrays import BoolArray, Float64Array, IntArray
from variegate.program import passes as P
from variegate.program.coords import MAX_UNIT, STEP_BITS
from variegate.program.ops import (
    KIND_OF,
    LAYER_PLANES,
    LIGHTNESSES,
    MAX_DISTANCE,
    MAX_ELEMENT,
    MAX_OPCODE,
    MAX_TILES,
    MAX_TIMES,
    MAX_ZOOMS,
    MEDIAN_SIZES,
    SPECS,
    Kind,
    LayerMode,
    Op,
)
from variegate.program.program import INSTRUCTION_ARRAYS, STAGES, Program

Refuse = Callable[[BoolArray, str], None]

_PRIMITIVE = np.arange(MAX_OPCODE) >= Op.MAP_FIXED


class InvalidProgram(AssertionError):
    """A rewrite (or a transform) left a program that no executor could run as meant."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidProgram(message)


_KEEPS_SIZE = ~np.isin(KIND_OF, (Kind.GEOMETRY, Kind.RESAMPLE))


def validate(program: Program) -> Program:
    """Raise InvalidProgram on the first broken rule; return the program, so that calls can be chained."""
    rows, slots = program.opcode.shape
    _require(program.stage in STAGES, f"unknown stage {program.stage!r}")
    tails = {"args": (8,), "fill": (3,), "out_size": (2,)}
    for name in INSTRUCTION_ARRAYS:
        shape = getattr(program, name).shape
        expected = (rows, slots, *tails.get(name, ()))
        _require(shape == expected, f"{name} has shape {shape}, not {expected}")
    for name in ("length", "source", "in_shape", "ids", "key"):
        _require(len(getattr(program, name)) == rows, f"{name} does not have {rows} rows")
    _require(bool((program.in_shape > 0).all()), "an input image has no pixels")
    for r, n in enumerate(program.length.tolist()):
        _require(0 <= n <= slots, f"row {r} holds {n} of {slots} instructions")
    used = np.arange(slots) < program.length[:, None]
    if program.stage == "fused":
        rest = np.flatnonzero(((program.opcode != Op.NOP) & ~used).any(axis=1))
        _require(not len(rest), f"row {rest[:1]}: instructions after its length")
    _check_instructions(program, used)
    if program.stage == "fused":
        _check_passes(program, used)
    if (blend := program.blend) is not None:
        entries = rows if blend.row is None else len(blend.row)
        _require(len(blend.weight) == len(blend.target) == entries, "the blend does not weigh every row")
        _require(blend.row is None or bool(((blend.row >= 0) & (blend.row < rows)).all()), "the blend names no row")
    return program


def _check_instructions(program: Program, used: BoolArray) -> None:
    opcode = np.where(used, program.opcode, Op.HFLIP)
    args = program.args
    first = args[..., 0]

    def refuse(broken: BoolArray, message: str) -> None:
        if (broken & used).any():
            r, k = np.argwhere(broken & used)[0]
            op = int(opcode[r, k])
            name = Op(op).name if op in SPECS else op
            raise InvalidProgram(f"row {r} instruction {k} ({name}): {message.format(first=first[r, k])}")

    sizes = np.concatenate([program.in_shape[:, None, :2], program.out_size], axis=1)
    refuse(KIND_OF.take(opcode, mode="clip") < 0, "not an instruction")
    empty = (program.out_size <= 0).any(axis=2)
    resized = (sizes[:, 1:] != sizes[:, :-1]).any(axis=2)
    refuse(np.asarray(empty), "empty output")
    refuse(~np.isfinite(args).all(axis=2) & (opcode != Op.ROTATE), "arguments not finite")
    refuse(resized & _KEEPS_SIZE[opcode], "changes the size")
    if program.stage == "sampled":
        refuse(_PRIMITIVE[opcode], "a primitive in a sampled program")
    else:
        maps = [op for op, spec in SPECS.items() if spec.lowered_to is Op.MAP_FIXED]
        # Deep images have no tables.
        kept = (None, Op.LUT) if program.depth.is_deep else (None,)
        others = [op for op, spec in SPECS.items() if spec.lowered_to not in kept and op not in maps]
        refuse(np.isin(opcode, maps), "should be a map by now")
        refuse(np.isin(opcode, others), "should be a table by now")
    tables = program.tables
    for op, name, table in (
        (Op.LUT, "LUT", tables.curves if program.stage == "sampled" or program.depth.is_deep else tables.luts),
        (Op.COLOR_MATRIX, "matrix", tables.matrices),
        (Op.PIXEL_FUNCTION, "pixel function", tables.pixel_functions),
    ):
        refuse((opcode == op) & ((first < 0) | (first >= len(table))), f"{name} {{first:.0f}} does not exist")
    end = first + args[..., 1] * args[..., 2] * args[..., 3]
    refuse(
        (opcode == Op.CONVOLVE_FLOAT) & ((first < 0) | (end > len(tables.filters))), "weights {first:.0f} do not exist"
    )
    refuse((opcode == Op.MEDIAN) & ~np.isin(first, MEDIAN_SIZES), "no window of {first:.0f}")
    tiles = args[..., 1:3]
    refuse((opcode == Op.CLAHE) & ((tiles < 1) | (tiles > MAX_TILES)).any(axis=2), "too many or too few tiles")
    _check_filters(opcode, args, refuse)
    is_separable = args[..., 3] != 0.0
    more = args[..., 6]
    end = first + np.where(is_separable, 2, 3 * (1 + more)) * args[..., 4]
    refuse(
        (opcode == Op.CONVOLVE_FIXED) & ((first < 0) | (end > len(tables.kernels))), "kernel {first:.0f} does not exist"
    )
    _check_grids(opcode, args, program, refuse)
    beyond = (first < 0) | (args[..., 1] < 0) | (first + args[..., 1] > len(tables.rectangles))
    refuse((opcode == Op.ERASE) & beyond, "rectangles do not exist")
    planes, mode = np.divmod(program.flags, LAYER_PLANES)
    size = np.where(mode == LayerMode.CURVE, 4 * LIGHTNESSES, planes * args[..., 1] * args[..., 2])
    beyond = (first < 0) | (2 * first + size > 2 * len(tables.grids))
    refuse((opcode == Op.OVERLAY) & beyond, "layer {first:.0f} does not exist")


def _check_filters(opcode: IntArray, args: Float64Array, refuse: Refuse) -> None:
    first = args[..., 0]
    second = args[..., 1]
    refuse((opcode == Op.JPEG) & ((first < 1) | (first > 100)), "no such quality")
    wrong = (args[..., :2] < 1).any(axis=2) | (args[..., :2] > MAX_ELEMENT).any(axis=2)
    refuse((opcode == Op.MORPHOLOGY) & wrong, "no element of that size")
    refuse((opcode == Op.ZOOM_BLUR) & ((first < 0) | (first > MAX_ZOOMS) | (second < 0)), "no such zooms")
    wrong = (first < 0) | (first > MAX_DISTANCE) | (second < 0) | (second > MAX_TIMES)
    refuse((opcode == Op.SCATTER) & wrong, "no such distance or times")


def _check_grids(opcode: IntArray, args: Float64Array, program: Program, refuse: Refuse) -> None:
    is_grid = np.isin(opcode, (Op.DISPLACE, Op.MAP_GRID))
    first = args[..., 0]
    if not is_grid.any():
        return
    beyond = (first < 0) | (first + 2 * args[..., 1] * args[..., 2] > len(program.tables.grids))
    refuse(is_grid & beyond, "grid {first:.0f} does not exist")
    # The cell of the last pixel has a node behind it.
    steps = args[..., 4:6]
    nodes = np.floor((program.out_size - 1) * steps / (1 << STEP_BITS)) + 2
    refuse(is_grid & (nodes > args[..., 1:3]).any(axis=2), "the grid ends inside of the image")
    wrong = (steps < 0).any(axis=2) | (steps > 1 << STEP_BITS).any(axis=2)
    wrong |= (args[..., 6] < -MAX_UNIT) | (args[..., 6] > MAX_UNIT)
    refuse(is_grid & wrong, "a grid of unknown steps or units")


def _check_passes(program: Program, used: BoolArray) -> None:
    if program.pass_of is None or program.num_passes is None or program.window is None or program.passes is None:
        raise InvalidProgram("a fused program lacks pass_of, num_passes, passes or window")
    for r, n in enumerate(program.length.tolist()):
        passes = program.pass_of[r, :n]
        count = int(program.num_passes[r])
        _require(bool((program.pass_of[r, n:] == -1).all()), f"row {r}: unused slots belong to a pass")
        _require(count == (int(passes.max()) + 1 if n else 1), f"row {r}: says {count} passes, holds {passes}")
        _require(bool((np.diff(passes) >= 0).all()), f"row {r}: passes out of order: {passes}")
        begin = 0
        for p in range(count):
            end = begin + int((passes == p).sum())
            _require(end > begin or n == 0, f"row {r}: a pass is empty: {passes}")
            kinds = [Kind(kind) for kind in KIND_OF[program.opcode[r, begin:end]]]
            _check_pass(kinds, program.passes[r, p].tolist(), (begin, end), f"row {r} pass {p}")
            _require((program.passes[r, p, P.BREAK] != P.PassBreak.NONE) == (p > 0), f"row {r} pass {p}: no reason")
            begin = end


def _check_pass(kinds: list[Kind], row: list[int], slots: tuple[int, int], where: str) -> None:
    """Instructions of these kinds may be one pass, and its ``row`` of the pass table says what they are."""
    counts = {kind: kinds.count(kind) for kind in Kind}
    _require(Kind.RESAMPLE not in kinds[1 + counts[Kind.CODEC] :], f"{where}: a resample that is not first")
    _require(counts[Kind.RESAMPLE] + counts[Kind.NEIGHBORHOOD] <= 1, f"{where}: two filters")
    if Kind.POSITION in kinds:
        _require(
            set(kinds[kinds.index(Kind.POSITION) :]) <= {Kind.POSITION, Kind.VALUE},
            f"{where}: a map or statistic after an operation that depends on position",
        )
    _require(Kind.CODEC not in kinds[1:], f"{where}: a JPEG that is not first")
    codecs = counts[Kind.CODEC]
    _require((row[P.QUALITY] > 0) == (codecs == 1), f"{where}: {codecs} JPEGs, of quality {row[P.QUALITY]}")
    begin = row[P.BEGIN]
    end = row[P.END]
    by_slots = slots[0] + codecs, slots[1]
    _require((begin, end) == by_slots, f"{where}: {begin}..{end} by its table, {by_slots[0]}..{by_slots[1]} by slots")
    _require(begin <= row[P.FIRST] <= row[P.MAPS_END] <= end, f"{where}: maps outside of the pass")
    _require(begin <= row[P.VALUES] <= row[P.POSITION] <= end, f"{where}: value operations outside of the pass")
    statistics = counts[Kind.STATISTIC]
    _require(bool(row[P.NEEDS]) == (statistics > 0), f"{where}: {statistics} statistics, which need {row[P.NEEDS]}")
    source = P.PassSource(row[P.SOURCE])
    expected = {
        P.PassSource.DIRECT: not counts[Kind.GEOMETRY] + counts[Kind.NEIGHBORHOOD] + counts[Kind.RESAMPLE],
        P.PassSource.FILTER: counts[Kind.NEIGHBORHOOD] == 1,
        P.PassSource.RESAMPLE: counts[Kind.RESAMPLE] == 1,
    }.get(source, counts[Kind.GEOMETRY] >= 1)
    _require(expected, f"{where}: read as {source.name}, holds {kinds}")
