"""What every format of outputs must do, and the records that it is tried with.

A format joins the suite with an entry in FORMATS: a function that writes records, some to a shard, as a run would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.data.contract import pictures
from variegate.data.objects.arrays import open_arrays
from variegate.data.shards import Record, describe_labels, open_shard
from variegate.data.storage import Storage
from variegate.jobs.output.files import OutputNames, output_path

CLASSES = ("bee", "tench, Tinca tinca", "ant", "Zürich")
Writer = Callable[[Storage, Sequence[Record], tuple[str, ...]], None]


def records(classes: tuple[str, ...] = CLASSES, copies: int = 2) -> list[Record]:
    """Of odd and ordinary images, in the order of their samples; one sample is missing, as if quarantined."""
    made = []
    for index, picture in enumerate(pictures()):
        label = (2, 0, 3, 1, 0, 3, 2)[index]
        name = classes[label] if classes else None
        if index != 4:
            made += [
                Record(index, copy, picture.data, picture.extension, label, name, f"in/{index}.x", index << 32)
                for copy in range(copies)
            ]
    return made


def shards(format: str) -> Writer:
    def write(storage: Storage, records: Sequence[Record], classes: tuple[str, ...]) -> None:
        labels = describe_labels(format, records[0].label, classes)
        for number, begin in enumerate(range(0, len(records), 5)):
            with open_shard(storage, format, number, labels) as shard:
                for record in records[begin : begin + 5]:
                    shard.add(record)
                shard.commit()
            storage.sync()

    return write


def folder(storage: Storage, records: Sequence[Record], classes: tuple[str, ...]) -> None:
    labels = [0] * (max(record.index for record in records) + 1)
    names = OutputNames(open_arrays(np.zeros((len(labels), 1, 1, 3), np.uint8), labels, classes))
    for record in records:
        storage.write(output_path(names.stem(record.index, record.label), record.copy, record.extension), record.data)
    storage.sync()


FORMATS: dict[str, Writer] = {"folder": folder, "webdataset": shards("webdataset"), "parquet": shards("parquet")}


def as_read(format: str, records: Sequence[Record], classes: tuple[str, ...]) -> list[tuple[bytes, Any]]:
    """Image bytes and class (its name, or the label where names are unknown), in the order that reading gives.

    Class folders are read in the order of their names; there, a label without a name becomes one.
    """
    found = [(record.data, record.class_name if classes else record.label) for record in records]
    if format != "folder":
        return found
    named = sorted(zip(records, found, strict=True), key=lambda pair: (str(pair[1][1]), pair[0].index, pair[0].copy))
    return [(data, str(name)) for _, (data, name) in named]
