"""Pixels on disk: a second run, or another process, need not decode them either.

Every process appends to a pair of files of its own: ``NAME.pixels`` holds rows of pixels, ``NAME.index`` a record of
fixed size for each picture, written when its pixels are. So a process that is killed leaves whole records and at most
one picture that nobody refers to; records are believed only with the right checksum.
"""

from __future__ import annotations

import os
import shutil
import uuid
import warnings
import zlib
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.threads import at_fork

Picture = npt.NDArray[np.uint8]

_VERSION = 2
_RECORD = np.dtype(
    [
        *(("id", "<u8"), ("offset", "<u8"), ("height", "<u4"), ("width", "<u4"), ("channels", "<u4")),
        *(("checksum", "<u4"), ("int_label", "<i8"), ("float_label", "<f8"), ("is_float", "<u4"), ("check", "<u4")),
    ]
)


def _check(record: bytes | memoryview) -> int:
    """The last field: of all before it, so that one flipped bit does not show another picture, or label."""
    return zlib.crc32(record[:-4])


class _Part:
    """A pair of files, as this process sees it."""

    def __init__(self, pixels: int, records: Any, is_checked: bool) -> None:
        self.pixels = pixels  # a descriptor
        self.records = records  # by row; an array for those of other processes, a list for our own
        self.is_checked = np.full(len(records), is_checked)

    def __del__(self) -> None:
        os.close(self.pixels)


class DiskCache:
    """Pictures under ``folder/key``, at most ``max_bytes`` of them (None: half of the free space, shared by
    ``processes``).

    ``key`` names the data set and how its pictures were reduced; another data set makes a folder of its own.
    """

    holds_device_memory = False

    def __init__(
        self, folder: str | os.PathLike[str], key: str, max_bytes: int | None = None, processes: int = 1
    ) -> None:
        root = Path(folder) / f"pixels-v{_VERSION}-{key}"
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"cache: {folder}: cannot be made ({error.strerror}); accepted: a folder to write to"
            ) from error
        self._root = root
        self._room = shutil.disk_usage(root).free // (2 * processes) if max_bytes is None else max_bytes
        # The part and the row in it: numbers, since there may be millions.
        self._places: dict[int, tuple[int, int]] = {}
        self._parts: list[_Part] = []
        self._lock = Lock()
        self._own: _Part | None = None
        self._own_index = -1
        self._end = 0
        self.nbytes = 0
        for index in sorted(root.glob("*.index")):
            self._load(index)
        self._room += self.nbytes if max_bytes is None else 0
        at_fork(self)

    def after_fork(self) -> None:
        """The parent goes on appending to its pair of files; what it has there is read, and written to another."""
        self._lock = Lock()
        if self._own is not None:
            self._own.is_checked = np.full(len(self._own.records), True)
            os.close(self._own_index)
        self._own, self._own_index, self._end = None, -1, 0

    def __len__(self) -> int:
        return len(self._places)

    def get(self, sample_id: int) -> tuple[Picture, Any] | None:
        place = self._places.get(sample_id)
        if place is None:
            return None
        part, row = self._parts[place[0]], place[1]
        _, offset, *shape, checksum, int_label, float_label, is_float, _ = part.records[row].item()
        picture = np.empty(shape, np.uint8)
        flat = picture.reshape(-1).data
        try:
            read = os.preadv(part.pixels, [flat], offset)
        except OSError:
            return None  # it is decoded instead
        if part is not self._own and not part.is_checked[row]:
            # Once a process is enough: after a crash of the machine a file may have its length but not its bytes.
            if read != picture.nbytes or zlib.crc32(flat) != checksum:
                self._places.pop(sample_id, None)
                return None
            part.is_checked[row] = True
        return picture, float_label if is_float else int_label

    def put(self, sample_id: int, picture: Picture, label: Any) -> Picture:
        if not isinstance(label, (int, float, np.integer, np.floating)):
            raise ValueError(
                f"cache: got a label of type {type(label).__name__}; a cache on disk accepts integers and floats"
            )
        with self._lock:
            if sample_id in self._places or self.nbytes + picture.nbytes > self._room:
                return picture
            try:
                self._append(sample_id, picture, label)
            except OSError as error:
                self._room = 0
                warnings.warn(f"{self._root}: {error.strerror}; nothing more is cached in this run", stacklevel=2)
        return picture

    def _append(self, sample_id: int, picture: Picture, label: Any) -> None:
        own = self._own or self._open_own()
        flat = np.ascontiguousarray(picture).reshape(-1).data
        is_float = isinstance(label, (float, np.floating))
        as_label = 0 if is_float else label, label, is_float
        values = (sample_id, self._end, *picture.shape, zlib.crc32(flat), *as_label, 0)
        record = np.array([values], _RECORD)
        record["check"] = _check(record.tobytes())
        written = 0
        while written < len(flat):
            written += os.pwrite(own.pixels, flat[written:], self._end + written)
        os.write(self._own_index, record.tobytes())
        own.records.append(record[0])
        self._places[sample_id] = len(self._parts) - 1, len(own.records) - 1
        self._end += len(flat)
        self.nbytes += len(flat)

    def _open_own(self) -> _Part:
        stem = self._root / f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        pixels = os.open(f"{stem}.pixels", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        self._own = _Part(pixels, [], is_checked=True)
        self._own_index = os.open(f"{stem}.index", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._parts.append(self._own)
        return self._own

    def _load(self, index: Path) -> None:
        try:
            data = index.read_bytes()
            pixels = os.open(index.with_suffix(".pixels"), os.O_RDONLY)
        except OSError:
            return
        size = _RECORD.itemsize
        records = np.frombuffer(data[: len(data) // size * size], _RECORD)
        self._parts.append(_Part(pixels, records, is_checked=False))
        # In numbers that do not run over, and are exact where the file is long enough.
        sides = [records[side].astype(np.float64) for side in ("height", "width", "channels")]
        sizes = np.prod(sides, axis=0)
        is_picture = (sizes > 0) & np.isin(records["channels"], (1, 3))
        is_there = is_picture & (records["offset"].astype(np.float64) + sizes <= os.fstat(pixels).st_size)
        whole = memoryview(data)
        for row in np.flatnonzero(is_there).tolist():
            if _check(whole[size * row : size * (row + 1)]) != records["check"][row]:
                continue
            # Two processes may have kept the same picture; both take up room.
            self._places.setdefault(int(records["id"][row]), (len(self._parts) - 1, row))
            self.nbytes += int(sizes[row])

    def __del__(self) -> None:
        if getattr(self, "_own_index", -1) >= 0:
            os.close(self._own_index)
