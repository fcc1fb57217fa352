"""Text for terminals: whatever a name holds, it is shown and not acted upon."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.io.addresses import escape_control


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m.jpg", r"\x1b[31mred\x1b[0m.jpg"),
        ("a\nvariegate: error: b\tc\r\x07\x08", r"a\x0avariegate: error: b\x09c\x0d\x07\x08"),
        ("\x7f\x85\x9b31m", r"\x7f\x85\x9b31m"),
        ("gpj.\u202eexe", r"gpj.\u202eexe"),
        ("\u2066\u2069\u200e\u200f\u061c\u2028", r"\u2066\u2069\u200e\u200f\u061c\u2028"),
        ("\u2029\ufeff\u200b", r"\u2029\ufeff\u200b"),
        ("\udcff\ud800", r"\udcff\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("Käse 漢字 שלום ✓ 👩\u200d💻 [bold] :x: \\x1b", "Käse 漢字 שלום ✓ 👩\u200d💻 [bold] :x: \\x1b"),
    ],
)  # fmt: skip
def test_as_it_is_shown(text: str, expected: str) -> None:
    assert escape_control(text) == expected


@given(st.text(st.characters()))
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = escape_control(text)
    shown.encode()
    acting = {unicodedata.category(letter) for letter in shown if letter not in "\u200c\u200d"}
    assert not acting & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(
        unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for letter in shown
    )
    assert escape_control(shown) == shown
