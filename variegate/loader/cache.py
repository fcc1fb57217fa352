"""Pixels that later epochs need not decode again: in the host's memory, on the device, or on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from variegate.arrays import UInt8Array
from variegate.checks import a_path, integer
from variegate.io.addresses import is_url, shown
from variegate.io.files import BINARY, StrPath, read_at, write_at
from variegate.io.lock import FileLock, one_at_a_time
from variegate.loader.targets import targets_nbytes
from variegate.program.program import MAX_CHANNELS
from variegate.threads import at_fork

if TYPE_CHECKING:
    from variegate.loader.options import LoaderOptions

Picture = UInt8Array

_VERSION = 3
_RECORD = np.dtype(
    [
        ("id", "<u8"),
        ("offset", "<u8"),
        ("height", "<u4"),
        ("width", "<u4"),
        ("channels", "<u4"),
        ("is_float", "<u4"),
        ("int_label", "<i8"),
        ("float_label", "<f8"),
        ("checksum", "<u4"),
    ]
)


def _checksum(record: Any, pixels: Any) -> int:
    """Of all fields before it and the pixels, so that one flipped bit does not show another picture, or label."""
    return zlib.crc32(pixels, zlib.crc32(record.tobytes()[: -record["checksum"].nbytes]))


class _Pixels:
    """A file of pixels, open until nothing refers to it."""

    def __init__(self, path: Path, flags: int) -> None:
        self.descriptor = os.open(path, flags | BINARY, 0o644)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class _Part:
    """Records of a pair of files that this process found at one time."""

    def __init__(self, pixels: _Pixels, records: Any, is_checked: bool) -> None:
        self.pixels = pixels
        self.records = records  # by row; an array for those of other processes, a list for our own
        self.is_checked = np.full(len(records), is_checked)


class DiskCache:
    """Pictures on disk: a second run, or another process, need not decode them either.

    At most ``max_bytes`` under ``folder/key`` (None: half of the free space, shared by ``processes``); ``key`` names
    the data set and how its pictures were reduced. Every process appends to a pair of files of its own:
    ``NAME.pixels`` holds rows of pixels, ``NAME.index`` a record of fixed size for each picture, written when its
    pixels are. So a process that is killed leaves whole records and at most one picture that nobody refers to; pictures
    of other processes are believed only with the right checksum.
    """

    holds_device_memory = False

    def __init__(self, folder: StrPath, key: str, max_bytes: int | None = None, processes: int = 1) -> None:
        root = self._root = Path(folder) / f"pixels-v{_VERSION}-{key}"
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot be made ({error.strerror}); accepted: a folder to write to"
            raise ValueError(f"cache: {folder}: {reason}") from error
        self._room = shutil.disk_usage(root).free // (2 * processes) if max_bytes is None else max_bytes
        # The part and the row in it: numbers, since there may be millions.
        self._places: dict[int, tuple[int, int]] = {}
        self._parts: list[_Part] = []
        self._pixels: dict[Path, _Pixels] = {}  # by the file of their records
        self._lock = Lock()
        self._own: _Part | None = None
        self._own_name: Path | None = None
        self._own_index = -1
        self._end = 0
        self.nbytes = 0
        self._read: dict[Path, int] = {}  # bytes of others' records
        self.use_added()
        self._room += self.nbytes if max_bytes is None else 0
        at_fork(self)

    def after_fork(self) -> None:
        """The parent goes on appending to its pair of files; what it has there is read, and written to another."""
        self._lock = Lock()
        if self._own is not None:
            self._own.is_checked = np.full(len(self._own.records), True)
            os.close(self._own_index)
            assert self._own_name is not None
            self._read[self._own_name] = len(self._own.records) * _RECORD.itemsize
        self._own, self._own_name, self._own_index, self._end = None, None, -1, 0

    def use_added(self) -> None:
        """Find what other processes have added since."""
        with self._lock:
            for index in sorted(self._root.glob("*.index")):
                if index != self._own_name and index.stat().st_size > self._read.get(index, 0):
                    self._load(index)

    def __len__(self) -> int:
        return len(self._places)

    def get(self, sample_id: int) -> tuple[Picture, Any] | None:
        place = self._places.get(sample_id)
        if place is None:
            return None
        part = self._parts[place[0]]
        row = place[1]
        record = part.records[row]
        _, offset, *shape, is_float, int_label, float_label, checksum = record.item()
        picture = np.empty(shape, np.uint8)
        flat = picture.reshape(-1).data
        try:
            read = read_at(part.pixels.descriptor, flat, offset)
        except OSError:
            return None  # it is decoded instead
        if part is not self._own and not part.is_checked[row]:
            # Once a process is enough: after a crash of the machine a file may have its length but not its bytes.
            if read != picture.nbytes or _checksum(record, flat) != checksum:
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
        values = (sample_id, self._end, *picture.shape, is_float, 0 if is_float else label, label, 0)
        record = np.array([values], _RECORD)
        record["checksum"] = _checksum(record[0], flat)
        written = 0
        while written < len(flat):
            written += write_at(own.pixels.descriptor, flat[written:], self._end + written)
        os.write(self._own_index, record.tobytes())
        own.records.append(record[0])
        self._places[sample_id] = self._own_number, len(own.records) - 1
        self._end += len(flat)
        self.nbytes += len(flat)

    def _open_own(self) -> _Part:
        stem = self._root / f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        pixels = _Pixels(Path(f"{stem}.pixels"), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self._own = _Part(pixels, [], is_checked=True)
        appending = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | BINARY
        self._own_name = Path(f"{stem}.index")
        self._own_index = os.open(self._own_name, appending, 0o644)
        self._pixels[self._own_name] = pixels
        self._own_number = len(self._parts)
        self._parts.append(self._own)
        return self._own

    def _load(self, index: Path) -> None:
        try:
            with index.open("rb") as file:
                file.seek(self._read.get(index, 0))
                data = file.read()
            pixels = self._pixels.get(index) or _Pixels(index.with_suffix(".pixels"), os.O_RDONLY)
        except OSError:
            return
        self._pixels[index] = pixels
        size = _RECORD.itemsize
        data = data[: len(data) // size * size]
        self._read[index] = self._read.get(index, 0) + len(data)
        records = np.frombuffer(data, _RECORD)
        self._parts.append(_Part(pixels, records, is_checked=False))
        # In numbers that do not run over, and are exact where the file is long enough.
        sides = [records[side].astype(np.float64) for side in ("height", "width", "channels")]
        sizes = np.prod(sides, axis=0)
        is_picture = (sizes > 0) & (records["channels"] >= 1) & (records["channels"] <= MAX_CHANNELS)
        is_there = is_picture & (records["offset"].astype(np.float64) + sizes <= os.fstat(pixels.descriptor).st_size)
        self.nbytes += int(sizes[is_there].sum())
        part = len(self._parts) - 1
        for row in np.flatnonzero(is_there).tolist():
            # Two processes may have kept the same picture; both take up room.
            self._places.setdefault(int(records["id"][row]), (part, row))

    def __del__(self) -> None:
        if getattr(self, "_own_index", -1) >= 0:
            os.close(self._own_index)


class HostCache:
    """The first pictures that fit into ``max_bytes``, by the id of their sample. Any thread may call any method.

    None is thrown out for another: every epoch asks for every sample once, so that whichever are held serve equally.
    """

    holds_device_memory = False

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: dict[int, tuple[Any, Any]] = {}
        self.nbytes = 0
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def get(self, sample_id: int) -> tuple[Any, Any] | None:
        """Pixels and label."""
        return self._held.get(sample_id)

    def use_added(self) -> None:
        """Nobody else adds anything."""

    def put(self, sample_id: int, picture: Any, label: Any) -> Any:
        """The pixels as they are to be used from here on; held, where there is still room."""
        nbytes = picture.nbytes + targets_nbytes(label)
        with self._lock:
            if sample_id not in self._held and self.nbytes + nbytes <= self._max_bytes:
                self._held[sample_id] = picture, label
                self.nbytes += nbytes
        return picture


class DeviceCache(HostCache):
    """In the memory of a GPU, where the augmentation reads it in place; ``max_bytes`` None: half of what is free of it
    when the cache is made."""

    holds_device_memory = True

    def __init__(self, device: str, max_bytes: int | None = None) -> None:
        self._device = torch.device(device)
        super().__init__(torch.cuda.mem_get_info(self._device)[0] // 2 if max_bytes is None else max_bytes)
        self._copies = torch.cuda.Stream(self._device)

    def put(self, sample_id: int, picture: Picture, label: Any) -> torch.Tensor:
        """Pictures that are not held go to the device as well: a batch lies in one place."""
        # Torch waits for a copy from pageable memory, so that any stream may read the result at once; on a stream of
        # its own it does not wait for the training step as well.
        with torch.cuda.stream(self._copies):
            placed = torch.from_numpy(picture).to(self._device)
        super().put(sample_id, placed, label)
        return placed


class NodeCache(DiskCache):
    """Memory that the processes of one machine share. Its files disappear with the last process that uses ``name``, or,
    if all were killed, when the next such cache is made."""

    def __init__(self, name: str, key: str, max_bytes: int | None = None, processes: int = 1) -> None:
        user = os.getuid() if hasattr(os, "getuid") else 0
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
        root = Path(memory) / f"variegate-caches-{user}"
        root.mkdir(mode=0o700, exist_ok=True)
        if user and (root.is_symlink() or root.stat().st_uid != user or root.stat().st_mode & 0o077):
            raise ValueError(f"cache: {root} belongs to somebody else; accepted: a folder of this user alone")
        self._in_use = FileLock(root / name / f"{uuid.uuid4().hex}.lock")
        # One process at a time, so that no folder looks unused between its creation and its lock.
        with one_at_a_time(root / "lock"):
            self._in_use.acquire()
            for other in root.iterdir():
                _remove_unused(other)
        super().__init__(root / name, key, max_bytes, processes)

    def __del__(self) -> None:
        super().__del__()
        if hasattr(self, "_in_use"):
            folder = self._root.parent
            with one_at_a_time(folder.parent / "lock"):
                self._in_use.release(remove=True)
                _remove_unused(folder)


def _remove_unused(folder: Path) -> None:
    """Remove a folder that no living process uses."""
    with suppress(OSError):
        for path in folder.glob("*.lock"):
            lock = FileLock(path)
            lock.acquire()
            lock.release(remove=True)
        shutil.rmtree(folder, ignore_errors=True)


PixelCache = HostCache | DiskCache
_MEMORIES = ("host", "device")
_ACCEPTED = "'host', 'device', None, or a folder to keep pixels on disk"


def open_cache(options: LoaderOptions, device: str, processes: int = 1, shared: str | None = None) -> PixelCache | None:
    """``options.cache``: None, "host", "device", or a folder: a ``Path``, or text that ``a_path`` takes for one.

    ``processes``: among how many the memory and the disk are shared; ``shared``: the name by which they share the
    host's memory. Raises ValueError for what is none of them, such as a misspelt word, and for a budget or side that
    is not positive.
    """
    where = options.cache
    max_bytes = options.cache_bytes
    side = options.cache_side
    for name, value in (("cache_bytes", max_bytes), ("cache_side", side)):
        if value is not None:
            integer(name, value, 1, accepted="a positive integer, or None")
        if value is not None and where is None:
            raise ValueError(f"{name}: got {value!r} without a cache; accepted with cache='host', 'device' or a folder")
    if where is None:
        return None
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise ValueError(f"cache: got {where!r}; accepted: {_ACCEPTED}")
    if where == "device" and device.startswith("cuda"):
        return DeviceCache(device, max_bytes)
    key = f"{options.source.fingerprint}-{side or 'whole'}"
    if shared is not None and where == "host":
        return NodeCache(shared, key, max_bytes, processes)
    if where in _MEMORIES:  # the memory of a CPU is the host's
        return HostCache(available_memory() // (2 * processes) if max_bytes is None else max_bytes)
    if isinstance(where, str):
        if is_url(where):
            raise ValueError(f"cache: got {shown(where)!r}; accepted: {_ACCEPTED}, of this machine")
        a_path("cache", where, _MEMORIES, _ACCEPTED)
    return DiskCache(Path(where).expanduser(), key, max_bytes, processes)


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, or of its control group where that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        # Not Linux: what there is in all, of which half may well be taken.
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 << 30
    return min([free, *_free_in_groups()])


# Of control groups, version 2 and version 1: where they are, and their files for limit, use and statistics.
_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def _free_in_groups() -> list[int]:
    """Bytes that the limits of this process's control groups leave, without pages of files that can be dropped."""
    try:
        paths = {line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    except (OSError, IndexError):
        paths = {"/"}
    found = []
    for root, limit, used, reclaimable in _GROUPS:
        for path in {parent for one in paths for parent in (Path(one), *Path(one).parents)}:
            folder = Path(f"{root}{path}")
            try:
                most = int((folder / limit).read_text())
                taken = int((folder / used).read_text())
                lines = (folder / "memory.stat").read_text().splitlines()
            except (OSError, ValueError):  # no such group, or "max"
                continue
            dropped = sum(int(line.split()[1]) for line in lines if line.split()[0] == reclaimable)
            found.append(max(most - taken + dropped, 0))
    return found
