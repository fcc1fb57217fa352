"""statistics.json of strangers: numbers as packing writes them, or one line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from variegate.data.base import SourceError
from variegate.data.packed import parse_statistics

GOOD = {"format": 1, "images": 2, "pixels": 50, "mean": [0.5], "std": [0.25]}
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"std": [-INF]}, "got -inf; accepted: numbers from 0 to 1"),
        ({"std": [NAN]}, "got nan; accepted: numbers from 0 to 1"),
        ({"std": [-0.25]}, "got -0.25; accepted: numbers from 0 to 1"),
        ({"mean": [1e300]}, "got 1e+300; accepted: numbers from 0 to 1"),
        ({"mean": [10**400]}, "got an integer of 1,329 bits; accepted: numbers"),
        ({"mean": ["0.5"]}, "got '0.5'; accepted: numbers"),
        ({"mean": 7}, "'int' object is not iterable"),
        ({"mean": [0.5, 0.5]}, "of another format"),
        ({"mean": [0.5] * 33, "std": [0.5] * 33}, "of another format"),
        ({"mean": [], "std": []}, "of another format"),
        ({"white": 65535.0, "mean": [1000.0]}, "got 1000.0; accepted: numbers from 0 to 1"),
        ({"white": 1.0, "mean": [1e39]}, "got 1e+39; accepted: numbers from -3.40282e+38 to 3.40282e+38"),
        ({"white": 1.0, "std": [-1.0]}, "got -1.0; accepted: numbers from 0 to 3.40282e+38"),
        ({"white": 1.0, "mean": [NAN]}, "got nan; accepted: numbers from -3.40282e+38 to 3.40282e+38"),
        ({"white": 1023}, "got white 1023; accepted: 255, 65535 or 1"),
        ({"white": True}, "got white True; accepted: 255, 65535 or 1"),
        ({"images": INF}, "got inf images of 50 pixels"),
        ({"images": -1}, "got -1 images of 50 pixels"),
        ({"pixels": "x" * 9000}, "got 2 images of 'xxx"),
    ],
)
def test_what_is_odd_is_named(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(SourceError, match=re.escape(what)) as caught:
        parse_statistics(json.dumps({**GOOD, **changes}).encode(), "a/statistics.json")
    assert str(caught.value).startswith("a/statistics.json: no statistics of a data set (")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("data", [b"", b"7", b"[" * 100_000, b'{"mean": ' + b"1" * 5000 + b"}", b"\xff"])
def test_what_is_no_such_file_is_named(data: bytes) -> None:
    with pytest.raises(SourceError, match=r"a\.json: no statistics of a data set \(.*; accepted: what variegate pack"):
        parse_statistics(data, "a.json")


def test_a_deviation_of_minus_nothing_is_nothing() -> None:
    found = parse_statistics(json.dumps({**GOOD, "std": [-0.0]}).encode(), "a.json")
    assert (found.mean, str(found.std)) == ((0.5,), "(0.0,)")


def test_statistics_of_deep_packs_have_their_white() -> None:
    stored = {**GOOD, "white": 1.0, "mean": [-1024.5, 3.0], "std": [700.0, 1.0]}
    found = parse_statistics(json.dumps(stored).encode(), "a.json")
    assert (found.mean, found.std, found.white) == ((-1024.5, 3.0), (700.0, 1.0), 1.0)
    assert parse_statistics(json.dumps(GOOD).encode(), "a.json").white == 255
