"""Addresses that fsspec writes to: object stores, and file servers."""

from __future__ import annotations

import errno
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from variegate.data.base import SourceError
from variegate.data.reading import filesystem, reason_for
from variegate.data.storage.base import TEMPORARY, FileWriter, Storage, check_relative
from variegate.data.storage.local import LocalStorage
from variegate.io.durable import WriteError, named_write_errors, write_error
from variegate.io.files import StrPath
from variegate.io.location import Location

# Storages on which an object appears only when it is complete. Elsewhere a reader could see half a file.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss", "tos", "hf", "memory"})


def open_storage(spec: StrPath) -> Storage:
    """A folder, or an address; touches nothing yet. Raises SourceError for one that cannot be written to."""
    location = Location.parse(spec, chain=True)
    if not location.is_url:
        return LocalStorage(location.address())
    is_chain = len(location.protocols) > 1
    if is_chain or location.is_web:
        what = "an address within another" if is_chain else "http servers take no files"
        raise SourceError(f"{location}: {what}; accepted: a folder, or an address of one such as s3://bucket/folder")
    fs, inner = filesystem(location)
    if "file" in (fs.protocol if isinstance(fs.protocol, (tuple, list)) else (fs.protocol,)):
        return LocalStorage(inner)
    return RemoteStorage(location)


class RemoteStorage(Storage):
    """Files below an address; uploads are durable, so that ``sync`` has nothing to do. On file servers a file is
    uploaded under a temporary name and moved. If moving does not replace, the old file is removed first, and for a
    moment there is no file."""

    is_remote = True

    def __init__(self, location: Location) -> None:
        self._location = Location.of(location.address().rstrip("/"))
        self.root, self.shown = self._location.address(), str(self._location)
        self._is_object_store = location.protocols[0] in _OBJECT_STORES

    def prepare(self) -> None:
        if not self._is_object_store:
            with self._reach(TEMPORARY, "made") as (fs, path):
                fs.makedirs(path, exist_ok=True)

    def write(self, relative: str, data: bytes) -> None:
        with self._reach(relative) as (fs, path), self._placed(fs, path) as target:
            fs.pipe_file(target, data)

    def sync(self) -> None:
        pass

    def writer(self, relative: str) -> FileWriter:
        """Made in this machine's folder for temporary files (TMPDIR), which needs room for it."""
        check_relative(relative)
        with named_write_errors(tempfile.gettempdir()):
            descriptor, local = tempfile.mkstemp(prefix="variegate-")

        def upload(local: str) -> None:
            with self._reach(relative) as (fs, path), self._placed(fs, path) as target:
                fs.put_file(local, target)

        return FileWriter(descriptor, local, f"{local} (for {relative})", upload)

    def read(self, relative: str) -> bytes:
        with self._reach(relative, "read") as (fs, path):
            data: bytes = fs.cat_file(path)
            return data

    def open(self, relative: str) -> BinaryIO:
        with self._reach(relative, "read") as (fs, path):
            return cast(BinaryIO, fs.open(path, "rb"))

    def exists(self, relative: str) -> bool:
        with self._reach(relative, "read") as (fs, path):
            fs.invalidate_cache()
            return bool(fs.exists(path))

    def list(self, relative: str = "") -> Sequence[str]:
        return sorted(name + "/" * (entry["type"] == "directory") for name, entry in self._entries(relative))

    def sizes(self, relative: str = "") -> dict[str, int]:
        return {name: int(entry["size"] or 0) for name, entry in self._entries(relative) if entry["type"] == "file"}

    def _entries(self, relative: str) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            with self._reach(relative, "listed") as (fs, path):
                fs.invalidate_cache()
                entries = fs.ls(path, detail=True)
        except FileNotFoundError:
            return
        for entry in entries:
            if entry["name"].rstrip("/") != path.rstrip("/"):
                yield entry["name"].rstrip("/").rpartition("/")[2], entry

    def remove(self, relative: str) -> None:
        with suppress(FileNotFoundError), self._reach(relative, "removed") as (fs, path):
            fs.rm_file(path)

    def remove_tree(self, relative: str) -> None:
        with suppress(FileNotFoundError), self._reach(relative, "removed") as (fs, path):
            fs.invalidate_cache()
            fs.rm(path, recursive=True)

    def _at(self, relative: str) -> tuple[Any, str]:
        # JoinedTargets to the path, not to the address: there, ? and # may mean something else.
        fs, inner = filesystem(self._location)
        return fs, f"{inner.rstrip('/')}/{relative}" if relative else inner

    @contextmanager
    def _placed(self, fs: Any, path: str) -> Iterator[str]:
        """The name to write to, so that all or nothing is found under ``path`` afterwards."""
        if self._is_object_store:
            yield path
            return
        _, folder = self._at(TEMPORARY)
        temporary = f"{folder}/{uuid.uuid4().hex}"
        try:
            for needed in (folder, path.rpartition("/")[0]):
                fs.makedirs(needed, exist_ok=True)
            yield temporary
            try:
                fs.mv(temporary, path)
            except Exception:
                if not fs.exists(temporary) or not fs.exists(path):
                    raise
                fs.rm_file(path)
                fs.mv(temporary, path)
        except BaseException:
            with suppress(Exception):
                fs.rm_file(temporary)
            raise

    @contextmanager
    def _reach(self, relative: str, verb: str = "written") -> Iterator[tuple[Any, str]]:
        """The file system and the path on it; errors of any package become errors of ``Storage``, without secrets."""
        place = self.place_of(relative)
        if relative or verb != "listed":
            check_relative(relative)
        try:
            yield self._at(relative)
        except (WriteError, MemoryError, SourceError):
            raise
        except FileNotFoundError as error:
            if verb in ("written", "made"):
                raise WriteError(errno.ENOENT, f"cannot be {verb} (no such bucket or folder)", place) from error
            raise FileNotFoundError(errno.ENOENT, "no such file", place) from None
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise write_error(error, place) from None
            number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            # Without the cause: its message may hold the address with a password.
            raise WriteError(number, reason_for(error, self._location, verb), place) from None
