"""Local copies of remote or gzip'ed shards, in a folder of bounded size."""

from __future__ import annotations

import os
import secrets
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import main_thread

from variegate.checks import integer
from variegate.data.base import SourceError, digest_of
from variegate.data.reading import ByteStream, FileVersion, open_stream
from variegate.errors import DecodeError
from variegate.io.durable import write_all
from variegate.io.files import StrPath, open_regular
from variegate.io.location import Location, cache_folder
from variegate.io.lock import FileLock, exclusive_lock

GZIP = b"\x1f\x8b"
_CHUNK = 4 << 20
# Room that a copy takes at a time if the shard's size is not known before.
_GROWTH = 64 << 20
_PARTIAL = ".part"
_LOCK = ".lock"
# A running download is written to more often: a connection that is silent for a minute fails.
_ABANDONED_SECONDS = 90
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class ShardCopies:
    """Copies of shards by (address, version), the least recently used removed first. Threads and processes share it.

    ``cache_dir``: None for the user's cache folder. ``limit``: bytes of all copies, finished or not; None for half of
    the space that the disk has free without them. A copy appears under its name when it is complete.
    """

    cache_dir: StrPath | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            integer("cache_limit", self.limit, 1)

    @property
    def folder(self) -> Path:
        return cache_folder(self.cache_dir) / "shards"

    def open(self, shard: Location, version: FileVersion, fetch: bool = False) -> FileIO | None:
        """Open the copy for reading, even if it is removed meanwhile; None if there is no copy and ``fetch`` is False.
        Raises SourceError if it cannot be made."""
        path = self._path(shard, version)
        while True:
            with suppress(FileNotFoundError):
                return open_regular(path)
            if not fetch:
                return None
            self.fetch(shard, version)

    def fetch(self, shard: Location, version: FileVersion) -> None:
        """Make the copy, unpacked, or mark it as used. Raises SourceError; then nothing of it remains."""
        path = self._path(shard, version)
        if _mark_used(path):
            return
        lock = FileLock(path.with_name(f".{path.name}{_LOCK}"))
        try:
            lock.acquire(lambda _: None)
            try:
                if not _mark_used(path):
                    self._make(shard, version, path)
            finally:
                lock.release(remove=True)
        except DecodeError as error:
            raise SourceError(f"{shard}: {error.reason}") from None
        except OSError as error:
            raise SourceError(f"{shard}: its copy cannot be written to {self.folder} ({error.strerror})") from None

    def _path(self, shard: Location, version: FileVersion) -> Path:
        # The address without its query, which changes with every signature.
        place = str(shard) if shard.is_url else os.path.abspath(shard.address())
        return self.folder / f"{digest_of(place, repr(tuple(version)))}-{shard.name}"

    def _make(self, shard: Location, version: FileVersion, path: Path) -> None:
        partial = path.with_name(f".{path.name}-{secrets.token_hex(4)}{_PARTIAL}")
        try:
            with open_stream(shard) as stream, open(partial, "wb", buffering=0) as file:
                size = room = 0
                for data in unpacked(stream):
                    if not main_thread().is_alive():  # Python waits for its threads at exit
                        raise DecodeError(stream.name, "Python shuts down")
                    size += len(data)
                    if size > room:
                        room = max(size, version.size if room == 0 else room + _GROWTH)
                        self._reserve(shard, partial, room)
                    write_all(file.fileno(), data)
                file.truncate(size)
                if version.size not in (-1, stream.count):
                    raise DecodeError(stream.name, f"{stream.count:,} bytes arrived; its size is {version.size:,}")
            # A file whose name changes while others add up the sizes would be missed, or counted twice.
            with exclusive_lock(self.folder / _LOCK):
                os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def _reserve(self, shard: Location, partial: Path, size: int) -> None:
        """Let a file of the folder grow to ``size`` bytes, and remove others to make room. Raises SourceError."""
        while True:
            with exclusive_lock(self.folder / _LOCK):
                others = [status for status in _statuses(self.folder) if status[2] != partial]
                used = sum(size for _, size, _ in others)
                limit = self.limit or (used + shutil.disk_usage(self.folder).free) // 2
                now = time.time()
                running = 0
                for used_at, others_size, path in sorted(others):
                    if path.name.endswith(_PARTIAL) and now - used_at < _ABANDONED_SECONDS:
                        running += 1
                    elif used + size > limit or path.name.endswith(_PARTIAL):
                        with suppress(OSError):  # Windows does not remove open files
                            path.unlink(missing_ok=True)
                            used -= others_size
                if used + size <= limit:
                    os.truncate(partial, size)
                    return
            if not running or size > limit:
                accepted = f"cache_limit={limit:,} has no room for it; accepted: more than {size:,}"
                raise SourceError(f"{shard}: {accepted}, for each shard in use at the same time")
            time.sleep(_PAUSE_SECONDS)


def unpacked(stream: ByteStream) -> Iterator[bytes]:
    """Iterate over all bytes of a stream, decompressed if it is gzip'ed, whatever its name. Raises DecodeError."""
    data = stream.read(_CHUNK)
    if not data.startswith(GZIP):
        while data:
            yield data
            data = stream.read(_CHUNK)
        return
    gunzip = zlib.decompressobj(31)
    while data:
        try:
            yield gunzip.decompress(data, _CHUNK)
        except zlib.error as error:
            reason = f"damaged: its gzip compression cannot be read on ({error})"
            raise DecodeError(stream.name, reason) from None
        data = (gunzip.unused_data if gunzip.eof else gunzip.unconsumed_tail) or stream.read(_CHUNK)
        if gunzip.eof:
            if not data.startswith(GZIP[:1]):
                break  # the end, or the zeros that tapes are filled up with
            gunzip = zlib.decompressobj(31)
    if not gunzip.eof:
        raise DecodeError(stream.name, "cut off: its gzip compression ends too early")
    while stream.read(_CHUNK):
        pass


def _mark_used(path: Path) -> bool:
    """Return whether the file exists."""
    with suppress(OSError):  # also of a copy that another user made
        os.utime(path)
    return path.exists()


def _statuses(folder: Path) -> list[tuple[float, int, Path]]:
    """Time, size and path of each file that counts towards the limit."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(_LOCK):
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
    return found
