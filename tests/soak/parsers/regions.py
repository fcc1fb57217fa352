"""Files of large images: opened, planned, and read as far as two bands."""

from __future__ import annotations

import io
import json
import struct
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tifffile

from tests.images import photo
from tests.soak.mutating import NUMBERS, Parser, mutated, mutated_json
from variegate import transforms as T
from variegate.jobs.engine import Engine
from variegate.jobs.mapping import MapSpec
from variegate.jobs.regions.reading import file_of
from variegate.jobs.regions.run import ImageRun

_KINDS = ("tiles", "zlib", "strips")


@cache
def _tiff(kind: str) -> bytes:
    stream = io.BytesIO()
    options: dict[str, Any] = {"rowsperstrip": 7} if kind == "strips" else {"tile": (16, 32)}
    if kind == "zlib":
        options |= {"compression": "zlib", "predictor": True}
    tifffile.imwrite(stream, photo(50, 70), photometric="rgb", **options)
    return stream.getvalue()


def tiff_with(data: bytes, random: Random, number: int) -> bytes:
    """With other values in so many of its tags, or other counts of them."""
    changed = bytearray(data)
    (begin,) = struct.unpack_from("<I", data, 4)
    (tags,) = struct.unpack_from("<H", data, begin)
    for _ in range(number):
        at = begin + 2 + 12 * random.randrange(tags)
        place = at + random.choice((4, 8, 8, 8))
        struct.pack_into("<I", changed, place, random.choice((1 << 20, 1 << 24, *NUMBERS)) & 0xFFFFFFFF)
    return bytes(changed)


def _make_tiff(random: Random, folder: Path) -> Path:
    path, data = folder / "a.tif", _tiff(random.choice(_KINDS))
    path.write_bytes(tiff_with(data, random, random.randint(1, 3)) if random.random() < 0.7 else mutated(data, random))
    return path


def zarr_with(folder: Path, shape: list[Any], chunks: list[Any], **more: Any) -> Path:
    """An array of which no chunk is there, by its few bytes of metadata."""
    path = folder / "a.zarr"
    path.mkdir()
    head = {
        **{"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "|u1", "fill_value": 7, "order": "C"},
        **{"filters": None, "compressor": None, **more},
    }
    (path / ".zarray").write_text(json.dumps(head))
    return path


def _make_zarr(random: Random, folder: Path) -> Path:
    sides = [random.choice((5, 70, 1 << 20, 1 << 24, *NUMBERS)) for _ in range(2)]
    chunks = [random.choice((16, 64, 1024, 1 << 14, 1 << 20, *NUMBERS)) for _ in range(2)]
    path = zarr_with(folder, [*sides, 3], [*chunks, 3])
    if random.random() < 0.3:
        file = path / ".zarray"
        file.write_bytes(mutated_json(json.loads(file.read_text()), random))
    return path


@cache
def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, photo(50, 70))
    return stream.getvalue()


def _make_npy(random: Random, folder: Path) -> Path:
    path, data = folder / "a.npy", _npy()
    head = mutated(data[:128], random)
    path.write_bytes(head + data[128:] if random.random() < 0.8 else mutated(data, random))
    return path


def _parse(path: Path) -> None:
    """What ``map_image`` does before the first band is made, and reads two bands."""
    engine = Engine(["cpu:0"], "thread", num_threads=1)
    transform = T.Compose([T.RandomHorizontalFlip(1.0), T.Invert()])
    work = MapSpec(transform, 0, "float32", "NHWC", "composed", 0, 0)
    run = ImageRun(engine, work, file_of(path), out=str(path.parent / "out.npy"), tile=64)
    reader = run.image.open()
    height, width, channels = reader.shape
    for begin in (0, (height - 1) // reader.lines * reader.lines):
        end = min(begin + reader.lines, height)
        # Of claims that no test has room for, nothing is read.
        if (end - begin) * width * channels < 1 << 28:
            reader.read(begin, end, np.empty((end - begin, width, channels), np.uint8))


PARSERS = (
    Parser("tiff", _make_tiff, _parse),
    Parser("zarr", _make_zarr, _parse),
    Parser("npy", _make_npy, _parse),
)
