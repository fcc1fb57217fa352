"""Images written in bands of lines by several workers: .npy, TIFF and Zarr; and what a run has done so far."""

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

from variegate.arrays import AnyArray
from variegate.data.base import SourceError
from variegate.io.durable import publish
from variegate.io.files import StrPath
from variegate.jobs.regions.memory import MappedFile, num_bytes
from variegate.jobs.regions.reading import SUFFIXES, imported

WriteBand = Callable[[int, AnyArray], None]  # lines [H, W, C] from a line on; raises OSError
# Sides of a TIFF's own tiles are the largest of these that divides a tile of ours: they must be multiples of 16.
_TIFF_SIDES = (512, 256, 128, 64, 32, 16)
_CLASSIC_BYTES = 3 << 30
_CANNOT_RESERVE = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class ResultFile:
    """An image of ``shape`` [H, W, C], made in a folder of the run, from which ``finish`` moves it to its name."""

    path: str
    shape: tuple[int, int, int]
    dtype: str
    tile: int

    @property
    def suffix(self) -> str:
        return Path(self.path).suffix.lower()

    @property
    def folder(self) -> Path:
        """Of the run, beside the result."""
        path = Path(self.path)
        return path.with_name(f".{path.name}.partial")

    @property
    def partial(self) -> Path:
        return self.folder / f"result{self.suffix}"

    def begin(self) -> None:
        """Make the partial file. Raises OSError, ImportError."""
        package = imported(self.path)
        shape = self.shape
        dtype = self.dtype
        if self.suffix == ".npy":
            with open(self.partial, "wb") as file:
                header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, header)
                begin = file.tell()
            reserve(self.partial, begin, num_bytes(shape, dtype))
        elif self.suffix == ".zarr":
            chunks = *(min(self.tile, side) for side in shape[:2]), shape[2]
            package.create_array(store=str(self.partial), shape=shape, chunks=chunks, dtype=dtype, fill_value=0)
        else:
            package.imwrite(
                self.partial,
                shape=shape if shape[2] > 1 else shape[:2],
                dtype=dtype,
                tile=(next(side for side in _TIFF_SIDES if self.tile % side == 0),) * 2,
                photometric="rgb" if shape[2] == 3 else "minisblack",
                planarconfig="contig" if shape[2] > 1 else None,
                bigtiff=num_bytes(shape, dtype) > _CLASSIC_BYTES,
            )

    def mapped(self) -> MappedFile:
        """The pixels of a .npy."""
        with open(self.partial, "rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_2_0(file)
            return MappedFile(os.path.abspath(self.partial), self.shape, self.dtype, file.tell())

    def open(self) -> WriteBand:
        """For one worker. Bands begin at multiples of ``tile``."""
        writers = {".npy": self._open_npy, ".zarr": self._open_zarr}
        return writers.get(self.suffix, self._open_tiff)()

    def _open_npy(self) -> WriteBand:
        return written_into(self.mapped().map())

    def _open_tiff(self) -> WriteBand:
        with imported(self.path).TiffFile(self.partial) as opened:
            page: Any = opened.pages[0]
            places = page.dataoffsets
            side = int(page.tilewidth)
        across = -(-self.shape[1] // side)
        file = open(self.partial, "r+b", buffering=0)  # noqa: SIM115

        def write(begin: int, levels: AnyArray) -> None:
            whole = np.zeros((side, side, levels.shape[2]), levels.dtype)
            for top in range(0, len(levels), side):
                for column in range(across):
                    part = levels[top : top + side, column * side : (column + 1) * side]
                    whole[:] = 0
                    whole[: part.shape[0], : part.shape[1]] = part
                    _write(file.fileno(), whole, places[(begin + top) // side * across + column])

        return write

    def _open_zarr(self) -> WriteBand:
        return written_into(imported(self.path).open_array(str(self.partial), mode="r+"))

    def finish(self) -> None:
        """Give it its name, in the place of what had it before."""
        if self.suffix == ".zarr" and os.path.isdir(self.path):
            before = self.folder / "before.zarr"
            remove(before)
            os.replace(self.path, before)
        publish(self.partial, Path(self.path))


def written_into(array: Any) -> WriteBand:
    def write(begin: int, levels: AnyArray) -> None:
        array[begin : begin + len(levels)] = levels

    return write


def checked_result(path: StrPath, tile: int) -> str:
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


def reserve(path: Path, begin: int, size: int) -> None:
    """Room for so many bytes from ``begin`` on, as a mapped file that finds none ends the process."""
    with open(path, "ab") as file:
        os.ftruncate(file.fileno(), begin + size)
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), begin, max(size, 1))
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


def _write(descriptor: int, levels: AnyArray, at: int) -> None:
    view = np.ascontiguousarray(levels).reshape(-1).data.cast("B")
    while view:
        number = os.pwrite(descriptor, view[: 1 << 30], at)
        view = view[number:]
        at += number


class BandsDone:
    """In the run's folder: ``settings.json``, what it is a part of; ``done``, numbers of its bands, of four bytes.

    Nothing is synced: a process that is killed loses nothing, a machine that loses its power may.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._settings = json.dumps(settings, sort_keys=True)
        # Of a source that nothing tells apart, nothing is taken up.
        self._is_known = settings.get("source") is not None
        self._json = folder / "settings.json"
        self._done = folder / "done"
        self._file: Any = None
        self.done: frozenset[int] = frozenset()

    def take_up(self) -> bool:
        """True if an earlier run made a part of this very result; then ``done`` has its bands."""
        try:
            is_same = self._is_known and self._json.read_text() == self._settings
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
        """After all files of the run have been begun."""
        self._file = open(self._done, "wb", buffering=0)  # noqa: SIM115
        self._json.write_text(self._settings)

    def add(self, band: int) -> None:
        self._file.write(np.uint32(band).astype("<u4").tobytes())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
