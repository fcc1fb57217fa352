"""Bytes of local files and of whatever fsspec reaches, behind the same few functions, with failures in plain words.

Paths may be local or addresses. fsspec is asked for the file system anew at every call: it keeps one per process and
thread, which makes these functions safe to call from any thread and after a fork.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, NamedTuple

from variegate.data.sources.base import SourceError
from variegate.data.sources.paths import is_url, plain, protocols, shown, without_secrets
from variegate.errors import DecodeError
from variegate.outside.files import (
    MOST_BYTES,
    NotRegularError,
    TooLargeError,
    check_regular,
    open_regular,
    read_regular,
)

# Packages that fsspec needs for what is asked of it most often.
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


class Stamp(NamedTuple):
    """What tells one version of a file from another."""

    size: int
    version: str


class ByteStream:
    """A file read from its beginning to its end. ``read`` gives fewer bytes than asked for at the end, and before it
    fails, so that nothing of what has arrived is lost; the next call then gives none or raises DecodeError."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path, self.name = file, path, shown(path)
        self._failure = ""

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = b"" if self._failure else self._file.read(size)
            except Exception as error:  # every kind of storage has its own
                self._failure, part = reason_for(error, self._path), b""
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


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it. Raises SourceError where there is none."""
    from fsspec.core import url_to_fs  # here: a run on local files needs no fsspec

    options: dict[str, Any] = {}
    try:
        for protocol in {"http", "https"} & set(protocols(url)):
            from aiohttp import ClientTimeout

            # aiohttp ends whatever takes longer than five minutes, which a shard read at the pace of training does.
            patience = ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
            options[protocol] = {"client_kwargs": {"timeout": patience}}
        _check_innermost(url)
        fs, path = url_to_fs(url, **options)
    except Exception as error:
        raise SourceError(f"{shown(url)}: {reason_for(error, url)}") from None
    return fs, path


def _check_innermost(url: str) -> None:
    """A chain may end at a file of this machine, which fsspec would wait for if it is a FIFO."""
    _, chained, last = url.rpartition("::")
    if chained and (not is_url(last) or protocols(last)[0] in ("file", "local")):
        place = plain(last)
        if os.path.exists(place) and not os.path.isdir(place):
            check_regular(place)


def stat(path: str) -> Stamp:
    """Size and version. Raises SourceError where the file cannot be had."""
    try:
        if not is_url(path):
            found = check_regular(path)
            return Stamp(found.st_size, str(found.st_mtime_ns))
        fs, inner = filesystem(path)
        info = fs.info(inner)
        if info.get("type") == "directory":
            raise IsADirectoryError
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{shown(path)}: {reason_for(error, path)}") from None
    if info.get("size") is None:
        raise SourceError(f"{shown(path)}: the server does not tell its size; read it with stream=True")
    return Stamp(int(info["size"]), " ".join(str(info[key]) for key in _VERSIONS if info.get(key) is not None))


def read_file(path: str, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file, of which there may be no more than ``most``. Raises DecodeError."""
    try:
        if not is_url(path):
            return read_regular(path, most)
        fs, inner = filesystem(path)
        data: bytes = fs.cat_file(inner)
        return data
    except SourceError as error:
        raise DecodeError(shown(path), error.reason(shown(path))) from None
    except Exception as error:
        raise DecodeError(shown(path), reason_for(error, path)) from None


def read_range(path: str, start: int, size: int, whole: int, name: str) -> bytes:
    """``size`` bytes from ``start`` of a file that had ``whole`` bytes when it was listed. DecodeError names ``name``.

    Local files are opened anew each time, some microseconds, rather than kept open: a data set may have more shards
    than a process may have open files.
    """
    try:
        if is_url(path):
            fs, inner = filesystem(path)
            # An empty range is not one that HTTP can ask for.
            data: bytes = fs.cat_file(inner, start=start, end=start + size) if size else b""
            if len(data) > size:
                raise DecodeError(name, "the server ignores byte ranges; read such shards with stream=True")
        else:
            with open_regular(path) as file:
                now = os.fstat(file.fileno()).st_size
                if now != whole:
                    raise DecodeError(name, f"the file has changed since it was listed: {now:,} bytes, not {whole:,}")
                file.seek(start)
                data = ByteStream(file, path).read(size)
    except DecodeError:
        raise
    except SourceError as error:
        raise DecodeError(name, error.reason(shown(path))) from None
    except Exception as error:
        raise DecodeError(name, reason_for(error, path)) from None
    if len(data) != size:
        raise DecodeError(name, f"only {len(data):,} of its {size:,} bytes could be read")
    return data


def open_stream(path: str) -> ByteStream:
    """Open a file for reading once from its beginning. Raises SourceError."""
    try:
        if not is_url(path):
            return ByteStream(open_regular(path), path)
        fs, inner = filesystem(path)
        if protocols(path)[0] in ("http", "https"):
            # One request for all of it; with blocks there would be one for each.
            return ByteStream(fs.open(inner, "rb", block_size=0), path)
        return ByteStream(fs.open(inner, "rb", block_size=_STREAM_BLOCK, cache_type="readahead"), path)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{shown(path)}: {reason_for(error, path)}") from None


def reason_for(error: BaseException, path: str, verb: str = "read") -> str:
    """What went wrong, in a few words without secrets; ``path`` is what was asked for, ``verb`` what for."""
    is_web = is_url(path) and not {"http", "https"}.isdisjoint(protocols(path))
    if is_web and isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        return reason_for(error.__cause__, path, verb)  # fsspec says so of any failure over http
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
    text = " ".join(without_secrets(str(error), path).split()).rstrip(".")
    if isinstance(error, ImportError) and is_url(path):
        return _missing_package(path, text)
    if isinstance(error, ValueError) and text.startswith("Protocol not known"):
        return f"unknown protocol {text.rpartition(' ')[2]}://; fsspec knows memory, http, https, s3, gs, zip and more"
    if isinstance(error, OSError) and error.strerror and not is_url(path):
        return f"cannot be {verb} ({error.strerror})"
    return f"cannot be {verb} ({kind}: {text})" if text else f"cannot be {verb} ({kind})"


def _missing_package(path: str, text: str) -> str:
    package = next((_PACKAGES[protocol] for protocol in protocols(path) if protocol in _PACKAGES), None)
    if package is None:
        return f"a package is missing ({text})"
    return f"reading {protocols(path)[0]}:// needs the package {package}: pip install {package}"
