"""Parquet files, local or behind an address, and the image files that their rows may name: opening and reading them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.decode import read_bytes
from variegate.errors import DecodeError
from variegate.formats import reading
from variegate.formats.base import SourceError, digest_of
from variegate.io.addresses import without_secrets
from variegate.io.files import NotRegularError, open_regular
from variegate.io.location import Location, LocationLike

_ACCEPTED = "a Parquet file with a column of images"


@dataclass(frozen=True)
class ParquetFile:
    """``stamp`` changes when the file is replaced."""

    location: Location
    size: int
    stamp: str
    schema: pa.Schema
    metadata: Any  # pq.FileMetaData, kept so that opening the file again does not read the footer again

    @property
    def name(self) -> str:
        """The last part of the path, without a query; of a chained address, that of the outer file."""
        return str(self.location).rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]

    @contextmanager
    def opened(self, is_checked: bool = False) -> Iterator[pq.ParquetFile]:
        """The file, opened anew for each use; ``is_checked``: compares checksums of pages. Raises OSError."""
        with _handle(self.location) as (handle, size, stamp):
            if (size, stamp) != (self.size, self.stamp):
                raise OSError("the file has changed since it was opened")
            # Over a network, the columns' parts are fetched together and ahead. From a disk they are read bit by bit,
            # which halves the memory that decoding takes and is no slower.
            options = {"pre_buffer": True} if self.location.is_url else {"buffer_size": 1 << 20}
            options |= {"page_checksum_verification": True} if is_checked else {}
            yield pq.ParquetFile(handle, metadata=self.metadata, **options)

    def read(self, columns: list[str], what: str) -> pa.Table:
        """All rows. Raises SourceError naming the file and ``what``."""
        try:
            with self.opened() as opened:
                return opened.read(columns=columns)
        except Exception as error:
            raise SourceError(f"{self.location}: {what} cannot be read: {reason_for(error, self.location)}") from None


def open_file(path: LocationLike, accepted: str = _ACCEPTED) -> ParquetFile:
    """Read the footer of a file. Raises SourceError naming it, and what is accepted."""
    location = Location.parse(path)
    try:
        with _handle(location) as (handle, size, stamp):
            if size == 0:
                raise SourceError(f"{location}: zero bytes: the file is empty; accepted: {accepted}")
            opened = pq.ParquetFile(handle)
            schema, metadata = opened.schema_arrow, opened.metadata
    except SourceError:
        raise
    except NotRegularError as error:
        raise SourceError(f"{location}: {error.strerror}") from None
    except Exception as error:  # of pyarrow, of fsspec, or of any package that fsspec reads this address with
        raise SourceError(f"{location}: {reason_for(error, location)}; accepted: {accepted}") from None
    return ParquetFile(location, size, stamp, schema, metadata)


def reason_for(error: Exception, location: Location | None = None) -> str:
    """The reason of an error, in words for the file's owner, without the secrets of the address."""
    is_systems = isinstance(error, OSError) and error.errno is not None
    location = location or Location.of("")
    if not isinstance(error, pa.ArrowException) and (location.is_url or is_systems):
        return reading.reason_for(error, location)
    text = " ".join(without_secrets(str(error)).split()).rstrip(".") or type(error).__name__
    if isinstance(error, pa.ArrowInvalid) and ("magic bytes" in text or "too small" in text or "file size" in text):
        return "not a Parquet file, or cut short: it does not end as one does"
    return f"damaged: {text}" if isinstance(error, pa.ArrowException) else text


@contextmanager
def _handle(location: Location) -> Iterator[tuple[Any, int, str]]:
    """The open file, its size and a stamp."""
    if not location.is_url:
        with open_regular(location.address()) as handle:
            status = os.fstat(handle.fileno())
            # Arrow's own file: it reads without holding Python's lock. By the descriptor where the system has names for
            # those, because by its own name it may be another file by now.
            same = f"/dev/fd/{handle.fileno()}"
            with pa.OSFile(same if os.path.exists(same) else location.address()) as file:
                yield file, status.st_size, str(status.st_mtime_ns)
        return
    system, inner = reading.filesystem(location)
    # Whatever the storage tells of a file: its checksum, version or time, where it has them.
    stamp = digest_of(repr(sorted(system.info(inner).items(), key=str)))
    with system.open(inner, "rb") as handle:
        yield handle, int(system.size(inner)), stamp


_LONGEST_NAME = 200


def check_root(image_root: str | os.PathLike[str]) -> str:
    """The folder that named files are read from. Raises SourceError for what is none of this machine."""
    location = Location.parse(image_root)
    if location.is_url or not os.path.isdir(location.address()):
        what = "an address" if location.is_url else "no such folder"
        raise SourceError(f"image_root: got {str(location)!r}, {what}; accepted: a folder of this machine")
    return os.path.abspath(location.address())


def read_named_file(path: str, table: Location, root: str | None, name: str) -> bytes:
    """The file that a row names by ``path``, below ``root`` or the table's folder. Raises DecodeError."""
    quoted = repr(path if len(path) <= _LONGEST_NAME else path[: _LONGEST_NAME - 3] + "...")
    if root is None and not table.is_url:
        root = os.path.dirname(table.address()) or "."
    if not path or root is None:
        what = f", and {quoted} is on another machine; accepted: image_root=, a folder of this one" if path else ""
        raise DecodeError(name, f"no image: its bytes are null{what}")
    try:
        # What links and ".." come to, so that neither leads out.
        place, top = os.path.realpath(os.path.join(root, path)), os.path.realpath(root)
        is_inside = os.path.splitdrive(place)[0] == os.path.splitdrive(top)[0]
        is_inside = is_inside and os.path.commonpath([place, top]) == top
    except (OSError, ValueError):  # NUL in it
        raise DecodeError(name, f"no image: its bytes are null, and {quoted} is no name of a file") from None
    if not is_inside:
        raise DecodeError(
            name,
            f"no image: its bytes are null, and it names {quoted}, which is outside of {root}; accepted: files "
            "below it, or below image_root= of open_source",
        )
    if not os.path.lexists(place):
        raise DecodeError(name, f"no image: its bytes are null, and there is no file {quoted} in {root}")
    return read_bytes(place, f"{name}: {path}")
