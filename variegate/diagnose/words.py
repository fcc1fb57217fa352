"""Numbers as people read them."""

from __future__ import annotations


def rate(images_per_second: float) -> str:
    """``"1,234 images/s"``."""
    return f"{number(images_per_second)} images/s"


def number(value: float) -> str:
    """Three digits or more: 0.123, 1.23, 12.3, 123, 1,234."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f}"


def size(nbytes: float) -> str:
    """``"1.2 GB"``, of 10^9 bytes."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.0f} bytes"


def times(factor: float) -> str:
    """``"1.08x"``, ``"2.5x"``, ``"12x"``."""
    places = 2 if factor < 2 else 1 if factor < 10 else 0
    return f"{factor:.{places}f}x"


def percent(share: float) -> str:
    return f"{share:.0%}"


def side(pixels: float) -> str:
    return f"{pixels:.0f}"
