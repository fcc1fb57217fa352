"""Attribution of losses: which operations, and at which strengths, a model finds hard while it trains.

The draws of a training follow from (seed, epoch, id, copy) and are sampled again; ``regression`` finds what each
operation adds to the recorded losses. A diagnostic: hard operations are not thereby harmful.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.attribution.draws import Bin, Ints, Samples, binned, once, sample_again
from variegate.apps.attribution.regression import Fit, Floats, Panel, fit
from variegate.apps.attribution.worst import WorstDraw, draw_worst
from variegate.apps.train.losses import REPORT_FOLDER, RecordedLosses
from variegate.augmenter.planner import Planner, RunningCount
from variegate.checks import spelt
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.formats.base import Source, SourceError
from variegate.io.durable import write_atomically
from variegate.jobs.arguments import open_by_index
from variegate.loader.shuffle import Permutation
from variegate.policies.load import load_policy
from variegate.program.program import Output

_MOST_DRAWS, _READ = 1_000_000, 256
# Fewer say too little for a standard error by images.
_LEAST_DRAWS, _LEAST_OF_CLASS, _LEAST_IMAGES = 30, 100, 10
_WORST, _STRONG = 12, 0.75
_ERROR = 0.05
_SHOWN_CLASSES = 20


class Effect(NamedTuple):
    """Loss added by an operation, with its standard error, over ``draws``.

    ``strength``: "" for all strengths; else "low", "middle" or "high", with the argument's sign where both are drawn.
    ``low``, ``high``: of the argument; NaN without one. ``label``: "" for all classes. ``is_relative``: a difference
    from the mean draw, since every draw has one of several operations or strengths.
    """

    operation: str
    added: float
    error: float
    draws: int
    strength: str = ""
    low: float = np.nan
    high: float = np.nan
    label: str = ""
    is_relative: bool = False

    @property
    def t(self) -> float:
        return self.added / self.error

    def to_dict(self) -> dict[str, Any]:
        values = {**self._asdict(), "t": self.t}
        return {name: None if isinstance(one, float) and not np.isfinite(one) else one for name, one in values.items()}


@dataclass(frozen=True)
class Attribution:
    """Loss added by the operations of a training; ``print`` shows a table.

    Attributes:
        run: the folder of the training.
        epochs: first epoch, and the one after the last.
        images, draws: in the regression.
        loss: their mean loss.
        operations: effects of operations, the clearest first (by t).
        strengths: effects of operations by strength, in the same order.
        classes: effects of operations on the classes that differ, with 95 % confidence over all ``comparisons``.
        comparisons: pairs of an operation and a class with enough draws.
        worst: strong draws with the largest loss beyond that of their image and epoch.
    """

    run: str
    epochs: tuple[int, int]
    images: int
    draws: int
    loss: float
    operations: tuple[Effect, ...]
    strengths: tuple[Effect, ...]
    classes: tuple[Effect, ...]
    comparisons: int
    worst: tuple[WorstDraw, ...]
    _sheet: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, fit for JSON."""
        plain = {name: getattr(self, name) for name in ("run", "images", "draws", "loss", "comparisons")}
        effects = {
            name: [one.to_dict() for one in getattr(self, name)] for name in ("operations", "strengths", "classes")
        }
        return {**plain, "epochs": list(self.epochs), **effects, "worst": [one._asdict() for one in self.worst]}

    def __str__(self) -> str:
        first, end = self.epochs
        lines = [
            f"Loss added by each operation: {self.draws:,} draws of {self.images:,} images, epochs {first} to "
            f"{end - 1}, mean loss {self.loss:.3f}",
            f"{'operation':<22}{'argument':>20}{'added':>9}{'95 % interval':>20}{'t':>8}{'draws':>11}",
        ]
        for operation in dict.fromkeys(one.operation for one in (*self.operations, *self.strengths)):
            lines += [_line(one, operation) for one in self.operations if one.operation == operation] or [operation]
            lines += [_line(one, f"  {one.strength}") for one in self.strengths if one.operation == operation]
        if any(one.is_relative for one in (*self.operations, *self.strengths)):
            lines.append("*: relative to the mean draw, since every draw has one of these")
        if self.comparisons:
            lines.append(f"Classes that differ from the rest (95 % over {self.comparisons:,} comparisons):")
            lines += [_line(one, f"  {one.label}: {one.operation}") for one in self.classes[:_SHOWN_CLASSES]]
            lines += ["  none"] * (not self.classes)
        lines.append("A diagnostic: hard operations are not thereby harmful. Compare policies to decide.")
        return "\n".join(lines)

    def write(self, folder: str | os.PathLike[str] | None = None) -> Path:
        """Write report.json, report.txt and, of the worst draws, worst.png to ``folder`` (RUN/report) -> the folder."""
        where = Path(self.run) / REPORT_FOLDER if folder is None else Path(folder)
        write_atomically(where / "report.json", (json.dumps(self.to_dict(), indent=2) + "\n").encode())
        write_atomically(where / "report.txt", f"{self}\n".encode())
        if self._sheet is not None:
            self._sheet.save(where / "worst.png")
        return where


def _line(one: Effect, name: str) -> str:
    ends = "" if np.isnan(one.low) else f"{one.low:.4g}" if one.low == one.high else f"{one.low:.4g} to {one.high:.4g}"
    interval = f"{one.added - 1.96 * one.error:+.3f} to {one.added + 1.96 * one.error:+.3f}"
    mark = "*" if one.is_relative else " "
    return f"{name:<22}{ends:>20}{one.added:>+9.3f}{interval:>20}{one.t:>8.1f}{one.draws:>11,}{mark}".rstrip()


@spelt()
def attribution(
    run: str | os.PathLike[str], source: Any = None, *, epochs: tuple[int, int] | None = None
) -> Attribution:
    """Attribute the losses of a training run to the operations of its draws.

    Losses are regressed on operations and strengths, with an effect for each image and each epoch. Standard errors
    allow for correlation within images. For mixed images, the operations of the image itself count, and the mix is one
    more operation, by the partners' share. At most a million draws are used, of images drawn by the seed.

    Args:
        run: folder of a run with ``report=True`` (``variegate train --report``).
        source: the images that it was trained on; None for where they were then.
        epochs: first epoch, and the one after the last; None for the second half of those recorded.

    Raises:
        ValueError, SourceError: for a folder without losses, other images, and fewer than two epochs.
    """
    recorded = RecordedLosses(Path(run), epochs)
    opened = _opened(recorded, source)
    rows = _rows(recorded)
    samples = _samples(opened, recorded, rows)
    valid = np.isfinite(recorded.losses[..., rows]).transpose(2, 0, 1)
    image, epoch, copy = np.nonzero(valid)
    transform = load_policy(recorded.transform)
    planner = Planner(transform, recorded.run["seed"], Output(), RunningCount())
    places = np.where(valid, np.cumsum(valid).reshape(valid.shape) - 1, -1)
    found = sample_again(planner, samples, places, range(*recorded.epochs), recorded.conditions)
    draws, columns, bins = binned(found)
    if not bins:
        raise ValueError(f"run: got {run}, which draws no operations; accepted: one with augmentation")
    losses = recorded.losses[epoch, copy, rows[image]].astype(np.float64)
    panel = Panel(image, epoch, losses, *once(draws, columns, len(bins)))
    fitted = fit(panel, len(bins))
    operations, strengths = _effects(found.names, bins, fitted)
    of_bin = np.array([one.operation for one in bins])
    pairs = once(panel.draw, of_bin[panel.column], len(found.names))
    by_operation = panel._replace(draw=pairs[0], column=pairs[1])
    classes, comparisons = _classes(
        by_operation, samples.labels[image], found.names, recorded.run["classes"], operations
    )
    hardest, excess = _hardest(image, fitted, ~found.mixed(len(image)))
    numbers = rows[image[hardest]], epoch[hardest] + recorded.epochs[0], copy[hardest], losses[hardest], excess
    worst, sheet = draw_worst(opened, transform, recorded, zip(*(each.tolist() for each in numbers), strict=True))
    mean, used = float(losses.mean()), len(np.unique(image))
    effects = operations, strengths, classes, comparisons
    return Attribution(os.fspath(run), recorded.epochs, used, len(image), mean, *effects, worst, sheet)


def _opened(recorded: RecordedLosses, source: Any) -> Source:
    place = recorded.run["source"] if source is None else source
    if place is None:
        raise ValueError("source: got None for a run on data without a place; accepted: the images that it trained on")
    opened = open_by_index(place)
    if opened.fingerprint != recorded.run["fingerprint"]:
        raise SourceError("source: holds other images than the run was trained on; accepted: the same ones")
    return opened


def _rows(recorded: RecordedLosses) -> Ints:
    """Of images that were trained on twice, as many as there may be. Raises ValueError without any."""
    rows = np.flatnonzero(np.isfinite(recorded.losses).sum((0, 1)) > 1)
    if len(rows) == 0:
        raise ValueError(
            f"epochs: got {recorded.epochs}, in which no image was trained on twice; accepted: more of them"
        )
    most = max(1, _MOST_DRAWS // (recorded.losses.shape[0] * recorded.losses.shape[1]))
    return np.sort(rows[Permutation(len(rows), recorded.run["seed"], 0)(np.arange(min(most, len(rows))))])


def _samples(source: Source, recorded: RecordedLosses, rows: Ints) -> Samples:
    """Of images, their sizes and classes."""
    shapes, labels = [], list[int]()
    for part in np.split(rows, range(_READ, len(rows), _READ)):
        items = [source.read(index) for index in part.tolist()]
        shapes.append(EncodedBatch([item.data for item in items]).shapes)
        labels += [int(item.label) for item in items]
    return Samples(recorded.ids[rows], np.concatenate(shapes), np.array(labels, np.int64))


def _effects(names: Sequence[str], bins: Sequence[Bin], fitted: Fit) -> tuple[tuple[Effect, ...], tuple[Effect, ...]]:
    """Of operations, and of their strengths, with enough draws."""
    operations, strengths = list[Effect](), list[Effect]()
    for number, name in enumerate(names):
        own = np.array([place for place, one in enumerate(bins) if one.operation == number])
        own = own[(fitted.counts[own] >= _LEAST_DRAWS) & np.isfinite(fitted.added[own])]
        added, error = fitted.mean(own)
        is_relative, draws = bool(fitted.is_relative[own].any()), int(fitted.counts[own].sum())
        if np.isfinite(error):
            ends = [bins[place][2:] for place in own.tolist()]
            low, high = min(one[0] for one in ends), max(one[1] for one in ends)
            operations.append(Effect(name, added, error, draws, "", low, high, "", is_relative))
        for place in own.tolist() if len(own) > 1 else ():
            added, error = fitted.mean(np.array([place]))
            told = *bins[place][1:], "", bool(fitted.is_relative[place])
            strengths.append(Effect(name, added, error, int(fitted.counts[place]), *told))
    operations.sort(key=lambda one: -one.t)
    order = {one.operation: place for place, one in enumerate(operations)}
    return tuple(operations), tuple(sorted(strengths, key=lambda one: order.get(one.operation, len(order))))


def _classes(
    panel: Panel, labels: Ints, names: Sequence[str], classes: Sequence[str], operations: Sequence[Effect]
) -> tuple[tuple[Effect, ...], int]:
    """Effects on classes that differ from those on all, the clearest first, and how many were compared (Bonferroni)."""
    whole = {one.operation: one for one in operations}
    compared: list[tuple[float, Effect]] = []
    for label, name in enumerate(classes):
        own = labels == label
        if len(np.unique(panel.image[own])) < _LEAST_IMAGES:
            continue
        fitted = fit(panel.of(own), len(names))
        for number in np.flatnonzero(fitted.counts >= _LEAST_OF_CLASS).tolist():
            added, error = fitted.mean(np.array([number]))
            if np.isfinite(error) and (other := whole.get(names[number])) is not None:
                # The class is a part of all, so that this is more than the variance of the difference.
                t = (added - other.added) / float(np.hypot(error, other.error))
                told = "", np.nan, np.nan, name, bool(fitted.is_relative[number])
                compared.append((t, Effect(names[number], added, error, int(fitted.counts[number]), *told)))
    limit = NormalDist().inv_cdf(1 - _ERROR / 2 / max(1, len(compared)))
    clear = sorted((one for one in compared if abs(one[0]) > limit), key=lambda one: -abs(one[0]))
    return tuple(one for _, one in clear), len(compared)


def _hardest(image: Ints, fitted: Fit, is_alone: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """Draws, one of each image, and their loss above the mean of the image and the effect of the epoch: of images that
    are not mixed, and whose operations add more than those of three quarters of the draws."""
    least = np.quantile(fitted.predicted[is_alone], _STRONG) if is_alone.any() else 0.0
    strong = np.flatnonzero(is_alone & (fitted.predicted >= least))
    excess = fitted.predicted + fitted.residual
    order = strong[np.argsort(-excess[strong], kind="stable")]
    _, first = np.unique(image[order], return_index=True)
    found = order[np.sort(first)[:_WORST]]
    return found, excess[found]
