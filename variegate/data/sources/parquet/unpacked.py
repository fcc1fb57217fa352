"""Rows of bytes in a plain file, so that one is had with a single read instead of decoding the hundreds around it.

Parquet compresses and encodes whole pages of a column, so a row has no place of its own in the file. Here it has:

    the rows one after another | int64[N] lengths | int64 N | "VGROWS01"

A length of -1-L is a row without bytes; the L bytes in its place are the path that it names instead. Numbers are little
endian. A file appears under its name only when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from variegate.outside.durable import write_pieces

_MAGIC = b"VGROWS01"

# The bytes of a row; None and a path ("" where there is none either) for a row without.
Row = tuple[bytes | None, str]


@dataclass(frozen=True)
class UnpackedRows:
    path: Path
    lengths: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.lengths.nbytes + self.starts.nbytes

    def row(self, index: int) -> Row:
        """Raises OSError where the file is gone or ends early."""
        length, start = self.lengths.item(index), self.starts.item(index)
        size = length if length >= 0 else -1 - length
        # Opened each time: a data set may have more groups than a process may have open files.
        with open(self.path, "rb", buffering=0) as file:
            file.seek(start)
            data = file.read(size)
        if len(data) != size:
            raise OSError(f"{self.path}: ends after {start + len(data):,} bytes")
        return (data, "") if length >= 0 else (None, os.fsdecode(data))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Several processes may do so at once. Raises OSError, and what ``rows`` raises."""
    write_pieces(path, _pieces(rows), durable=True, several_writers=True)


def _pieces(rows: Iterable[Row]) -> Iterator[bytes]:
    lengths: list[int] = []
    for data, instead in rows:
        stored = os.fsencode(instead) if data is None else data
        lengths.append(-1 - len(stored) if data is None else len(stored))
        yield stored
    yield np.array([*lengths, len(lengths)], "<i8").tobytes() + _MAGIC


def open_rows(path: Path, count: int) -> UnpackedRows | None:
    """None where the file is missing, or is not a whole one of ``count`` rows."""
    tail = 8 * count + 8 + len(_MAGIC)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < tail:
                return None
            file.seek(size - tail)
            end = file.read(tail)
    except OSError:
        return None
    numbers = np.frombuffer(end[: -len(_MAGIC)], "<i8").astype(np.int64)
    if end[-len(_MAGIC) :] != _MAGIC or numbers[-1] != count:
        return None
    lengths = numbers[:-1]
    stored = np.where(lengths >= 0, lengths, -1 - lengths)
    ends = np.cumsum(stored)
    if (int(ends[-1]) if count else 0) != size - tail:
        return None
    return UnpackedRows(path, lengths, ends - stored)
