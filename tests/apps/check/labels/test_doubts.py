"""Wrong labels are found by models that were trained on other images; what cannot be judged is left out, and said."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import variegate as vg
from variegate.apps.check.findings import SCHEMA, DataFinding
from variegate.apps.check.label_errors import doubtful_labels
from variegate.data.base import SourceError
from variegate.learn.choices import LABELS

CLASSES = ("zero", "one", "two", "lone")
FLIPPED = (3, 50, 77, 120, 150, 171)


def _digits(count: int = 180) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    digits = load_digits()
    chosen = np.flatnonzero(digits.target < 3)[:count]
    pixels = (digits.images[chosen] * 15.9).astype(np.uint8)[..., None]
    return pixels, digits.target[chosen].astype(np.int64)


def _table(labels: npt.NDArray[np.int64], errors: dict[int, str] | None = None) -> pa.Table:
    rows = []
    for index, label in enumerate(labels.tolist()):
        row = dict.fromkeys(SCHEMA.names) | {"split": "train", "index": index, "file": f"{index}.png", "label": label}
        row |= {"class": CLASSES[label] if label >= 0 else None, "height": 8, "width": 8}
        rows.append(row | {"error": (errors or {}).get(index)})
    return pa.Table.from_pylist(rows, SCHEMA)


def _doubts(pixels: Any, labels: npt.NDArray[np.int64], table: pa.Table | None = None, **options: Any) -> Any:
    pytest.importorskip("cleanlab")
    source = vg.open_source((pixels, labels))
    return doubtful_labels(_table(labels) if table is None else table, source, **options)


def test_wrong_labels_are_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.check.label_errors.LABELS", replace(LABELS, most_epochs=8))
    pixels, labels = _digits()
    truth = labels.copy()
    for index in FLIPPED:
        labels[index] = (labels[index] + 1) % 3
    labels[9], labels[11], labels[12] = -1, 3, 3
    table = _table(labels, {20: "broken"})
    told: list[tuple[int, int]] = []
    found = _doubts(pixels, labels, table, on_progress=lambda done, total: told.append((done, total)))
    hits = {one.index for one in found.findings} & set(FLIPPED)
    assert len(hits) >= 5
    assert len(found.findings) <= len(hits) + 2
    assert not {9, 11, 12, 20} & {one.index for one in found.findings}
    first = found.findings[0]
    assert first.file == f"{first.index}.png"
    assert first.finding == "label_errors"
    assert f"labelled {CLASSES[labels[first.index]]!r}" in first.why
    assert f"says {CLASSES[truth[first.index]]!r}" in first.why
    measures = [one.measure for one in found.findings]
    assert measures == sorted(measures)
    assert found.notes == [
        "labels: images without a class are not looked at (1)",
        "labels: classes of fewer than 3 different images are not looked at (lone)",
        "labels: airbench-94x0.25, 8 epochs, batches of 8 images of 16x16: 176 images of 8x8",
    ]
    assert told[-1][0] == told[-1][1] == len(told)


def test_the_seed_decides_all_of_it_whatever_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.check.label_errors.LABELS", replace(LABELS, least_epochs=2, most_epochs=2))
    pixels, labels = _digits(60)
    labels[:6] = (labels[:6] + 1) % 3
    once, other = (_doubts(pixels, labels, seed=seed) for seed in (1, 2))
    monkeypatch.setattr("variegate.apps.check.label_errors.default_threads", lambda: 1)
    again = _doubts(pixels, labels, seed=1)
    assert once == again
    assert once.findings != other.findings


def test_twins_do_not_tell_each_others_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cleanlab")
    seen: list[Any] = []

    def spied(images: Any, folds: Any, *_: Any) -> Any:
        seen.append(folds)
        return np.full((len(images), images.num_classes), 1 / images.num_classes)

    monkeypatch.setattr("variegate.apps.check.label_errors.predicted", spied)
    pixels, labels = _digits(60)
    twins = [DataFinding("train", n, f"{n}.png", "duplicates", 0.0, n // 2, "") for n in range(40)]
    _doubts(pixels, labels, findings=twins)
    assert (seen[0][:40:2] == seen[0][1:40:2]).all()


@pytest.mark.parametrize(("label", "classes"), [(0, 1), (-1, 0)])
def test_fewer_than_two_classes_are_refused(label: int, classes: int) -> None:
    pixels, _ = _digits(20)
    with pytest.raises(SourceError, match=rf"labels: got {classes} classes .* accepted: two or more"):
        _doubts(pixels, np.full(20, label))


def test_a_stop_ends_it() -> None:
    pixels, labels = _digits(60)
    stop = Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        _doubts(pixels, labels, stop=stop)
