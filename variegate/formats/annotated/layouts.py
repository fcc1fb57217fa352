"""Which layout of annotations a folder has, by the names in it."""

from __future__ import annotations

from collections.abc import Sequence


def layout_of(names: Sequence[str]) -> str | None:
    """Of a folder with these entries (folders with a slash at the end), where it can be no other; else None."""
    if "Annotations/" in names and "JPEGImages/" in names:
        return "voc"
    return "yolo" if {"images/", "labels/", "data.yaml"}.issubset(names) else None
