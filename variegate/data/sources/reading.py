"""Bytes of local files and of whatever fsspec reaches, behind the same few functions, with failures in plain words.

fsspec is asked for the file system anew at every call: it keeps one per process and thread, which makes these functions
safe to call from any thread and after a fork.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple

from variegate.data.sources.base import SourceError
from variegate.data.sources.remote import filesystem, named_errors, reason_for
from variegate.errors import DecodeError
from variegate.outside.files import MOST_BYTES, check_regular, open_regular, read_regular
from variegate.outside.location import Location

# What file systems call the mark of a version of a file.
_VERSIONS = ("ETag", "etag", "Last-Modified", "LastModified", "last_modified", "mtime", "created", "generation")
_STREAM_BLOCK = 4 << 20


class FileVersion(NamedTuple):
    """What tells one version of a file from another."""

    size: int
    version: str


class ByteStream:
    """A file read from its beginning to its end. ``read`` gives fewer bytes than asked for at the end, and before it
    fails, so that nothing of what has arrived is lost; the next call then gives none or raises DecodeError."""

    def __init__(self, file: Any, location: Location) -> None:
        self._file, self._location, self.name = file, location, str(location)
        self._failure = ""

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = b"" if self._failure else self._file.read(size)
            except Exception as error:  # every kind of storage has its own
                self._failure, part = reason_for(error, self._location), b""
            if self._failure and not parts:
                raise DecodeError(self.name, self._failure)
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def version_of(location: Location) -> FileVersion:
    """Size and version. Raises SourceError where the file cannot be had."""
    with named_errors(location):
        if not location.is_url:
            status = check_regular(location.address())
            return FileVersion(status.st_size, str(status.st_mtime_ns))
        fs, inner = filesystem(location)
        info = fs.info(inner)
        if info.get("type") == "directory":
            raise IsADirectoryError
    if info.get("size") is None:
        raise SourceError(f"{location}: the server does not tell its size; read it with stream=True")
    return FileVersion(int(info["size"]), " ".join(str(info[key]) for key in _VERSIONS if info.get(key) is not None))


def read_file(location: Location, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file, of which there may be no more than ``most``. Raises DecodeError."""
    with _decode_errors(location, str(location)):
        if not location.is_url:
            return read_regular(location.address(), most)
        fs, inner = filesystem(location)
        data: bytes = fs.cat_file(inner)
        return data


def read_range(location: Location, start: int, size: int, whole: int, name: str) -> bytes:
    """``size`` bytes from ``start`` of a file that had ``whole`` bytes when it was listed. DecodeError names ``name``.

    Local files are opened anew each time, some microseconds, rather than kept open: a data set may have more shards
    than a process may have open files.
    """
    with _decode_errors(location, name):
        if location.is_url:
            fs, inner = filesystem(location)
            # An empty range is not one that HTTP can ask for.
            data: bytes = fs.cat_file(inner, start=start, end=start + size) if size else b""
            if len(data) > size:
                raise DecodeError(name, "the server ignores byte ranges; read such shards with stream=True")
        else:
            with open_regular(location.address()) as file:
                now = os.fstat(file.fileno()).st_size
                if now != whole:
                    raise DecodeError(name, f"the file has changed since it was listed: {now:,} bytes, not {whole:,}")
                file.seek(start)
                data = ByteStream(file, location).read(size)
        if len(data) != size:
            raise DecodeError(name, f"only {len(data):,} of its {size:,} bytes could be read")
    return data


def open_stream(location: Location) -> ByteStream:
    """Open a file for reading once from its beginning. Raises SourceError."""
    with named_errors(location):
        if not location.is_url:
            return ByteStream(open_regular(location.address()), location)
        fs, inner = filesystem(location)
        # Over http, one request for all of it; with blocks there would be one for each.
        options = {"block_size": 0} if location.is_web else {"block_size": _STREAM_BLOCK, "cache_type": "readahead"}
        return ByteStream(fs.open(inner, "rb", **options), location)


@contextmanager
def _decode_errors(location: Location, name: str) -> Iterator[None]:
    """Whatever goes wrong underneath as a DecodeError of ``name``."""
    try:
        yield
    except DecodeError:
        raise
    except SourceError as error:
        raise DecodeError(name, error.reason(str(location))) from None
    except Exception as error:
        raise DecodeError(name, reason_for(error, location)) from None
