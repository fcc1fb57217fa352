"""The entropy index of a loader: read, and made beside the epochs by a thread that takes what others leave idle."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections import deque
from contextlib import suppress

from variegate.checks import a_path
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex, index_path
from variegate.decode.limits import MAX_DECODE_BYTES
from variegate.errors import DecodeError
from variegate.formats.base import Source, StreamSource
from variegate.formats.filtered import whole_of
from variegate.formats.packed import index_beside
from variegate.formats.reading import read_file
from variegate.io.addresses import speakable
from variegate.io.durable import WriteError, write_atomically

# Files that wait to be looked into hold no more memory than this; what comes beyond waits for the next epoch.
_MOST_WAITING = 64 << 20
# What was found is written when it has grown to so many bytes, and to half of what is in the file.
_WRITTEN_FROM = 16 << 20
_LOWEST_PRIORITY = 19
_ACCEPTED = "'auto', a path, or None"


def open_entropy_index(where: str | os.PathLike[str] | None, source: Source | StreamSource) -> EntropyIndex | None:
    """``where``: None, "auto" or a path. Raises ValueError for anything else, and for a file that is none."""
    if where is None:
        return None
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise ValueError(f"index: got {where!r}; accepted: {_ACCEPTED}")
    if isinstance(where, str) and where != "auto":
        where = a_path("index", where, ("auto",), _ACCEPTED)
    is_auto, fingerprint = where == "auto", whole_of(source).fingerprint
    if is_auto and (packed := _packed_index(source)) is not None:
        return packed
    path = index_path(fingerprint) if is_auto else os.fspath(where)
    try:
        return LoaderIndex(path)
    except DamagedIndexError as error:
        if not is_auto:
            raise
        warnings.warn(speakable(f"{error}; made anew beside the epochs"), stacklevel=8)
        with suppress(OSError):
            os.unlink(path)
        return LoaderIndex(path)
    except OSError as error:
        raise ValueError(f"index: {speakable(str(path))} cannot be read ({error.strerror})") from error


def _packed_index(source: Source | StreamSource) -> EntropyIndex | None:
    """The one that ``variegate pack`` put beside shards, which knows all of them and is not written to; None where
    there is none that can be used. What lies at an address is copied to where "auto" looks, once."""
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
        warnings.warn(speakable(f"{place}: cannot be used ({error}); made anew beside the epochs"), stacklevel=9)
        return None


class LoaderIndex(EntropyIndex):
    """Files that crops ask for and that are not known are looked into in the background, and serve from the next epoch
    on. Pixels do not depend on it, nor does anything else but time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes, self._is_given_up = 0, False
        super().__init__(path)
        # When nobody holds the loader any more, or the process ends.
        self._finalizer = weakref.finalize(self, _save_rest, self.path, self._added)

    def after_fork(self) -> None:
        super().after_fork()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._thread: threading.Thread | None = None

    def is_unknown(self, data: bytes) -> None:
        if self._is_given_up or self._waiting_bytes + len(data) > _MOST_WAITING or len(data) > MAX_DECODE_BYTES:
            return
        with self._lock:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            if self._thread is None:
                self._thread = threading.Thread(target=_work, args=(weakref.ref(self),), daemon=True)
                self._thread.start()

    def look(self) -> bool:
        """Look into a file that waits -> False where there is none, and the thread ends."""
        with self._lock:
            if not self._waiting:
                self._thread = None
                return False
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
        if not self.knows(data):
            self.add(data)
        if self.added_bytes > max(_WRITTEN_FROM, self.kept_bytes // 2):
            self._save()
        return True

    def _save(self) -> None:
        try:
            self.save()
        except (WriteError, OSError, ValueError) as error:
            self._is_given_up = True
            warnings.warn(speakable(f"the index of JPEG files is not kept: {error}"), stacklevel=2)


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
