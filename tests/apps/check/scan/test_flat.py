"""A folder without class folders has no classes to contradict those of others."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

import variegate as vg


def test_a_leak_from_a_flat_folder_is_no_contradiction(tmp_path: Path) -> None:
    photos = [Image.fromarray(image) for image in vg.sample_images(3)]
    for place in ("train/cats", "train/dogs", "test"):
        (tmp_path / place).mkdir(parents=True)
    photos[0].save(tmp_path / "train/cats/0.png")
    photos[1].save(tmp_path / "train/dogs/1.png")
    photos[0].save(tmp_path / "test/0.png")
    photos[2].save(tmp_path / "test/2.png")
    result = vg.check(tmp_path / "train", tmp_path / "test")
    assert {(one.split, one.file) for one in result.findings if one.finding == "leaks"} == {
        ("train", "cats/0.png"),
        ("test", "0.png"),
    }
    assert "contradictions" not in result.counts
    assert result.table["label"].to_pylist()[2:] == [-1, -1]
