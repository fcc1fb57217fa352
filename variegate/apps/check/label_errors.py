"""Find labels that are likely to be wrong, because a model trained on other images doubts them."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from variegate.apps.check.duplicates import joined
from variegate.apps.check.findings import COLORS, DataFinding, channels_of
from variegate.arrays import Float64Array, Int64Array
from variegate.data.base import SourceError, summarize_names
from variegate.data.samples import Samples
from variegate.learn.choices import LABELS, Choice, Data, choose
from variegate.learn.fit import Fit, FitData, fit, one_thread_each
from variegate.learn.images import BaselineAugmentation, LabelledImages, load_images
from variegate.loader.shuffle import Permutation
from variegate.options.fit import FitOptions
from variegate.threads import default_threads

FOLDS = 3
_ALIKE = ("duplicates", "near_duplicates", "contradictions")
_SPLIT = "train"
_MODEL = "airbench-94x0.25"
_LR = 0.5


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
    source: Samples,
    findings: Sequence[DataFinding] = (),
    seed: int = 0,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
    stop: Event | None = None,
    dicom: Any = None,
) -> LabelDoubts:
    """Train images in a check's table whose label is likely to be wrong.

    Each of three models is trained on two thirds of the images and predicts the rest; cleanlab compares the predictions
    with the labels (Northcutt et al. 2021, "Confident learning", arXiv 1911.00068). ``source``: the train images, which
    are read again. ``findings``: duplicates among them are never on both sides. ``seed`` decides the rest.
    ``on_progress``: called with epochs done and the total. ``dicom``: a ``vg.Dicom``.

    Raises ImportError without cleanlab, SourceError where there are no classes to compare, and KeyboardInterrupt once
    ``stop`` is set.
    """
    check_cleanlab()
    rows, notes = _comparable(table, findings)
    indices = rows["index"].to_numpy()
    sizes = list(zip(rows["height"].to_pylist(), rows["width"].to_pylist(), strict=True))
    trained = len(rows) - len(rows) // FOLDS
    choice = choose(Data(len(rows), trained, sizes), LABELS, model=_MODEL)
    notes.append(f"labels: {choice.reasons[0]}")
    images = load_images(source.take(indices), choice.size, "cpu", stop, {"dicom": dicom})
    # Drop images that have become unreadable.
    found = np.isin(source.ids(indices), images.ids)
    rows = rows.take(pa.array(np.flatnonzero(found)))
    _, labels, names = _classes(rows)
    images = replace(images, labels=torch.from_numpy(labels), classes=tuple(names))
    probabilities = predicted(images, folds_of(labels, _units(rows, findings), seed), choice, seed, on_progress, stop)
    filters, ranks = (importlib.import_module(f"cleanlab.{name}") for name in ("filter", "rank"))
    doubtful = np.flatnonzero(np.asarray(filters.find_label_issues(labels, probabilities, n_jobs=1), np.bool_))
    qualities = np.asarray(ranks.get_label_quality_scores(labels, probabilities), np.float64)
    doubts = []
    for row in doubtful[np.argsort(qualities[doubtful], kind="stable")].tolist():
        suggested = int(probabilities[row].argmax())
        quality = float(qualities[row])
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
    has_colors = np.isin(channels_of(rows), (0, COLORS))
    if not has_colors.all():
        notes.append(f"labels: images of 2 or more than 3 channels are not looked at ({np.sum(~has_colors):,})")
        rows = rows.filter(pa.array(has_colors))
    classes, numbers, names = _classes(rows)
    small = too_small(numbers, _units(rows, findings), len(classes))
    if len(small):
        named = summarize_names([names[number] for number in small.tolist()])
        notes.append(f"labels: classes of fewer than {FOLDS} different images are not looked at ({named})")
        rows = rows.filter(pa.array(~np.isin(numbers, small)))
    if len(classes) - len(small) < 2:
        raise SourceError(
            f"labels: got {len(classes) - len(small)} classes of {FOLDS} or more different images that can be read; "
            "accepted: two or more, as folders of classes or a column of integers"
        )
    return rows, notes


def _classes(rows: pa.Table) -> tuple[Int64Array, Int64Array, list[str]]:
    """-> (the labels that there are, the place of each row's among them, their names)."""
    labels, first, numbers = np.unique(rows["label"].to_numpy(), return_index=True, return_inverse=True)
    names = [rows["class"][row].as_py() for row in first.tolist()]
    names = [str(label) if name is None else str(name) for label, name in zip(labels.tolist(), names, strict=True)]
    return labels, numbers.astype(np.int64), names


def _units(rows: pa.Table, findings: Sequence[DataFinding]) -> Int64Array:
    """Units as in ``grouped``, from duplicates among these images."""
    row_of = {index: row for row, index in enumerate(rows["index"].to_pylist())}
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in findings:
        if one.finding in _ALIKE and one.group is not None and one.split == _SPLIT and one.index in row_of:
            groups[one.finding, one.group].append(row_of[one.index])
    return grouped(len(rows), groups.values())


def grouped(count: int, groups: Iterable[Sequence[int]]) -> Int64Array:
    """int64[count]: of each image the first that it belongs together with, itself where it stands alone. ``groups``:
    sets of equal images; sets that share an image are merged."""
    first = joined((group[0], other) for group in groups for other in group[1:])
    return np.array([first.get(image, image) for image in range(count)], np.int64)


def folds_of(labels: Int64Array, units: Int64Array, seed: int) -> Int64Array:
    """int64[N]: the fold of each image, which ``seed`` decides.

    ``labels``: int64[N]. ``units``: int64[N] from ``grouped``. A unit's images share a fold, because a twin among the
    training images would reveal the label. Every class is distributed separately, unit by unit.
    """
    mixed = Permutation(len(labels), seed, 0)(np.arange(len(labels)))
    firsts = mixed[units[mixed] == mixed]
    by_class = firsts[np.argsort(labels[firsts], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[by_class] = np.arange(len(by_class)) % FOLDS
    return fold[units]


def too_small(labels: Int64Array, units: Int64Array, classes: int) -> Int64Array:
    """The nonempty classes with fewer units than folds: they might be missing among the training images. A unit counts
    for the class of its first image."""
    found = np.bincount(labels[np.unique(units)], minlength=classes)
    present = np.bincount(labels, minlength=classes) > 0
    return np.flatnonzero(present & (found < FOLDS))


def predicted(
    images: LabelledImages,
    folds: Int64Array,
    choice: Choice,
    seed: int,
    on_progress: Callable[[int, int], object],
    stop: Event | None = None,
) -> Float64Array:
    """float64 [N, classes]: probabilities. ``folds``: int64[N]. ``on_progress``: called with epochs done and the total.

    The same on every machine without a GPU, whatever the number of its cores. Raises KeyboardInterrupt once ``stop``
    is set.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    numbers = np.unique(folds).tolist()
    result = np.zeros((len(images), images.num_classes))
    counting = Lock()
    done = 0

    def count() -> None:
        nonlocal done
        with counting:
            done += 1
            on_progress(done, choice.epochs * len(numbers))

    def train(fold: int) -> None:
        outside = np.flatnonzero(folds == fold)
        part = images.take(np.flatnonzero(folds != fold))
        # A crop. Mirrored, a digit or a hand may be of another class.
        crop = max(1, min(part.pixels.shape[1:3]) // 8)
        baseline = BaselineAugmentation.of(part, crop, flip=False, cutout=0)
        # Twins in one fold leave fewer images to others.
        batch_size = min(choice.batch_size, len(part))
        options = FitOptions(epochs=choice.epochs, batch_size=batch_size, lr=_LR)
        data = FitData(part.samples, baseline.plain, device, num_threads=1)
        policy = baseline.with_policy(None)
        is_over = (lambda: False) if stop is None else stop.is_set
        found = fit(data, policy, options, seed + fold, model=choice.model, is_over=is_over, on_epoch=count)
        if found is not None:
            result[outside] = _probabilities(found.fit, data.others(images.take(outside).samples))

    at_once = 1 if device == "cuda" else min(len(numbers), default_threads())
    # With one thread per fold, sums are equal on every machine.
    with one_thread_each(device), ThreadPoolExecutor(at_once, "variegate-labels") as pool:
        list(pool.map(train, numbers))
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt
    return result


def _probabilities(trained: Fit, data: FitData) -> Float64Array:
    """Uniform if the training diverged."""
    scores = [scores.double().softmax(1).cpu().numpy() for scores, _, _ in trained.predict(data.plain_loader())]
    probabilities = np.concatenate(scores)
    probabilities[~np.isfinite(probabilities).all(axis=1)] = 1 / probabilities.shape[1]
    return probabilities
