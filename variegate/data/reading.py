"""Bytes of local files and of whatever fsspec reaches, with failures in plain words.

fsspec's file system is requested at every call, because it is cached per process and thread: these functions are safe
to call from any thread and after a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Any, NamedTuple, cast

from variegate.data.base import SourceError, digest_of
from variegate.data.kinds import KIND_NAMES
from variegate.errors import DecodeError, one_line
from variegate.io.files import (
    MOST_BYTES,
    NotRegularError,
    TooLargeError,
    check_regular,
    open_regular,
    read_regular,
)
from variegate.io.location import Location, LocationLike

# Packages that fsspec needs for common protocols.
_PACKAGES = {
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **{"hf": "huggingface_hub", "oci": "ocifs", "oss": "ossfs", "smb": "smbprotocol", "webhdfs": "requests"},
}
# What file systems call the mark of a version of a file.
_VERSIONS = ("ETag", "etag", "Last-Modified", "LastModified", "last_modified", "mtime", "created", "generation")
_STREAM_BLOCK = 4 << 20
_SILENCE_S = 60


@contextmanager
def named_errors(location: Location) -> Iterator[None]:
    """Whatever goes wrong underneath, which every kind of storage says in its own way, as a SourceError."""
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{location}: {reason_for(error, location)}") from None


def filesystem(location: Location) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it. Raises SourceError for an unknown protocol or a missing
    package."""
    from fsspec.core import url_to_fs  # here: a run on local files needs no fsspec

    options: dict[str, Any] = {}
    with named_errors(location):
        for protocol in {"http", "https"}.intersection(location.protocols):
            from aiohttp import ClientTimeout

            # aiohttp ends whatever takes longer than five minutes, which a shard read at the pace of training does.
            patience = ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
            options[protocol] = {"client_kwargs": {"timeout": patience}}
        # A chain may end at a file of this machine, which fsspec would wait for if it is a FIFO.
        _, chained, last = location.address().rpartition("::")
        inner = Location.parse(last)
        is_local = chained and (not inner.is_url or inner.protocols[0] in ("file", "local"))
        if is_local and os.path.exists(inner.address()) and not os.path.isdir(inner.address()):
            check_regular(inner.address())
        fs, path = url_to_fs(location.address(), **options)
    return fs, path


def parse_file(argument: str, spec: LocationLike) -> Location:
    """The location of a file next to the source, such as a list. Raises SourceError for an address within another."""
    try:
        return Location.parse(spec)
    except ValueError as error:
        raise SourceError(f"{argument}: {error}") from None


def listable_filesystem(location: Location) -> tuple[Any, str]:
    """``filesystem``, but of web servers. Raises SourceError."""
    if location.is_web:
        raise SourceError(
            f"{location}: http servers cannot list a folder; put the images into {' or '.join(KIND_NAMES)} and "
            "give their addresses"
        )
    return filesystem(location)


def find_below(location: Location, withdirs: bool = False) -> dict[str, dict[str, Any]]:
    """Entries of fsspec for all files below a folder, and of the folders if asked to, by their paths in it."""
    fs, root = listable_filesystem(location)
    with named_errors(location):
        found = fs.find(root, withdirs=withdirs, detail=True)
    begin = len(root.rstrip("/")) + 1 if root.strip("/") else len(root)
    return {path[begin:].strip("/"): info for path, info in found.items()}


@contextmanager
def open_random(location: Location) -> Iterator[tuple[Any, int, str]]:
    """Open a file for reads at any place -> (the file, its size in bytes, a stamp that changes with it)."""
    import pyarrow as pa

    if not location.is_url:
        with open_regular(location.address()) as handle:
            status = os.fstat(handle.fileno())
            # Arrow's own file: it reads without holding Python's lock. By the descriptor where the system has names for
            # those, because by its own name it may be another file by now.
            same = f"/dev/fd/{handle.fileno()}"
            with pa.OSFile(same if os.path.exists(same) else location.address()) as file:
                yield file, status.st_size, str(status.st_mtime_ns)
        return
    system, inner = filesystem(location)
    # The storage's metadata of a file: its checksum, version or time.
    stamp = digest_of(repr(sorted(system.info(inner).items(), key=str)))
    with system.open(inner, "rb") as handle:
        yield handle, int(system.size(inner)), stamp


def reason_for(error: BaseException, location: Location, verb: str = "read") -> str:
    """A short reason of an error, without secrets; ``location`` is the requested address, ``verb`` the operation."""
    is_web = not {"http", "https"}.isdisjoint(location.protocols)
    if is_web and isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        return reason_for(error.__cause__, location, verb)  # fsspec says so of any failure over http
    status = getattr(error, "status", None)
    if isinstance(status, int):
        meaning = {401: " (not authorised)", 403: " (forbidden)", 404: " (no such file)"}.get(status, "")
        return f"the server answers HTTP {status}{meaning}"
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder, not a file"
    if isinstance(error, (NotRegularError, TooLargeError)):
        return str(error.strerror)
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, TimeoutError) or "Timeout" in kind:
        return "the connection timed out"
    if isinstance(error, ConnectionRefusedError) or isinstance(
        getattr(error, "os_error", None), ConnectionRefusedError
    ):
        return "connection refused"
    if isinstance(error, ConnectionError) or kind in ("ClientPayloadError", "ServerDisconnectedError"):
        return "the connection broke off"
    text = one_line(error, location.address()).rstrip(".")
    if isinstance(error, ImportError) and location.is_url:
        package = next((_PACKAGES[protocol] for protocol in location.protocols if protocol in _PACKAGES), None)
        if package is None:
            return f"a package is missing ({text})"
        return f"reading {location.protocols[0]}:// needs the package {package}: pip install {package}"
    if isinstance(error, ValueError) and text.startswith("Protocol not known"):
        return f"unknown protocol {text.rpartition(' ')[2]}://; fsspec knows memory, http, https, s3, gs, zip and more"
    if isinstance(error, OSError) and error.strerror and not location.is_url:
        return f"cannot be {verb} ({error.strerror})"
    return f"cannot be {verb} ({kind}: {text})" if text else f"cannot be {verb} ({kind})"


class FileVersion(NamedTuple):
    """A size, -1 if the server does not report it, and a mark, by which versions of a file differ."""

    size: int
    version: str


class ByteStream:
    """A file read from its beginning to its end. ``read`` returns fewer bytes than requested at the end, and before a
    failure, so that received bytes are not lost; the next call then returns none or raises DecodeError."""

    def __init__(self, file: Any, location: Location) -> None:
        self._file = file
        self._location = location
        self.name = str(location)
        self._failure = ""
        self.count = 0  # bytes read

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = b"" if self._failure else self._file.read(size)
            except Exception as error:  # every kind of storage has its own
                self._failure = reason_for(error, self._location)
                part = b""
            if self._failure and not parts:
                raise DecodeError(self.name, self._failure)
            if not part:
                break
            parts.append(part)
            size -= len(part)
            self.count += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def version_of(location: Location, needs_size: bool = True) -> FileVersion:
    """Size and version. Raises SourceError where the file cannot be had, or has no size although it needs one."""
    with named_errors(location):
        if not location.is_url:
            status = check_regular(location.address())
            return FileVersion(status.st_size, str(status.st_mtime_ns))
        fs, inner = filesystem(location)
        info = fs.info(inner)
        if info.get("type") == "directory":
            raise IsADirectoryError
    size = info.get("size")
    if size is None and needs_size:
        raise SourceError(f"{location}: the server does not report its size")
    mark = " ".join(str(info[key]) for key in _VERSIONS if info.get(key) is not None)
    return FileVersion(-1 if size is None else int(size), mark)


def is_file(location: Location) -> bool:
    """Raises SourceError for an address that cannot be reached."""
    if not location.is_url:
        return os.path.isfile(location.address())
    fs, path = filesystem(location)
    with named_errors(location):
        return bool(fs.isfile(path))


def read_file(location: Location, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file, at most ``most``. Raises DecodeError."""
    with _decode_errors(location, str(location)):
        if not location.is_url:
            return read_regular(location.address(), most)
        fs, inner = filesystem(location)
        return cast(bytes, fs.cat_file(inner))


def read_range(
    location: Location,
    start: int,
    size: int,
    whole: int,
    name: str,
    open_copy: Callable[[], FileIO | None] | None = None,
) -> bytes:
    """``size`` bytes from ``start`` of a file, or of its local copy, that had ``whole`` bytes when it was listed.
    DecodeError names ``name``. Local files are reopened each time, because a data set may have more shards than a
    process may have open files."""
    with _decode_errors(location, name):
        copy = None if open_copy is None else open_copy()
        if location.is_url and copy is None:
            fs, inner = filesystem(location)
            # An empty range is not one that HTTP can ask for.
            data: bytes = fs.cat_file(inner, start=start, end=start + size) if size else b""
            if len(data) > size:
                raise DecodeError(name, "the server ignores byte ranges")
        else:
            with copy or open_regular(location.address()) as file:
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
        # Over http, one request for the full file instead of one per block.
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
