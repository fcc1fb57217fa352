"""Folders of images and masks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.data.annotated.made import NAMES, SIZES, put_images
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError


def put(root: Path, masks: str = "masks") -> list[np.ndarray[Any, Any]]:
    """-> what masks hold; the first has a palette, the second 16 bits, the third one."""
    put_images(root / "images")
    (root / masks).mkdir()
    random = np.random.default_rng(0)
    made = [
        random.integers(0, top, size).astype(kind) for size, top, kind in zip(SIZES, (7, 900, 2), "BHB", strict=True)
    ]
    first = Image.fromarray(made[0], "P")
    first.putpalette(range(60, 120))
    for name, image in zip(
        NAMES, [first, *map(Image.fromarray, made[1:2]), Image.fromarray(made[2] * 255)], strict=True
    ):
        (image.convert("1") if name == "c.png" else image).save(root / masks / name)
    return made


def test_numbers_are_kept_as_they_are_stored(tmp_path: Path) -> None:
    made = put(tmp_path)
    source: Any = open_source(tmp_path, annotations="masks", classes=["sky", "road"])
    assert source.classes == ("sky", "road")
    for reading in (source, pickle.loads(pickle.dumps(source))):
        for index, wanted in enumerate(made):
            mask = reading.read(index).targets["mask"]
            assert mask.dtype == (np.int32 if index == 1 else np.uint8)
            np.testing.assert_array_equal(mask, wanted)


def test_folders_by_name(tmp_path: Path) -> None:
    put(tmp_path, "SegmentationClass")
    options = {"format": "masks", "masks": "SegmentationClass"}
    assert open_source(tmp_path, annotations=options).read(0).targets is not None  # type: ignore[union-attr]
    with pytest.raises(SourceError, match="no folder masks in it"):
        open_source(tmp_path, annotations="masks")


def test_masks_that_are_missing_or_of_another_size(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "masks" / "a.png").unlink()
    with pytest.raises(SourceError, match=r"1 of 3 images have no mask in masks: images/a\.png; .* such as a\.png"):
        open_source(tmp_path, annotations="masks")
    source: Any = open_source(tmp_path, annotations="masks", on_error="skip")
    assert len(source) == 2
    Image.new("L", (5, 4)).save(tmp_path / "masks" / "b.png")
    with pytest.raises(DecodeError, match=r"masks/b\.png.*is 4 x 5 \(height x width\), and its image 30 x 20"):
        source.read(0)


def test_colours_are_no_numbers(tmp_path: Path) -> None:
    put(tmp_path)
    Image.new("RGB", (60, 40)).save(tmp_path / "masks" / "a.png")
    source: Any = open_source(tmp_path, annotations="masks")
    with pytest.raises(DecodeError, match=r"a\.png.*a mask of RGB pixels; accepted: one number a pixel"):
        source.read(0)
