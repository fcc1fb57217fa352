"""Images written tile by tile by several workers: .npy, TIFF and Zarr, as ``.name.partial`` until whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.memory import place_of
from variegate.executors.cpu.tiled.areas import Area, write_lines
from variegate.formats.base import SourceError
from variegate.jobs.tiles.reading import SUFFIXES, imported
from variegate.jobs.tiles.shared import SharedArray, mapped

Pixels = npt.NDArray[Any]
WriteTile = Callable[[Area, Pixels], None]  # levels [H, W, C] to their place; raises OSError
# Sides of a TIFF's own tiles are the largest of these that divides a tile of ours: they must be multiples of 16.
_TIFF_SIDES = (512, 256, 128, 64, 32, 16)
_CLASSIC_BYTES = 3 << 30
_CANNOT_RESERVE = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class ResultFile:
    """An image of ``shape`` [H, W, C]: ``begin`` makes it, workers ``open`` it, ``finish`` gives it its name."""

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

    @property
    def _num_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2] * np.dtype(self.dtype).itemsize

    def begin(self) -> None:
        """Make the partial file anew. Raises OSError, ImportError."""
        remove(self.partial)
        package, shape, dtype = imported(self.path), self.shape, self.dtype
        if self.suffix == ".npy":
            with open(self.partial, "wb") as file:
                header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, header)
                file.flush()
                _reserve(file.fileno(), file.tell(), self._num_bytes)
        elif self.suffix == ".zarr":
            chunks = *(min(self.tile, side) for side in shape[:2]), shape[2]
            package.create_array(store=str(self.partial), shape=shape, chunks=chunks, dtype=dtype, fill_value=0)
        else:
            if self._num_bytes > (free := shutil.disk_usage(self.partial.parent).free):
                raise OSError(errno.ENOSPC, f"{self._num_bytes:,} bytes, of which its disk has {free:,}")
            package.imwrite(
                self.partial,
                shape=shape if shape[2] > 1 else shape[:2],
                dtype=dtype,
                tile=(next(side for side in _TIFF_SIDES if self.tile % side == 0),) * 2,
                photometric="rgb" if shape[2] == 3 else "minisblack",
                planarconfig="contig" if shape[2] > 1 else None,
                bigtiff=self._num_bytes > _CLASSIC_BYTES,
            )

    def open(self) -> WriteTile:
        """For one worker."""
        writers = {".npy": self._open_npy, ".zarr": self._open_zarr}
        return writers.get(self.suffix, self._open_tiff)()

    def _open_npy(self) -> WriteTile:
        file = open(self.partial, "r+b", buffering=0)  # noqa: SIM115
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_2_0(file)
        begin, pixel = file.tell(), self.shape[2] * np.dtype(self.dtype).itemsize
        step = self.shape[1] * pixel

        def write(area: Area, levels: Pixels) -> None:
            levels, size = np.ascontiguousarray(levels), area.width * pixel
            at, i = begin + area.top * step + area.left * pixel, 0
            while i < area.height:
                part = levels[i:]
                i += write_lines(file.fileno(), place_of(part), area.height - i, size, at + i * step, step)
                if i < area.height:
                    # Python says why.
                    _write(file.fileno(), levels[i], at + i * step)
                    i += 1

        return write

    def _open_tiff(self) -> WriteTile:
        with imported(self.path).TiffFile(self.partial) as opened:
            page: Any = opened.pages[0]
            places, side = page.dataoffsets, int(page.tilewidth)
        across = -(-self.shape[1] // side)
        file = open(self.partial, "r+b", buffering=0)  # noqa: SIM115

        def write(area: Area, levels: Pixels) -> None:
            for block in area.blocks(side):
                whole = np.zeros((side, side, levels.shape[2]), levels.dtype)
                whole[: block.height, : block.width] = levels[block.within(area)]
                _write(file.fileno(), whole, places[block.top // side * across + block.left // side])

        return write

    def _open_zarr(self) -> WriteTile:
        array: Any = imported(self.path).open_array(str(self.partial), mode="r+")

        def write(area: Area, levels: Pixels) -> None:
            array[area.top : area.bottom, area.left : area.right] = levels

        return write

    def finish(self) -> None:
        """Give it its name, in the place of what had it before."""
        if self.suffix != ".zarr":
            with open(self.partial, "r+b") as file:  # Windows syncs no file that is opened to be read
                os.fsync(file.fileno())
        elif os.path.isdir(self.path):
            before = self.partial.with_suffix(".before")
            remove(before)
            os.replace(self.path, before)
            os.replace(self.partial, self.path)
            remove(before)
            return
        os.replace(self.partial, self.path)


@dataclass(frozen=True)
class HeldResult:
    """An array in memory, [C, H, W] if ``is_planar``, else [H, W, C]."""

    array: Pixels | SharedArray
    is_planar: bool

    def open(self) -> WriteTile:
        """For one worker."""
        array = mapped(self.array)
        whole = array.transpose(1, 2, 0) if self.is_planar else array

        def write(area: Area, levels: Pixels) -> None:
            whole[area.top : area.bottom, area.left : area.right] = levels

        return write


def checked_result(path: str | os.PathLike[str], tile: int) -> str:
    """Raises SourceError for a name or place that is not accepted."""
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise SourceError(f"out: got {name!r}; accepted: a name that ends in {', '.join(SUFFIXES)}")
    if suffix in (".tif", ".tiff") and tile % 16:
        raise ValueError(f"tile: got {tile} for {name}; accepted: multiples of 16, of which a TIFF's tiles are")
    is_array = (Path(name) / "zarr.json").exists() or (Path(name) / ".zarray").exists()
    if not Path(name).absolute().parent.is_dir():
        raise SourceError(f"out: {name}: its folder does not exist")
    if os.path.isdir(name) and not (suffix == ".zarr" and is_array):
        raise SourceError(f"out: {name}: is a folder; choose another name")
    if suffix == ".zarr" and os.path.isfile(name):
        raise SourceError(f"out: {name}: is a file; choose another name")
    imported(name)
    return name


def _reserve(descriptor: int, begin: int, size: int) -> None:
    """Room for so many bytes, so that a disk that is too small says so at once."""
    os.ftruncate(descriptor, begin + size)
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, begin, max(size, 1))
        except OSError as error:
            # Not every file system can.
            if error.errno not in _CANNOT_RESERVE:
                raise


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(descriptor: int, levels: Pixels, at: int) -> None:
    view = np.ascontiguousarray(levels).reshape(-1).data.cast("B")
    while view:
        number = os.pwrite(descriptor, view[: 1 << 30], at)
        view, at = view[number:], at + number


class TilesDone:
    """Beside the partial file: ``.json``, what it is a part of; ``.done``, numbers of its tiles, of four bytes. Nothing
    is synced: a process that is killed loses nothing, a machine that loses its power may."""

    def __init__(self, result: ResultFile, settings: dict[str, Any]) -> None:
        self._partial = result.partial
        self._settings = json.dumps(settings, sort_keys=True)
        # Of a source that nothing tells apart, nothing is taken up.
        self._is_known = settings.get("source") is not None
        self._json, self._done = Path(f"{self._partial}.json"), Path(f"{self._partial}.done")
        self._file: Any = None
        self.done: frozenset[int] = frozenset()

    def take_up(self) -> bool:
        """True if an earlier run made a part of this very result; then ``done`` has its tiles."""
        try:
            is_same = self._is_known and self._json.read_text() == self._settings and self._partial.exists()
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
