"""The entropy index of a source, made ahead: every file is read once, and looked into by all cores."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Any

from variegate.decode import is_jpeg
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex, index_path
from variegate.errors import DecodeError
from variegate.formats.base import Item, Source, StreamSource
from variegate.formats.filtered import whole_of
from variegate.formats.opening import open_source
from variegate.threads import default_threads

_AHEAD = 8  # files of each thread that are in memory
NOT_JPEG, IN_MEMORY, UNREADABLE = "no JPEG", "pixels, not a file", "cannot be read"


@dataclass(frozen=True)
class Indexed:
    """``images``: of the source, ``indexed``: those with entry points, ``left_out``: others, by the reason.
    ``image_bytes``: of the files with entry points, ``index_bytes``: of the entry points. ``is_done``: not stopped.
    ``broken``: what is wrong with shards that could not be read to their ends, a line each."""

    path: str
    images: int
    indexed: int
    left_out: dict[str, int]
    image_bytes: int
    index_bytes: int
    is_done: bool
    broken: tuple[str, ...] = ()


def index_source(
    source: Any,
    path: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    *,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Event | None = None,
) -> Indexed:
    """Look into every JPEG of whatever ``vg.open_source`` takes, and keep what was found in ``path``; None for where
    ``Loader(index="auto")`` looks for it. Files that are known already are read, but not looked into again.

    ``on_progress``: called with images done, and of how many (0: not known). ``stop``: ends it; what was found is kept.
    Raises SourceError, WriteError.
    """
    opened: Source | StreamSource = open_source(source)
    index = _open_index(index_path(whole_of(opened).fingerprint) if path is None else path)
    threads = default_threads() if num_threads is None else num_threads
    left_out: Counter[str] = Counter()
    broken: list[str] = []
    images = indexed = image_bytes = index_bytes = 0
    total = len(opened) if isinstance(opened, Source) else 0
    is_stopped = False
    with ThreadPoolExecutor(threads, "variegate-index") as pool:
        for reason, size, packed in _in_order(pool, _tasks(opened, index, broken), threads * _AHEAD):
            images += 1
            if reason is None:
                indexed += 1
                image_bytes += size
                index_bytes += packed
            else:
                left_out[reason] += 1
            if on_progress is not None:
                on_progress(images, total)
            if stop is not None and stop.is_set():
                is_stopped = True
                break
    index.save()
    return Indexed(
        str(index.path), images, indexed, dict(left_out), image_bytes, index_bytes, not is_stopped, tuple(broken)
    )


def _open_index(path: str | os.PathLike[str]) -> EntropyIndex:
    try:
        return EntropyIndex(path)
    except DamagedIndexError:
        os.unlink(path)
        return EntropyIndex(path)


Found = tuple[str | None, int, int]  # why a file has no entry points, its bytes, and those of its entry points


def _tasks(source: Source | StreamSource, index: EntropyIndex, broken: list[str]) -> Iterator[Callable[[], Found]]:
    if isinstance(source, Source):
        for number in range(len(source)):
            yield lambda number=number: _add(lambda: source.read(number), index)  # type: ignore[misc]
        return
    for shard in range(source.num_shards):
        for sample in source.read_shard(shard):
            if sample.is_end and isinstance(sample.item, DecodeError):
                broken.append(str(sample.item))
            yield lambda item=sample.item: _add(lambda: item, index)  # type: ignore[misc]


def _add(read: Callable[[], Item | DecodeError], index: EntropyIndex) -> Found:
    try:
        item = read()
    except DecodeError as error:
        item = error
    if isinstance(item, DecodeError):
        return UNREADABLE, 0, 0
    data = item.data
    if not isinstance(data, bytes):
        return IN_MEMORY, 0, 0
    if not is_jpeg(data):
        return NOT_JPEG, len(data), 0
    reason, packed = index.add(data)
    return reason, len(data), packed


def _in_order(pool: ThreadPoolExecutor, tasks: Iterator[Callable[[], Found]], ahead: int) -> Iterator[Found]:
    """Results in the order of the tasks, so many of which are begun ahead."""
    begun: list[Future[Found]] = []
    try:
        for task in tasks:
            begun.append(pool.submit(task))
            if len(begun) > ahead:
                yield begun.pop(0).result()
        while begun:
            yield begun.pop(0).result()
    finally:
        for future in begun:
            with suppress(RuntimeError):
                future.cancel()
