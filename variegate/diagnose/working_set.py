"""The samples that rates are taken on: drawn as a shuffled epoch draws them, read for the first time, found good."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt

from variegate.data.loader.reading import decode_picture
from variegate.data.shuffle import Permutation
from variegate.data.sources.base import Item, SampleName, Source, SourceError, StreamSource
from variegate.diagnose.measurements import DECODE_WHOLE, READ_FIRST, Rate
from variegate.diagnose.recorder import TimedSpan, rate_of
from variegate.diagnose.views import MeasuredSample, size_of
from variegate.errors import DecodeError

# Of the files that are held, and of the pictures.
_FILE_BYTES, _PIXEL_BYTES = 256 << 20, 256 << 20
# Samples that a thread reads at a time, as in the loader, and how many chunks a thread gets between looks at the clock.
_CHUNK, _CHUNKS = 8, 4
_PROBED = 64


@dataclass
class WorkingSet:
    """``pictures``: the first samples decoded whole, as many as there was room for."""

    samples: list[MeasuredSample] = field(default_factory=list)
    pictures: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    bad: list[DecodeError] = field(default_factory=list)
    in_page_cache: float | None = None
    rates: dict[str, Rate] = field(default_factory=dict)  # of reading for the first time, and of decoding whole


_Found = tuple[int, int, SampleName, Item | DecodeError]


def draw_working_set(
    source: Source | StreamSource, limit: int, seconds: float, readers: int, threads: int, side: int | None = None
) -> WorkingSet:
    """At most ``limit`` samples, and no more than can be read, and decoded, in about ``seconds`` each.

    ``side``: pictures are reduced to it, as for a cache that holds them so.

    Raises SourceError where none of them is good.
    """
    chosen = WorkingSet()
    if isinstance(source, StreamSource) and not isinstance(source, Source):
        batches = _from_stream(source, limit)
        readers = 1
    else:
        indices = Permutation(len(source), seed=0, epoch=0)(np.arange(min(limit, len(source)), dtype=np.int64))
        chosen.in_page_cache = None if source.is_remote else _in_page_cache(source, indices[:_PROBED].tolist())
        batches = _from_source(source, indices, readers)
    found: list[tuple[int, int, SampleName, Item]] = []
    held, begin, tried = 0, time.perf_counter(), 0
    for batch in batches:
        for index, sample_id, name, item in batch:
            tried += 1
            if isinstance(item, DecodeError):
                chosen.bad.append(item)
            else:
                found.append((index, sample_id, name, item))
                held += size_of(item)
        if held >= _FILE_BYTES or (found and time.perf_counter() - begin >= seconds):
            break
    if found:
        chosen.rates[READ_FIRST] = rate_of([TimedSpan(len(found), held, time.perf_counter() - begin)], readers)
    _decode_whole(found, seconds, threads, side, chosen)
    if not chosen.samples:
        first = f"; {chosen.bad[0]}" if chosen.bad else ""
        raise SourceError(f"none of {tried:,} samples could be read{first}")
    return chosen


def _from_source(source: Source, indices: npt.NDArray[np.int64], readers: int) -> Iterator[list[_Found]]:
    ids, numbers = source.ids(indices).tolist(), indices.tolist()
    chunk = 1 if source.is_remote else _CHUNK

    def read(places: range) -> list[_Found]:
        return [(numbers[p], ids[p], source.name(numbers[p]), _read(source, numbers[p])) for p in places]

    with ThreadPoolExecutor(readers, thread_name_prefix="variegate-read") as pool:
        group = chunk * _CHUNKS * readers
        for first in range(0, len(numbers), group):
            end = min(first + group, len(numbers))
            parts = [range(i, min(i + chunk, end)) for i in range(first, end, chunk)]
            yield [one for part in pool.map(read, parts) for one in part]


def _read(source: Source, index: int) -> Item | DecodeError:
    try:
        return source.read(index)
    except DecodeError as error:
        return error


def _from_stream(source: StreamSource, limit: int) -> Iterator[list[_Found]]:
    every = (item for shard in range(source.num_shards) for item in source.read_shard(shard))
    some = islice(every, limit)
    while batch := list(islice(some, _CHUNK * _CHUNKS)):
        yield [(-1, one.id, one.name, one.item) for one in batch]


def _decode_whole(
    found: list[tuple[int, int, SampleName, Item]], seconds: float, threads: int, side: int | None, chosen: WorkingSet
) -> None:
    """Sorts out what does not decode, so that no measurement meets a bad file."""

    def decode(sample: tuple[int, int, SampleName, Item]) -> npt.NDArray[np.uint8] | DecodeError:
        data = sample[3].data
        try:
            return data if isinstance(data, np.ndarray) else decode_picture(data, str(sample[2]), side, None)
        except DecodeError as error:
            return error

    kept, file_bytes, begin = 0, 0, time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(found), group := _CHUNK * threads):
            part = found[first : first + group]
            for one, picture in zip(part, pool.map(decode, part), strict=True):
                if isinstance(picture, DecodeError):
                    chosen.bad.append(picture)
                    continue
                height, width, channels = (*picture.shape, 1)[:3]
                sample = MeasuredSample(*one, (height, width, channels))
                chosen.samples.append(sample)
                file_bytes += sample.nbytes
                if kept < _PIXEL_BYTES and len(chosen.pictures) == len(chosen.samples) - 1:
                    chosen.pictures.append(picture)
                    kept += picture.nbytes
            if chosen.samples and time.perf_counter() - begin >= seconds:
                break
    if chosen.samples and not isinstance(chosen.samples[0].item.data, np.ndarray):
        chosen.rates[DECODE_WHOLE] = rate_of(
            [TimedSpan(len(chosen.samples), file_bytes, time.perf_counter() - begin)], threads
        )


def _in_page_cache(source: Source, indices: list[int]) -> float | None:
    """Share of these files whose first bytes the system has in memory: a read that must not wait tells."""
    flag = getattr(os, "RWF_NOWAIT", None)
    names = [source.name(index) for index in indices]
    if flag is None or not names or any(name.member is not None for name in names):
        return None
    there = 0
    for name in names:
        try:
            descriptor = os.open(name.file, os.O_RDONLY)
        except OSError:
            continue
        try:
            there += os.preadv(descriptor, [bytearray(4096)], 0, flag) > 0
        except BlockingIOError:
            pass
        except OSError:  # a file system that does not know the flag
            return None
        finally:
            os.close(descriptor)
    return there / len(names)
