"""An entropy index of files in memory, for the processes of ours that are measured with one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import variegate as vg


def entropy_index(jpegs: list[bytes]) -> vg.EntropyIndex:
    """Of all these files, as ``variegate index`` makes it: kept, and mapped to memory."""
    with tempfile.TemporaryDirectory() as folder:
        index = vg.EntropyIndex(Path(folder) / "files.vgjpeg")
        for data in jpegs:
            index.add(data)
        index.save()
    return index
