"""Fingerprints of data sets, by which runs and loaders know what they were begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import variegate as vg
from tests.data.tars import write_tar

IMAGES = np.arange(3 * 4 * 4 * 3, dtype=np.uint8).reshape(3, 4, 4, 3)


def fingerprint(spec: Any, **options: Any) -> str:
    found: str = vg.open_source(spec, **options).fingerprint
    return found


def test_a_change_of_one_is_a_breaking_change(tmp_path: Path) -> None:
    for name in ("photos/ant/b.jpg", "photos/ant/a.jpg", "photos/bee/c.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    members = [("0.jpg", b"first"), ("0.cls", b"1"), ("1.jpg", b"other"), ("1.cls", b"0")]
    shard = write_tar(tmp_path / "a.tar", members)
    folder = tmp_path / "photos"

    found = {
        "folder": fingerprint(folder),
        "excluded": fingerprint(folder, exclude=["ant/b.jpg"]),
        "tar": fingerprint(shard),
        "arrays": fingerprint((IMAGES, [0, 1, 0])),
        "mixture": vg.Mixture({"a": (IMAGES, [0, 1, 0]), "b": (IMAGES[1:], [1, 1])}).fingerprint,
    }

    assert found == {
        "folder": "8accb0f4af7dcd2e",
        "excluded": "747f1d1754480732",
        "tar": "fb07451036a6236e",
        "arrays": "bb37dd497a0d96d1",
        "mixture": "c9c0ce6d90c8c9b2",
    }
