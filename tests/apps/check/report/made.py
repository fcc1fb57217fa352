"""Results of checks made by hand."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from variegate.apps.check.findings import SCHEMA, DataFinding
from variegate.arrays import Int64Array, UInt64Array
from variegate.data.base import Item, SampleRef
from variegate.data.samples import samples_of
from variegate.errors import DecodeError

EVIL = "cats/<script>alert(1)</script>.jpg"


class Photos:
    """Files that are made when they are read; those of ``broken`` cannot be. ``read_indices``: which were."""

    fingerprint = "photos"
    is_remote = False

    def __init__(self, names: Sequence[str], classes: Sequence[str] = ("cats", "dogs"), broken: Sequence[int] = ()):
        self.names, self.classes, self.broken = names, tuple(classes), broken
        self.read_indices: list[int] = []

    def __repr__(self) -> str:
        return f"Photos({len(self.names)} samples)"

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> Item:
        self.read_indices.append(index)
        if index in self.broken:
            raise DecodeError(self.names[index], "is <b>broken</b>")
        pixels = np.full((150, 300, 3), 5 * index % 256, np.uint8)
        pixels[:, : 1 + index % 300] = 200
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG")
        return Item(buffer.getvalue(), index % 2)

    def name(self, index: int) -> SampleRef:
        return SampleRef(self.names[index])

    def ids(self, indices: Int64Array) -> UInt64Array:
        return indices.astype(np.uint64)

    def notes(self) -> list[str]:
        return []


@dataclass
class Result:
    """What a report needs of a check's."""

    table: pa.Table
    findings: Sequence[DataFinding]
    sources: dict[str, Any]
    mean: tuple[float, ...] | None = (0.5, 0.4, 0.3)
    std: tuple[float, ...] | None = (0.2, 0.2, 0.1)
    thresholds: Any = field(default=None)

    def __post_init__(self) -> None:
        self.photos = self.sources
        self.sources = {split: samples_of(source) for split, source in self.sources.items()}


def rows_of(split: str, source: Photos) -> list[dict[str, Any]]:
    rows = []
    for index, name in enumerate(source.names):
        row = dict.fromkeys(SCHEMA.names)
        label = index % 2
        row |= {"split": split, "index": index, "file": name, "label": label, "class": source.classes[label]}
        row |= {"bytes": 1000 + index, "kind": "JPEG", "mode": "RGB", "height": 150, "width": 300}
        row |= {"brightness": index / len(source), "contrast": 0.2, "sharpness": 0.001 * (index + 1)}
        rows.append(row)
    return rows


def small_result() -> Result:
    """40 train images and 10 of a test: a broken file with an evil name, dark ones, and groups of all kinds."""
    train = Photos([EVIL, *(f"cats/{n:03d}.jpg" for n in range(1, 40))], broken=[0])
    test = Photos([f"dogs/test {n}.jpg" for n in range(10)])

    def found(split: str, index: int, kind: str, measure: float | None = None, group: int | None = None) -> DataFinding:
        name = (train if split == "train" else test).names[index]
        return DataFinding(split, index, name, kind, measure, group, f"{kind} because of {index}")

    findings = [
        DataFinding("train", 0, EVIL, "corrupt", None, None, "cannot be decoded: is <b>broken</b>"),
        *(found("train", index, "dark", 0.01 * (17 * index % 40)) for index in range(1, 40)),
        *(found(split, index, "leaks", 0.0, 1) for split, index in (("train", 3), ("train", 5), ("test", 2))),
        *(found("train", index, "contradictions", 2.0, 2) for index in (6, 7)),
        *(found("train", index, "duplicates", 0.0, 3) for index in range(20, 40)),
        DataFinding("train", None, None, "imbalance", 0.1, None, "class <cats> has 10 times as many as 'dogs'"),
    ]
    table = pa.Table.from_pylist([*rows_of("train", train), *rows_of("test", test)], SCHEMA)
    return Result(table, findings, {"train": train, "test": test})
