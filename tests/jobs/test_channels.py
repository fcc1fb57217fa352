"""Images of many channels written by ``augment``, and in tiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import variegate as vg
from tests.images import noise
from tests.jobs.augment.samples import rows, threads
from variegate import transforms as T
from variegate.jobs.augment import Expansion, plan_for
from variegate.jobs.augment.replay import replay

TRANSFORM = T.Compose([T.RandomCrop(16), T.RandomRotation(10)])


def lay_arrays(root: Path) -> list[Any]:
    images = [noise(20, 24 + i, 5, i) for i in range(4)]
    for i, image in enumerate(images):
        (root / f"class{i % 2}").mkdir(parents=True, exist_ok=True)
        np.save(root / f"class{i % 2}" / f"{i}.npy", image)
    return images


@pytest.mark.parametrize("form", ["npy", "tif"])
def test_augment_writes_channels(tmp_path: Path, form: Any) -> None:
    images, out = lay_arrays(tmp_path / "in"), tmp_path / "out"
    plan = plan_for(vg.open_source(str(tmp_path / "in")), TRANSFORM, 2, format=form, place=str(tmp_path / "in"))
    assert Expansion(plan, out, threads(1)).run().written == 8
    path = out / "class0" / f"0_1.{form}"
    made = np.load(path) if form == "npy" else tifffile.imread(path)
    expected = vg.Augmenter(TRANSFORM, layout="NHWC")([images[0]], ids=[0], copy=1)[0]
    np.testing.assert_array_equal(made, expected.numpy())
    assert all(replay(out, row).is_same for row in range(2))


def test_other_formats_and_numbers_are_refused_by_image(tmp_path: Path) -> None:
    lay_arrays(tmp_path / "in")
    for options, reason in (
        ({}, "jpg holds 1 or 3 channels; this picture has 5: use tif or npy"),
        ({"format": "npy", "channels": 4}, r"it has 5 channels; accepted: 4 (channels=4)"),
    ):
        plan = plan_for(vg.open_source(str(tmp_path / "in")), TRANSFORM, **options)
        out = tmp_path / f"out{len(options)}"
        Expansion(plan, out, threads(1)).run()
        assert {row["reason"] for row in rows(out)} == {reason}


@pytest.mark.parametrize(("suffix", "channels"), [(".npy", 5), (".tif", 5), (".npy", 2)])
def test_tiles(tmp_path: Path, suffix: str, channels: int) -> None:
    image = noise(150, 203, channels)
    transform = T.Compose([T.RandomRotation(9), T.AutoContrast(), T.Equalize(), T.GaussianBlur(5), T.GaussianNoise()])
    path, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    if suffix == ".npy":
        np.save(path, image)
    else:
        tifffile.imwrite(path, image, photometric="minisblack", planarconfig="contig", tile=(32, 48))
    engine = threads(2, transform=transform, layout="NHWC")
    whole = engine.map_image(image, tile=64)
    engine.map_image(str(path), out=str(out), tile=64)
    expected = vg.Augmenter(transform, layout="NHWC")([image], ids=[0])[0].numpy()
    np.testing.assert_array_equal(whole, expected)
    np.testing.assert_array_equal(np.load(out) if suffix == ".npy" else tifffile.imread(out), expected)


def test_tiles_refuse_what_needs_color() -> None:
    with pytest.raises(ValueError, match="Contrast: got an image of 5 channels"):
        threads(1, transform=T.Contrast(1.5)).map_image(noise(20, 20, 5))
