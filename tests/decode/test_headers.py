"""Headers of many JPEGs at once: a row is what ``read_header`` finds, or zeros for what is left to it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.decode.jpegs import KINDS, MUTATIONS, jpeg, mutate
from variegate.decode import is_complete, jpeg_size, read_header
from variegate.decode.header import HEIGHT, IS_COMPLETE, WIDTH, header_of, scan_headers

SPECIAL = (0, 1, 0xC4, 0xD9, 0xDA, 0xE1, 0xFF)
PLAIN = {"4:4:4", "4:2:2", "4:2:0", "gray", "progressive", "progressive 4:4:4", "restarts"}


@pytest.mark.parametrize("kind", KINDS)
def test_plain_heads_are_found_and_odd_ones_left_alone(kind: str) -> None:
    data = jpeg(**KINDS[kind])
    found = header_of(scan_headers([data])[0])
    assert found == (read_header(data) if kind in PLAIN else None)


def test_each_of_many_has_its_own_row() -> None:
    files = [jpeg(height=9 + number, width=40) for number in range(5)]
    files[2:2] = [b"", b"\xff\xd8\xff", jpeg(orientation=6)]
    heads = scan_headers(files)
    assert [int(row[HEIGHT]) for row in heads] == [9, 10, 0, 0, 0, 11, 12, 13]
    assert [row[WIDTH] == 40 for row in heads] == [row[HEIGHT] > 0 for row in heads]


def test_what_is_beyond_a_limit_is_left_to_the_error_that_names_it() -> None:
    data = jpeg(height=60, width=70)
    assert scan_headers([data], max_pixels=4200)[0].any()
    assert not scan_headers([data], max_pixels=4199)[0].any()
    at = read_header(data).height_offset
    tall = data[:at] + (40_000).to_bytes(2, "big") + data[at + 2 :]
    assert jpeg_size(tall) == (40_000, 70)
    assert not scan_headers([tall])[0].any()
    assert not scan_headers([data[:at] + b"\0\0" + data[at + 2 :]])[0].any()


def check(data: bytes) -> bool:
    """Whether it was found to be plain."""
    row = scan_headers([data], 2**31)[0]
    found = header_of(row)
    if found is not None:
        assert found == read_header(data)
        assert bool(row[IS_COMPLETE]) == is_complete(data)
    return found is not None


def test_odd_and_damaged_heads_agree_with_reading_them_in_python() -> None:
    rng = np.random.default_rng(0)
    files = [jpeg(**KINDS[kind]) for kind in sorted(KINDS)]
    plain = [check(mutate(file, [mutation], rng)) for file in files for mutation in MUTATIONS for _ in range(3)]
    assert 0 < sum(plain) < len(plain)


def test_changed_bytes_and_early_ends_agree_too() -> None:
    rng = np.random.default_rng(1)
    files = [jpeg(height=24, width=17, **KINDS[kind]) for kind in sorted(PLAIN)]
    plain = 0
    for _ in range(4000):
        data = bytearray(files[rng.integers(len(files))])
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(min(len(data), 640))] = rng.choice(
                [0, 1, 0xC4, 0xD9, 0xDA, 0xE1, 0xFF, rng.integers(256)]
            )
        if rng.random() < 0.2:
            data = data[: rng.integers(len(data))]
        plain += check(bytes(data))
    assert 1000 < plain < 4000


def test_a_second_scan_is_found_wherever_it_begins() -> None:
    data = jpeg(height=40, width=30)
    start = data.index(b"\xff\xda") + 14
    for at in range(start, len(data) - 2):
        changed = data[:at] + b"\xff\xc4" + data[at + 2 :]
        assert not header_of(scan_headers([changed])[0]).is_sequential  # type: ignore[union-attr]
    assert header_of(scan_headers([data])[0]).is_sequential  # type: ignore[union-attr]
