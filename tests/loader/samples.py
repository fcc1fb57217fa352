"""Sources in memory, of small real photos, that break where a test wants it."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.images import PHOTOS, photo
from variegate.data.base import Item, SampleName, SourceError
from variegate.data.samples import POSITION_BITS, Samples, samples_of
from variegate.data.sharded import ShardedSource
from variegate.errors import DecodeError
from variegate.io.location import Location


@cache
def jpeg(index: int) -> bytes:
    """A photo with a mark of its own; sizes vary."""
    img_HWC = photo(40 + index % 7, 48 + index % 5, PHOTOS[index % len(PHOTOS)])
    img_HWC[:8, :8] = (index * 37 % 256, index * 101 % 256, index * 11 % 256)
    buffer = io.BytesIO()
    Image.fromarray(img_HWC).save(buffer, "JPEG" if index % 4 else "PNG", quality=90)
    return buffer.getvalue()


class MemorySource:
    """``broken``: what is stored in the place of a file; an error is raised when it is read."""

    classes = ("even", "odd")
    is_remote = False

    def __init__(self, number: int, broken: dict[int, Any] | None = None) -> None:
        self.number, self.broken = number, broken or {}
        self.reads: list[int] = []

    @property
    def fingerprint(self) -> str:
        return f"memory-{self.number}"

    def __len__(self) -> int:
        return self.number

    def read(self, index: int) -> Item:
        self.reads.append(index)
        data = self.broken.get(index, b"")
        if isinstance(data, DecodeError):
            raise data
        return Item(data if index in self.broken else jpeg(index), index % 2)

    def name(self, index: int) -> SampleName:
        return SampleName("memory", f"{index}.jpg")

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return indices.astype(np.uint64) + np.uint64(1000)

    def notes(self) -> list[str]:
        return []


class MemoryShards(ShardedSource):
    """The same samples, in shards; ``lost`` is a shard that cannot be read. ``is_indexed``: they can be counted."""

    def __init__(
        self,
        number: int,
        shards: int = 3,
        broken: dict[int, Any] | None = None,
        lost: int | None = None,
        on_error: str = "skip",
        is_indexed: bool = True,
    ) -> None:
        super().__init__([Location.of(f"shard-{shard}.tar") for shard in range(shards)], MemorySource.classes, on_error)
        self.samples = MemorySource(number, broken)
        self.parts = np.array_split(np.arange(number), shards)
        self.lost = lost
        self.is_indexed = is_indexed
        self.fetched: list[int] = []

    def _open(self, number: int, fetch: bool) -> Samples | None:
        if not fetch and not self.is_indexed:
            return None
        if number == self.lost:
            raise SourceError(f"{self.locations[number]}: the connection broke off")
        if fetch:
            self.fetched.append(number)
        return samples_of(self.samples).take(self.parts[number])

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return self.samples.ids(np.array([self.parts[index >> POSITION_BITS][index & 0xFFFFFFFF] for index in indices]))

    def _open_all(self) -> Samples:
        return samples_of(self.samples)
