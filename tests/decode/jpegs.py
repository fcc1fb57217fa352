"""JPEGs with unusual, odd and damaged headers, for tests of what is accepted."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from tests.images import photo

SOF, SOS, EOI = (0xC0, 0xC1, 0xC2), 0xDA, b"\xff\xd9"

Segments = list[bytes]
Mutation = Callable[[Segments, np.random.Generator], None]


def jpeg(height: int = 61, width: int = 75, mode: str = "RGB", orientation: int = 1, **options: Any) -> bytes:
    if orientation != 1:
        options["exif"] = exif = Image.Exif()
        exif[0x0112] = orientation
    stream = io.BytesIO()
    Image.fromarray(photo(height, width)).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


KINDS: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "gray": {"mode": "L"},
    "cmyk": {"mode": "CMYK"},
    "rgb": {"keep_rgb": True},
    "progressive": {"progressive": True},
    "progressive 4:4:4": {"progressive": True, "subsampling": 0},
    "restarts": {"restart_marker_blocks": 2},
    **{f"orientation {value}": {"orientation": value, "subsampling": value % 3} for value in range(2, 9)},
}


def split(data: bytes) -> Segments:
    """The segments of a well-formed file, each with its marker; the last goes from the first scan to the end."""
    segments, at = [data[:2]], 2
    while data[at + 1] != SOS:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        segments.append(data[at:end])
        at = end
    return [*segments, data[at:]]


def place_of(segments: Segments, *markers: int) -> int:
    return next(
        i for i, piece in enumerate(segments) if len(piece) > 3 and piece[:1] == b"\xff" and piece[1] in markers
    )


def segment(marker: int, body: bytes, length: int | None = None) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2 if length is None else length) + body


def _inserts(make: Callable[[np.random.Generator], bytes], most: int = 1) -> Mutation:
    """Bytes between two segments, not before the second byte pair, by which a JPEG is known."""

    def insert(segments: Segments, rng: np.random.Generator) -> None:
        for _ in range(rng.integers(1, most + 1)):
            segments.insert(int(rng.integers(2, len(segments))), make(rng))

    return insert


def _changes_frame(at: int, make: Callable[[np.random.Generator], bytes]) -> Mutation:
    def change(segments: Segments, rng: np.random.Generator) -> None:
        place = place_of(segments, *SOF)
        frame = segments[place]
        data = make(rng)
        segments[place] = frame[:at] + data + frame[at + len(data) :]

    return change


def _of(*choices: bytes) -> Callable[[np.random.Generator], bytes]:
    return lambda rng: choices[rng.integers(len(choices))]


def _cut_segment(kind: int, body: bytes, *lengths: int) -> Callable[[np.random.Generator], bytes]:
    """A segment of a part of a body, with another length than it has."""
    return lambda rng: segment(kind, body[: rng.integers(len(body) + 1)], int(rng.choice(lengths)))


def stray_before_frame(segments: Segments, rng: np.random.Generator) -> None:
    segments.insert(place_of(segments, *SOF), bytes(rng.integers(0, 255, rng.integers(1, 9)).tolist()))


def version(segments: Segments, rng: np.random.Generator) -> None:
    body = b"JFIF\0" + bytes(rng.choice([[0, 0], [1, 0], [1, 9], [2, 1], [3, 0], [255, 255]])) + b"\0\0\1\0\1\0\0"
    segments[1:1] = [segment(0xE0, body)]
    if segments[2][1] == 0xE0:
        del segments[2]


def no_end(segments: Segments, rng: np.random.Generator) -> None:
    segments[-1] = segments[-1].removesuffix(EOI)


def after_the_end(segments: Segments, rng: np.random.Generator) -> None:
    segments[-1] += bytes(rng.integers(0, 256, rng.choice([1, 30, 63, 64, 300])).tolist())


def cut_short(segments: Segments, rng: np.random.Generator) -> None:
    segments[-1] = segments[-1][: rng.integers(1, len(segments[-1]))] + (EOI if rng.random() < 0.5 else b"")


def tables_twice(segments: Segments, rng: np.random.Generator) -> None:
    tables = [piece for piece in segments[1:-1] if piece[1:2] in (b"\xdb", b"\xc4")]
    _inserts(_of(*tables), 3)(segments, rng)


def frame_twice(segments: Segments, rng: np.random.Generator) -> None:
    place = place_of(segments, *SOF)
    frame = segments[place]
    segments.insert(place + int(rng.integers(0, 2)), frame[:5] + struct.pack(">HH", 16, 16) + frame[9:])


def scan_twice(segments: Segments, rng: np.random.Generator) -> None:
    """The head of the scan once more, before the tables that it needs."""
    scan = segments[-1]
    segments.insert(place_of(segments, 0xC4), scan[: 2 + int.from_bytes(scan[2:4], "big")])


def tables_within_the_scan(segments: Segments, rng: np.random.Generator) -> None:
    table = segments[place_of(segments, 0xC4)]
    scan = segments[-1]
    at = int(rng.integers(len(scan) // 2, len(scan) - 2))
    segments[-1] = scan[:at] + table[:4] + b"\xff" + table[5:] + scan[at:]


def comment_after_the_scan(segments: Segments, rng: np.random.Generator) -> None:
    segments[-1] = segments[-1].removesuffix(EOI) + segment(0xFE, EOI + b"abc") + (EOI if rng.random() < 0.5 else b"")


def _changed(piece: bytes, rng: np.random.Generator) -> bytes:
    data = bytearray(piece)
    data[rng.integers(2, len(data))] = rng.integers(256)
    return bytes(data)


def header_bytes(segments: Segments, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(1, 4)):
        at = int(rng.choice([i for i, piece in enumerate(segments[:-1]) if len(piece) > 2]))
        segments[at] = _changed(segments[at], rng)


def scan_bytes(segments: Segments, rng: np.random.Generator) -> None:
    for _ in range(rng.integers(1, 4)):
        segments[-1] = _changed(segments[-1], rng)


_EXIF = b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0"
_FRAME = b"\xff\xc0\0\x0b\x08\0\x10\0\x10\1\1\x11\0"
_APPLICATIONS = (b"", b"Exif\0\0", _EXIF, b"Adobe\0d\0\0\0\0\1", b"MPF\0")
_KINDS = (0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xEF)
_LONE = (0x01, 0xD0, 0xD7, 0xD8, 0x02, 0xBF, 0xF0)
_SAMPLINGS = (0x00, 0x10, 0x01, 0x11, 0x21, 0x12, 0x22, 0x41, 0x14, 0x44, 0xFF)

stray_between = _inserts(lambda rng: bytes(rng.integers(0, 255, rng.integers(1, 40)).tolist()), 3)
escaped_bytes = _inserts(_of(b"\xff\x00\x01\xff\x00"))
fill_bytes = _inserts(lambda rng: b"\xff" * int(rng.integers(1, 5)), 3)
comment = _inserts(_of(*(segment(0xFE, body) for body in (b"", b"a word", _FRAME + EOI, b"\xff\xda" * 40))))
MUTATIONS: list[Mutation] = [
    stray_before_frame,
    stray_between,
    escaped_bytes,
    _inserts(_of(*(bytes([0xFF, marker]) for marker in _LONE))),
    fill_bytes,
    version,
    no_end,
    after_the_end,
    cut_short,
    _inserts(_of(*(segment(0xDD, struct.pack(">H", interval)) for interval in (0, 1, 7, 500, 65535)))),
    _inserts(_cut_segment(0xDD, b"\0\1\2", 0, 2, 3, 5)),
    tables_twice,
    frame_twice,
    scan_twice,
    tables_within_the_scan,
    _changes_frame(5, lambda rng: struct.pack(">HH", *rng.choice([0, 1, 8, 17, 60, 62, 76, 90], 2).tolist())),
    _changes_frame(11, _of(*(bytes([sampling]) for sampling in _SAMPLINGS))),
    comment,
    comment_after_the_scan,
    _inserts(_of(*(segment(kind, body) for kind in _KINDS for body in _APPLICATIONS))),
    _inserts(_cut_segment(0xE1, _EXIF, 0, 1, len(_EXIF), len(_EXIF) + 5, 60000)),
    header_bytes,
    scan_bytes,
]


def mutate(data: bytes, mutations: list[Mutation], rng: np.random.Generator) -> bytes:
    segments = split(data)
    for mutation in mutations:
        mutation(segments, rng)
    return b"".join(segments)
