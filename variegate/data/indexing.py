"""Entropy indexes of sources: built in advance on all cores, or by an idle thread during a loader's epochs."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from variegate.checks import a_path
from variegate.data.filtered import whole_of
from variegate.data.opening import open_source
from variegate.data.packed import index_beside
from variegate.data.reading import read_file
from variegate.data.samples import Samples
from variegate.data.sharded import AnySource
from variegate.decode import is_jpeg
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex, index_path
from variegate.errors import DecodeError
from variegate.events import OnEvent, Progress, ignore_event
from variegate.io.addresses import redact_text
from variegate.io.durable import WriteError, write_atomically
from variegate.io.files import StrPath
from variegate.threads import default_threads, in_order

_AHEAD = 8  # files of each thread that are in memory
NOT_JPEG = "no JPEG"
IN_MEMORY = "pixels, not a file"
UNREADABLE = "cannot be read"


@dataclass(frozen=True)
class Indexed:
    """``images``: all images of the source, ``indexed``: images with entry points, ``left_out``: counts of other images
    by reason. ``image_bytes``: of the files with entry points, ``index_bytes``: of the entry points. ``is_done``: not
    stopped.
    """

    path: str
    images: int
    indexed: int
    left_out: dict[str, int]
    image_bytes: int
    index_bytes: int
    is_done: bool


def index_source(
    source: Any,
    path: StrPath | None = None,
    num_threads: int | None = None,
    *,
    on_event: OnEvent = ignore_event,
    stop: Event | None = None,
) -> Indexed:
    """Index every JPEG of a source in the file ``path``. None: the file that ``Loader(index="auto")`` reads. Files that
    are known already are read, but not looked into again.

    ``on_event``: called with ``Progress`` of images. ``stop``: ends it; entries found so far are saved. Raises
    SourceError, WriteError.
    """
    opened: Samples = open_source(source, stream=False)
    place = index_path(whole_of(opened).fingerprint) if path is None else path
    try:
        index = EntropyIndex(place)
    except DamagedIndexError:
        os.unlink(place)
        index = EntropyIndex(place)
    threads = default_threads() if num_threads is None else num_threads
    left_out: Counter[str] = Counter()
    images = indexed = image_bytes = index_bytes = 0
    total = len(opened)
    is_done = True
    with ThreadPoolExecutor(threads, "variegate-index") as pool:
        for reason, size, packed in in_order(pool, _tasks(opened, index), threads * _AHEAD):
            images += 1
            if reason is None:
                indexed += 1
                image_bytes += size
                index_bytes += packed
            else:
                left_out[reason] += 1
            on_event(Progress("indexing", images, total))
            if stop is not None and stop.is_set():
                is_done = False
                break
    index.save()
    sizes = image_bytes, index_bytes
    return Indexed(str(index.path), images, indexed, dict(left_out), *sizes, is_done)


# Reason for missing entry points, the file's bytes, and the bytes of its entry points.
Found = tuple[str | None, int, int]


def _tasks(source: Samples, index: EntropyIndex) -> Iterator[Callable[[], Found]]:
    for number in range(len(source)):
        yield partial(_add, source, number, index)


def _add(source: Samples, number: int, index: EntropyIndex) -> Found:
    try:
        data = source.read(number).data
    except DecodeError:
        return UNREADABLE, 0, 0
    if not isinstance(data, bytes):
        return IN_MEMORY, 0, 0
    if not is_jpeg(data):
        return NOT_JPEG, len(data), 0
    reason, packed = index.add(data)
    return reason, len(data), packed


# Memory limit of files that wait to be indexed; further files wait for the next epoch.
_MOST_WAITING = 64 << 20
# New entries are saved when they exceed this size, and half the size of the file.
_WRITTEN_FROM = 16 << 20
_LOWEST_PRIORITY = 19
_ACCEPTED = "'auto', a path, or None"


def open_entropy_index(where: StrPath | None, source: AnySource) -> EntropyIndex | None:
    """``where``: None, "auto" or a path. Raises ValueError for anything else, and for an invalid index file."""
    if where is None:
        return None
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise ValueError(f"index: got {where!r}; accepted: {_ACCEPTED}")
    if isinstance(where, str) and where != "auto":
        where = a_path("index", where, ("auto",), _ACCEPTED)
    is_auto = where == "auto"
    fingerprint = whole_of(source).fingerprint
    if is_auto and (packed := _packed_index(source)) is not None:
        return packed
    path = index_path(fingerprint) if is_auto else os.fspath(where)
    try:
        return LoaderIndex(path)
    except DamagedIndexError as error:
        if not is_auto:
            raise
        warnings.warn(redact_text(f"{error}; rebuilt during the epochs"), stacklevel=8)
        with suppress(OSError):
            os.unlink(path)
        return LoaderIndex(path)
    except OSError as error:
        raise ValueError(f"index: {redact_text(str(path))} cannot be read ({error.strerror})") from error


def _packed_index(source: AnySource) -> EntropyIndex | None:
    """The index that ``variegate pack`` wrote next to the shards, read-only; None if there is no valid index. A remote
    index is copied once to the file that "auto" reads."""
    place = index_beside(source)
    if place is None:
        return None
    if place.is_url:
        path = index_path(whole_of(source).fingerprint)
        with suppress(DecodeError, WriteError, OSError):
            if not path.exists():
                write_atomically(path, read_file(place), several_writers=True)
        return None
    try:
        return EntropyIndex(place.address())
    except (DamagedIndexError, OSError) as error:
        warnings.warn(redact_text(f"{place}: cannot be used ({error}); rebuilt during the epochs"), stacklevel=9)
        return None


class LoaderIndex(EntropyIndex):
    """Looks into unknown files that crops ask for in the background. Nothing but time depends on it."""

    def __init__(self, path: StrPath) -> None:
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_given_up = False
        super().__init__(path)
        # When nobody holds the loader any more, or the process ends.
        self._finalizer = weakref.finalize(self, _save_rest, self.path, self._added)

    def after_fork(self) -> None:
        super().after_fork()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._thread: threading.Thread | None = None

    def is_unknown(self, data: bytes) -> None:
        if self._is_given_up or self._waiting_bytes + len(data) > _MOST_WAITING:
            return
        with self._lock:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            if self._thread is None:
                self._thread = threading.Thread(target=_work, args=(weakref.ref(self),), daemon=True)
                self._thread.start()

    def look(self) -> bool:
        """Index a waiting file. Returns False if none waits, which ends the thread."""
        with self._lock:
            if not self._waiting:
                self._thread = None
                return False
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
        self.add(data)
        if self.added_bytes > max(_WRITTEN_FROM, self.saved_bytes // 2):
            self._save()
        return True

    def _save(self) -> None:
        try:
            self.save()
        except (WriteError, OSError, ValueError) as error:
            self._is_given_up = True
            warnings.warn(redact_text(f"the index of JPEG files is not kept: {error}"), stacklevel=2)


def _work(owner: weakref.ref[LoaderIndex]) -> None:
    with suppress(AttributeError, OSError):  # on Linux a thread has a priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
    while (index := owner()) is not None and index.look():
        del index


def _save_rest(path: os.PathLike[str], added: dict[int, bytes]) -> None:
    if added:
        with suppress(WriteError, OSError, ValueError):
            rest = EntropyIndex(path)
            rest.take_over(added)
            rest.save()
