"""Messages have an end, with the place at their beginning and what is accepted behind it."""

from __future__ import annotations

import pytest

from variegate.data.base import SourceError
from variegate.errors import DecodeError, PolicyError, truncate_middle


@pytest.mark.parametrize(
    "error",
    [
        SourceError(f"place.json: got {'x' * 9000}; accepted: a name"),
        DecodeError("place.json", f"got {'x' * 9000}; accepted: a name"),
        PolicyError("place.json", "x" * 9000, "a name"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_messages_have_an_end(error: ValueError) -> None:
    text = str(error)
    assert len(text) <= 1020
    assert text.startswith("place.json: got ")
    assert text.endswith("accepted: a name")


def test_text_within_the_limit_is_as_it_is() -> None:
    assert truncate_middle("x" * 50, 50) == "x" * 50
    assert len(truncate_middle("x" * 51, 50)) == 50
