"""``doubtful_labels``: from the table of a check to findings about labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from variegate.apps.curate.finding import DataFinding
from variegate.apps.curate.labels.folds import FOLDS, folds_of, grouped, too_small
from variegate.apps.curate.labels.judgement import check_cleanlab, judged
from variegate.apps.curate.labels.pixels import size_for, small_pixels
from variegate.apps.curate.labels.predictions import predicted
from variegate.apps.train.images import LabelledImages
from variegate.formats.base import Source, SourceError, StreamSource, first_names

_ALIKE = ("duplicates", "near_duplicates", "contradictions")
_SPLIT = "train"


class LabelDoubts(NamedTuple):
    """``notes``: what was not looked at, a line each."""

    findings: list[DataFinding]
    notes: list[str]


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
    predicted with the labels. ``source``: of the train images, which are read once more. ``findings``: duplicates
    among them are never on both sides. ``seed`` decides the rest. ``tell``: of epochs done, and of how many.

    Raises ImportError without cleanlab, SourceError where there are no classes to compare, and KeyboardInterrupt once
    ``stop`` is set.
    """
    check_cleanlab()
    rows, notes = _comparable(table, findings)
    size = size_for(*(rows[name].to_numpy().astype(np.int64) for name in ("height", "width")))
    indices = rows["index"].to_numpy()
    pixels, found = small_pixels(source, indices, size)
    rows = rows.take(pa.array(np.searchsorted(indices, found)))
    numbers = rows["label"].to_numpy()
    classes = np.unique(numbers)
    labels = np.searchsorted(classes, numbers).astype(np.int64)
    names = tuple(_class_name(rows, label) for label in classes.tolist())
    images = LabelledImages(pixels, torch.from_numpy(labels), found.astype(np.uint64), names)
    probabilities = predicted(images, folds_of(labels, _units(rows, findings), seed), seed, tell, stop)
    judgement = judged(labels, probabilities)
    doubtful = np.flatnonzero(judgement.is_doubtful)
    worst_first = doubtful[np.argsort(judgement.quality[doubtful], kind="stable")]
    return LabelDoubts(
        [_finding(rows, row, float(judgement.quality[row]), probabilities[row], names) for row in worst_first.tolist()],
        notes,
    )


def _comparable(table: pa.Table, findings: Sequence[DataFinding]) -> tuple[pa.Table, list[str]]:
    """The rows whose labels can be judged, by index, and notes on others. Raises SourceError for too few classes."""
    readable = table.filter(pc.and_(pc.equal(table["split"], _SPLIT), pc.is_null(table["error"])))
    rows = readable.filter(pc.greater_equal(readable["label"], 0)).sort_by("index")
    notes = []
    if 0 < len(rows) < len(readable):
        notes.append(f"labels: images without a class are not looked at ({len(readable) - len(rows):,})")
    labels = rows["label"].to_numpy()
    classes, numbers = np.unique(labels, return_inverse=True)
    small = classes[too_small(numbers, _units(rows, findings), len(classes))]
    if len(small):
        said = first_names([_class_name(rows, label) for label in small.tolist()])
        notes.append(f"labels: classes of fewer than {FOLDS} different images are not looked at ({said})")
        rows = rows.filter(pa.array(~np.isin(labels, small)))
    if len(classes) - len(small) < 2:
        raise SourceError(
            f"labels: got {len(classes) - len(small)} classes of {FOLDS} or more different images that can be read; "
            "accepted: two or more, as folders of classes or a column of integers"
        )
    return rows, notes


def _units(rows: pa.Table, findings: Sequence[DataFinding]) -> npt.NDArray[np.int64]:
    """As ``grouped`` has them, from duplicates among these images."""
    row_of = {index: row for row, index in enumerate(rows["index"].to_pylist())}
    groups: dict[tuple[str, int], list[int]] = {}
    for one in findings:
        if one.finding in _ALIKE and one.group is not None and one.split == _SPLIT and one.index in row_of:
            groups.setdefault((one.finding, one.group), []).append(row_of[one.index])
    return grouped(len(rows), groups.values())


def _class_name(rows: pa.Table, label: int) -> str:
    found = rows["class"][pc.index(rows["label"], pa.scalar(label, pa.int64())).as_py()].as_py()
    return str(label) if found is None else str(found)


def _finding(
    rows: pa.Table, row: int, quality: float, probabilities: npt.NDArray[np.float64], names: Sequence[str]
) -> DataFinding:
    index, file, label = (rows[name][row].as_py() for name in ("index", "file", "label"))
    given, suggested = _class_name(rows, label), int(probabilities.argmax())
    why = (
        f"labelled {given!r} ({quality:.1%} likely); a model trained on the others says {names[suggested]!r} "
        f"({probabilities[suggested]:.1%})"
    )
    return DataFinding(_SPLIT, index, file, "label_errors", quality, None, why)
