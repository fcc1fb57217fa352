"""``check(labels=True)``: doubts about labels are findings among the others."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import variegate as vg
from variegate.learn.choices import LABELS


def _files(folder: Path) -> Path:
    """30 dark and 30 bright images by class, two of them in the other's folder."""
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(60):
        level = 60 if number < 30 else 180
        of = "dark" if (number < 30) != (number in (4, 44)) else "bright"
        pixels = np.clip(level + random.normal(0, 12, (24, 20, 3)), 0, 255).astype(np.uint8)
        (folder / of).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / of / f"{number:02d}.png")
    return folder


def test_doubts_are_among_the_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cleanlab")
    monkeypatch.setattr("variegate.apps.check.label_errors.LABELS", replace(LABELS, most_epochs=6))
    told: set[str] = set()
    source = _files(tmp_path / "photos")
    found = vg.check(source, labels=True, on_event=lambda event: told.add(event.stage))
    doubted = [one for one in found.findings if one.finding == "label_errors"]
    assert {"bright/04.png", "dark/44.png"} <= {one.file for one in doubted}
    assert len(doubted) <= 8
    assert "labelled 'bright'" in next(one.why for one in doubted if one.file == "bright/04.png")
    assert "training for labels, epoch" in told
    row = found.table.filter(np.array([file == "dark/44.png" for file in found.table["file"].to_pylist()]))
    assert "label_errors" in [one["finding"] for one in row["findings"][0].as_py()]


def test_without_cleanlab_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    with pytest.raises(ImportError, match=r"pip install 'variegate\[labels\]'"):
        vg.check(tmp_path / "nowhere", labels=True)


def test_other_numbers_of_channels_are_not_looked_at() -> None:
    pytest.importorskip("cleanlab")
    bands = np.random.default_rng(0).integers(0, 256, (12, 24, 20, 5), np.uint8)
    with pytest.raises(ValueError, match="labels: got 0 classes of 3 or more different images that can be read"):
        vg.check((bands, [number % 2 for number in range(12)]), labels=True)
