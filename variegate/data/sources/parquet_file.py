"""Parquet files, local or behind an address: opening them, and knowing them again after they were replaced."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.data.sources.base import SourceError

_ACCEPTED = "a Parquet file with a column of images"


@dataclass(frozen=True)
class ParquetFile:
    """``path`` as the user gave it, ``local`` where it is on this machine; ``stamp`` changes when it is replaced."""

    path: str
    local: str | None
    size: int
    stamp: str
    schema: pa.Schema
    metadata: Any  # pq.FileMetaData, kept so that opening the file again does not read the footer again

    @property
    def name(self) -> str:
        """The last part of the path, without what an address has behind it (tokens that expire, for one)."""
        path = self.path if self.local is not None else self.path.split("?")[0]
        return path.rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]

    @contextmanager
    def opened(self, is_checked: bool = False) -> Iterator[pq.ParquetFile]:
        """Each use opens the file anew, so threads share nothing. Raises OSError where it was replaced meanwhile.

        ``is_checked``: reading compares the checksums of pages, where the file has any.
        """
        with _handle(self.path, self.local) as (handle, size, stamp):
            if (size, stamp) != (self.size, self.stamp):
                raise OSError("the file has changed since it was opened")
            # Over a network, the columns' parts are fetched together and ahead. From a disk they are read bit by bit,
            # which halves the memory that decoding takes and is no slower.
            options = {"pre_buffer": True} if self.local is None else {"buffer_size": 1 << 20}
            options |= {"page_checksum_verification": True} if is_checked else {}
            yield pq.ParquetFile(handle, metadata=self.metadata, **options)


def open_file(path: str | os.PathLike[str], accepted: str = _ACCEPTED) -> ParquetFile:
    """Read the footer of a file. Raises SourceError naming it, and what is accepted."""
    path = os.fspath(path)
    try:
        local = _local_path(path)
        with _handle(path, local) as (handle, size, stamp):
            if size == 0:
                raise SourceError(f"{path}: zero bytes: the file is empty; accepted: {accepted}")
            opened = pq.ParquetFile(handle)
            schema, metadata = opened.schema_arrow, opened.metadata
    except SourceError:
        raise
    except FileNotFoundError as error:
        raise SourceError(f"{path}: no such file; accepted: {accepted}") from error
    except IsADirectoryError as error:
        raise SourceError(f"{path}: a folder, not a file; accepted: {accepted}") from error
    except Exception as error:  # of pyarrow, of fsspec, or of any package that fsspec reads this address with
        raise SourceError(f"{path}: {reason_for(error)}; accepted: {accepted}") from error
    return ParquetFile(path, local, size, stamp, schema, metadata)


def reason_for(error: Exception) -> str:
    """What went wrong, in words for the file's owner where Arrow's are for its author."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if isinstance(error, pa.ArrowInvalid) and ("magic bytes" in text or "too small" in text or "file size" in text):
        return "not a Parquet file, or cut short: it does not end as one does"
    if isinstance(error, (pa.ArrowInvalid, pa.ArrowException)):
        return f"damaged: {text}"
    return text


def _local_path(path: str) -> str | None:
    if "://" not in path and "::" not in path:
        return path
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    system, inner = fsspec.core.url_to_fs(path)
    return str(inner) if isinstance(system, LocalFileSystem) else None


@contextmanager
def _handle(path: str, local: str | None) -> Iterator[tuple[Any, int, str]]:
    """The open file, its size and a stamp."""
    if local is not None:
        with open(local, "rb") as handle:
            status = os.fstat(handle.fileno())
        # Arrow's own file: it reads without holding Python's lock.
        with pa.OSFile(local) as file:
            yield file, status.st_size, str(status.st_mtime_ns)
        return
    import fsspec

    system, inner = fsspec.core.url_to_fs(path)
    # Whatever the storage tells of a file: its checksum, version or time, where it has them.
    stamp = hashlib.sha256(repr(sorted(system.info(inner).items(), key=str)).encode()).hexdigest()[:16]
    with system.open(inner, "rb") as handle:
        yield handle, int(system.size(inner)), stamp
