"""A small run, as an expansion makes them: outputs, then the journal, then the manifest."""

from __future__ import annotations

import json
import os
from pathlib import Path

from variegate.sinks.destination import Destination

SETTINGS = {"source": "photos", "seed": 0, "copies": 2, "transform": {"op": "Rotate", "angles": [-3.0, 3.0]}}
ITEMS = 4
COPIES = 2


def output(item: int, copy: int, size: int = 100) -> bytes:
    return f"{item} {copy} ".encode() * size


def file_of(item: int, copy: int) -> str:
    return f"{'cat' if item % 2 else 'dog'}/deep/{item:02}_{copy}.jpg"


def run(root: str | Path, *, resume: bool = True, size: int = 100, flush_every: int = 2) -> Destination:
    """Do what is left to be done. The items are done from the last to the first."""
    with Destination.open(root, SETTINGS, "plan", resume) as destination:
        if destination.is_complete:
            return destination
        done = {item for start, stop in destination.journal.covered for item in range(start, stop)}
        for item in reversed([item for item in range(ITEMS) if item not in done]):
            rows = []
            for copy in range(COPIES):
                destination.storage.write(file_of(item, copy), output(item, copy, size))
                row = {"file": file_of(item, copy), "status": "written", "index": item, "copy": copy}
                rows.append(json.dumps(row))
            destination.storage.sync()
            destination.journal.append(item, item + 1, rows)
            if destination.journal.pending == flush_every:
                destination.journal.flush()
        destination.finish(destination.journal.rows(ITEMS))
    return destination


def tree(root: str | Path) -> dict[str, bytes | None]:
    """Everything below a folder: bytes of files, None for folders."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        found |= {str((here / name).relative_to(root)): None for name in folders}
        found |= {str((here / name).relative_to(root)): (here / name).read_bytes() for name in files}
    return found
