"""``vg.from_timm`` makes the pipelines of timm's ``create_transform``, or says which argument it cannot."""

from __future__ import annotations

import dataclasses
import math
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

NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)
MEAN = (124, 116, 104)


def crop(size: tuple[int, int] = (224, 224), **arguments: Any) -> T.RandomResizedCrop:
    edges = {"edges": "crop"} if "edges" in T.RandomResizedCrop.__dataclass_fields__ else {}
    return T.RandomResizedCrop(size, **arguments, **edges)


def test_a_training_pipeline() -> None:
    """The order of timm's stages; a policy takes the place of the colour jitter and is filled with the mean."""
    converted = vg.from_timm(224, True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel")
    policy = T.TimmRandAugment(magnitude=9, magnitude_std=0.5, increasing=True, fill=MEAN, interpolation="bilinear")
    erasing = T.RandomErasing(0.25, (0.02, 1 / 3), (0.3, 1 / 0.3), "random")
    assert converted == T.Compose([crop(), T.RandomHorizontalFlip(0.5), policy, NORMALIZE, erasing])


def test_simclr_arguments() -> None:
    converted = vg.from_timm(
        (3, 96, 128), True, scale=(0.2, 1.0), interpolation="random", vflip=0.1, color_jitter=(0.4, 0.4, 0.2, 0.1),
        color_jitter_prob=0.8, grayscale_prob=0.2, gaussian_blur_prob=0.5,
    )  # fmt: skip
    kinds = [crop((96, 128), scale=(0.2, 1.0), interpolation=kind) for kind in ("bilinear", "bicubic")]
    assert converted == T.Compose(
        [
            T.RandomChoice(kinds),
            T.RandomHorizontalFlip(0.5),
            T.RandomVerticalFlip(0.1),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
            T.RandomGrayscale(0.2),
            T.RandomApply([T.GaussianBlur(23)], p=0.5),
            NORMALIZE,
        ]
    )


def test_evaluation_and_training_without_augmentation() -> None:
    assert vg.from_timm(224) == T.Compose([T.Resize(256), T.CenterCrop(224), NORMALIZE])
    squashed = vg.from_timm((3, 200, 300), crop_mode="squash", crop_pct=0.9, interpolation="bicubic", normalize=False)
    assert squashed == T.Compose([T.Resize((222, 333), "bicubic"), T.CenterCrop((200, 300))])
    plain = vg.from_timm(64, True, no_aug=True, interpolation="random", mean=(0.5,) * 3, std=(0.2,) * 3)
    assert plain == T.Compose([T.Resize(64), T.CenterCrop(64), T.Normalize((0.5,) * 3, (0.2,) * 3)])


def test_several_rectangles_share_the_area() -> None:
    """timm draws how many of them there are, up to ``re_count``, and divides the area among them."""
    converted = vg.from_timm(64, True, color_jitter=None, re_prob=1.0, re_count=3)
    image = np.full((64, 64, 3), 200, np.uint8)
    batch = vg.Augmenter(converted, seed=0)([image] * 600).numpy()
    share = (batch[:, 0] == 0).mean(axis=(1, 2))
    # Of the areas drawn for n rectangles, each one n-th of uniform(0.02, 1/3), less where they overlap or do not fit.
    assert 0.13 < share.mean() < 0.18
    assert share.max() < 0.36


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"colour_jitter": 0.4}, "create_transform.colour_jitter: got 0.4; accepted: arguments of timm's"),
        ({"is_training": True, "re_prob": 0.1, "re_mode": "some"}, "create_transform.re_mode: got 'some'; .*'rand'"),
        ({"is_training": True, "train_crop_mode": "rk"}, "create_transform.train_crop_mode: got 'rk'; .*'rkrr'"),
        ({"is_training": True, "auto_augment": "rand-m9-q3"}, "create_transform.auto_augment: got 'rand-m9-q3'"),
        ({"is_training": True, "color_jitter": (1, 2)}, "create_transform.color_jitter: got .*three or four"),
        ({"naflex": True}, "create_transform.naflex: got True"),
        ({"interpolation": "sinc"}, "create_transform.interpolation: got 'sinc'"),
    ],
)
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


def test_what_timm_leaves_to_its_loader() -> None:
    with pytest.warns(ConversionWarning, match="re_prob=0.25: create_transform does not erase") as caught:
        converted = vg.from_timm(32, True, re_prob=0.25, use_prefetcher=True, color_jitter=None)
    assert converted == T.Compose([crop((32, 32)), T.RandomHorizontalFlip(0.5)])
    assert caught[0].filename == __file__


def test_evaluations_that_keep_the_ratio() -> None:
    """The whole image on a border of the mean, or as much of it as fills the frame: by Pillow, as in timm."""
    image = np.random.default_rng(0).integers(0, 256, (61, 100, 3), np.uint8)
    resized = resize(Image.fromarray(image), (72, 44), Image.Resampling.BILINEAR)  # 64 / (100 / 72) and 61 / (100 / 72)
    border = vg.Augmenter(vg.from_timm(63, crop_mode="border", mean=(0.5,) * 3, normalize=False))([image])[0].numpy()
    assert (border[:, :9] == 128).all()
    np.testing.assert_array_equal(border[:, 9:53], np.asarray(resized)[:, 4:67].transpose(2, 0, 1))
    filled = vg.Augmenter(vg.from_timm((3, 40, 48), normalize=False))([image])[0].numpy()
    larger = resize(Image.fromarray(image), (74, 45), Image.Resampling.BILINEAR)  # 45 rows: 40 / 0.875
    np.testing.assert_array_equal(filled, np.asarray(larger)[2:42, 13:61].transpose(2, 0, 1))
    with pytest.warns(ConversionWarning, match="interpolation='random': bilinear here"):
        assert vg.from_timm(32, interpolation="random") == vg.from_timm(32)


@pytest.mark.parametrize("mode", ["rkrc", "rkrr"])
def test_crops_that_keep_the_ratio(mode: str) -> None:
    """By half a chance each, of a smaller area and of another aspect; the place is the middle, or any."""
    x = np.broadcast_to(np.arange(128, dtype=np.uint8)[None, :, None], (96, 128, 3))
    converted = vg.from_timm(96, True, train_crop_mode=mode, color_jitter=None, hflip=0, normalize=False)
    middles = vg.Augmenter(converted, seed=0)([x] * 400)[:, 0, 48, 48].float().numpy()
    assert abs(middles.mean() - 64) < 1.5
    assert (middles.std() < 2.0) == (mode == "rkrc")
    assert middles.std() > 7 or mode == "rkrc"


def test_one_random_colour_of_each_rectangle() -> None:
    options = {"re_prob": 1.0, "re_mode": "rand", "color_jitter": None, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    batch = vg.Augmenter(vg.from_timm(32, True, **options), seed=0)([np.full((32, 32, 3), 255, np.uint8)] * 300).numpy()
    erased = [image[:, image[0] != 1] for image in batch]
    colours = np.array([pixels[:, 0] for pixels in erased if pixels.size])
    assert all((pixels == pixels[:, :1]).all() for pixels in erased)
    assert abs(colours.mean()) < 0.1
    assert 0.9 < colours.std() < 1.1
    assert abs(np.corrcoef(colours.T)[0, 1]) < 0.2
    assert len(np.unique(colours)) == colours.size
    levels = vg.Augmenter(T.RandomErasing(1.0, value="colour"), seed=0)([np.full((32, 32, 3), 255, np.uint8)] * 50)
    assert len(np.unique(levels.numpy())) > 60
