"""A small run, as an expansion makes them: outputs, then the journal, then the manifest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from variegate.formats.stamps import Stamps
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.on_disk import invalidate_lost_outputs
from variegate.jobs.output.run_record import read_source, write_source

SETTINGS = {"source": "photos", "seed": 0, "copies": 2, "transform": {"op": "Rotate", "angles": [-3.0, 3.0]}}
ITEMS = 4
COPIES = 2


def output(item: int, copy: int, size: int = 100) -> bytes:
    return f"{item} {copy} ".encode() * size


def file_of(item: int, copy: int) -> str:
    return f"{'cat' if item % 2 else 'dog'}/deep/{item:02}_{copy}.jpg"


def row_of(item: int, copy: int, size: int = 100) -> dict[str, Any]:
    data = output(item, copy, size)
    facts = {"file": file_of(item, copy), "status": "written", "index": item, "copy": copy, "bytes": len(data)}
    return facts | {"sha256": hashlib.sha256(data).hexdigest()}


def stamps() -> Stamps:
    """Of a file for each item."""
    times = np.full(ITEMS, 10**18, np.int64)
    names = [f"{item}.jpg" for item in range(ITEMS)]
    return Stamps(names, np.arange(ITEMS, dtype=np.int64), times, (), np.arange(ITEMS))


def run(
    root: str | Path,
    *,
    resume: bool = True,
    size: int = 100,
    flush_every: int = 2,
) -> Destination:
    """Do what is left to be done. The items are done from the last to the first."""
    with Destination(root, SETTINGS, resume) as destination:
        invalidate_lost_outputs(destination, lambda row: (row["index"], row["index"] + 1), False)
        if read_source(destination.storage) is None:
            destination.amend(lambda storage: write_source(storage, stamps()))
        if destination.is_complete:
            return destination
        done = {item for start, stop in destination.journal.covered for item in range(start, stop)}
        for item in reversed([item for item in range(ITEMS) if item not in done]):
            for copy in range(COPIES):
                destination.storage.write(file_of(item, copy), output(item, copy, size))
            destination.storage.sync()
            rows = [json.dumps(row_of(item, copy, size)) for copy in range(COPIES)]
            destination.journal.append(item, item + 1, rows)
            if destination.journal.pending == flush_every:
                destination.journal.flush()
        destination.finish(destination.journal.rows())
    return destination


def tree(root: str | Path) -> dict[str, bytes | None]:
    """Everything below a folder: bytes of files, None for folders."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        found |= {str((here / name).relative_to(root)): None for name in folders}
        found |= {str((here / name).relative_to(root)): (here / name).read_bytes() for name in files}
    return found
