"""Numbers as messages write them: counts with their noun, sizes with their unit."""

from __future__ import annotations

_DECIMAL_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_BINARY_UNITS = ("bytes", "KiB", "MiB")


def pluralize(number: int, noun: str) -> str:
    """``"1 image"``, ``"2,000 images"``, ``"2 classes"``, ``"0 copies"``, ``"3 epochs"``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith(("s", "x", "ch")) and noun != "epoch":
        plural = f"{noun}es"
    elif noun.endswith("y") and noun[-2] not in "aeiou":
        plural = f"{noun[:-1]}ies"
    else:
        plural = f"{noun}s"
    return f"{number:,} {plural}"


def format_size(size: float, unit: str = "B") -> str:
    """``"1.2 MB"``, in powers of 1,000."""
    for prefix, scale in _DECIMAL_PREFIXES:
        if size >= scale:
            return f"{size / scale:.3g} {prefix}{unit}"
    return f"{size:.0f} {unit}"


def format_limit(nbytes: int) -> str:
    """``"2 GiB"``: a size that is exact in its largest binary unit."""
    for unit in _BINARY_UNITS:
        if nbytes < 1024 or nbytes % 1024:
            return f"{nbytes:,} {unit}"
        nbytes //= 1024
    return f"{nbytes:,} GiB"
