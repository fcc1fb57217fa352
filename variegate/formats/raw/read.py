"""Images of raw shards by index: views into files that are mapped to memory, or ranges of bytes behind an address."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.base import FilesSource, Item, SampleName, SourceError, StoredFile, digest_of
from variegate.formats.labels import label_at
from variegate.formats.raw.layout import FIRST_LINE, TAIL_SIZE, DamagedRawError, RawIndex, read_index, read_tail
from variegate.formats.reading import FileVersion, read_range, reason_for, version_of
from variegate.io.files import open_regular
from variegate.io.location import Location, relative_names
from variegate.threads import computed_once

_OPENED_AT_ONCE = 16
# Python holds an open file for every map, of which a process may have 1,024.
_MOST_MAPS = 256


@dataclass(frozen=True, eq=False)
class RawShardFile:
    """A file whose index was read."""

    location: Location
    version: FileVersion
    index: RawIndex


class RawSource(FilesSource):
    """The images of raw shards, in the shards' order. Made by ``open_raw``.

    An image in a file of this machine is a read-only view into its map: nothing is copied, the pixels are where the
    system's page cache has them. (A gray image of a set of colour ones is shown with its channel repeated, which makes
    a copy when it is augmented.) A file must not be cut off while it is mapped. Ids are those of the samples that were
    packed, so that random numbers are the same as with them. A pickled copy makes maps anew.
    """

    is_stacked = False

    def __init__(self, files: Sequence[RawShardFile]) -> None:
        self.files = list(files)
        stored = [StoredFile(file.location, len(file.index), *file.version) for file in files]
        super().__init__(stored, files[0].index.classes)
        self._ids = np.concatenate([file.index.places["id"] for file in files])
        self._labels = np.concatenate([file.index.labels for file in files])
        self.__setstate__({})

    @computed_once
    def fingerprint(self) -> str:
        """Of the names of the shards and of their indexes: sizes, labels, ids and names."""
        named = zip(relative_names([file.location for file in self.files]), self.files, strict=True)
        return digest_of("\0".join(self.classes), *(f"\0{name}\0{file.index.digest}" for name, file in named))

    def read(self, index: int) -> Item:
        """Pixels uint8 [H, W, C], not to be written to. Raises DecodeError where the file has changed, or is gone."""
        file, position = self._place(index)
        found = self.files[file]
        place = found.index.places[position]
        offset, size = int(place["offset"]), found.index.size_of(position)
        if found.location.is_url:
            data = read_range(found.location, offset, size, found.version.size, str(self.name(index)))
            flat = np.frombuffer(data, np.uint8)
        else:
            mapped = self._map(file, index)
            begin = offset - offset % mmap.PAGESIZE
            # The system begins to read what is not in memory: else the augmenting threads would wait for every page.
            with suppress(AttributeError, OSError, ValueError):
                mapped.madvise(mmap.MADV_WILLNEED, begin, offset + size - begin)
            flat = np.frombuffer(mapped, np.uint8, size, offset)
        height, width, channels, shown = (int(place[name]) for name in ("height", "width", "channels", "shown"))
        image = flat.reshape(height, width, channels)
        if shown != channels:
            image = np.broadcast_to(image, (height, width, shown))
        return Item(image, label_at(self._labels, index))

    def pixels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        raise TypeError("pixels: images of raw shards may differ in size; accepted: read, one after another")

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Those of many images, copied."""
        return np.asarray(self._labels[indices])

    def name(self, index: int) -> SampleName:
        file, position = self._place(index)
        return SampleName(str(self.files[file].location), self.files[file].index.name(position))

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Those of the samples that were packed."""
        return np.asarray(self._ids[indices], np.uint64)

    def _map(self, file: int, index: int) -> mmap.mmap:
        """The map of a shard, kept with the latest ones; views keep theirs alive."""
        with self._lock:
            mapped = self._maps.get(file)
            if mapped is not None:
                self._maps.move_to_end(file)
                return mapped
        found = self.files[file]
        try:
            with open_regular(found.location.address()) as opened:
                now = os.fstat(opened.fileno())
                if (now.st_size, str(now.st_mtime_ns)) != tuple(found.version):
                    raise DecodeError(str(self.name(index)), "the file has changed since it was opened")
                options: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}
                mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ, **options)
        except DecodeError:
            raise
        except (OSError, ValueError) as error:
            raise DecodeError(str(self.name(index)), reason_for(error, found.location)) from None
        with self._lock:
            self._maps[file] = mapped
            while len(self._maps) > _MOST_MAPS:
                self._maps.popitem(last=False)
        return mapped

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_maps", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._maps: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._lock = threading.Lock()


def open_raw(files: Sequence[Location]) -> RawSource:
    """Raises SourceError naming the file: no raw pixels, damaged, of other classes or labels than the first."""
    with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(files))) as pool:
        opened = list(pool.map(_open, files))
    first = opened[0].index
    for file in opened[1:]:
        if file.index.classes != first.classes:
            raise SourceError(f"{file.location}: has other classes than {opened[0].location}")
        if (file.index.labels.dtype, file.index.labels.shape[1:]) != (first.labels.dtype, first.labels.shape[1:]):
            raise SourceError(f"{file.location}: has labels of another kind than {opened[0].location}")
    return RawSource(opened)


def _open(location: Location) -> RawShardFile:
    version = version_of(location)
    size, name = version.size, str(location)
    try:
        if size < TAIL_SIZE + len(FIRST_LINE) or read_range(location, 0, len(FIRST_LINE), size, name) != FIRST_LINE:
            raise DamagedRawError("no file of raw pixels: it does not begin as such")
        begin, length, digest = read_tail(read_range(location, size - TAIL_SIZE, TAIL_SIZE, size, name), size)
        index = read_index(read_range(location, begin, length, size, name), digest, begin)
    except DamagedRawError as error:
        raise SourceError(f"{location}: {error}") from None
    except DecodeError as error:
        raise SourceError(f"{location}: {error.reason}") from None
    return RawShardFile(location, version, index)
