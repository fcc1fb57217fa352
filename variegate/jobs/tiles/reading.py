"""Images of which rectangles can be read: arrays, and .npy, TIFF and Zarr files, by ordinary reads.

Files are not mapped into memory: what is read is held for as long as it is used, and no longer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.errors import shown
from variegate.executors.cpu.memory import place_of
from variegate.executors.cpu.tiled.areas import Area
from variegate.executors.cpu.tiled.transfer import read_lines
from variegate.formats.base import SourceError

Image = npt.NDArray[np.uint8]

ACCEPTED = "uint8 [H, W, 3], [H, W, 1] or [H, W]"
SUFFIXES = (".npy", ".tif", ".tiff", ".zarr")
_ACCEPTED_TIFF = "tiles of 8-bit gray or RGB, or strips that are not compressed"
# Decoded chunks of a file that are kept, as the next rectangle may need them again.
_KEPT_BYTES = 48 << 20
# Characters of another package's reason.
_LONGEST = 300
# What a file may claim: sides, bytes of a chunk (each is read as a whole), and decoded bytes for each of a TIFF.
_MOST_SIDE, _MOST_CHUNK, _MOST_RATIO = 1 << 30, 1 << 29, 100_000


class OpenImage(Protocol):
    """A stage of ``executors/cpu/tiled``: any rectangle of an image."""

    height: int
    width: int
    channels: int

    def make(self, area: Area) -> Image: ...


class PixelFile(Protocol):
    """Where an image is; pickled to every worker."""

    def open(self) -> OpenImage:
        """Raises SourceError naming the file."""
        ...


@dataclass(frozen=True)
class HeldArray:
    """In the memory of this process."""

    array: Image

    def open(self) -> OpenImage:
        return _OpenArray(self.array)


@dataclass(frozen=True)
class RawFile:
    """Pixels line by line from byte ``offset`` of a file on."""

    path: str
    offset: int
    shape: tuple[int, int, int]

    def open(self) -> OpenImage:
        return _OpenLines(self.path, self.shape, [(0, self.shape[0], self.offset)])


@dataclass(frozen=True)
class NpyFile:
    path: str

    def open(self) -> OpenImage:
        try:
            with open(self.path, "rb") as file:
                version = np.lib.format.read_magic(file)
                read: Any = np.lib.format
                header = (read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0)(file)
                offset = file.tell()
        except Exception as error:  # of Python's parser, too
            raise _unreadable(self.path, error) from error
        shape, is_fortran, dtype = header
        found = checked_shape(shape, dtype, self.path)
        if is_fortran:
            raise SourceError(f"{self.path}: in Fortran's order; accepted: rows one after another")
        if os.path.getsize(self.path) < offset + found[0] * found[1] * found[2]:
            raise SourceError(f"{self.path}: cut off: it ends before its last pixel")
        return _OpenLines(self.path, found, [(0, found[0], offset)])


@dataclass(frozen=True)
class TiffFile:
    path: str

    def open(self) -> OpenImage:
        tifffile = imported("tifffile", self.path)
        try:
            with tifffile.TiffFile(self.path) as file:
                pages = file.series[0].pages
                if len(pages) != 1:
                    raise SourceError(f"{self.path}: {len(pages)} pages; accepted: one image (and its pyramid)")
                page = pages[0].aspage()
                return self._open_page(page)
        except SourceError:
            raise
        except Exception as error:
            raise _unreadable(self.path, error) from error

    def _open_page(self, page: Any) -> OpenImage:
        if page.dtype != np.uint8 or page.bitspersample != 8:
            raise SourceError(f"{self.path}: got {page.dtype}; accepted: {_ACCEPTED_TIFF}")
        if page.samplesperpixel not in (1, 3) or (page.planarconfig != 1 and page.samplesperpixel > 1):
            how = "" if page.planarconfig == 1 else ", one plane after another"
            raise SourceError(f"{self.path}: got {page.samplesperpixel} channels{how}; accepted: {_ACCEPTED_TIFF}")
        if page.photometric.name not in ("MINISBLACK", "RGB", "YCBCR"):
            raise SourceError(f"{self.path}: colours are {page.photometric.name}; accepted: {_ACCEPTED_TIFF}")
        sides = int(page.imagelength), int(page.imagewidth), int(page.samplesperpixel)
        shape = checked_shape(sides, page.dtype, self.path)
        places = list(zip(page.dataoffsets, page.databytecounts, strict=True))
        size = os.path.getsize(self.path)
        if page.is_tiled:
            self._check_tiles(shape, page, places, size)
            return _OpenTiff(self.path, shape, page, places)
        if page.compression != 1:
            name = getattr(page.compression, "name", page.compression)
            raise SourceError(f"{self.path}: strips compressed by {name}; accepted: {_ACCEPTED_TIFF}")
        lines = min(int(page.rowsperstrip), shape[0])
        if lines < 1 or len(places) != -(-shape[0] // lines):
            told = f"{shape[0]:,} lines in {len(places):,} strips of {lines:,}"
            raise SourceError(f"{self.path}: {told}; accepted: a strip for every so many lines")
        strips = [(lines * i, min(lines * (i + 1), shape[0]), int(offset)) for i, (offset, _) in enumerate(places)]
        if any(offset + (end - first) * shape[1] * shape[2] > size for first, end, offset in strips):
            raise SourceError(f"{self.path}: cut off: it ends before its last pixel")
        return _OpenLines(self.path, shape, strips)

    def _check_tiles(self, shape: tuple[int, int, int], page: Any, places: list[tuple[int, int]], size: int) -> None:
        """Tiles of no bytes are no pixels, and several may share theirs."""
        sides = int(page.tilelength), int(page.tilewidth)
        _check_chunk(self.path, sides, shape[2])
        if len(places) != (wanted := -(-shape[0] // sides[0]) * -(-shape[1] // sides[1])):
            raise SourceError(f"{self.path}: {len(places):,} tiles; accepted: {wanted:,} for its size")
        claimed = shape[0] * shape[1] * shape[2]
        if page.compression == 1:
            stored = len({offset for offset, count in places if count})
            claimed = max(stored * sides[0] * sides[1] * shape[2], claimed // _MOST_RATIO)
        else:
            claimed //= _MOST_RATIO
        if claimed > size:
            told = f"{shape[0]:,} x {shape[1]:,} pixels"
            raise SourceError(f"{self.path}: {size:,} bytes for {told}; accepted: {claimed:,} bytes or more")


@dataclass(frozen=True)
class ZarrFile:
    path: str

    def open(self) -> OpenImage:
        zarr = imported("zarr", self.path)
        try:
            array = zarr.open_array(self.path, mode="r")
        except Exception as error:
            raise _unreadable(self.path, error, "accepted: a Zarr array, no group of several") from error
        shape = checked_shape(array.shape, array.dtype, self.path)
        _check_chunk(self.path, (int(array.chunks[0]), int(array.chunks[1])), shape[2])
        return _OpenZarr(self.path, shape, array)


def file_of(path: str | os.PathLike[str]) -> NpyFile | TiffFile | ZarrFile:
    """Raises SourceError for a name that says no kind of file that has rectangles."""
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise SourceError(f"{name}: accepted: {', '.join(SUFFIXES)}")
    if not os.path.exists(name):
        raise SourceError(f"{name}: no such file")
    return NpyFile(name) if suffix == ".npy" else ZarrFile(name) if suffix == ".zarr" else TiffFile(name)


def checked_shape(shape: tuple[int, ...], dtype: Any, name: str) -> tuple[int, int, int]:
    """Height, width and channels. Raises SourceError."""
    hint = ""
    if len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3):
        hint = "; channels come last"
    is_odd = len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3))
    if dtype != np.uint8 or is_odd or not 0 < min(shape) <= max(shape) <= _MOST_SIDE:
        raise SourceError(f"{name}: got {dtype}{shown([int(side) for side in shape])}; accepted: {ACCEPTED}{hint}")
    return int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1


def _check_chunk(path: str, sides: tuple[int, int], channels: int) -> None:
    if not min(sides) > 0 or sides[0] * sides[1] * channels > _MOST_CHUNK:
        told = f"tiles of {sides[0]:,} x {sides[1]:,} pixels"
        raise SourceError(f"{path}: {told}; accepted: up to {_MOST_CHUNK >> 20} MiB each, which are read as a whole")


def imported(package: str, path: str) -> Any:
    """tifffile or zarr. Raises ImportError saying what to install."""
    try:
        return __import__(package)
    except ImportError as error:
        raise ImportError(f"{path}: needs {package}: pip install 'variegate[tiles]'") from error


def _unreadable(path: str, error: Exception, accepted: str = "") -> SourceError:
    """What Python says by itself, such as a division by zero in a parser, would tell nobody anything."""
    is_meant = isinstance(error, (OSError, ValueError)) or type(error).__module__.split(".")[0] in ("tifffile", "zarr")
    reason = (" ".join(str(error).split())[:_LONGEST] if is_meant else "") or "its fields contradict one another"
    return SourceError(f"{path}: cannot be read ({reason})" + (f"; {accepted}" if accepted else ""))


class _OpenArray:
    def __init__(self, array: Image) -> None:
        self._array = array if array.ndim == 3 else array[..., None]
        self.height, self.width, self.channels = self._array.shape

    def make(self, area: Area) -> Image:
        return np.ascontiguousarray(self._array[area.top : area.bottom, area.left : area.right])


class _OpenLines:
    """``strips``: first and end line, and the byte at which the first begins."""

    def __init__(self, path: str, shape: tuple[int, int, int], strips: list[tuple[int, int, int]]) -> None:
        self.height, self.width, self.channels = shape
        self._path, self._strips = path, strips
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115

    def make(self, area: Area) -> Image:
        made = np.empty((area.height, area.width, self.channels), np.uint8)
        line = self.width * self.channels
        strips = len(self._strips)
        lines = self._strips[0][1] - self._strips[0][0]
        y = area.top
        while y < area.bottom:
            first, end, offset = self._strips[min(y // lines, strips - 1)]
            end = min(end, area.bottom)
            at = offset + (y - first) * line + area.left * self.channels
            part = made[y - area.top : end - area.top]
            size = area.width * self.channels
            read = read_lines(self._file.fileno(), place_of(part), end - y, size, at, line)
            if read < end - y:
                # Python says why.
                self._read(part[read], at + read * line)
            y = end if read == end - y else y + read + 1
        return made

    def _read(self, into: Image, at: int) -> None:
        view = into.reshape(-1).data
        while view:
            try:
                number = os.preadv(self._file.fileno(), [view[: 1 << 30]], at)
            except OSError as error:
                raise _unreadable(self._path, error) from error
            if not number:
                raise SourceError(f"{self._path}: cut off: it ends before its last pixel")
            view, at = view[number:], at + number


class _Chunked:
    """An image in chunks, each read as a whole; the last few are kept."""

    def __init__(self, path: str, shape: tuple[int, int, int], sides: tuple[int, int]) -> None:
        self.height, self.width, self.channels = shape
        self._path, self._sides = path, sides
        self._kept: OrderedDict[tuple[int, int], Image] = OrderedDict()
        self._bytes = 0

    def make(self, area: Area) -> Image:
        made = np.empty((area.height, area.width, self.channels), np.uint8)
        lines, columns = self._sides
        for i in range(area.top // lines, -(-area.bottom // lines)):
            for j in range(area.left // columns, -(-area.right // columns)):
                whole = Area(i * lines, j * columns, (i + 1) * lines, (j + 1) * columns)
                shared = whole.meet(area)
                made[shared.within(area)] = self._chunk(i, j)[shared.within(whole)]
        return made

    def _chunk(self, i: int, j: int) -> Image:
        chunk = self._kept.get((i, j))
        if chunk is not None:
            self._kept.move_to_end((i, j))
            return chunk
        try:
            chunk = self.read_chunk(i, j)
        except Exception as error:
            raise _unreadable(f"{self._path}: chunk in row {i}, column {j}", error) from error
        self._kept[i, j] = chunk
        self._bytes += chunk.nbytes
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return chunk

    def read_chunk(self, i: int, j: int) -> Image:
        """[lines, columns, C]; what lies beyond the image may be missing."""
        raise NotImplementedError


class _OpenTiff(_Chunked):
    def __init__(self, path: str, shape: tuple[int, int, int], page: Any, places: list[tuple[int, int]]) -> None:
        super().__init__(path, shape, (int(page.tilelength), int(page.tilewidth)))
        self._across = -(-self.width // self._sides[1])
        self._places, self._decode, self._tables = places, page.decode, page.jpegtables
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        self._is_plain = page.compression == 1

    def read_chunk(self, i: int, j: int) -> Image:
        number = i * self._across + j
        offset, size = self._places[number]
        data = os.pread(self._file.fileno(), size, offset)
        shape = *self._sides, self.channels
        if not size:
            return np.zeros(shape, np.uint8)
        if len(data) < size:
            raise ValueError("the file ends in it")
        if self._is_plain:
            return np.frombuffer(data, np.uint8, shape[0] * shape[1] * shape[2]).reshape(shape)
        decode: Callable[..., Any] = self._decode
        levels = np.asarray(decode(data, number, jpegtables=self._tables)[0], np.uint8)
        return levels.reshape(-1, *levels.shape[-2:])[-levels.shape[-3] :]


class _OpenZarr(_Chunked):
    def __init__(self, path: str, shape: tuple[int, int, int], array: Any) -> None:
        lines, columns = int(array.chunks[0]), int(array.chunks[1])
        super().__init__(path, shape, (lines, columns))
        self._array = array

    def read_chunk(self, i: int, j: int) -> Image:
        lines, columns = self._sides
        part = self._array[i * lines : (i + 1) * lines, j * columns : (j + 1) * columns]
        return np.asarray(part, np.uint8).reshape(*part.shape[:2], self.channels)
