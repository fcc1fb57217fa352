"""Archives the tests share: made by the standard library's tarfile, from real photos."""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from tests.images import PHOTOS, photo
from variegate.data.base import Item
from variegate.data.samples import POSITION_BITS
from variegate.data.sharded import ShardedSource
from variegate.errors import DecodeError

Members = list[tuple[str, bytes]]


@cache
def encoded(number: int = 0, kind: str = "jpeg", height: int = 24, width: int = 32) -> bytes:
    """The bytes of an image file; different numbers give different photos or parts of them."""
    img_HWC = photo(height + number, width, PHOTOS[number % len(PHOTOS)])
    file = io.BytesIO()
    Image.fromarray(img_HWC).save(file, kind)
    return file.getvalue()


def png(mask: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(mask).save(file, "png")
    return file.getvalue()


def labelled(count: int, first: int = 0) -> Members:
    """Samples as WebDataset lays them out: 0000.jpg, 0000.cls, 0001.jpg, ..."""
    members: Members = []
    for number in range(first, first + count):
        members += [(f"{number:04d}.jpg", encoded(number % 8)), (f"{number:04d}.cls", str(number % 10).encode())]
    return members


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def tar_bytes(members: Members, tar_format: int = tarfile.USTAR_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tar_format) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def write_tar(path: Path, members: Members, tar_format: int = tarfile.USTAR_FORMAT) -> str:
    path.write_bytes(tar_bytes(members, tar_format))
    return str(path)


def write_shards(folder: Path, count: int = 3, samples: int = 4) -> list[str]:
    """train-00.tar, train-01.tar, ... with labels."""
    folder.mkdir(parents=True, exist_ok=True)
    return [write_tar(folder / f"train-{shard:02d}.tar", labelled(samples, shard * samples)) for shard in range(count)]


def indices_of(source: Any) -> list[int]:
    """Of all samples, in order, of a Source or of shards."""
    if not isinstance(source, ShardedSource):
        return list(range(len(source)))
    return [
        number << POSITION_BITS | position
        for number in range(source.num_shards)
        for position in range(len(source.shard(number)))
    ]


def read_all(source: Any) -> list[Item | DecodeError]:
    """All samples in order; the error of each that cannot be read."""
    found: list[Item | DecodeError] = []
    for index in indices_of(source):
        try:
            found.append(source.read(index))
        except DecodeError as error:
            found.append(error)
    return found
