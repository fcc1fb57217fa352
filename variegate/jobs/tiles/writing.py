"""Images that are written tile by tile, by several workers at a time: .npy, TIFF and Zarr.

A result has another name until it is whole (``.name.partial``), so that nothing half done is ever found under its own.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.memory import place_of
from variegate.executors.cpu.tiled.areas import Area
from variegate.executors.cpu.tiled.transfer import write_lines
from variegate.formats.base import SourceError
from variegate.jobs.tiles.reading import SUFFIXES, imported

Pixels = npt.NDArray[Any]
# Sides of a TIFF's own tiles are the largest of these that divides a tile of ours: they must be multiples of 16.
_TIFF_SIDES = (512, 256, 128, 64, 32, 16)
_CLASSIC_BYTES = 3 << 30


class TileWriter(Protocol):
    """Of one worker."""

    def write(self, area: Area, levels: Pixels) -> None:
        """[H, W, C]. Raises OSError."""
        ...


@dataclass(frozen=True)
class ResultFile:
    """An image of ``shape`` (height, width, channels), written in tiles of ``tile`` pixels a side. ``make`` begins it,
    workers ``open`` it, ``finish`` gives it its name."""

    path: str
    shape: tuple[int, int, int]
    dtype: str
    tile: int

    @property
    def suffix(self) -> str:
        return Path(self.path).suffix.lower()

    @property
    def partial(self) -> Path:
        path = Path(self.path)
        return path.with_name(f".{path.name}.partial")

    def begin(self) -> None:
        """Make the partial file anew. Raises OSError, ImportError."""
        remove(self.partial)
        if self.suffix == ".npy":
            self._begin_npy()
        elif self.suffix == ".zarr":
            chunks = tuple(min(self.tile, side) for side in self.shape[:2]) + self.shape[2:]
            zarr = imported("zarr", self.path)
            zarr.create_array(store=str(self.partial), shape=self.shape, chunks=chunks, dtype=self.dtype, fill_value=0)
        else:
            self._begin_tiff()

    def _begin_npy(self) -> None:
        header = {"descr": np.dtype(self.dtype).str, "fortran_order": False, "shape": self.shape}
        with open(self.partial, "wb") as file:
            np.lib.format.write_array_header_2_0(file, header)
            file.flush()
            reserve(file.fileno(), file.tell(), self._num_bytes)

    def _begin_tiff(self) -> None:
        if self._num_bytes > (free := shutil.disk_usage(self.partial.parent).free):
            raise OSError(errno.ENOSPC, f"{self._num_bytes:,} bytes, of which its disk has {free:,}")
        imported("tifffile", self.path).imwrite(
            self.partial,
            shape=self.shape if self.shape[2] == 3 else self.shape[:2],
            dtype=self.dtype,
            tile=(tiff_side(self.tile),) * 2,
            photometric="rgb" if self.shape[2] == 3 else "minisblack",
            bigtiff=self._num_bytes > _CLASSIC_BYTES,
        )

    @property
    def _num_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2] * np.dtype(self.dtype).itemsize

    def open(self) -> TileWriter:
        if self.suffix == ".npy":
            return _NpyWriter(self)
        return _ZarrWriter(self) if self.suffix == ".zarr" else _TiffWriter(self)

    def finish(self) -> None:
        """Give it its name, in the place of what had it before."""
        if self.suffix != ".zarr":
            with open(self.partial, "rb") as file:
                os.fsync(file.fileno())
        elif os.path.isdir(self.path):
            before = self.partial.with_suffix(".before")
            remove(before)
            os.rename(self.path, before)
            os.rename(self.partial, self.path)
            remove(before)
            return
        os.replace(self.partial, self.path)


def checked_result(path: str | os.PathLike[str], tile: int) -> str:
    """Raises SourceError for a name or place that is not accepted."""
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise SourceError(f"out: got {name!r}; accepted: a name that ends in {', '.join(SUFFIXES)}")
    if suffix in (".tif", ".tiff") and tile % 16:
        raise ValueError(f"tile: got {tile} for {name}; accepted: multiples of 16, of which a TIFF's tiles are")
    if not Path(name).absolute().parent.is_dir():
        raise SourceError(f"out: {name}: its folder does not exist")
    is_array = (Path(name) / "zarr.json").exists() or (Path(name) / ".zarray").exists()
    if os.path.isdir(name) and not (suffix == ".zarr" and is_array):
        raise SourceError(f"out: {name}: is a folder; choose another name")
    if suffix == ".zarr" and os.path.isfile(name):
        raise SourceError(f"out: {name}: is a file; choose another name")
    if suffix != ".npy":
        imported("zarr" if suffix == ".zarr" else "tifffile", name)
    return name


def tiff_side(tile: int) -> int:
    return next(side for side in _TIFF_SIDES if tile % side == 0)


def reserve(descriptor: int, begin: int, size: int) -> None:
    """Room for so many bytes, so that a disk that is too small says so at once."""
    os.ftruncate(descriptor, begin + size)
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, begin, max(size, 1))
        except OSError as error:
            # Not every file system can.
            if error.errno not in _CANNOT_RESERVE:
                raise


_CANNOT_RESERVE = {22, 95}  # EINVAL, EOPNOTSUPP


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class _NpyWriter:
    def __init__(self, result: ResultFile) -> None:
        self._shape, self._item = result.shape, np.dtype(result.dtype).itemsize
        self._descriptor = os.open(result.partial, os.O_RDWR)
        with open(result.partial, "rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_2_0(file)
            self._begin = file.tell()

    def __del__(self) -> None:
        os.close(self._descriptor)

    def write(self, area: Area, levels: Pixels) -> None:
        _, width, channels = self._shape
        pixel, levels = channels * self._item, np.ascontiguousarray(levels)
        at, step = self._begin + (area.top * width + area.left) * pixel, width * pixel
        i = 0
        while i < area.height:
            part = levels[i:]
            i += write_lines(self._descriptor, place_of(part), area.height - i, area.width * pixel, at + i * step, step)
            if i < area.height:
                # Python says why.
                _write(self._descriptor, levels[i], at + i * step)
                i += 1


class _TiffWriter:
    def __init__(self, result: ResultFile) -> None:
        import tifffile

        with tifffile.TiffFile(result.partial) as file:
            page: Any = file.pages[0]
            self._places, self._side = page.dataoffsets, int(page.tilewidth)
        self._across = -(-result.shape[1] // self._side)
        self._descriptor = os.open(result.partial, os.O_RDWR)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def write(self, area: Area, levels: Pixels) -> None:
        side = self._side
        for block in area.blocks(side):
            whole = np.zeros((side, side, levels.shape[2]), levels.dtype)
            whole[: block.height, : block.width] = levels[block.within(area)]
            _write(self._descriptor, whole, self._places[block.top // side * self._across + block.left // side])


class _ZarrWriter:
    def __init__(self, result: ResultFile) -> None:
        import zarr

        self._array: Any = zarr.open_array(str(result.partial), mode="r+")

    def write(self, area: Area, levels: Pixels) -> None:
        self._array[area.top : area.bottom, area.left : area.right] = levels


def _write(descriptor: int, levels: Pixels, at: int) -> None:
    view = np.ascontiguousarray(levels).reshape(-1).data.cast("B")
    while view:
        number = os.pwrite(descriptor, view[: 1 << 30], at)
        view, at = view[number:], at + number


class TilesDone:
    """Beside the partial file: ``.json``, what it is a part of, and ``.done``, the numbers of its tiles, four bytes
    each, written once a tile is in its place. A machine that loses its power loses what it had not yet written to disk;
    a process that is killed loses nothing."""

    def __init__(self, result: ResultFile, settings: dict[str, Any]) -> None:
        self._result = result
        self._settings = json.dumps(settings, sort_keys=True)
        # Of a source that nothing tells apart, nothing is taken up.
        self._is_known = settings.get("source") is not None
        partial = result.partial
        self._json, self._done = Path(f"{partial}.json"), Path(f"{partial}.done")
        self._file: Any = None
        self.done: frozenset[int] = frozenset()

    def take_up(self) -> bool:
        """Whether an earlier run made a part of this very result; then ``done`` has its tiles."""
        try:
            is_same = self._is_known and self._json.read_text() == self._settings and self._result.partial.exists()
            data = self._done.read_bytes() if is_same else b""
        except OSError:
            return False
        if is_same:
            self.done = frozenset(np.frombuffer(data, "<u4", len(data) // 4).tolist())
            # What was cut off in the middle of a number.
            os.truncate(self._done, len(data) // 4 * 4)
            self._file = open(self._done, "ab", buffering=0)  # noqa: SIM115
        return is_same

    def begin(self) -> None:
        """After the partial file has been begun."""
        self._done.write_bytes(b"")
        self._json.write_text(self._settings)
        self._file = open(self._done, "ab", buffering=0)  # noqa: SIM115

    def add(self, tile: int) -> None:
        self._file.write(np.uint32(tile).astype("<u4").tobytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """The result is whole, and has its name."""
        remove(self._json)
        remove(self._done)
