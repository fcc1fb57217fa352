"""``vg.from_timm`` makes the pipelines of timm's ``create_transform``, or says which argument it cannot."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.pillow_oracle import resize
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning
from variegate.interop.convert.timm import TimmArguments
from variegate.ops.schema import arguments_of_class

TABLE: Any = json.loads((Path(__file__).parent / "data" / "timm-conversions.json").read_text())


@pytest.mark.parametrize(("arguments", "expected"), TABLE["becomes"])
def test_the_pipeline_of_arguments(arguments: dict[str, Any], expected: Any) -> None:
    """The order of timm's stages: a policy replaces the color jitter and is filled with the mean."""
    assert vg.from_timm(**arguments) == T.from_dict({"type": "Compose", "transforms": expected})


@pytest.mark.parametrize(("arguments", "message"), TABLE["refused"])
def test_what_it_cannot_do_is_said_by_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_timm(**arguments)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TimmArguments)])
def test_a_bad_value_of_any_argument_is_one_error_that_names_it(name: str, is_training: bool) -> None:
    """Values that timm ignores with these arguments are accepted."""
    for value in (math.nan, math.inf, -1, "0.9", (0.5,), ("a", "b"), {}, object()):
        arguments = {"is_training": is_training, "re_prob": 0.1, name: value}
        where: str | None = None
        try:
            vg.from_timm(**arguments)
        except ConversionError as error:
            where = error.where
        is_ignored = where is None and (name not in arguments_of_class(TimmArguments) or name in ("mean", "std"))
        assert where == f"create_transform.{name}" or is_ignored, value


def test_what_differs_is_said() -> None:
    with pytest.warns(ConversionWarning, match="nothing is erased without normalizing") as caught:
        converted = vg.from_timm(32, True, re_prob=0.25, use_prefetcher=True, color_jitter=None)
    assert converted == T.Compose([T.RandomResizedCrop(32, edges="crop"), T.RandomHorizontalFlip(0.5)])
    assert caught[0].filename == __file__
    with pytest.warns(ConversionWarning, match="bilinear: timm has no evaluation with interpolation='random'"):
        assert vg.from_timm(32, interpolation="random") == vg.from_timm(32)


def test_evaluations_that_keep_the_ratio() -> None:
    """The whole image on a border of the mean, or as much of it as fills the frame: by Pillow, as in timm."""
    image = np.random.default_rng(0).integers(0, 256, (61, 100, 3), np.uint8)

    def resized(width: int, height: int) -> Any:
        return np.asarray(resize(Image.fromarray(image), (width, height), Image.Resampling.BILINEAR)).transpose(2, 0, 1)

    border = vg.Augmenter(vg.from_timm(63, crop_mode="border", mean=(0.5,) * 3, normalize=False))([image])[0].numpy()
    assert (border[:, :9] == 128).all()
    np.testing.assert_array_equal(border[:, 9:53], resized(72, 44)[..., 4:67])  # 64 / (100 / 72) and 61 / (100 / 72)
    filled = vg.Augmenter(vg.from_timm((3, 40, 48), normalize=False))([image])[0].numpy()
    np.testing.assert_array_equal(filled, resized(74, 45)[:, 2:42, 13:61])  # 45 rows: 40 / 0.875


@pytest.mark.parametrize("mode", ["rkrc", "rkrr"])
def test_crops_that_keep_the_ratio(mode: str) -> None:
    """By half a chance each, of a smaller area and of another aspect; the position is the middle, or any."""
    x = np.broadcast_to(np.arange(128, dtype=np.uint8)[None, :, None], (96, 128, 3))
    converted = vg.from_timm(96, True, train_crop_mode=mode, color_jitter=None, hflip=0, normalize=False)
    middles = vg.Augmenter(converted, seed=0)([x] * 400)[:, 0, 48, 48].float().numpy()
    assert abs(middles.mean() - 64) < 1.5
    assert (middles.std() < 2.0) == (mode == "rkrc")
    assert middles.std() > 7 or mode == "rkrc"


def test_one_random_color_of_each_rectangle() -> None:
    options = {"re_prob": 1.0, "re_mode": "rand", "color_jitter": None, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    batch = vg.Augmenter(vg.from_timm(32, True, **options), seed=0)([np.full((32, 32, 3), 255, np.uint8)] * 300).numpy()
    erased = [image[:, image[0] != 1] for image in batch]
    colors = np.array([pixels[:, 0] for pixels in erased if pixels.size])
    assert all((pixels == pixels[:, :1]).all() for pixels in erased)
    assert abs(colors.mean()) < 0.1
    assert 0.9 < colors.std() < 1.1
    assert abs(np.corrcoef(colors.T)[0, 1]) < 0.2
    assert len(np.unique(colors)) == colors.size
