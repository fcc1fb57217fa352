"""What fsspec reaches: its file systems, listings of their folders, and its failures in plain words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from variegate.data.sources.base import SourceError
from variegate.data.sources.file_kinds import KIND_NAMES
from variegate.outside.addresses import without_secrets
from variegate.outside.files import NotRegularError, TooLargeError, check_regular
from variegate.outside.location import Location

# Packages that fsspec needs for what is asked of it most often.
_PACKAGES = {
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **{"hf": "huggingface_hub", "oci": "ocifs", "oss": "ossfs", "smb": "smbprotocol", "webhdfs": "requests"},
}
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
    """The fsspec file system of an address, and the path in it. Raises SourceError where there is none."""
    from fsspec.core import url_to_fs  # here: a run on local files needs no fsspec

    options: dict[str, Any] = {}
    with named_errors(location):
        for protocol in {"http", "https"}.intersection(location.protocols):
            from aiohttp import ClientTimeout

            # aiohttp ends whatever takes longer than five minutes, which a shard read at the pace of training does.
            patience = ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
            options[protocol] = {"client_kwargs": {"timeout": patience}}
        _check_innermost(location.address())
        fs, path = url_to_fs(location.address(), **options)
    return fs, path


def listable_filesystem(location: Location) -> tuple[Any, str]:
    """``filesystem``, but of web servers. Raises SourceError."""
    if location.is_web:
        raise SourceError(
            f"{location}: http servers cannot list a folder; put the images into {' or '.join(KIND_NAMES)} and "
            "give their addresses"
        )
    return filesystem(location)


def find_below(location: Location, withdirs: bool = False) -> dict[str, dict[str, Any]]:
    """What fsspec tells of all files below a folder, and of the folders if asked to, by their paths in it."""
    fs, root = listable_filesystem(location)
    with named_errors(location):
        found = fs.find(root, withdirs=withdirs, detail=True)
    begin = len(root.rstrip("/")) + 1 if root.strip("/") else len(root)
    return {path[begin:].strip("/"): info for path, info in found.items()}


def list_names(location: Location) -> list[str]:
    """The files right in a remote folder, and its sub-folders with a slash at their ends; sorted.

    Raises SourceError where it cannot be listed, or is a file.
    """
    fs, root = listable_filesystem(location)
    with named_errors(location):
        if not fs.isdir(root):
            what = "is a file, not a folder" if fs.exists(root) else "no such file or folder"
            raise SourceError(f"{location}: {what}")
        entries = fs.ls(root, detail=True)
    paths = [(entry["name"].rstrip("/"), entry["type"] == "directory") for entry in entries]
    own = root.rstrip("/")
    return sorted(path.rpartition("/")[2] + "/" * is_folder for path, is_folder in paths if path != own)


def _check_innermost(address: str) -> None:
    """A chain may end at a file of this machine, which fsspec would wait for if it is a FIFO."""
    _, chained, last = address.rpartition("::")
    inner = Location.parse(last)
    if chained and (not inner.is_url or inner.protocols[0] in ("file", "local")):
        path = inner.address()
        if os.path.exists(path) and not os.path.isdir(path):
            check_regular(path)


def reason_for(error: BaseException, location: Location, verb: str = "read") -> str:
    """What went wrong, in a few words without secrets; ``location`` is what was asked for, ``verb`` what for."""
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
    text = " ".join(without_secrets(str(error), location.address()).split()).rstrip(".")
    if isinstance(error, ImportError) and location.is_url:
        return _missing_package(location, text)
    if isinstance(error, ValueError) and text.startswith("Protocol not known"):
        return f"unknown protocol {text.rpartition(' ')[2]}://; fsspec knows memory, http, https, s3, gs, zip and more"
    if isinstance(error, OSError) and error.strerror and not location.is_url:
        return f"cannot be {verb} ({error.strerror})"
    return f"cannot be {verb} ({kind}: {text})" if text else f"cannot be {verb} ({kind})"


def _missing_package(location: Location, text: str) -> str:
    package = next((_PACKAGES[protocol] for protocol in location.protocols if protocol in _PACKAGES), None)
    if package is None:
        return f"a package is missing ({text})"
    return f"reading {location.protocols[0]}:// needs the package {package}: pip install {package}"
