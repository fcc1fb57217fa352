"""``Grayscale(3)`` of gray images: three channels for what follows it, as torchvision has it, wherever it runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.images import photo
from tests.ops.examples import EXAMPLES
from variegate import transforms as T

GRAY = np.ascontiguousarray(photo(40, 56)[..., :1])
THREE = np.repeat(GRAY, 3, axis=2)
WIDE = T.Grayscale(3)
# A choice that is made by chance, a fill that differs between channels, noise and per-channel numbers.
AFTER = T.Compose(
    [
        T.RandomHorizontalFlip(),
        T.RandomAffine(30, shear=20, fill=(200, 100, 5)),
        T.RandAugment(2, 12, fill=(9, 8, 7)),
        T.ColorJitter(0.4, 0.4, 0.4, 0.2),
        T.RGBShift(30, 20, 10),
        T.GaussianNoise(sigma=0.1),
        T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
        T.RandomErasing(1.0, value="random"),
    ]
)
BEFORE = T.Compose([T.RandomRotation(30, fill=(50, 60, 70)), T.RandomResizedCrop(32), T.ColorJitter(0.3, 0.3, 0.3)])


def check_same(result: Any, wanted: Any) -> None:
    """Of tensors of a batch, or lists of images."""
    for one, same in zip(result, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(same))


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_what_follows_sees_three_channels(device: str) -> None:
    ids = list(range(6))
    wanted = vg.Augmenter(AFTER, device)([THREE] * 6, ids=ids)
    assert wanted.shape[1] == 3
    check_same(vg.Augmenter(T.Compose([WIDE, AFTER]), device)([GRAY] * 6, ids=ids), wanted)


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_what_comes_before_sees_one_channel(device: str) -> None:
    ids = list(range(6))
    before = vg.Augmenter(BEFORE, device)([GRAY] * 6, ids=ids)
    assert before.shape[1] == 1
    whole = vg.Augmenter(T.Compose([BEFORE, WIDE]), device)([GRAY] * 6, ids=ids)
    check_same(whole, before.repeat(1, 3, 1, 1))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_transform_before_it_and_after_it(name: str) -> None:
    def made(image: Any, *steps: Any) -> Any:
        try:
            t = T.Compose(steps) if len(steps) > 1 else steps[0]
            return vg.Augmenter(t, "oracle")([image] * 2, ids=[3, 4], conditions={"label": [0, 1]})
        except (ValueError, TypeError) as error:
            return str(error)

    for t in EXAMPLES[name]:
        if t._must_be_root or t._mixers:
            continue
        after, wanted = made(GRAY, WIDE, t), made(THREE, t)
        if isinstance(wanted, str):
            assert isinstance(after, str), name
        else:
            check_same(after, wanted)
        before = made(GRAY, t, WIDE)
        if isinstance(before, str):
            is_known = re.search(r"Grayscale\(num_output_channels=3\) (of a gray image )?after ", before)
            assert is_known or isinstance(made(GRAY, t, T.Invert()), str), before
        else:
            alone = made(GRAY, t)
            check_same(before, [image[:1].repeat(3, 1, 1) for image in alone])


def test_what_is_not_there_is_named() -> None:
    for before, name in ((T.GaussianNoise(), "GaussianNoise"), (T.JPEG(50), "JPEG"), (T.RGBShift(3, 3, 3), "RGBShift")):
        match = rf"^Grayscale\(num_output_channels=3\) of a gray image after {name}, .*; accepted: .* before it$"
        with pytest.raises(ValueError, match=match):
            vg.Augmenter(T.Compose([before, WIDE]))([GRAY, GRAY])
        with pytest.raises(ValueError, match=match):
            T.Compose([before, WIDE])(GRAY)
        assert vg.Augmenter(T.Compose([before, WIDE]))([THREE]).shape[1] == 3
    with pytest.raises(ValueError, match=r"after Grayscale\(\), of which one channel leaves; accepted: one of the two"):
        T.Compose([T.Grayscale(), WIDE])(THREE)
    views = T.MultiView([T.Compose([WIDE]), T.Invert()])
    for images in ([GRAY], [GRAY, GRAY]):
        with pytest.raises(ValueError, match=r"MultiView: got Grayscale.* in some views of a gray image; accepted: in"):
            vg.Augmenter(views)(images)
    with pytest.raises(ValueError, match=r"of a gray image in tiles; accepted: an image of three channels"):
        vg.Engine(["cpu:0"], "thread").map_image(GRAY, WIDE)


def test_every_way_in() -> None:
    t = T.Compose([T.RandomCrop(32), WIDE, AFTER])
    whole = vg.Augmenter(t, seed=1)([GRAY] * 4, ids=[0, 1, 2, 3])
    alone = vg.Augmenter(t, seed=1)
    check_same([alone([GRAY], ids=[n])[0] for n in range(4)], whole)
    check_same([alone(GRAY[None], ids=[n])[0] for n in range(4)], whole)
    check_same(alone.decode_and_run([GRAY] * 4, ids=[0, 1, 2, 3]), whole)
    check_same(alone([THREE, GRAY, THREE, GRAY], ids=[0, 1, 2, 3])[1::2], whole[1::2])
    assert t(GRAY).shape == t(Image.fromarray(GRAY[..., 0])).shape == (3, 32, 32)
    loader = vg.Loader((np.stack([GRAY] * 4), [0, 1, 2, 3]), t, batch_size=4, seed=1, shuffle=False, device="cpu")
    check_same(next(iter(loader))[0], whole)
    samples = [{"image": GRAY, "boxes": [[3, 3, 20, 20]], "labels": [1]}] * 4
    check_same([one["image"] for one in alone(samples, ids=[0, 1, 2, 3])], whole)
    check_same([alone([samples[0]], ids=[n])[0]["image"] for n in range(4)], whole)
    program = alone.program([GRAY] * 4, ids=[0, 1, 2, 3])
    check_same(alone.run(program, [GRAY] * 4), whole)
    clips = vg.Augmenter(T.Compose([WIDE, T.Invert()]), consistent=True)([np.stack([GRAY, GRAY])])
    check_same(clips[0], vg.Augmenter(T.Invert())([THREE] * 2))
    by_chance = vg.Augmenter(T.RandomApply([WIDE], 0.5))([GRAY] * 40)
    assert {image.shape[0] for image in by_chance} == {1, 3}
    [views] = vg.Augmenter(T.MultiView([t], counts=[2]))([GRAY])
    assert views.shape == (1, 2, 3, 32, 32)


def test_on_an_interpreted_gpu() -> None:
    from tests.executors.poison import interpreted_runner

    t = T.Compose([WIDE, T.RandomRotation(30, fill=(200, 100, 5)), T.Normalize([0.1, 0.2, 0.3], 0.5)])
    augmenter, images = vg.Augmenter(t), [GRAY[:5, :7], THREE[:5, :7]]
    wanted = augmenter(images, ids=[0, 1])
    augmenter._runner = interpreted_runner((8, 8))
    check_same(augmenter(images, ids=[0, 1]), wanted)
