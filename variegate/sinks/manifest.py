"""The manifest of a run: a Parquet file with a row for every output, and the settings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from variegate.sinks.storage import Storage

MANIFEST_NAME = "manifest.parquet"


def write_manifest(storage: Storage, rows: Iterable[dict[str, Any]], settings: dict[str, Any]) -> int:
    """Write ``manifest.parquet`` -> the number of rows.

    Keys of a row: file, member, status ("written" or "quarantined"), reason, source, index, id, copy, label, class,
    seed, epoch, height, width, operations (a list), sha256; a key that is missing is null.
    """
    raise NotImplementedError


class Manifest:
    """``row(i)`` reads one row group, of 8,192 rows."""

    settings: dict[str, Any]

    def __len__(self) -> int:
        raise NotImplementedError

    def row(self, index: int) -> dict[str, Any]:
        """``operations`` is a list again. Raises IndexError outside 0..len-1."""
        raise NotImplementedError


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """``path``: the manifest, or the folder it lies in; an address too. Raises SourceError."""
    raise NotImplementedError
