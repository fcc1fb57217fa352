"""Indexes that anybody may have written, and JPEGs: refused or not known, and nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.decode.jpegs import jpeg, place_of, split
from tests.soak.mutating import check
from tests.soak.parsers.indexes import PARSERS, checked
from variegate.decode.entropy.cut import cut_out, key_of_file, pack_file
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex, known_of, pieces_of
from variegate.native.structs import JpegRefusal

BOX = (40, 20, 60, 90)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_mutated_files_give_entries_none_or_one_error(parser: object, tmp_path: Path) -> None:
    assert check(parser, 0, range(200), tmp_path) > 100  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (6, b"\x3f"),  # of the code: a value of it shifted by 63 bits is INT64_MIN
        (7, b"\x3f"),
        (6, b"\x19"),
        (2, b"\xff\xff\xff\xff"),  # 32 GiB for 65,535 rows of as many entries
        (14, b"\xff" * 40),  # the first entries lie anywhere
        (14, b"\x00" * 8),
        (0, b"\x00\x00"),
    ],
)
def test_entries_with_a_right_checksum_are_bounded(at: int, value: bytes) -> None:
    data = jpeg(90, 100)
    packed = pack_file(data)
    assert isinstance(packed, bytes)
    key = key_of_file(data)
    assert cut_out(data, key, checked(packed, key), BOX) is not None
    odd = checked(packed[:at] + value + packed[at + len(value) :], key)
    assert cut_out(data, key, odd, BOX) is None


@pytest.mark.parametrize("what", ["offsets", "last", "keys", "files"])
def test_an_index_in_another_order_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "an.vgjpeg"
    known = known_of({3: b"abc", 5: b"de", 9: b""})
    keys, offsets = np.array(known.keys), np.array(known.offsets)
    if what == "offsets":
        offsets[1] = (1 << 64) - 1
    elif what == "last":
        offsets[-1] = 4
    elif what == "keys":
        keys[:2] = 5, 3
    data = b"".join(pieces_of(known._replace(keys=keys, offsets=offsets)))
    if what == "files":
        line, head, rest = data.split(b"\n", 2)
        data = b"\n".join([line, json.dumps({**json.loads(head), "files": float("inf")}).encode(), rest])
    path.write_bytes(data)
    with pytest.raises(DamagedIndexError, match=r"an\.vgjpeg: is not a complete index of JPEG files"):
        EntropyIndex(path)


def test_more_codes_of_a_length_than_there_are() -> None:
    """All 255 of one bit: codes are looked up by ten, of which there are not so many."""
    segments = split(jpeg(90, 100))
    place = place_of(segments, 0xC4)
    segments[place] = b"\xff\xc4" + (2 + 17 + 255).to_bytes(2, "big") + b"\0" + b"\xff" + bytes(15) + bytes(255)
    assert pack_file(b"".join(segments)) == JpegRefusal.DAMAGED


@pytest.mark.parametrize(
    "body", [b"\xff\xdd\x00\x02", b"\xff\xc0\x00\x08\x08\x00\x10\x00\x10\x03", b"\xff\xc0\x00\x02"]
)
def test_segments_shorter_than_what_is_read_of_them(body: bytes) -> None:
    assert pack_file(b"\xff\xd8" + body) == JpegRefusal.DAMAGED
