"""Images of 2 to 32 channels: each three of them are what they would be alone."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import noise, photo
from variegate import transforms as T
from variegate.program.channels import split_channels

DEVICES = ("oracle", "cpu")
# Nothing in them depends on other channels, or draws noise.
ALIKE = T.Compose(
    [
        T.RandomResizedCrop(23, scale=(0.3, 1.0)),
        T.RandomHorizontalFlip(),
        T.RandomAffine(20, translate=(0.1, 0.1), fill=9),
        T.ColorJitter(0.3),
        T.RandomPosterize(4),
        T.RandomAutocontrast(),
        T.RandomEqualize(),
        T.GaussianBlur(3),
        T.SaltAndPepper(0.1),
    ]
)


def batch(channels: int, number: int = 5, height: int = 31, width: int = 45) -> Any:
    return np.stack([noise(height, width, channels, seed) for seed in range(number)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("channels", [2, 4, 5, 6, 7, 8, 32])
def test_channels_are_what_they_are_alone(device: str, channels: int) -> None:
    images, augmenter = batch(channels), vg.Augmenter(ALIKE, device, seed=3)
    whole = augmenter(images, ids=range(5), epoch=2)
    assert whole.shape == (5, channels, 23, 23)
    assert whole.is_contiguous()
    for group in split_channels(channels):
        alone = augmenter(np.ascontiguousarray(images[..., group.read]), ids=range(5), epoch=2)
        first = group.first + group.begin
        kept = slice(group.begin, group.end)
        torch.testing.assert_close(whole[:, first : first + group.end - group.begin], alone[:, kept], rtol=0, atol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_each_channel_is_a_gray_image(device: str) -> None:
    transform = T.Compose([T.RandomCrop(20, padding=3), T.RandomRotation(15), T.RandomSolarize(100), T.GaussianBlur(5)])
    images, augmenter = batch(4), vg.Augmenter(transform, device)
    whole = augmenter(list(images), ids=range(5))
    for channel in range(4):
        alone = augmenter(np.ascontiguousarray(images[..., channel : channel + 1]), ids=range(5))
        assert (whole[:, channel] == alone[:, 0]).all()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("device", DEVICES)
def test_normalize_has_a_number_for_each_channel(device: str, layout: Any) -> None:
    mean, std = (0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 0.6, 0.7, 0.8, 0.9)
    images = batch(5)
    made = vg.Augmenter(T.Normalize(mean, std), device, layout=layout)(images)
    expected = (images / 255 - mean) / std
    expected = expected if layout == "NHWC" else expected.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(made.numpy(), expected, atol=2e-6)  # float32
    assert made.is_contiguous()


@pytest.mark.parametrize("device", DEVICES)
def test_fills_and_erasing_have_a_value_for_each_channel(device: str) -> None:
    fill = (10, 20, 30, 40, 50)
    padded = vg.Augmenter(T.Pad(2, fill=fill), device)(batch(5))
    assert padded[0, :, 0, 0].tolist() == list(fill)
    erased = vg.Augmenter(T.RandomErasing(1.0, value=fill), device)(np.zeros((1, 31, 45, 5), np.uint8))
    assert [erased[0, c].max().item() for c in range(5)] == list(fill)
    after = T.Compose([T.Normalize(0.5, 0.5), T.RandomErasing(1.0, value=(1.5, 2.5, 3.5, 4.5, 5.5))])
    floats = vg.Augmenter(after, device)(batch(5, 1))
    assert [floats[0, c].max().item() for c in range(5)] == [1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "transform", [T.GaussianNoise(0.0, 0.2), T.RandomErasing(1.0, (0.3, 0.5), value="random"), T.ShotNoise(0.5)]
)
def test_noise_is_independent_between_channels(device: str, transform: Any) -> None:
    images = np.full((1, 40, 44, 8), 128, np.uint8)
    made = vg.Augmenter(transform, device)(images, ids=[4])[0].double()
    noise_of = made.reshape(8, -1) - 128.0
    for one, other in combinations(range(8), 2):
        assert abs(np.corrcoef(noise_of[one], noise_of[other])[0, 1]) < 0.15
    again = vg.Augmenter(transform, device)(images[..., :3], ids=[4])[0]
    assert (again == made[:3]).all()  # the first three draw what they always drew


@pytest.mark.parametrize("device", DEVICES)
def test_channel_dropout(device: str) -> None:
    images = np.full((40, 8, 8, 5), 200, np.uint8)
    made = vg.Augmenter(T.ChannelDropout((1, 2), fill=(1, 2, 3, 4, 5), p=1.0), device)(images)
    dropped = (made != 200).all(dim=(2, 3))
    assert set(dropped.sum(1).tolist()) == {1, 2}
    assert dropped.any(0).all()
    assert all(made[n, c, 0, 0] == c + 1 for n, c in dropped.nonzero().tolist())


@pytest.mark.parametrize("device", DEVICES)
def test_mixes_views_and_clips(device: str) -> None:
    images = batch(5)
    three = np.ascontiguousarray(images[..., :3])
    for transform in (T.MixUp(alpha=1.0), T.CutMix(alpha=1.0), T.Mosaic(), T.AugMix(all_ops=False)):
        augmenter = vg.Augmenter(transform, device)
        call: dict[str, Any] = {} if isinstance(transform, T.AugMix) else {"partners": "batch"}
        assert (augmenter(images, range(5), **call)[:, :3] == augmenter(three, range(5), **call)).all()
    views = vg.Augmenter(T.MultiView([T.RandomCrop(16), T.RandomCrop(8)], counts=[2, 3]), device)(images)
    assert [tuple(view.shape) for view in views] == [(5, 2, 5, 16, 16), (5, 3, 5, 8, 8)]
    clips = vg.Augmenter(ALIKE, device, consistent=True)(images[None])
    assert clips.shape == (1, 5, 5, 23, 23)
    frames = vg.Augmenter(ALIKE, device, consistent=True)(three[None])
    assert (clips[:, :, :3] == frames).all()


def test_targets_follow() -> None:
    image = photo(40, 60)
    five = np.dstack([image, image[..., :2]])
    sample = {"image": five, "mask": image[..., 0] > 99, "boxes": np.float32([[3, 4, 30, 35]])}
    augmenter = vg.Augmenter(T.Compose([T.RandomCrop(32), T.RandomHorizontalFlip()]))
    made, plain = augmenter(sample, ids=7), augmenter({**sample, "image": image}, ids=7)
    assert made["image"].shape == (5, 32, 32)
    assert (made["image"][:3] == plain["image"]).all()
    assert (made["mask"] == plain["mask"]).all()
    assert (made["boxes"] == plain["boxes"]).all()


def test_boxes_are_dropped_once() -> None:
    sample = {"image": noise(40, 60, 7), "boxes": np.float32([[3, 4, 30, 35], [40, 1, 59, 9]])}
    made = vg.Augmenter(T.Compose([T.RandomIoUCrop(), T.Pad(1, fill=(1, 2, 3, 4, 5, 6, 7))]))(sample, ids=3)
    plain = vg.Augmenter(T.Compose([T.RandomIoUCrop(), T.Pad(1)]))({**sample, "image": noise(40, 60, 3)}, ids=3)
    assert (made["boxes"] == plain["boxes"]).all()


def test_conditions_and_values_know_all_channels() -> None:
    transform = T.Cond(by="channels", cases={5: T.Invert()})
    assert (vg.Augmenter(transform)(np.zeros((1, 8, 8, 5), np.uint8)) == 255).all()


def test_tensors_arrays_and_one_image() -> None:
    images = batch(5)
    augmenter = vg.Augmenter(ALIKE)
    made = augmenter(images, ids=range(5))
    first = torch.from_numpy(images).permute(0, 3, 1, 2)
    assert (augmenter(first, ids=range(5)) == made).all()
    assert (augmenter([torch.from_numpy(images[0]).permute(2, 0, 1)], ids=[0])[0] == made[0]).all()
    assert (augmenter.of_one(images[0], [0]) == made[0]).all()
    assert ALIKE(images[0]).shape == (5, 23, 23)
    assert "ResizedCrop" in augmenter.explain(0, size=(31, 45, 5))
    program = augmenter.program(images, ids=range(5))
    assert (augmenter.run(program, images) == made).all()
    assert (augmenter.run(program, images) == made).all()  # a program is run as often as wished


def test_running_count_of_ids() -> None:
    images, augmenter = batch(5, 2), vg.Augmenter(ALIKE)
    assert (augmenter(images) == vg.Augmenter(ALIKE)(images, ids=[0, 1])).all()
    assert (augmenter(images) == vg.Augmenter(ALIKE)(images, ids=[2, 3])).all()
