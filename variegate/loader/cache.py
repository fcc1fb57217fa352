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

from variegate.arrays import ImageArray
from variegate.checks import a_path, integer
from variegate.data.base import digest_of
from variegate.io.addresses import is_url, redact_url
from variegate.io.files import BINARY, StrPath, read_at, write_at
from variegate.io.lock import FileLock, exclusive_lock
from variegate.loader.targets import targets_nbytes
from variegate.program.depth import Depth, depth_of
from variegate.program.program import MAX_CHANNELS
from variegate.threads import at_fork

if TYPE_CHECKING:
    from variegate.loader.options import LoaderOptions

Picture = ImageArray

_VERSION = 4
_RECORD = np.dtype(
    [
        ("id", "<u8"),
        ("offset", "<u8"),
        ("height", "<u4"),
        ("width", "<u4"),
        ("channels", "<u4"),
        ("is_float", "<u2"),
        ("depth", "<u2"),
        ("int_label", "<i8"),
        ("float_label", "<f8"),
        ("checksum", "<u4"),
    ]
)


def _checksum(record: Any, pixels: Any) -> int:
    """Checksum over all fields before it and the pixels, so that a flipped bit never yields another picture or
    label."""
    return zlib.crc32(pixels, zlib.crc32(record.tobytes()[: -record["checksum"].nbytes]))


_DEPTHS = {*map(int, Depth)}


def _bytes_of(picture: Picture) -> memoryview:
    return picture.reshape(-1).view(np.uint8).data


def _nbytes_of(record: tuple[Any, ...], file_size: int) -> int:
    """Size of a record's picture; 0 if the record is of no picture within a file of pixels."""
    _, offset, height, width, channels, _, depth, *_ = record
    if channels > MAX_CHANNELS or depth not in _DEPTHS:
        return 0
    nbytes: int = height * width * channels * Depth(depth).dtype.itemsize
    return nbytes if offset + nbytes <= file_size else 0


class _Pair:
    """Pixels and records of one process, open until nothing refers to them. ``is_custom``: of this one."""

    def __init__(self, stem: Path, is_custom: bool) -> None:
        flags = BINARY | (os.O_RDWR | os.O_CREAT | os.O_EXCL if is_custom else os.O_RDONLY)
        self.is_custom = is_custom
        self.pixels = self.index = -1
        self.pixels = os.open(f"{stem}.pixels", flags, 0o644)
        self.index = os.open(f"{stem}.index", flags, 0o644)
        self.nbytes = 0  # of pixels that were written
        self.is_checked = bytearray()  # by record

    def __del__(self) -> None:
        for descriptor in (self.pixels, self.index):
            if descriptor >= 0:
                os.close(descriptor)

    def read(self, first: int, number: int) -> Any:
        """Records of the index, perhaps fewer."""
        size = _RECORD.itemsize
        data = bytearray(number * size)
        read = read_at(self.index, memoryview(data), first * size)
        return np.frombuffer(data, _RECORD, read // size)

    def add(self, record: Any, pixels: Any) -> None:
        written = 0
        while written < len(pixels):
            written += write_at(self.pixels, pixels[written:], self.nbytes + written)
        write_at(self.index, record.tobytes(), len(self.is_checked) * _RECORD.itemsize)
        self.nbytes += written
        self.is_checked.append(True)


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
        self._pairs: dict[Path, _Pair] = {}
        # The pair and the number of its record: numbers, since there may be millions.
        self._places: dict[int, tuple[_Pair, int]] = {}
        self._lock = Lock()
        self._own: _Pair | None = None
        self.nbytes = 0
        self.use_added()
        self._room += self.nbytes if max_bytes is None else 0
        at_fork(self)

    def after_fork(self) -> None:
        """The parent keeps appending to its pair of files; the child reads them, and writes to another pair."""
        self._lock = Lock()
        if self._own is not None:
            self._own.is_custom = False
            self._own = None

    def use_added(self) -> None:
        """Find entries that other processes have added since."""
        with self._lock:
            for index in sorted(self._root.glob("*.index")):
                with suppress(OSError):
                    self._load(index.with_suffix(""))

    def _load(self, stem: Path) -> None:
        pair = self._pairs.get(stem) or _Pair(stem, is_custom=False)
        self._pairs[stem] = pair
        first = len(pair.is_checked)
        number = os.fstat(pair.index).st_size // _RECORD.itemsize - first
        if pair.is_custom or number <= 0:
            return
        file_size = os.fstat(pair.pixels).st_size
        records = pair.read(first, number).tolist()
        pair.is_checked += bytes(len(records))
        for row, record in enumerate(records, first):
            if nbytes := _nbytes_of(record, file_size):
                # Two processes may have kept the same picture; both take up room.
                self.nbytes += nbytes
                self._places.setdefault(record[0], (pair, row))

    def __len__(self) -> int:
        return len(self._places)

    def get(self, sample_id: int) -> tuple[Picture, Any] | None:
        place = self._places.get(sample_id)
        if place is None:
            return None
        pair, row = place
        try:
            found = self._read(sample_id, pair, row)
        except OSError:
            return None  # it is decoded instead
        if found is None:
            self._places.pop(sample_id, None)
        return found

    def _read(self, sample_id: int, pair: _Pair, row: int) -> tuple[Picture, Any] | None:
        """None for missing or damaged pixels."""
        records = pair.read(row, 1)
        file_size = os.fstat(pair.pixels).st_size
        if not len(records) or records["id"][0] != sample_id or not _nbytes_of(records[0].item(), file_size):
            return None
        record = records[0]
        _, offset, *shape, is_float, depth, int_label, float_label, checksum = record.item()
        picture = np.empty(shape, Depth(depth).dtype)
        pixels = _bytes_of(picture)
        read = read_at(pair.pixels, pixels, offset)
        # Once a process is enough: after a crash of the machine a file may have its length but not its bytes.
        with self._lock:  # other threads may lengthen the bytearray
            is_checked = pair.is_checked[row]
        if not is_checked:
            if read != picture.nbytes or _checksum(record, pixels) != checksum:
                return None
            with self._lock:
                pair.is_checked[row] = True
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
        if self._own is None:
            stem = self._root / f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
            self._own = self._pairs[stem] = _Pair(stem, is_custom=True)
        pixels = _bytes_of(np.ascontiguousarray(picture))
        is_float = isinstance(label, (float, np.floating))
        depth = depth_of(picture.dtype)
        values = (sample_id, self._own.nbytes, *picture.shape, is_float, depth, 0 if is_float else label, label, 0)
        record = np.array([values], _RECORD)
        record["checksum"] = _checksum(record[0], pixels)
        self._own.add(record, pixels)
        self._places[sample_id] = self._own, len(self._own.is_checked) - 1
        self.nbytes += len(pixels)


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
        """Return the pixels to use from here on; cached if there is room."""
        nbytes = picture.nbytes + targets_nbytes(label)
        with self._lock:
            if sample_id not in self._held and self.nbytes + nbytes <= self._max_bytes:
                self._held[sample_id] = picture, label
                self.nbytes += nbytes
        return picture


class DeviceCache(HostCache):
    """A cache in GPU memory, read in place by the augmentation; ``max_bytes`` None: half of the free memory when the
    cache is created."""

    holds_device_memory = True

    def __init__(self, device: str, max_bytes: int | None = None) -> None:
        self._device = torch.device(device)
        super().__init__(torch.cuda.mem_get_info(self._device)[0] // 2 if max_bytes is None else max_bytes)
        self._copies = torch.cuda.Stream(self._device)

    def put(self, sample_id: int, picture: Picture, label: Any) -> torch.Tensor:
        """Pictures that are not cached are copied to the device as well, because a batch is on one device."""
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
        with exclusive_lock(root / "lock"):
            self._in_use.acquire()
            for other in root.iterdir():
                _remove_unused(other)
        super().__init__(root / name, key, max_bytes, processes)

    def __del__(self) -> None:
        if hasattr(self, "_in_use"):
            folder = self._root.parent
            with exclusive_lock(folder.parent / "lock"):
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

    ``processes``: number of processes that share the memory and the disk; ``shared``: name of their shared host memory.
    Raises ValueError for an unknown or misspelt word, and for a budget or side that is not positive.
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
    key = _key_of(options)
    if shared is not None and where == "host":
        return NodeCache(shared, key, max_bytes, processes)
    if where in _MEMORIES:  # the memory of a CPU is the host's
        return HostCache(available_memory() // (2 * processes) if max_bytes is None else max_bytes)
    if isinstance(where, str):
        if is_url(where):
            raise ValueError(f"cache: got {redact_url(where)!r}; accepted: {_ACCEPTED}, of this machine")
        a_path("cache", where, _MEMORIES, _ACCEPTED)
    return DiskCache(Path(where).expanduser(), key, max_bytes, processes)


def _key_of(options: LoaderOptions) -> str:
    """Name of all that the pixels of a picture depend on."""
    key = f"{options.source.fingerprint}-{options.cache_side or 'whole'}"
    reading = {name: getattr(options, name) for name in ("depth", "channels", "dicom")}
    given = {name: value for name, value in reading.items() if value is not None}
    return f"{key}-{digest_of(repr(given))}" if given else key


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, or of its control group where that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        # Not Linux: half of the total memory is assumed to be free.
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
