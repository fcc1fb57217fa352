"""The samples that rates are taken on: drawn as a shuffled epoch draws them, read for the first time, found good."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.apps.diagnose.measurements import DECODE_WHOLE, READ_FIRST, Rate, TimedSpan, rate_of
from variegate.errors import DecodeError
from variegate.formats.base import IndexedSource, Item, SampleName, Source, SourceError, StreamSource
from variegate.loader.reading import decode_picture
from variegate.loader.shuffle import Permutation

# Of the files that are held, and of the pictures.
_FILE_BYTES, _PIXEL_BYTES = 256 << 20, 256 << 20
# Samples that a thread reads at a time, as in the loader, and how many chunks a thread gets between looks at the clock.
_CHUNK, _CHUNKS = 8, 4
_PROBED = 64
# Long enough that no measurement comes to the end of it, where a loader would begin anew.
_LONG = 1 << 31
_MOST_REDUCED, _QUALITY = 256, 90

Pictures = Sequence[npt.NDArray[np.uint8]]


def size_of(item: Item) -> int:
    """Bytes of the file, or of the pixels where a source gives these."""
    return item.data.nbytes if isinstance(item.data, np.ndarray) else len(item.data)


@dataclass(frozen=True)
class MeasuredSample:
    """``shape``: of the picture, decoded whole; none as long as it is not known to be good."""

    index: int  # in the source; -1 in a stream
    id: int
    name: SampleName
    item: Item
    shape: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return size_of(self.item)


class CyclicView(IndexedSource):
    """A source that holds still while it is measured: samples read from memory, or from the source that they are of.

    In a cycle of whole batches, so that the n-th batch of every round holds the same ones.
    """

    classes: tuple[str, ...] = ()

    def __init__(self, samples: Sequence[MeasuredSample], batch_size: int, source: Source | None = None) -> None:
        self.samples, self._source = samples, source
        self.is_remote = source is not None and source.is_remote
        self.batches = -(-len(samples) // batch_size)
        self._cycle = self.batches * batch_size

    @property
    def fingerprint(self) -> str:
        """The whole source's, so that what a cache on disk keeps is of use later."""
        return "in memory" if self._source is None else self._source.fingerprint

    def __len__(self) -> int:
        return _LONG // len(self.samples) * len(self.samples)

    def _sample(self, index: int) -> MeasuredSample:
        return self.samples[index % self._cycle % len(self.samples)]

    def name(self, index: int) -> SampleName:
        return self._sample(index).name

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return np.array([self._sample(index).id for index in indices.tolist()], np.uint64)

    def read(self, index: int) -> Item:
        sample = self._sample(index)
        return sample.item if self._source is None else self._source.read(sample.index)


@dataclass
class WorkingSet:
    """``pictures``: the first samples decoded whole, as many as there was room for."""

    samples: list[MeasuredSample] = field(default_factory=list)
    pictures: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    bad: list[DecodeError] = field(default_factory=list)
    in_page_cache: float | None = None
    rates: dict[str, Rate] = field(default_factory=dict)  # of reading for the first time, and of decoding whole


def draw_working_set(
    source: Source | StreamSource, limit: int, seconds: float, readers: int, threads: int, side: int | None = None
) -> WorkingSet:
    """At most ``limit`` samples, and no more than can be read, and decoded, in about ``seconds`` each.

    ``side``: pictures are reduced to it, as for a cache that holds them so.

    Raises SourceError where none of them is good.
    """
    chosen = WorkingSet()
    if isinstance(source, Source):
        indices = Permutation(len(source), seed=0, epoch=0)(np.arange(min(limit, len(source)), dtype=np.int64))
        chosen.in_page_cache = None if source.is_remote else _in_page_cache(source, indices[:_PROBED].tolist())
        batches = _from_source(source, indices, readers)
    else:
        batches, readers = _from_stream(source, limit), 1
    found: list[MeasuredSample] = []
    nbytes, begin, tried = 0, time.perf_counter(), 0
    for batch in batches:
        tried += len(batch)
        chosen.bad += [one for one in batch if isinstance(one, DecodeError)]
        found += (good := [one for one in batch if isinstance(one, MeasuredSample)])
        nbytes += sum(sample.nbytes for sample in good)
        if nbytes >= _FILE_BYTES or (found and time.perf_counter() - begin >= seconds):
            break
    if found:
        chosen.rates[READ_FIRST] = rate_of([TimedSpan(len(found), nbytes, time.perf_counter() - begin)], readers)
    _decode_whole(found, seconds, threads, side, chosen)
    if not chosen.samples:
        first = f"; {chosen.bad[0]}" if chosen.bad else ""
        raise SourceError(f"none of {tried:,} samples could be read{first}")
    return chosen


def _from_source(
    source: Source, indices: npt.NDArray[np.int64], readers: int
) -> Iterator[list[MeasuredSample | DecodeError]]:
    ids, numbers = source.ids(indices).tolist(), indices.tolist()
    chunk = 1 if source.is_remote else _CHUNK
    group = chunk * _CHUNKS * readers

    def read(place: int) -> MeasuredSample | DecodeError:
        index = numbers[place]
        try:
            return MeasuredSample(index, ids[place], source.name(index), source.read(index))
        except DecodeError as error:
            return error

    def read_chunk(places: range) -> list[MeasuredSample | DecodeError]:
        return [read(place) for place in places]

    with ThreadPoolExecutor(readers, thread_name_prefix="variegate-read") as pool:
        for first in range(0, len(numbers), group):
            places = range(len(numbers))[first : first + group]
            chunks = pool.map(read_chunk, (places[i : i + chunk] for i in range(0, len(places), chunk)))
            yield [one for each in chunks for one in each]


def _from_stream(source: StreamSource, limit: int) -> Iterator[list[MeasuredSample | DecodeError]]:
    some = islice((one for shard in range(source.num_shards) for one in source.read_shard(shard)), limit)
    while batch := list(islice(some, _CHUNK * _CHUNKS)):
        yield [
            one.item if isinstance(one.item, DecodeError) else MeasuredSample(-1, one.id, one.name, one.item)
            for one in batch
        ]


def _decode_whole(
    found: list[MeasuredSample], seconds: float, threads: int, side: int | None, chosen: WorkingSet
) -> None:
    """Sorts out what does not decode, so that no measurement meets a bad file."""

    def decode(sample: MeasuredSample) -> npt.NDArray[np.uint8] | DecodeError:
        data = sample.item.data
        try:
            return data if isinstance(data, np.ndarray) else decode_picture(data, str(sample.name), side, None)
        except DecodeError as error:
            return error

    kept, begin, group = 0, time.perf_counter(), _CHUNK * threads
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(found), group):
            part = found[first : first + group]
            for sample, picture in zip(part, pool.map(decode, part), strict=True):
                if isinstance(picture, DecodeError):
                    chosen.bad.append(picture)
                    continue
                if kept < _PIXEL_BYTES and len(chosen.pictures) == len(chosen.samples):
                    chosen.pictures.append(picture)
                    kept += picture.nbytes
                chosen.samples.append(replace(sample, shape=(*picture.shape, 1)[:3]))
            if chosen.samples and time.perf_counter() - begin >= seconds:
                break
    if chosen.samples and not isinstance(chosen.samples[0].item.data, np.ndarray):
        seconds, nbytes = time.perf_counter() - begin, sum(sample.nbytes for sample in chosen.samples)
        chosen.rates[DECODE_WHOLE] = rate_of([TimedSpan(len(chosen.samples), nbytes, seconds)], threads)


def reduce_samples(chosen: WorkingSet, side: int, seconds: float) -> tuple[list[MeasuredSample], Pictures]:
    """Some of the pictures, their shorter side reduced to ``side``: as JPEG files, and as pixels."""
    samples: list[MeasuredSample] = []
    pictures: list[npt.NDArray[np.uint8]] = []
    end = time.perf_counter() + seconds
    for sample, picture in zip(chosen.samples[:_MOST_REDUCED], chosen.pictures, strict=False):
        if samples and time.perf_counter() > end:
            break
        height, width = picture.shape[:2]
        factor = min(1.0, side / min(height, width))
        size = max(1, round(width * factor)), max(1, round(height * factor))
        small = Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR)
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=_QUALITY)
        samples.append(replace(sample, item=sample.item._replace(data=buffer.getvalue()), shape=(size[1], size[0], 3)))
        pictures.append(np.asarray(small))
    return samples, pictures


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
