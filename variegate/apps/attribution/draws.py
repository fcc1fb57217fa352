"""Draws of a training, sampled again in bulk: the operations of each, and their strengths in bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.augmenter.planner import Planner, Request, num_partners
from variegate.program.ops import SPECS, Op
from variegate.program.program import Program

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]

_BATCH = 4096
# Arguments that say how strong an operation is, where the first one does not.
_TELLING = ("magnitude", "sigma_x", "sigma", "displacement")
# What leaves an image as it is, where the instruction set has no such argument.
_NEUTRAL = {Op.JPEG: 100.0, Op.RESIZED_CROP: 1.0}
# Values of an operation that has so few are bins of their own.
_BINS = {1: ("",), 2: ("low", "high"), 3: ("low", "middle", "high")}
_LEAST_SIGNED = 0.05


class Samples(NamedTuple):
    """N samples: ids uint64, shapes int32[N, 3], classes int64."""

    ids: npt.NDArray[np.uint64]
    shapes: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int64]


class Operations:
    """Operations of M draws: in each of L places the draw, the operation (of ``names``), and its argument.

    ``neutral``: the arguments at which operations change nothing. ``mixed``: bool[M], images mixed with others.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.neutral: list[float] = []
        self._found: list[tuple[Ints, Ints, Floats]] = []
        self._mixed: list[Ints] = []

    def add(self, program: Program, draws: Ints) -> None:
        """Of a sampled program whose images are these draws. What is done to partners does not count."""
        used = np.arange(program.opcode.shape[1]) < program.length[:, None]
        if program.mixture is not None and program.blend is not None:
            blend, is_own = program.blend, np.zeros(program.num_rows, np.bool_)
            row = np.arange(len(blend.target)) if blend.row is None else blend.row
            is_own[row[blend.target == program.source[row]]] = True
            used &= is_own[:, None]
            names = np.array([name or "" for name in program.mixture.names])
            for name in set(names.tolist()) - {""}:
                own = np.flatnonzero(names == name)
                self._add(name, 0.0, draws[own], 1.0 - program.mixture.shares[own, 0].astype(np.float64))
                self._mixed.append(draws[own])
        rows, slots = np.nonzero(used & (program.opcode != Op.NOP))
        opcode, label = program.opcode[rows, slots].astype(np.int64), program.label[rows, slots]
        kinds = opcode * 2**16 + label + 1
        for kind in np.unique(kinds).tolist():
            own = kinds == kind
            op, number = Op(kind >> 16), (kind & 0xFFFF) - 1
            name = SPECS[op].name if number < 0 else program.names[number]
            values = _arguments(program, op, number >= 0, rows[own], slots[own])
            self._add(name, _neutral(op), draws[program.source[rows[own]]], values)

    def _add(self, name: str, neutral: float, draws: Ints, values: Floats) -> None:
        if name not in self.names:
            self.names.append(name)
            self.neutral.append(neutral)
        self._found.append((draws, np.full(len(draws), self.names.index(name)), values))

    def sorted(self) -> tuple[Ints, Ints, Floats]:
        """Draws, operations and arguments, in the order of the draws."""
        if not self._found:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        draws, operations, values = (np.concatenate(each) for each in zip(*self._found, strict=True))
        order = np.argsort(draws, kind="stable")
        return draws[order], operations[order], values[order]

    def mixed(self, number: int) -> npt.NDArray[np.bool_]:
        found = np.zeros(number, np.bool_)
        found[np.concatenate(self._mixed or [np.empty(0, np.int64)])] = True
        return found


def sample_again(
    planner: Planner,
    samples: Samples,
    places: npt.NDArray[np.int64],
    epochs: Sequence[int],
    conditions: Callable[[int], Callable[[Any], Mapping[str, Any]]],
) -> Operations:
    """Operations of the draws that ``places``, int64[N, epochs, copies], numbers from 0 on; -1 for none.

    ``conditions``: epoch -> ids -> values by name, as of ``vg.Loader``. Images are mixed with others than they were, by
    the same shares.
    """
    found, partners = Operations(), "batch" if num_partners(planner.transform) else None
    for number, epoch in enumerate(epochs):
        given = conditions(epoch)
        for copy in range(places.shape[2]):
            every = np.flatnonzero(places[:, number, copy] >= 0)
            for part in np.split(every, range(_BATCH, len(every), _BATCH)):
                ids, draws = samples.ids[part], places[part, number, copy]
                values = {"label": samples.labels[part], **given(ids)}
                call = Request(ids, epoch, copy, values, partners)
                found.add(planner.program(samples.shapes[part], call), draws)
    return found


def _neutral(op: Op) -> float:
    neutral = _NEUTRAL.get(op, SPECS[op].neutral)
    return float(neutral[0] if isinstance(neutral, tuple) else neutral or 0.0)


def _arguments(program: Program, op: Op, is_named: bool, rows: Ints, slots: Ints) -> Floats:
    """Strengths in the unit of the argument: shares of the area for resized crops and erasing, pixels of a shift for
    crops, pixels that corners move for maps; NaN for operations without any."""
    args, spec = program.args[rows, slots], SPECS[op]
    names = spec.labelled_args if is_named and spec.labelled_args is not None else spec.args
    before = program.out_size[rows, np.maximum(slots - 1, 0)]
    before = np.where(slots[:, None] > 0, before, program.in_shape[rows, :2]).astype(np.float64)
    area = before.prod(1)
    if op is Op.ERASE:
        sums = np.append(0, np.cumsum(program.tables.rectangles[:, 2:].astype(np.float64).prod(1)))
        first = args[:, 0].astype(np.int64)
        return np.asarray((sums[first + args[:, 1].astype(np.int64)] - sums[first]) / area, np.float64)
    if op is Op.RESIZED_CROP:
        return np.asarray(args[:, 2:4].prod(1) / area, np.float64)
    if op is Op.CROP:
        return np.hypot(*(args[:, :2] - (before - args[:, 2:4]) / 2).T)
    if op in (Op.AFFINE, Op.PERSPECTIVE) and names[0] == "a":
        return _corners_moved(args, program.out_size[rows, slots], is_projective=op is Op.PERSPECTIVE)
    told = next((name for name in (*_TELLING, *names) if name in names and not name.startswith("_")), None)
    has_strength = told is not None and op not in (Op.PAD, Op.PERMUTE)
    return args[:, names.index(told)] if has_strength and told else np.full(len(args), np.nan)


def _corners_moved(args: Floats, size: npt.NDArray[np.int32], is_projective: bool) -> Floats:
    """Mean distance between a corner of the output and the place of the input that it shows, in pixels."""
    height, width = size.T.astype(np.float64)
    x, y = np.stack([0 * width, width, width, 0 * width]), np.stack([0 * height, 0 * height, height, height])
    a, b, c, d, e, f, g, h = args.T[:, None]
    scale = g * x + h * y + 1 if is_projective else np.ones_like(x)
    with np.errstate(divide="ignore", invalid="ignore"):  # of corners that show the horizon
        moved = np.hypot((a * x + b * y + c) / scale - x, (d * x + e * y + f) / scale - y)
    return np.asarray(np.nan_to_num(moved, posinf=0.0).mean(0), np.float64)


class Bin(NamedTuple):
    """Draws of an operation at like strength; ``strength``: "" where there is one, else such as "-high". ``low``,
    ``high``: of the argument, NaN where it has none."""

    operation: int
    strength: str
    low: float
    high: float


def once(draws: Ints, columns: Ints, number: int) -> tuple[Ints, Ints]:
    """Each pair of a draw and one of ``number`` columns once, in order."""
    pairs = np.unique(draws * number + columns)
    return pairs // number, pairs % number


def binned(found: Operations) -> tuple[Ints, Ints, list[Bin]]:
    """Draws, columns [L] and what each column stands for: thirds of an operation's draws by the distance of its
    argument from the neutral one, apart for both signs where both are drawn."""
    draws, operations, values = found.sorted()
    columns, bins = np.zeros(len(draws), np.int64), list[Bin]()
    for number, neutral in enumerate(found.neutral):
        own = np.flatnonzero(operations == number)
        distance = np.nan_to_num(values[own] - neutral)
        is_signed = min((distance < 0).mean(), (distance > 0).mean()) >= _LEAST_SIGNED
        sign = np.where(distance < 0, -1, 1) * is_signed
        for each in np.unique(sign).tolist():
            signed = own[sign == each]
            size = np.abs(distance[sign == each])
            edges = np.unique(size)
            edges = edges if len(edges) <= 3 else np.unique(np.quantile(size, [1 / 3, 2 / 3]))
            edges = edges[edges > size.min()]
            which = np.searchsorted(edges, size, side="right")
            for place, word in enumerate(_BINS[len(edges) + 1]):
                inside = signed[which == place]
                if len(inside):
                    columns[inside] = len(bins)
                    ends = values[inside].min(), values[inside].max()
                    bins.append(Bin(number, ("", "+", "-")[each] + word, *map(float, ends)))
    return draws, columns, bins
