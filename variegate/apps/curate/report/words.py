"""Numbers and names as people read them."""

from __future__ import annotations


def number(value: float) -> str:
    """Three digits that count: 0.0123, 1.5, 12,300."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.1e}" if "e" in text else text


def file_size(value: float, unit: str = "B") -> str:
    """1.2 MB."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def title_of(finding: str) -> str:
    """``near_duplicates`` -> Near duplicates."""
    return finding.replace("_", " ").capitalize().replace("Exif", "EXIF")
