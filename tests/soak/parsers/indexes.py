"""Entropy indexes whose checksums are right, whatever they hold, and JPEGs as compiled code reads them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from tests.decode.jpegs import MUTATIONS, jpeg, mutate, place_of, split
from tests.soak.mutating import NUMBERS, Parser, mutated
from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.decode.entropy.index import EntropyIndex, Known, known_of, pieces_of
from variegate.decode.header import scan_headers

_HEAD, _CHECKED = 14, 10
_WORDS = (1 << 64) - 1


@cache
def _jpegs() -> tuple[bytes, ...]:
    return (jpeg(90, 100), jpeg(64, 300, subsampling=0), jpeg(40, 40, mode="L"), jpeg(17, 250, quality=30))


def checked(packed: bytes, key: int) -> bytes:
    """Entries with the checksum that belongs to them, and to the file with this key."""
    total = (key + key_of_file(packed[:_CHECKED]) + key_of_file(packed[_HEAD:])) & _WORDS
    check = (total ^ total >> 32) & 0xFFFFFFFF
    return packed[:_CHECKED] + check.to_bytes(4, "little") + packed[_HEAD:]


def _odd_entries(packed: bytes, random: Random) -> bytes:
    data = bytearray(packed)
    for _ in range(random.randint(1, 3)):
        what = random.random()
        if what < 0.3:  # a field of the head
            data[2 * (field := random.randrange(3)) : 2 * field + 2] = random.randrange(1 << 16).to_bytes(2, "little")
        elif what < 0.5:  # a parameter of the code
            data[6 + random.randrange(4)] = random.choice((0, 1, 20, 24, 25, 62, 63, 64, 255))
        elif what < 0.7:  # all ones are the longest values
            at = random.randrange(_HEAD, len(data) + 1)
            data[at : at + 8] = random.choice((b"\xff", b"\0")) * min(8, len(data) - at)
        elif what < 0.8:
            data += random.randbytes(random.choice((1, 100, 5000)))
        else:
            data[_HEAD:] = mutated(bytes(data[_HEAD:]) or b"0", random)
    return bytes(data)


def _make_index(random: Random, folder: Path) -> Path:
    """Beside the files that it is about."""
    added = {}
    for number in range(2):
        data = random.choice(_jpegs())
        if random.random() < 0.3:
            data = _odd_jpeg(data, random)
        (folder / f"{number}.jpg").write_bytes(data)
        key = key_of_file(data)
        packed = pack_file(data)
        entries = packed if isinstance(packed, bytes) else bytes(_HEAD) + random.randbytes(random.randrange(200))
        added[key] = checked(_odd_entries(entries, random), key) if random.random() < 0.8 else entries
    known, path = known_of(added), folder / "images.vgjpeg"
    if random.random() < 0.2:
        parts = [np.array(part) for part in known]
        one = random.choice(parts[:2])
        one[random.randrange(len(one))] = random.choice(NUMBERS) & _WORDS
        known = Known(*parts)
    file = b"".join(pieces_of(known))
    path.write_bytes(mutated(file[:64], random) + file[64:] if random.random() < 0.05 else file)
    return path


def _parse_index(path: Path) -> None:
    index = EntropyIndex(path)
    index.summary()
    for file in sorted(path.parent.glob("*.jpg")):
        data = file.read_bytes()
        for box in ((0, 0, 1, 1), (5, 7, 16, 33), (10, 90, 17, 250), (3, 30, 64, 90), (0, 0, 90, 100)):
            index.decode_part(data, box)
            index.decode_part(data, box, divisor=4)


def _odd_jpeg(data: bytes, random: Random) -> bytes:
    """Of its tables, its head, or anything."""
    what = random.random()
    if what < 0.3:
        mutation = random.choice(MUTATIONS)  # several may not fit each other
        return mutate(data, [mutation], np.random.default_rng(random.randrange(1 << 32)))
    segments = split(data)
    place = place_of(segments, 0xC4) if what < 0.6 else random.randrange(1, len(segments))
    segments[place] = segments[place][:4] + mutated(segments[place][4:], random)
    return b"".join(segments)


def _make_jpeg(random: Random, folder: Path) -> Path:
    path = folder / "a.jpg"
    path.write_bytes(_odd_jpeg(random.choice(_jpegs()), random))
    return path


def _parse_jpeg(path: Path) -> None:
    data = path.read_bytes()
    scan_headers([data, data[: len(data) // 2], data[:30]])
    pack_file(data)


PARSERS = (Parser("index", _make_index, _parse_index), Parser("jpeg", _make_jpeg, _parse_jpeg))
