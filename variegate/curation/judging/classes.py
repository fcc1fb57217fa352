"""What is odd about how many images the classes have, split by split."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from variegate.curation.finding import DataFinding
from variegate.curation.judging.thresholds import Thresholds


def class_findings(table: pa.Table, thresholds: Thresholds) -> list[DataFinding]:
    """imbalance, lone_files; none where images have no classes."""
    found: list[DataFinding] = []
    for split in ("train", "test"):
        rows = table.filter(pc.and_(pc.equal(table["split"], split), pc.greater_equal(table["label"], 0)))
        labels = rows["label"].to_pylist()
        sizes = Counter(labels)
        if len(sizes) < 2:
            continue
        names = dict(zip(labels, rows["class"].to_pylist(), strict=True))
        named = {label: names[label] or str(label) for label in sizes}
        (largest, most), (smallest, least) = max_and_min(sizes)
        if split == "train" and most / least > thresholds.imbalance:
            why = (
                f"class {named[largest]} has {most:,} images, class {named[smallest]} {least:,}: "
                f"{most / least:.1f} times as many, more than {thresholds.imbalance:g}"
            )
            found.append(DataFinding(split, None, None, "imbalance", most / least, None, why))
        for row, label in enumerate(labels):
            if sizes[label] == 1:
                why = f"class {named[label]} has no other image"
                index, file = rows["index"][row].as_py(), rows["file"][row].as_py()
                found.append(DataFinding(split, index, file, "lone_files", 1.0, None, why))
    return found


def max_and_min(sizes: Counter[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(label, images) of the largest class and of the smallest; of equal ones, the first label."""
    order = sorted(sizes.items())
    return max(order, key=lambda one: one[1]), min(order, key=lambda one: one[1])
