"""Images that are read in bands of lines: arrays, .npy, TIFF and Zarr."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from variegate.arrays import ImageArray
from variegate.data.base import SourceError
from variegate.decode.channels import read_numpy_header
from variegate.errors import one_line, short_repr
from variegate.io.files import StrPath
from variegate.jobs.regions.memory import MappedFile, num_bytes
from variegate.program.depth import ACCEPTED as ACCEPTED_DTYPES
from variegate.program.depth import Depth, depth_of
from variegate.program.program import MAX_CHANNELS

Image = ImageArray
Shape = tuple[int, int, int]

ACCEPTED = f"{ACCEPTED_DTYPES} [H, W, C] with up to 32 channels, or [H, W]"
SUFFIXES = (".npy", ".tif", ".tiff", ".zarr")
_PACKAGES = {".tif": "tifffile", ".tiff": "tifffile", ".zarr": "zarr"}
_ACCEPTED_TIFF = f"{ACCEPTED_DTYPES}: gray, RGB or up to 32 channels side by side"
# Characters of another package's reason.
_LONGEST = 300
# Limits on a file's claims: sides, bytes of a chunk (each is read at once), and decoded bytes for each byte of a TIFF.
_MOST_SIDE = 1 << 30
_MOST_CHUNK = 1 << 29
_MOST_RATIO = 100_000


class Reader(Protocol):
    """An open image. ``lines``: as many are read together; bands begin at multiples of them."""

    shape: Shape
    depth: Depth
    lines: int
    mapped: MappedFile | None  # where its pixels lie one after another in a file

    def read(self, begin: int, end: int, into: Image) -> None:
        """Lines ``begin..end`` into [H, W, C]. Raises SourceError."""


@dataclass(frozen=True)
class HeldArray:
    """An image in memory."""

    array: Image
    depth: Depth

    def open(self) -> Reader:
        array = self.array if self.array.ndim == 3 else self.array[..., None]
        return _PlainPixels(array, self.depth, None)


@dataclass(frozen=True)
class RawFile:
    """Pixels line by line from byte ``offset`` of a file on."""

    path: str
    offset: int
    shape: Shape
    depth: Depth

    def open(self) -> Reader:
        return _open_mapped(self.path, self.shape, self.depth, self.depth.dtype, self.offset)


@dataclass(frozen=True)
class ImageFile:
    """A .npy, TIFF or Zarr file. ``open`` raises SourceError naming it."""

    path: str

    def open(self) -> Reader:
        suffix = Path(self.path).suffix.lower()
        package = imported(self.path)
        try:
            return _OPENERS.get(suffix, _open_tiff)(self.path, package)
        except SourceError:
            raise
        except Exception as error:  # also of Python's parser
            accepted = "accepted: a Zarr array, no group of several" if suffix == ".zarr" else ""
            raise _unreadable(self.path, error, accepted) from error


PixelFile = HeldArray | RawFile | ImageFile  # pickled to every worker


class _PlainPixels:
    """Pixels one after another: an array, or a view of a mapped file."""

    lines = 1

    def __init__(self, array: Image, depth: Depth, mapped: MappedFile | None) -> None:
        self.shape: Shape = array.shape
        self.depth = depth
        self.mapped = mapped
        self._array = array

    def read(self, begin: int, end: int, into: Image) -> None:
        into[:] = self._array[begin:end]


class _Chunks:
    """Chunks of ``sides`` pixels, read by ``read(row, column)`` (less beyond the image)."""

    mapped: MappedFile | None = None

    def __init__(
        self, path: str, shape: Shape, depth: Depth, sides: tuple[int, int], read: Callable[[int, int], Image]
    ) -> None:
        self.shape = shape
        self.depth = depth
        self.lines = sides[0]
        self._path = path
        self._sides = sides
        self._read = read

    def read(self, begin: int, end: int, into: Image) -> None:
        lines, columns = self._sides
        for i in range(begin // lines, -(-end // lines)):
            top = max(i * lines, begin)
            bottom = min((i + 1) * lines, end)
            for j in range(-(-self.shape[1] // columns)):
                left = j * columns
                right = min((j + 1) * columns, self.shape[1])
                try:
                    chunk = self._read(i, j)
                except Exception as error:
                    raise _unreadable(f"{self._path}: chunk in row {i}, column {j}", error) from error
                of_chunk = chunk[top - i * lines : bottom - i * lines, : right - left]
                into[top - begin : bottom - begin, left:right] = of_chunk


def _open_mapped(path: str, shape: Shape, depth: Depth, dtype: np.dtype[Any], offset: int) -> Reader:
    """Workers map the file themselves if its numbers are as the processor's. ``dtype``: in any byte order."""
    if os.path.getsize(path) < offset + num_bytes(shape, dtype.str):
        raise SourceError(f"{path}: cut off: it ends before its last pixel")
    mapped = MappedFile(os.path.abspath(path), shape, dtype.str, offset, "r")
    is_native = dtype.isnative and offset % dtype.itemsize == 0
    return _PlainPixels(mapped.map(), depth, mapped if is_native else None)


def _open_npy(path: str, _: Any) -> Reader:
    with open(path, "rb") as file:
        sides, is_fortran, dtype = read_numpy_header(file)
        offset = file.tell()
    shape, depth = checked_shape(sides, dtype, path)
    if is_fortran:
        raise SourceError(f"{path}: in Fortran's order; accepted: rows one after another")
    return _open_mapped(path, shape, depth, dtype, offset)


def _open_tiff(path: str, tifffile: Any) -> Reader:
    """A strip is a tile as wide as the image. Tiles of no bytes are no pixels, and several may share theirs."""
    with tifffile.TiffFile(path) as file:
        pages = file.series[0].pages
        if len(pages) != 1:
            raise SourceError(f"{path}: {len(pages)} pages; accepted: one image (and its pyramid)")
        page = pages[0].aspage()
        dtype = np.dtype(page.dtype).newbyteorder(file.byteorder)
    _check_tiff(path, page)
    channels = int(page.samplesperpixel)
    shape, depth = checked_shape((int(page.imagelength), int(page.imagewidth), channels), dtype, path)
    if page.is_tiled:
        sides = int(page.tilelength), int(page.tilewidth)
    else:
        sides = min(int(page.rowsperstrip), shape[0]), shape[1]
    _check_chunk(path, sides, channels * dtype.itemsize)
    places = [(int(offset), int(count)) for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)]
    across = -(-shape[1] // sides[1])
    if len(places) != (required := -(-shape[0] // sides[0]) * across):
        kind = "tiles" if page.is_tiled else "strips"
        raise SourceError(f"{path}: {len(places):,} {kind}; accepted: {required:,} for its size")
    is_plain = page.compression == 1
    pixel_bytes = channels * dtype.itemsize
    image_bytes = num_bytes(shape, dtype.str)
    if is_plain and not page.is_tiled and _are_adjacent(places, sides[0] * shape[1] * pixel_bytes):
        return _open_mapped(path, shape, depth, dtype, places[0][0])
    claimed = image_bytes // _MOST_RATIO
    if is_plain:
        stored = len({offset for offset, count in places if count})
        claimed = max(stored * math.prod(sides) * pixel_bytes, claimed) if page.is_tiled else image_bytes
    size = os.path.getsize(path)
    if claimed > size:
        got = f"{size:,} bytes for {shape[0]:,} x {shape[1]:,} pixels"
        raise SourceError(f"{path}: {got}; accepted: {claimed:,} bytes or more")
    decode = page.decode
    tables = page.jpegtables
    file = open(path, "rb", buffering=0)  # noqa: SIM115

    def read(i: int, j: int) -> Image:
        number = i * across + j
        offset, count = places[number]
        lines = sides[0] if page.is_tiled else min(sides[0], shape[0] - i * sides[0])
        tile = lines, sides[1], channels
        if not count:
            return np.zeros(tile, depth.dtype)
        data = os.pread(file.fileno(), count, offset)
        if len(data) < count:
            raise ValueError("the file ends in it")
        if is_plain:
            return np.frombuffer(data, dtype, math.prod(tile)).reshape(tile)
        levels = np.asarray(decode(data, number, jpegtables=tables)[0], depth.dtype)
        return levels.reshape(-1, *levels.shape[-2:])[-levels.shape[-3] :]

    return _Chunks(path, shape, depth, sides, read)


def _check_tiff(path: str, page: Any) -> None:
    is_planar = page.planarconfig != 1
    colors = page.photometric.name
    refused = None
    if page.dtype is None or depth_of(page.dtype) is None or page.bitspersample != 8 * page.dtype.itemsize:
        refused = f"got {page.dtype}"
    elif page.samplesperpixel > MAX_CHANNELS or (is_planar and page.samplesperpixel > 1):
        refused = f"got {page.samplesperpixel} channels{', one plane after another' if is_planar else ''}"
    elif colors not in ("MINISBLACK", "RGB", "YCBCR"):
        refused = f"colors are {colors}"
    if refused is not None:
        raise SourceError(f"{path}: {refused}; accepted: {_ACCEPTED_TIFF}")


def _are_adjacent(places: list[tuple[int, int]], strip_bytes: int) -> bool:
    first = places[0][0]
    return all(offset == first + number * strip_bytes for number, (offset, _) in enumerate(places))


def _open_zarr(path: str, zarr: Any) -> Reader:
    array = zarr.open_array(path, mode="r")
    shape, depth = checked_shape(array.shape, array.dtype, path)
    lines, columns = sides = int(array.chunks[0]), int(array.chunks[1])
    _check_chunk(path, sides, shape[2] * depth.dtype.itemsize)

    def read(i: int, j: int) -> Image:
        part = array[i * lines : (i + 1) * lines, j * columns : (j + 1) * columns]
        return np.asarray(part, depth.dtype).reshape(*part.shape[:2], shape[2])

    return _Chunks(path, shape, depth, sides, read)


_OPENERS = {".npy": _open_npy, ".zarr": _open_zarr}


def file_of(path: StrPath) -> ImageFile:
    """Raises SourceError for a name that says no kind of file that is read in bands."""
    name = os.fspath(path)
    if Path(name).suffix.lower() not in SUFFIXES:
        raise SourceError(f"{name}: accepted: {', '.join(SUFFIXES)}")
    if not os.path.exists(name):
        raise SourceError(f"{name}: no such file")
    return ImageFile(name)


def checked_shape(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> tuple[Shape, Depth]:
    """Height, width and channels, and the depth of a dtype in any byte order. Raises SourceError."""
    is_first = len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3)
    is_odd = len(shape) not in (2, 3) or is_first or (len(shape) == 3 and shape[2] > MAX_CHANNELS)
    depth = depth_of(dtype.newbyteorder("="))
    if depth is None or is_odd or not 0 < min(shape) <= max(shape) <= _MOST_SIDE:
        hint = "; channels come last" if is_first else ""
        raise SourceError(f"{name}: got {dtype}{short_repr([int(side) for side in shape])}; accepted: {ACCEPTED}{hint}")
    return (int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1), depth


def _check_chunk(path: str, sides: tuple[int, int], pixel_bytes: int) -> None:
    if not min(sides) > 0 or sides[0] * sides[1] * pixel_bytes > _MOST_CHUNK:
        got = f"tiles of {sides[0]:,} x {sides[1]:,} pixels"
        raise SourceError(f"{path}: {got}; accepted: up to {_MOST_CHUNK >> 20} MiB each, which are read as a whole")


def imported(path: str) -> Any:
    """The package for files of that name; None for .npy. Raises ImportError with the package to install."""
    if (package := _PACKAGES.get(Path(path).suffix.lower())) is None:
        return None
    try:
        return __import__(package)
    except ImportError as error:
        raise ImportError(f"{path}: needs {package}: pip install 'variegate[tiles]'") from error


def _unreadable(path: str, error: Exception, accepted: str = "") -> SourceError:
    """Reason in plain words: Python's own, such as a division by zero in a parser, would mean nothing to a reader."""
    is_meant = isinstance(error, (OSError, ValueError)) or type(error).__module__.split(".")[0] in ("tifffile", "zarr")
    reason = (one_line(error)[:_LONGEST] if is_meant else "") or "its fields contradict one another"
    return SourceError(f"{path}: cannot be read ({reason})" + (f"; {accepted}" if accepted else ""))
