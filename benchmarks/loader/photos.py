"""The files that every loader reads: one folder per class, laid down once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

CLASSES = 100


def lay_down(jpegs: Sequence[bytes], folder: Path, copies: int) -> None:
    """``copies`` links to each file, so that an epoch can be longer than the sample of photos is."""
    for number, data in enumerate(jpegs):
        home = folder / f"class-{number % CLASSES:03d}"
        home.mkdir(parents=True, exist_ok=True)
        first = home / f"{number:05d}-0.jpg"
        first.write_bytes(data)
        for copy in range(1, copies):
            os.link(first, home / f"{number:05d}-{copy}.jpg")


def listing(folder: Path) -> tuple[list[Path], list[int]]:
    """Files and labels in the order that ImageFolder gives them, which is where ids come from."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    labelled = [(file, label) for label, home in enumerate(classes) for file in sorted(home.iterdir())]
    return [file for file, _ in labelled], [label for _, label in labelled]
