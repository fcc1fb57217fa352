"""What a user of a check may want to know that is wrong with no image: a line each."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from variegate.formats.base import Source, StreamSource, first_names


def notes_on_classes(sources: dict[str, Source | StreamSource]) -> list[str]:
    """Labels are compared by number."""
    train, test = (sources[split].classes if split in sources else () for split in ("train", "test"))
    if not train or not test or train == test:
        return []
    others = sorted({*train} ^ {*test})
    which = f" ({first_names(others)})" if others else ""
    return [f"the test images have other classes than the train images{which}, or the same in another order"]


def notes_on_names(table: pa.Table) -> list[str]:
    """What names cannot tell apart."""
    notes = []
    for split in ("train", "test"):
        counted = pc.value_counts(table.filter(pc.equal(table["split"], split))["file"])
        shared = counted.filter(pc.greater(counted.field("counts"), 1)).field("values").to_pylist()
        if shared:
            notes.append(
                f"{len(shared):,} names are those of several {split} images ({first_names(shared)}): a list of names "
                "leaves out all images of a name"
            )
    return notes
