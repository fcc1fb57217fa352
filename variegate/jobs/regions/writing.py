"""Images written in bands of lines by several workers: .npy, TIFF and Zarr."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from variegate.arrays import AnyArray
from variegate.data.base import SourceError
from variegate.decode.channels import read_numpy_header
from variegate.io.durable import publish
from variegate.io.files import StrPath
from variegate.jobs.output.run_folder import work_folder
from variegate.jobs.regions.memory import MappedFile, num_bytes
from variegate.jobs.regions.reading import SUFFIXES, imported

WriteBand = Callable[[int, AnyArray], None]  # lines [H, W, C] from a line on; raises OSError
# Sides of a TIFF's own tiles are the largest of these that divides a tile of ours: they must be multiples of 16.
_TIFF_SIDES = (512, 256, 128, 64, 32, 16)
_CLASSIC_BYTES = 3 << 30
_CANNOT_RESERVE = (errno.EINVAL, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class ResultFile:
    """An image of ``shape`` [H, W, C], made in the folder of its run, from which ``finish`` moves it to its name."""

    path: str
    shape: tuple[int, int, int]
    dtype: str
    tile: int

    @property
    def suffix(self) -> str:
        return Path(self.path).suffix.lower()

    @property
    def folder(self) -> Path:
        return work_folder(self.path)

    @property
    def partial(self) -> Path:
        return self.folder / f"result{self.suffix}"

    def begin(self) -> None:
        """Make the partial file. Raises OSError, ImportError."""
        remove(self.partial)
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
            read_numpy_header(file)
            return MappedFile(os.path.abspath(self.partial), self.shape, self.dtype, file.tell())

    def open(self) -> WriteBand:
        """Open for a single worker. Bands begin at multiples of ``tile``."""
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
        """Rename it to its final name, replacing an existing file."""
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
    """Reserve disk space from ``begin`` on, because writing to a mapped file without space kills the process."""
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
