"""Attribution of losses: which operations, and at which strengths, a model finds hard while it trains.

The draws of a training follow from (seed, epoch, id, copy) and are sampled again; ``regression`` finds what each
operation adds to the recorded losses. A diagnostic: hard operations are not thereby harmful.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from variegate.apps.attribution.draws import Column, Samples, binned, sample_again
from variegate.apps.attribution.regression import Fit, Panel, fit
from variegate.apps.attribution.worst import WorstDraw, draw_worst
from variegate.apps.train.losses import REPORT_FOLDER, RecordedLosses
from variegate.augmenter.planner import Planner, RunningCount
from variegate.checks import spelt
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.formats.base import Source, SourceError
from variegate.io.durable import write_atomically
from variegate.jobs.arguments import open_by_index, recorded_place
from variegate.loader.shuffle import Permutation
from variegate.policies.load import load_policy
from variegate.program.program import Output

_MOST_DRAWS, _MOST_IMAGES, _READ = 1_000_000, 100_000, 256
# Fewer say too little for a standard error by images.
_LEAST_DRAWS, _LEAST_OF_CLASS, _LEAST_IMAGES = 30, 100, 10
_WORST, _SHOWN_CLASSES, _ERROR = 12, 20, 0.05


@dataclass(frozen=True)
class Effect:
    """Loss added by an operation, with its standard error, over ``draws``.

    ``t``: in standard errors. ``low``, ``high``: of the argument, if it has one. ``label``: "" for all classes.
    ``is_relative``: a difference from the mean draw, since every draw has one of several operations or strengths.
    """

    operation: str
    added: float
    error: float
    t: float
    draws: int
    low: float | None
    high: float | None
    label: str
    is_relative: bool

    def line(self, name: str) -> str:
        """A row of the table."""
        ends = " to ".join(dict.fromkeys(f"{one:.4g}" for one in (self.low, self.high) if one is not None))
        interval = f"{self.added - 1.96 * self.error:+.3f} to {self.added + 1.96 * self.error:+.3f}"
        mark = "*" if self.is_relative else ""
        return f"{name:<22}{ends:>20}{self.added:>+9.3f}{interval:>20}{self.t:>8.1f}{self.draws:>11,}{mark}"


@dataclass(frozen=True)
class Attribution:
    """Loss added by the operations of a training; ``print`` shows a table.

    Attributes:
        run: the folder of the training.
        epochs: first epoch, and the one after the last.
        images, draws: in the regression.
        loss: their mean loss.
        operations: effects of operations, the clearest first (by t).
        strengths: effects of operations by argument.
        classes: effects of operations on the classes that differ, with 95 % confidence over all ``comparisons``.
        comparisons: pairs of an operation and a class with enough draws.
        worst: draws with the largest loss beyond that of their image and epoch.
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
        plain = asdict(replace(self, _sheet=None))
        del plain["_sheet"]
        return plain

    def __str__(self) -> str:
        first, end = self.epochs
        lines = [
            f"Loss added by each operation: {self.draws:,} draws of {self.images:,} images, epochs {first} to "
            f"{end - 1}, mean loss {self.loss:.3f}",
            f"{'operation':<22}{'argument':>20}{'added':>9}{'95 % interval':>20}{'t':>8}{'draws':>11}",
        ]
        effects = (*self.operations, *self.strengths)
        for name in dict.fromkeys(one.operation for one in effects):
            lines += [one.line(name) for one in self.operations if one.operation == name] or [name]
            lines += [one.line("") for one in self.strengths if one.operation == name]
        if any(one.is_relative for one in effects):
            lines.append("*: relative to the mean draw, since every draw has one of these")
        if self.comparisons:
            lines.append(f"Classes that differ from the rest (95 % over {self.comparisons:,} comparisons):")
            lines += [one.line(f"  {one.label}: {one.operation}") for one in self.classes[:_SHOWN_CLASSES]] or [
                "  none"
            ]
        lines.append("A diagnostic: hard operations are not thereby harmful. Compare policies to decide.")
        return "\n".join(lines)

    def write(self) -> Path:
        """Write report.json, report.txt and, of the worst draws, worst.png -> their folder, RUN/report."""
        where = Path(self.run) / REPORT_FOLDER
        write_atomically(where / "report.json", (json.dumps(self.to_dict(), indent=2) + "\n").encode())
        write_atomically(where / "report.txt", f"{self}\n".encode())
        if self._sheet is not None:
            self._sheet.save(where / "worst.png")
        return where


@spelt()
def attribution(
    run: str | os.PathLike[str], source: Any = None, *, epochs: tuple[int, int] | None = None
) -> Attribution:
    """Attribute the losses of a training run to the operations of its draws.

    Losses are regressed on operations and strengths, with an effect for each image and each epoch. Standard errors
    allow for correlation within images. For mixed images, the operations of the image itself count, and the mix is one
    more operation, by the partners' share. At most a million draws of 100,000 images are used, drawn by the seed.

    Args:
        run: folder of a run with ``report=True`` (``variegate train --report``).
        source: the images that it was trained on; None for where they were then.
        epochs: first epoch, and the one after the last; None for the second half of those recorded.

    Raises:
        ValueError, SourceError: for a folder without losses, other images, and fewer than two epochs.
    """
    recorded = RecordedLosses(Path(run), epochs)
    seed, classes = recorded.run["seed"], recorded.run["classes"]
    opened = _opened(recorded, source)
    rows = np.flatnonzero(np.isfinite(recorded.losses).sum((0, 1)) > 1)
    if len(rows) == 0:
        raise ValueError(
            f"epochs: got {recorded.epochs}, in which no image was trained on twice; accepted: more of them"
        )
    most = min(len(rows), _MOST_IMAGES, max(1, _MOST_DRAWS // recorded.losses[..., 0].size))
    rows = np.sort(rows[Permutation(len(rows), seed, 0)(np.arange(most))])
    samples = _samples(opened, recorded, rows)
    epoch, copy, image = np.nonzero(np.isfinite(recorded.losses[..., rows]))
    losses = recorded.losses[epoch, copy, rows[image]].astype(np.float64)
    epoch += recorded.epochs[0]

    transform = load_policy(recorded.transform)
    planner = Planner(transform, seed, Output(), RunningCount())
    found = sample_again(planner, samples, (image, epoch, copy), recorded.conditions)
    if not found.names:
        raise ValueError(f"run: got {run}, which draws no operations; accepted: one with augmentation")
    *pairs, bins = binned(found)
    by_strength = fit(Panel(image, epoch, losses, *pairs), len(bins))
    several = [one.operation for one, other in pairwise(bins) if one.operation == other.operation]
    strengths = [one for one in _effects(by_strength, bins, _LEAST_DRAWS) if one.operation in several]
    *pairs, columns = binned(found, 1)
    panel = Panel(image, epoch, losses, *pairs)
    operations = sorted(_effects(fit(panel, len(columns)), columns, _LEAST_DRAWS), key=lambda one: -one.t)
    different, comparisons = _classes(panel, samples.labels[image], columns, classes, operations)

    hardest = np.argsort(-by_strength.excess, kind="stable")
    hardest = hardest[~found.is_mixed[hardest]]
    hardest = hardest[np.sort(np.unique(image[hardest], return_index=True)[1])[:_WORST]]
    each = (rows[image], epoch, copy, losses, by_strength.excess)
    worst, sheet = draw_worst(opened, transform, recorded, zip(*(one[hardest].tolist() for one in each), strict=True))
    effects = tuple(operations), tuple(strengths), different, comparisons
    return Attribution(os.fspath(run), recorded.epochs, most, len(losses), float(losses.mean()), *effects, worst, sheet)


def _opened(recorded: RecordedLosses, source: Any) -> Source:
    place = (
        recorded_place(f"{recorded.transform.parent}", "source", recorded.run["source"]) if source is None else source
    )
    if place is None:
        raise ValueError("source: got None for a run on data without a place; accepted: the images that it trained on")
    opened = open_by_index(place)
    if opened.fingerprint != recorded.run["fingerprint"]:
        raise SourceError("source: holds other images than the run was trained on; accepted: the same ones")
    return opened


def _samples(source: Source, recorded: RecordedLosses, rows: Any) -> Samples:
    shapes, labels = [], list[int]()
    for part in np.split(rows, range(_READ, len(rows), _READ)):
        items = [source.read(index) for index in part.tolist()]
        shapes.append(EncodedBatch([item.data for item in items]).shapes)
        labels += [int(item.label) for item in items]
    return Samples(recorded.ids[rows], np.concatenate(shapes), np.array(labels, np.int64))


def _effects(fitted: Fit, columns: Sequence[Column], least: int, label: str = "") -> list[Effect]:
    """Of columns with so many draws, and with a standard error."""
    found = []
    numbers = zip(fitted.added.tolist(), fitted.error.tolist(), fitted.counts.tolist(), strict=True)
    for (name, low, high), (added, error, draws), is_relative in zip(columns, numbers, fitted.is_relative, strict=True):
        if draws >= least and error > 0:
            found.append(Effect(name, added, error, added / error, int(draws), low, high, label, bool(is_relative)))
    return found


def _classes(
    panel: Panel, labels: Any, columns: Sequence[Column], classes: Sequence[str], operations: Sequence[Effect]
) -> tuple[tuple[Effect, ...], int]:
    """Effects on classes that differ from those on all, the clearest first, and how many were compared (Bonferroni)."""
    whole = {one.operation: one for one in operations}
    compared: list[tuple[float, Effect]] = []
    for label, name in enumerate(classes):
        own = labels == label
        if len(np.unique(panel.image[own])) < _LEAST_IMAGES:
            continue
        for one in _effects(fit(panel.of(own), len(columns)), columns, _LEAST_OF_CLASS, name):
            if (other := whole.get(one.operation)) is not None:
                # The class is a part of all, so that this is more than the variance of the difference.
                compared.append(((one.added - other.added) / math.hypot(one.error, other.error), one))
    limit = NormalDist().inv_cdf(1 - _ERROR / 2 / max(1, len(compared)))
    compared.sort(key=lambda pair: -abs(pair[0]))
    return tuple(one for t, one in compared if abs(t) > limit), len(compared)
