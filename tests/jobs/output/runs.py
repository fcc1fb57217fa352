"""A small run, as an expansion makes them: outputs and records of parts, then the manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from variegate.data.stamps import Stamps
from variegate.jobs.output.parts import FinishedPart, Parts, write_record
from variegate.jobs.output.run_folder import RunFolder
from variegate.jobs.output.run_record import read_source, write_source

SETTINGS = {"source": "photos", "seed": 0, "copies": 2, "transform": {"op": "Rotate", "angles": [-3.0, 3.0]}}
ITEMS = 4
COPIES = 2


class ItemParts:
    """Every item is a part."""

    num_parts = ITEMS

    def part_number(self, index: int, copy: int) -> int:
        return index

    def outputs_of(self, part: int) -> list[tuple[int, int]]:
        return [(part, copy) for copy in range(COPIES)]


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


def make_item(folder: RunFolder, item: int, size: int = 100) -> None:
    for copy in range(COPIES):
        folder.storage.write(file_of(item, copy), output(item, copy, size))
    folder.storage.sync()
    write_record(folder.storage, item, [row_of(item, copy, size) for copy in range(COPIES)])


def run(root: str | Path, *, resume: bool = True, size: int = 100) -> list[int]:
    """Make the remaining items, from the last to the first, and return them."""
    with RunFolder(root, SETTINGS, resume) as folder:
        remaining = Parts(folder.storage, ItemParts()).remaining
        if folder.is_complete:
            if not remaining:
                return []
            folder.claim()
        parts = Parts(folder.storage, ItemParts())
        if read_source(folder.storage) is None:
            write_source(folder.storage, stamps())
        for item in reversed(remaining):
            make_item(folder, item, size)
            parts.finished[item] = FinishedPart(COPIES, 0)
        folder.finish(parts.rows())
    return remaining


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below a folder: bytes of files, None for folders."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}
