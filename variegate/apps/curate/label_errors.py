"""Labels that are likely to be wrong: those that a model doubts which was trained on other images."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from variegate.apps.curate.duplicates import joined
from variegate.apps.curate.findings import DataFinding
from variegate.apps.curate.label_training import predicted, size_for, small_pixels
from variegate.apps.train.images import LabelledImages
from variegate.formats.base import Source, SourceError, StreamSource, first_names
from variegate.loader.shuffle import Permutation

FOLDS = 3
Ints = npt.NDArray[np.int64]
_ALIKE = ("duplicates", "near_duplicates", "contradictions")
_SPLIT = "train"


class LabelDoubts(NamedTuple):
    """``notes``: on images that were not looked at, a line each."""

    findings: list[DataFinding]
    notes: list[str]


def check_cleanlab() -> Any:
    """The package. Raises ImportError with the command that installs it."""
    try:
        return importlib.import_module("cleanlab")
    except ModuleNotFoundError as error:
        if error.name != "cleanlab":
            raise
        raise ImportError("labels: cleanlab is not installed: pip install 'variegate[labels]'") from None


def doubtful_labels(
    table: pa.Table,
    source: Source | StreamSource,
    findings: Sequence[DataFinding] = (),
    seed: int = 0,
    tell: Callable[[int, int], object] = lambda done, total: None,
    stop: Event | None = None,
) -> LabelDoubts:
    """Of the train images in the table of a check, those whose label is likely to be wrong.

    Each of three models is trained on two thirds of the images and predicts the rest; cleanlab compares what is
    predicted with the labels (Northcutt et al. 2021, "Confident learning", arXiv 1911.00068). ``source``: of the train
    images, which are read once more. ``findings``: duplicates among them are never on both sides. ``seed`` decides the
    rest. ``tell``: of epochs done, and of how many.

    Raises ImportError without cleanlab, SourceError where there are no classes to compare, and KeyboardInterrupt once
    ``stop`` is set.
    """
    check_cleanlab()
    rows, notes = _comparable(table, findings)
    size = size_for(*(rows[name].to_numpy().astype(np.int64) for name in ("height", "width")))
    indices = rows["index"].to_numpy()
    pixels, found = small_pixels(source, indices, size)
    rows = rows.take(pa.array(np.searchsorted(indices, found)))
    _, labels, names = _classes(rows)
    images = LabelledImages(pixels, torch.from_numpy(labels), found.astype(np.uint64), tuple(names))
    probabilities = predicted(images, folds_of(labels, _units(rows, findings), seed), seed, tell, stop)
    filters, ranks = (importlib.import_module(f"cleanlab.{name}") for name in ("filter", "rank"))
    doubtful = np.flatnonzero(np.asarray(filters.find_label_issues(labels, probabilities, n_jobs=1), np.bool_))
    qualities = np.asarray(ranks.get_label_quality_scores(labels, probabilities), np.float64)
    doubts = []
    for row in doubtful[np.argsort(qualities[doubtful], kind="stable")].tolist():
        suggested, quality = int(probabilities[row].argmax()), float(qualities[row])
        why = (
            f"labelled {names[labels[row]]!r} ({quality:.1%} likely); a model trained on the others says "
            f"{names[suggested]!r} ({probabilities[row][suggested]:.1%})"
        )
        index, file = (rows[name][row].as_py() for name in ("index", "file"))
        doubts.append(DataFinding(_SPLIT, index, file, "label_errors", quality, None, why))
    return LabelDoubts(doubts, notes)


def _comparable(table: pa.Table, findings: Sequence[DataFinding]) -> tuple[pa.Table, list[str]]:
    """The rows whose labels can be judged, by index, and notes on others. Raises SourceError for too few classes."""
    readable = table.filter(pc.and_(pc.equal(table["split"], _SPLIT), pc.is_null(table["error"])))
    rows = readable.filter(pc.greater_equal(readable["label"], 0)).sort_by("index")
    notes = []
    if 0 < len(rows) < len(readable):
        notes.append(f"labels: images without a class are not looked at ({len(readable) - len(rows):,})")
    classes, numbers, names = _classes(rows)
    small = too_small(numbers, _units(rows, findings), len(classes))
    if len(small):
        named = first_names([names[number] for number in small.tolist()])
        notes.append(f"labels: classes of fewer than {FOLDS} different images are not looked at ({named})")
        rows = rows.filter(pa.array(~np.isin(numbers, small)))
    if len(classes) - len(small) < 2:
        raise SourceError(
            f"labels: got {len(classes) - len(small)} classes of {FOLDS} or more different images that can be read; "
            "accepted: two or more, as folders of classes or a column of integers"
        )
    return rows, notes


def _classes(rows: pa.Table) -> tuple[Ints, Ints, list[str]]:
    """-> (the labels that there are, the place of each row's among them, their names)."""
    labels, first, numbers = np.unique(rows["label"].to_numpy(), return_index=True, return_inverse=True)
    names = [rows["class"][row].as_py() for row in first.tolist()]
    names = [str(label) if name is None else str(name) for label, name in zip(labels.tolist(), names, strict=True)]
    return labels, numbers.astype(np.int64), names


def _units(rows: pa.Table, findings: Sequence[DataFinding]) -> Ints:
    """As ``grouped`` has them, from duplicates among these images."""
    row_of = {index: row for row, index in enumerate(rows["index"].to_pylist())}
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in findings:
        if one.finding in _ALIKE and one.group is not None and one.split == _SPLIT and one.index in row_of:
            groups[one.finding, one.group].append(row_of[one.index])
    return grouped(len(rows), groups.values())


def grouped(count: int, groups: Iterable[Sequence[int]]) -> Ints:
    """int64[count]: of each image the first that it belongs together with, itself where it stands alone. ``groups``:
    images that belong together; those that share one do so as well."""
    first = joined((group[0], other) for group in groups for other in group[1:])
    return np.array([first.get(image, image) for image in range(count)], np.int64)


def folds_of(labels: Ints, units: Ints, seed: int, folds: int = FOLDS) -> Ints:
    """int64[N]: the fold of each image, which ``seed`` decides.

    ``labels``: int64[N]. ``units``: int64[N] as ``grouped`` gives them; images of one are in one fold, where a twin
    among those that train would tell a model the label. Every class is dealt out anew, one by one.
    """
    mixed = Permutation(len(labels), seed, 0)(np.arange(len(labels)))
    firsts = mixed[units[mixed] == mixed]
    by_class = firsts[np.argsort(labels[firsts], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[by_class] = np.arange(len(by_class)) % folds
    return fold[units]


def too_small(labels: Ints, units: Ints, classes: int, folds: int = FOLDS) -> Ints:
    """The classes, of those that have images at all, with fewer units than folds: they might not be among the images
    that train. A unit counts for the class of its first image."""
    found = np.bincount(labels[np.unique(units)], minlength=classes)
    present = np.bincount(labels, minlength=classes) > 0
    return np.flatnonzero(present & (found < folds))
