"""``t(image)``: any transform, any form of one image, and chance that neither repeats nor is shared."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T
from variegate.interop import one_sample
from variegate.interop.one_sample import RunningIds

NOISE = T.GaussianNoise(sigma=0.1)
RGB, GRAY = photo(30, 40), gray(30, 40)


@pytest.fixture(autouse=True)
def _count_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_sample, "_ids", RunningIds())


def test_any_mode_of_pillow() -> None:
    for mode in ("1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "HSV"):
        image = Image.new("LA", (40, 30)) if mode == "LA" else Image.fromarray(RGB).convert(mode)
        out = T.Identity()(image)
        assert tuple(out.shape) == (1 if mode in ("1", "L", "LA") else 3, 30, 40), mode
        assert out.dtype == torch.uint8


def test_the_result_is_the_augmenters_kind_of_tensor() -> None:
    assert T.RandomHorizontalFlip()(RGB).dtype == torch.uint8
    floats = T.Compose([T.RandomResizedCrop(24), T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)])
    assert (floats(RGB).dtype, tuple(floats(RGB).shape)) == (torch.float32, (3, 24, 24))


def test_calls_do_not_repeat_and_transforms_do_not_share_chance() -> None:
    assert not torch.equal(NOISE(RGB), NOISE(RGB))
    # In a pipeline of torchvision's: were both drawn from the same place, both would always flip, or neither.
    across, down = T.RandomHorizontalFlip(), T.RandomVerticalFlip()
    ramp = np.arange(6, dtype=np.uint8).reshape(2, 3)
    flips = []
    for _ in range(200):
        first = across(ramp)
        second = down(first)
        flips.append((not torch.equal(first[0], torch.from_numpy(ramp)), not torch.equal(second, first)))
    counts = [flips.count(pair) for pair in ((False, False), (False, True), (True, False), (True, True))]
    assert min(counts) > 25  # of 50 expected: a chance of less than 1 in 10,000 each


def test_no_global_generator_is_read_or_advanced() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    NOISE(RGB)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_call_leaves_no_trace_on_the_transform() -> None:
    called, other = T.Compose([T.RandomHorizontalFlip(), T.RandAugment()]), T.Compose([T.RandomHorizontalFlip()])
    fresh = T.Compose([T.RandomHorizontalFlip(), T.RandAugment()])
    called(RGB)
    assert called == fresh != other
    assert hash(called) == hash(fresh)
    assert repr(called) == repr(fresh)
    assert called.to_dict() == fresh.to_dict()
    assert pickle.dumps(called) == pickle.dumps(pickle.loads(pickle.dumps(called)))
    for copied in (copy.copy(called), copy.deepcopy(called), pickle.loads(pickle.dumps(called))):
        assert copied == called
        assert "_alone" not in vars(copied)
        assert copied(RGB).shape == (3, 30, 40)


class Photos(Dataset[Any]):
    """One photo over and over, with a ``transform`` as torchvision's data sets take it."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        return self.transform(Image.fromarray(RGB)), i


@pytest.mark.process
def test_workers_never_repeat_one_another_nor_an_epoch() -> None:
    """Whether or not the transform was called before, in workers of one epoch and of all."""
    transform = T.GaussianNoise(sigma=0.1)
    for number in range(4):
        if number == 2:
            transform(RGB)
        loader = DataLoader(Photos(transform), 2, num_workers=2, persistent_workers=number % 2 == 1)
        images = [image.numpy().tobytes() for _ in range(2) for batch, _ in loader for image in batch]
        assert len(set(images)) == 16, number


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (
            [RGB, RGB],
            r"image: got a list of 2; accepted: one image; vg.Augmenter\(t\)\(images\) takes a list or a batch",
        ),
        (np.stack([RGB] * 3), r"image: got shape \(3, 30, 40, 3\); accepted: one image; vg.Augmenter\(t\)"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), r"image: got shape \(2, 3, 8, 8\); accepted: one image"),
        (
            torch.rand(3, 8, 8, requires_grad=True),
            r"image: got a tensor that requires a gradient; accepted: tensor.detach",
        ),
        (np.zeros((8, 8, 3), bool), r"image: got an image of dtype bool; accepted: uint8"),
        (np.zeros((8, 8), complex), r"image: got an image of dtype complex128; accepted: uint8"),
        (np.zeros((40_000, 1), np.uint8), r"^image: 1 x 40,000 pixels, more than 32,767 on a side"),
        (Image.new("L", (40_000, 1)), r"^image: 40,000 x 1 pixels, more than 32,767 on a side"),
        ({"image": RGB, "mask": RGB}, r"sample\['mask'\]: got shape \(30, 40, 3\); accepted: \[H, W\] of the image's"),
        ({"image": "cat.jpg"}, r"sample\['image'\]: got str for an image; accepted: a PIL image"),
        ({"mask": RGB}, r"image: got dict for an image; accepted: a PIL image"),
        ("cat.jpg", r"image: got str for an image; accepted: a PIL image"),
    ],
)
def test_anything_else_is_refused_in_one_line(image: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        T.RandomHorizontalFlip()(image)
    assert "\n" not in str(raised.value)


def test_a_closed_image_is_said_to_be_closed() -> None:
    image = Image.fromarray(RGB)
    image.close()
    with pytest.raises(ValueError, match=r"image: a closed PIL image; accepted: an open one"):
        T.RandomHorizontalFlip()(image)
    with pytest.raises(ValueError, match=r"images\[1\]: a closed PIL image; accepted: an open one"):
        vg.Augmenter(T.RandomHorizontalFlip())([RGB, image])


class Named(NamedTuple):
    image: Any
    label: int


def test_a_list_or_a_tuple_is_a_sample_as_in_torchvision() -> None:
    """An image with what belongs to it, in one argument; the same kind comes back, and what is no target as it is."""
    flip = T.RandomHorizontalFlip(1.0)
    where, hot = Path("a.jpg"), torch.tensor([0.0, 1, 0])
    sample = [RGB, {"boxes": np.array([[2.0, 3, 10, 20]]), "labels": [1]}, 7, None, where, hot]
    for kind in (list, tuple):
        image, beside, label, nothing, path, classes = flip(kind(sample))
        assert torch.equal(torch.as_tensor(image), flip(RGB)) or np.array_equal(image, RGB[:, ::-1])
        assert np.asarray(beside["boxes"]).tolist() == [[30, 3, 38, 20]]
        assert (label, nothing, path) == (7, None, where)
        assert classes is hot
        assert type(flip(kind(sample))) is kind
        assert len(flip(kind([RGB]))) == 1
    assert flip(Named(RGB, 3)).label == 3
    with pytest.raises(TypeError, match=r"inputs\[1\]: got Tensor\[4\]; accepted: beside an image"):
        flip((RGB, torch.zeros(4)))


def test_what_is_beside_an_image_by_name_is_refused_with_the_dict_that_is_accepted() -> None:
    message = (
        r"RandomHorizontalFlip: got mask, bboxes=; accepted: .* in one dict with it, t\(\{'image': image, 'mask': "
    )
    with pytest.raises(TypeError, match=message):
        T.RandomHorizontalFlip()(image=photo(8, 8), mask=gray(8, 8), bboxes=[])
