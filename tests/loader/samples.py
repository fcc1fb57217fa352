"""Sources in memory, of small real photos, that break where a test wants it."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

import variegate as vg
from tests.images import PHOTOS, photo
from variegate.data.base import Item, SampleRef, SourceError
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


TRUNCATED = jpeg(5)[:400]  # a JPEG: its header is whole, its picture is not
NO_HEADER = jpeg(6)[:20]
UNREADABLE = DecodeError("memory: 7.jpg", "cannot be read (Input/output error)")
BROKEN: dict[int, Any] = {5: TRUNCATED, 6: NO_HEADER, 7: UNREADABLE, 8: b"", 9: b"this is text", 12: jpeg(12)[:300]}


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

    def name(self, index: int) -> SampleRef:
        return SampleRef("memory", f"{index}.jpg")

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


HEIGHT, WIDTH, NUM_PAIRS = 24, 32, 5


def png(n: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((HEIGHT, WIDTH, 3), 40 * n, np.uint8)).save(out, "PNG")
    return out.getvalue()


def own(n: int) -> dict[str, Any]:
    """What transforms of torchvision take beside an image, of n objects."""
    mask = torch.zeros((n, HEIGHT, WIDTH), dtype=torch.uint8)
    mask[:, 2:9, 3:20] = 1
    boxes = torch.tensor([[float(k), 2.0, k + 5.0, 8.0] for k in range(n)]).reshape(-1, 4)
    return {"boxes": boxes, "labels": torch.arange(n), "masks": mask, "image_id": n, "area": torch.arange(n) * 2.0}


class Pairs:
    """As torchvision's data sets are: an image, and what is of it."""

    def __len__(self) -> int:
        return NUM_PAIRS

    def __getitem__(self, n: int) -> Any:
        return Image.open(io.BytesIO(png(n)), formats=["PNG"]), own(n)


TARGETS = vg.Targets(per_box=["area"], passed=["image_id"])
