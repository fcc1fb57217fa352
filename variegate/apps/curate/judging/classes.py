"""What is odd about how many images the classes have, split by split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.curate.finding import DataFinding
from variegate.apps.curate.judging.thresholds import Thresholds


def class_findings(table: pa.Table, thresholds: Thresholds) -> list[DataFinding]:
    """imbalance, lone_files; none where images have no classes, or all have one. An image that does not decode counts:
    it has been meant for its class."""
    found: list[DataFinding] = []
    for split in ("train", "test"):
        rows = table.filter(pc.and_(pc.equal(table["split"], split), pc.greater_equal(table["label"], 0)))
        labels, first, which, sizes = np.unique(
            rows["label"].to_numpy(), return_index=True, return_inverse=True, return_counts=True
        )
        if len(labels) < 2:
            continue
        named = [rows["class"][row].as_py() or str(labels[i]) for i, row in enumerate(first.tolist())]
        largest, smallest = int(sizes.argmax()), int(sizes.argmin())
        ratio = float(sizes[largest] / sizes[smallest])
        if split == "train" and ratio > thresholds.imbalance:
            why = (
                f"class {named[largest]} has {sizes[largest]:,} images, class {named[smallest]} {sizes[smallest]:,}: "
                f"{ratio:.1f} times as many, more than {thresholds.imbalance:g}"
            )
            found.append(DataFinding(split, None, None, "imbalance", ratio, None, why))
        for row in np.flatnonzero(sizes[which] == 1).tolist():
            index, file = rows["index"][row].as_py(), rows["file"][row].as_py()
            why = f"class {named[which[row]]} has no other image"
            found.append(DataFinding(split, index, file, "lone_files", 1.0, None, why))
    return found
