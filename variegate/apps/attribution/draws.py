"""Draws of a training, sampled again in bulk: the operations of each, and their arguments in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.attribution.regression import Floats, Ints
from variegate.augmenter.planner import Planner, Request, num_partners
from variegate.program.ops import SPECS, Op
from variegate.program.program import Program

_BATCH, _BINS = 4096, 4
# Arguments that say how strong an operation is, where the first one does not.
_TELLING = ("sigma_x", "sigma")


class Samples(NamedTuple):
    """N samples: ids uint64, shapes int32[N, 3], classes int64."""

    ids: npt.NDArray[np.uint64]
    shapes: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int64]


class Operations(NamedTuple):
    """Operations of M draws: in each of L places the draw, the operation (of ``names``), and its argument.

    ``is_mixed``: bool[M], images mixed with others.
    """

    names: list[str]
    draws: Ints
    operations: Ints
    arguments: Floats
    is_mixed: npt.NDArray[np.bool_]


def sample_again(
    planner: Planner,
    samples: Samples,
    places: tuple[Ints, Ints, Ints],
    conditions: Callable[[int], Callable[[Any], Mapping[str, Any]]],
) -> Operations:
    """Operations of draws, by the sample, epoch and copy of each.

    ``conditions``: epoch -> ids -> values by name, as of ``vg.Loader``. Images are mixed with others than they were, by
    the same shares.
    """
    sample, epochs, copies = places
    names, is_mixed = list[str](), np.zeros(len(sample), np.bool_)
    parts: list[tuple[Ints, Ints, Floats]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    partners = "batch" if num_partners(planner.transform) else None
    for epoch, copy in product(np.unique(epochs).tolist(), np.unique(copies).tolist()):
        given, own = conditions(epoch), np.flatnonzero((epochs == epoch) & (copies == copy))
        for draws in np.split(own, range(_BATCH, len(own), _BATCH)):
            some = sample[draws]
            values = {"label": samples.labels[some], **given(samples.ids[some])}
            program = planner.program(samples.shapes[some], Request(samples.ids[some], epoch, copy, values, partners))
            if program.mixture is not None:
                is_mixed[draws] = [name is not None for name in program.mixture.names]
            for name, images, arguments in _operations(program):
                if name not in names:
                    names.append(name)
                parts.append((draws[images], np.full(len(images), names.index(name)), arguments))
    draws, operations, arguments = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Operations(names, draws, operations, arguments, is_mixed)


def _operations(program: Program) -> Iterator[tuple[str, Ints, Floats]]:
    """Names, images and arguments of a sampled program. What is done to partners does not count."""
    used = np.arange(program.opcode.shape[1]) < program.length[:, None]
    if program.mixture is not None and program.blend is not None:
        blend, is_own = program.blend, np.zeros(program.num_rows, np.bool_)
        row = np.arange(len(blend.target)) if blend.row is None else blend.row
        is_own[row[blend.target == program.source[row]]] = True
        used &= is_own[:, None]
        names = np.array([name or "" for name in program.mixture.names])
        for name in set(names.tolist()) - {""}:
            own = np.flatnonzero(names == name)
            yield name, own, 1.0 - program.mixture.shares[own, 0].astype(np.float64)
    rows, slots = np.nonzero(used & (program.opcode != Op.NOP))
    kinds = program.opcode[rows, slots].astype(np.int64) * 2**16 + program.label[rows, slots] + 1
    for kind in np.unique(kinds).tolist():
        own = np.flatnonzero(kinds == kind)
        op, label = Op(kind >> 16), (kind & 0xFFFF) - 1
        name = SPECS[op].name if label < 0 else program.names[label]
        yield name, program.source[rows[own]], _arguments(program, op, label >= 0, rows[own], slots[own])


def _arguments(program: Program, op: Op, is_named: bool, rows: Ints, slots: Ints) -> Floats:
    """Strengths in the unit of the argument: shares of the area for resized crops and erasing, pixels of a shift for
    crops, pixels that the first corner moves for maps; NaN for operations without any."""
    args, spec = program.args[rows, slots], SPECS[op]
    names = spec.labelled_args if is_named and spec.labelled_args is not None else spec.args
    before = program.out_size[rows, np.maximum(slots - 1, 0)]
    before = np.where(slots[:, None] > 0, before, program.in_shape[rows, :2]).astype(np.float64)
    if op is Op.ERASE:
        sums = np.append(0, np.cumsum(program.tables.rectangles[:, 2:].astype(np.float64).prod(1)))
        first = args[:, 0].astype(np.int64)
        return np.asarray((sums[first + args[:, 1].astype(np.int64)] - sums[first]) / before.prod(1), np.float64)
    if op is Op.RESIZED_CROP:
        return np.asarray(args[:, 2:4].prod(1) / before.prod(1), np.float64)
    if op is Op.CROP:
        return np.hypot(*(args[:, :2] - (before - args[:, 2:4]) / 2).T)
    if op in (Op.AFFINE, Op.PERSPECTIVE) and names[0] == "a":
        return np.hypot(args[:, 2], args[:, 5])
    told = next((name for name in (*_TELLING, *names) if name in names and not name.startswith("_")), None)
    return np.full(len(args), np.nan) if told is None else args[:, names.index(told)]


class Column(NamedTuple):
    """Draws of an operation with arguments from ``low`` to ``high``, None where it has none."""

    operation: str
    low: float | None
    high: float | None


def binned(found: Operations, most: int = _BINS) -> tuple[Ints, Ints, list[Column]]:
    """Draws and columns [L], each pair once and in order, and what each column stands for: an argument's values, or
    where these are too many, parts with as many draws each."""
    columns, named = np.zeros(len(found.draws), np.int64), list[Column]()
    for number, name in enumerate(found.names):
        own = np.flatnonzero(found.operations == number)
        arguments = np.nan_to_num(found.arguments[own])
        begins = np.unique(arguments)
        if len(begins) > most:
            begins = np.unique(np.quantile(arguments, np.arange(most) / most, method="lower"))
        which = np.searchsorted(begins, arguments, side="right") - 1
        columns[own] = len(named) + which
        for place in range(len(begins)):
            part = found.arguments[own[which == place]]
            ends = (None, None) if np.isnan(part).any() else (float(part.min()), float(part.max()))
            named.append(Column(name, *ends))
    pairs = np.unique(found.draws * len(named) + columns)
    return pairs // len(named), pairs % len(named), named
