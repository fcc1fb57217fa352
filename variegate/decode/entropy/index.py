"""Entropy indexes of whole data sets: entry points by the content of a file, kept in one file that is mapped to memory.

Files are identified by a hash of their content (XXH64), wherever they are: an index never describes another version of
a file, and an outdated index merely knows fewer files.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from variegate.arrays import UInt8Array, UInt64Array
from variegate.decode.entropy.cut import REASONS, Cut, cut_out, key_of_file, pack_file
from variegate.decode.header import JpegHeader, apply_orientation, shown_box, stored_box
from variegate.decode.image import decode_plain
from variegate.io.durable import named_write_errors, write_atomically
from variegate.io.files import StrPath
from variegate.io.location import cache_folder
from variegate.io.lock import exclusive_lock
from variegate.threads import at_fork

SUFFIX = ".vgjpeg"
Image_HWC = UInt8Array
_BLOCK = 8
# Largest share of a picture for which cutting pays.
WORTH_CUTTING = 0.85


def index_path(fingerprint: str) -> Path:
    """The place of a source's index, unless another is given."""
    return cache_folder() / "jpeg-indexes" / f"{fingerprint}{SUFFIX}"


class Known(NamedTuple):
    """Files that are indexed, by ``key_of_file``: uint64[N], ascending; uint64[N + 1] where the packed entries of each
    begin in uint8 ``packed``; nothing for a file that has none."""

    keys: UInt64Array
    offsets: UInt64Array
    packed: UInt8Array

    def find(self, key: int) -> UInt8Array | None:
        """The packed entries of a file; None if it is unknown."""
        place = int(np.searchsorted(self.keys, np.uint64(key)))
        if place == len(self.keys) or int(self.keys[place]) != key:
            return None
        return self.packed[int(self.offsets[place]) : int(self.offsets[place + 1])]


class EntropyIndex:
    """Entry points into the Huffman code of JPEG files, with which a crop decodes little more than itself.

    It holds the entries of the file at ``path``, if that exists, and of files added since. Any thread may call any
    method.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._saved = load(self.path) if self.path.exists() else NONE
        self._added: dict[int, bytes] = {}
        self.added_bytes = 0
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Files that are known, those without entry points among them."""
        return len(self._saved.keys) + len(self._added)

    @property
    def saved_bytes(self) -> int:
        return len(self._saved.packed)

    def cut_out(self, data: bytes, box: tuple[int, int, int, int], divisor: int = 1) -> Cut | None:
        """Build a smaller JPEG that contains at least ``box`` (top, left, bottom, right), with the same pixels.

        ``divisor``: 1, 2, 4 or 8, for decoding at 1 / ``divisor`` of the scale. Returns None if the file is unknown or
        no smaller one exists. The result is in a buffer of the calling thread, valid until its next call.
        """
        key = key_of_file(data)
        packed = self._find(key)
        if packed is None:
            self.is_unknown(data)
            return None
        return cut_out(data, key, packed, box, divisor) if len(packed) else None

    def _find(self, key: int) -> bytes | UInt8Array | None:
        """The packed entries of a file, none if it has none; None if it is unknown."""
        added = self._added.get(key)
        return self._saved.find(key) if added is None else added

    def decode_part(
        self, data: bytes, box: tuple[int, int, int, int], divisor: int = 1, buffer: Image_HWC | None = None
    ) -> tuple[Image_HWC, int, int] | None:
        """Decode at least a box of the stored image -> (part as decoded, top, left)."""
        cut = self.cut_out(data, box, divisor)
        if cut is None or (divisor > 1 and min(cut.height, cut.width) <= _BLOCK):
            return None  # a few pixels are as many at another scale
        sides = -(-cut.height // divisor), -(-cut.width // divisor)
        part = decode_plain(cut.file, *sides, divisor, buffer=buffer)
        return None if part is None else (part, cut.top // divisor, cut.left // divisor)

    def decode_box(
        self, data: bytes, header: JpegHeader, box: tuple[int, int, int, int], divisor: int = 1
    ) -> tuple[Image_HWC, int, int] | None:
        """Decode a box of the image as displayed, as ``decode_jpeg_box``; returns None where this would save little."""
        height = -(-header.height // divisor)
        width = -(-header.width // divisor)
        if (box[2] - box[0]) * (box[3] - box[1]) > WORTH_CUTTING * height * width:
            return None
        turned = header.orientation, height, width
        top, left, bottom, right = (divisor * side for side in stored_box(*turned, box))
        found = self.decode_part(data, (top, left, min(bottom, header.height), min(right, header.width)), divisor)
        if found is None:
            return None
        part, top, left = found
        top, left, _, _ = shown_box(*turned, (top, left, top + part.shape[0], left + part.shape[1]))
        return apply_orientation(part, header.orientation), top, left

    def can_cut(self, data: bytes) -> bool:
        """Return True if the entry points of a file are known."""
        packed = self._find(key_of_file(data))
        return packed is not None and len(packed) > 0

    def is_unknown(self, data: bytes) -> None:
        """A file that was asked for is not known. Nothing is done about it here."""

    def add(self, data: bytes) -> tuple[str | None, int]:
        """Index a file, unless it is known -> (reason why it has no entry points, or None; bytes of its entry)."""
        key = key_of_file(data)
        found = self._find(key)
        if found is not None and len(found):
            return None, len(found)
        packed = pack_file(data)
        if isinstance(packed, int):
            self.take_over({key: b""})
            return REASONS[packed], 0
        self.take_over({key: packed})
        return None, len(packed)

    def take_over(self, added: Mapping[int, bytes]) -> None:
        """Add packed entries from elsewhere, by ``key_of_file``."""
        with self._lock:
            for key, packed in added.items():
                if self._find(key) is None:
                    self._added[key] = packed
                    self.added_bytes += len(packed)

    def save(self) -> None:
        """Write all entries to the file, merged with entries that others have written since; raises WriteError."""
        with self._lock:
            added = dict(self._added)
        if not added:
            return
        add_to(self.path, known_of(added))
        with self._lock:
            self._saved = load(self.path)
            for key in added:
                self.added_bytes -= len(self._added.pop(key, b""))  # unless another thread has saved it meanwhile

    def summary(self) -> dict[str, int]:
        """Return counts: ``files`` known, ``indexed`` (with entry points), and ``bytes`` of these."""
        with self._lock:
            sizes = np.append(np.diff(self._saved.offsets), list(map(len, self._added.values())))
        return {"files": len(sizes), "indexed": int((sizes > 0).sum()), "bytes": int(sizes.sum())}


# Increase it with any change of the entries, or of the files that get some.
_FIRST_LINE = b"variegate jpeg index 1\n"
_ALIGNED = 64


class DamagedIndexError(ValueError):
    """A file that is not a complete index; ``variegate index`` recreates it."""


def _read_only(keys: UInt64Array, offsets: UInt64Array, packed: UInt8Array) -> Known:
    for array in (keys, offsets, packed):
        array.flags.writeable = False
    return Known(keys, offsets, packed)


NONE = _read_only(np.zeros(0, np.uint64), np.zeros(1, np.uint64), np.zeros(0, np.uint8))


def add_to(path: Path, known: Known) -> None:
    """Merge these entries with those already in the file, which other processes may have written. Raises WriteError."""
    with named_write_errors(str(path)), exclusive_lock(path.with_name(f".{path.name}.lock")):
        try:
            kept = load(path) if path.exists() else NONE
        except DamagedIndexError:
            kept = NONE
        write_atomically(path, pieces_of(joined(kept, known)), several_writers=True)


def load(path: Path) -> Known:
    """A kept index, mapped to memory. Raises DamagedIndexError, OSError."""
    with open(path, "rb") as file:
        line = file.readline(len(_FIRST_LINE))
        head_line = file.readline(1000)
        start = file.tell()
        size = os.fstat(file.fileno()).st_size
        # Of the very file that was read: another may have taken its name meanwhile.
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8) if size else None
    try:
        if line != _FIRST_LINE:
            raise ValueError("its first line is another's")
        head = json.loads(head_line)
        number = int(head["files"])
        packed = int(head["packed"])
        start += -start % _ALIGNED
        if mapped is None or min(number, packed) < 0 or size != start + 8 * number + 8 * (number + 1) + packed:
            raise ValueError("it is cut, or longer than it should be")
        keys = mapped[start : start + 8 * number].view(np.uint64)
        offsets = mapped[start + 8 * number : start + 16 * number + 8].view(np.uint64)
        known = _read_only(keys, offsets, mapped[start + 16 * number + 8 :])
        if head["check"] != _check(known):
            raise ValueError("its checksum is another")
        # Anybody can compute it.
        is_sound = offsets[0] == 0 and offsets[-1] == packed and (offsets[1:] >= offsets[:-1]).all()
        if not is_sound or not (keys[1:] > keys[:-1]).all():
            raise ValueError("its files are not one after another")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DamagedIndexError(
            f"{path}: is not a complete index of JPEG files ({error}); delete it, or recreate it with: variegate index"
        ) from error
    return known


def _check(known: Known) -> str:
    return f"{key_of_file(known.keys.tobytes() + known.offsets.tobytes()):016x}"


def pieces_of(known: Known) -> Iterable[bytes]:
    """The file that ``load`` reads."""
    head = {"files": len(known.keys), "packed": len(known.packed), "check": _check(known)}
    text = _FIRST_LINE + json.dumps(head).encode() + b"\n"
    yield text + bytes(-len(text) % _ALIGNED)
    yield known.keys.tobytes()
    yield known.offsets.tobytes()
    for begin in range(0, len(known.packed), 1 << 24):
        yield known.packed[begin : begin + (1 << 24)].tobytes()


def known_of(added: Mapping[int, bytes]) -> Known:
    keys = sorted(added)
    offsets = np.cumsum([0, *(len(added[key]) for key in keys)], dtype=np.uint64)
    packed = np.frombuffer(b"".join(added[key] for key in keys), np.uint8)
    return _read_only(np.array(keys, np.uint64), offsets, packed)


def joined(one: Known, other: Known) -> Known:
    """All of both."""
    keys, places = np.unique(np.concatenate([one.keys, other.keys]), return_index=True)
    begins = np.concatenate([one.offsets[:-1], other.offsets[:-1] + np.uint64(len(one.packed))])[places]
    sizes = np.concatenate([np.diff(one.offsets), np.diff(other.offsets)])[places]
    offsets = np.cumsum(np.append(np.uint64(0), sizes))
    packed = np.empty(int(offsets[-1]), np.uint8)
    for to, begin, size in zip(offsets[:-1].tolist(), begins.tolist(), sizes.tolist(), strict=True):
        piece, at = (one, begin) if begin < len(one.packed) else (other, begin - len(one.packed))
        packed[to : to + size] = piece.packed[at : at + size]
    return _read_only(keys, offsets, packed)
