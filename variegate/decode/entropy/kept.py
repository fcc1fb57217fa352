"""The file of an entropy index: a line, a head in JSON, the keys, where entries begin, and the packed entries."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from variegate.decode.entropy.cut import Known, key_of_file
from variegate.io.durable import write_errors_name, write_pieces

# A change of what is written, or of what is found in files, takes a new number.
_FIRST_LINE = b"variegate jpeg index 1\n"
_ALIGNED = 64


class DamagedIndexError(ValueError):
    """A file that is no whole index; ``variegate index`` makes it anew."""


def _read_only(keys: npt.NDArray[np.uint64], offsets: npt.NDArray[np.uint64], packed: npt.NDArray[np.uint8]) -> Known:
    """As mapped files are, which kernels tell apart."""
    for array in (keys, offsets, packed):
        array.flags.writeable = False
    return Known(keys, offsets, packed)


NONE = _read_only(np.zeros(0, np.uint64), np.zeros(1, np.uint64), np.zeros(0, np.uint8))


def add_to(path: Path, known: Known) -> None:
    """Write these besides what is in the file, which others may have written since. Raises WriteError."""
    with write_errors_name(str(path)), _alone(path):
        try:
            kept = load(path) if path.exists() else NONE
        except DamagedIndexError:
            kept = NONE
        write_pieces(path, pieces_of(joined(kept, known)), several_writers=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time, where there are locks: each adds to what the others wrote."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "ab") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load(path: Path) -> Known:
    """A kept index, mapped to memory. Raises DamagedIndexError, OSError."""
    with open(path, "rb") as file:
        line = file.readline(len(_FIRST_LINE))
        head_line = file.readline(1000)
        start, size = file.tell(), os.fstat(file.fileno()).st_size
        # Of the very file that was read: another may have taken its name meanwhile.
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8) if size else None
    try:
        if line != _FIRST_LINE:
            raise ValueError("its first line is another's")
        head = json.loads(head_line)
        number, packed = int(head["files"]), int(head["packed"])
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
            f"{path}: is no whole index of JPEG files ({error}); delete it, or make it anew by: variegate index"
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


def place_of(known: Known, key: int) -> int | None:
    place = int(np.searchsorted(known.keys, np.uint64(key)))
    return place if place < len(known.keys) and int(known.keys[place]) == key else None


def known_of(added: dict[int, bytes]) -> Known:
    if not added:
        return NONE
    keys = sorted(added)
    offsets = np.cumsum([0, *(len(added[key]) for key in keys)], dtype=np.uint64)
    packed = np.frombuffer(b"".join(added[key] for key in keys) or b"", np.uint8)
    return _read_only(np.array(keys, np.uint64), offsets, packed)


def joined(one: Known, other: Known) -> Known:
    """All of both."""
    if not len(one.keys) or not len(other.keys):
        return one if len(one.keys) else other
    both = np.concatenate([one.keys, other.keys])
    keys, places = np.unique(both, return_index=True)
    sizes = np.concatenate([np.diff(one.offsets), np.diff(other.offsets)]).astype(np.int64)[places]
    begins = np.concatenate([one.offsets[:-1], other.offsets[:-1] + np.uint64(len(one.packed))])[places]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    packed = np.empty(int(offsets[-1]), np.uint8)
    for to, begin, size in zip(offsets[:-1].tolist(), begins.tolist(), sizes.tolist(), strict=True):
        piece, at = (one, begin) if begin < len(one.packed) else (other, begin - len(one.packed))
        packed[to : to + size] = piece.packed[at : at + size]
    return _read_only(keys, offsets.astype(np.uint64), packed)
