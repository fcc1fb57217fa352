"""What a check refuses before it reads an image."""

from __future__ import annotations

from typing import Any

import pytest

from variegate.options.datasets import CheckingOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tiny": 100.0, "huge": 50.0}, "tiny: got 100.0 with huge 50.0; accepted: less than that"),
        ({"dark": 1.5}, "dark: got 1.5; accepted: a finite number from 0 to 1, or nothing"),
        ({"aspect": 0.5}, "aspect: got 0.5; accepted: a finite number of 1 or more, or nothing"),
        ({"blurred": float("nan")}, "blurred: got nan; accepted: a finite number of 0 or more, or nothing"),
        ({"seed": 3}, "seed: got 3; accepted: with labels=True"),
        ({"near_distance": 16}, "near_distance: got 16; accepted: an integer from 0 to 15"),
    ],
)
def test_values_without_a_meaning_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CheckingOptions(**options)
