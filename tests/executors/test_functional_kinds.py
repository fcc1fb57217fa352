"""What torchvision's functions accept: kinds of images, codes, borders that cut, boxes; with Pillow's pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from tests.images import gray, noise, photo
from tests.pillow_oracle import resize
from variegate import transforms as T
from variegate.transforms import functional as F


@pytest.fixture(params=["oracle", "cpu"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def planes(img_HWC: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(img_HWC).permute(2, 0, 1).contiguous()


@pytest.mark.parametrize("img_HWC", [photo(20, 31), gray(20, 31)], ids=["rgb", "gray"])
def test_the_same_kind_comes_out(img_HWC: np.ndarray, device: str) -> None:
    for call in (
        lambda img: F.rotate(img, 30.0, "bilinear", expand=True, fill=9, device=device),
        lambda img: F.resize(img, 12, device=device),
        lambda img: F.equalize(img, device=device),
        lambda img: F.rgb_to_grayscale(img, 3, device=device),
        lambda img: F.rgb_to_grayscale(img, device=device),
    ):
        expected = call(img_HWC)
        tensor = call(planes(img_HWC))
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), expected.transpose(2, 0, 1))
        image = call(Image.fromarray(img_HWC if img_HWC.shape[2] == 3 else img_HWC[..., 0]))
        assert isinstance(image, Image.Image)
        np.testing.assert_array_equal(np.asarray(image).reshape(expected.shape), expected)


def test_which_axis_has_the_channels() -> None:
    last = torch.from_numpy(noise(3, 5, 3))
    np.testing.assert_array_equal(F.hflip(last).numpy(), last.numpy()[:, ::-1])
    assert F.normalize(planes(photo(4, 5)), 0.5, 0.5).shape == (3, 4, 5)
    assert F.invert(Image.new("RGBA", (4, 5))).mode == "RGB"
    assert F.invert(Image.new("LA", (4, 5))).mode == "L"

    class Image3(torch.Tensor):
        """As torchvision's tv_tensors.Image."""

    assert type(F.invert(planes(photo(4, 5)).as_subclass(Image3))) is Image3


def test_gray_without_a_channel_axis_becomes_three(device: str) -> None:
    flat = gray(9, 8)[..., 0]
    np.testing.assert_array_equal(F.rgb_to_grayscale(flat, 3, device=device), gray(9, 8).repeat(3, axis=2))
    assert F.rgb_to_grayscale(torch.from_numpy(flat), 3, device=device).shape == (3, 9, 8)
    np.testing.assert_array_equal(F.rgb_to_grayscale(flat, device=device), flat)


@pytest.mark.parametrize("padding", [-1, (-2, 3), (-2, -1, 4, 5), (0, 0, -3, 0), (-4, 5, 30, -6)])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_negative_borders_cut(padding: Any, mode: Any, device: str) -> None:
    img_HWC = photo(17, 31)
    left, top, right, bottom = (padding,) * 4 if isinstance(padding, int) else padding * (4 // len(padding))
    if mode == "constant":
        expected = np.asarray(ImageOps.expand(Image.fromarray(img_HWC), (left, top, right, bottom), (9, 8, 7)))
    else:
        cut = img_HWC[max(-top, 0) : 17 - max(-bottom, 0), max(-left, 0) : 31 - max(-right, 0)]
        over = [max(side, 0) for side in (left, top, right, bottom)]
        expected = np.pad(cut, ((over[1], over[3]), (over[0], over[2]), (0, 0)), mode)
    np.testing.assert_array_equal(F.pad(img_HWC, padding, (9, 8, 7), mode, device=device), expected)


def test_random_crop_of_negative_padding_stays_within_the_rest() -> None:
    img_HWC = np.arange(12, dtype=np.uint8)[:, None, None].repeat(12, 1)
    out = T.RandomCrop(4, padding=-3, pad_if_needed=True)
    assert {int(out(img_HWC)[0, 0, 0]) for _ in range(60)} == {3, 4, 5}
    # Nine pixels are wanted of six, so that three are added to each side: in sum none is cut.
    assert sorted({int(T.RandomCrop(9, padding=-3, pad_if_needed=True)(img_HWC)[0, 0, 0]) for _ in range(60)})[0] == 0


def test_factors_thresholds_and_fills_have_no_bounds(device: str) -> None:
    enhancers = {
        **{F.adjust_brightness: ImageEnhance.Brightness, F.adjust_contrast: ImageEnhance.Contrast},
        **{F.adjust_saturation: ImageEnhance.Color, F.adjust_sharpness: ImageEnhance.Sharpness},
    }
    for img_HWC in (photo(17, 70), noise(20, 33)):
        image = Image.fromarray(img_HWC)
        for factor in (-0.3, -2.7, -1e4, -1e9, 300.0, 1e9):
            for function, enhancer in enhancers.items():
                out = function(img_HWC, factor, device=device)
                np.testing.assert_array_equal(out, np.asarray(enhancer(image).enhance(factor)), err_msg=str(factor))
        for threshold in (-3, 0, 255.5, 256, 1000):
            expected = np.asarray(ImageOps.solarize(image, threshold))  # type: ignore[arg-type]
            np.testing.assert_array_equal(F.solarize(img_HWC, threshold, device=device), expected)
        turned = image.rotate(30, fillcolor=(300, -5, 77))
        np.testing.assert_array_equal(F.rotate(img_HWC, 30, fill=(300, -5, 77.9), device=device), np.asarray(turned))


def test_erase_with_a_picture(device: str) -> None:
    img_HWC, patch = photo(9, 8), noise(3, 4)
    expected = img_HWC.copy()
    expected[2:5, 3:7] = patch
    np.testing.assert_array_equal(F.erase(img_HWC, 2, 3, 3, 4, patch, device=device), expected)
    np.testing.assert_array_equal(F.erase(img_HWC, 2, 3, 3, 4, planes(patch), device=device), expected)
    tensor = F.erase(planes(img_HWC), 2, 3, 3, 4, planes(patch), device=device)
    np.testing.assert_array_equal(tensor.numpy(), expected.transpose(2, 0, 1))
    expected[2:5, 3:7] = (1, 2, 3)
    colour = torch.tensor([1.0, 2.5, 3.0])
    for v in (colour, colour[:, None, None], np.array([[[1, 2, 3]]])):
        np.testing.assert_array_equal(F.erase(img_HWC, 2, 3, 3, 4, v, device=device), expected)
    expected[7:, 5:] = noise(6, 6)[:2, :3]
    out = F.erase(expected, 7, 5, 6, 6, noise(6, 6), device=device)
    np.testing.assert_array_equal(out, expected)


BY_CODE = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]


@pytest.mark.parametrize(("code", "name"), list(enumerate(BY_CODE)))
def test_codes_and_names_of_filters(code: int, name: Any, device: str) -> None:
    img_HWC = photo(40, 50)
    expected = np.asarray(resize(Image.fromarray(img_HWC), (23, 19), Image.Resampling(code)))
    for interpolation in (name, code, Image.Resampling(code), T.InterpolationMode(name)):
        for antialias in (True, False, None):
            out = F.resize(img_HWC, (19, 23), interpolation, antialias=antialias, device=device)
            np.testing.assert_array_equal(out, expected)
    if name in ("nearest", "bilinear", "bicubic"):
        np.testing.assert_array_equal(F.rotate(img_HWC, 9.0, code), F.rotate(img_HWC, 9.0, name))
    assert T.Resize(9, "nearest-exact").interpolation == T.Rotate(9, "nearest-exact").interpolation == "nearest"  # type: ignore[arg-type]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"])
def test_resized_crops_are_those_of_a_cut(interpolation: Any, device: str) -> None:
    rng = np.random.default_rng(5)
    for img_HWC in (photo(90, 120), noise(61, 47), gray(33, 70)):
        image = Image.fromarray(img_HWC if img_HWC.shape[2] == 3 else img_HWC[..., 0])
        for _ in range(12):
            height, width = (int(rng.integers(1, side + 1)) for side in img_HWC.shape[:2])
            top = int(rng.integers(img_HWC.shape[0] - height + 1))
            left = int(rng.integers(img_HWC.shape[1] - width + 1))
            size = tuple(rng.integers(1, 100, 2).tolist())
            cut = image.crop((left, top, left + width, top + height))
            expected = np.asarray(resize(cut, size[::-1], Image.Resampling[interpolation.upper()]))
            box = (top, left, height, width)
            out = F.resized_crop(img_HWC, *box, size, interpolation, device=device, edges="crop")
            np.testing.assert_array_equal(out, expected.reshape(out.shape))
            if interpolation == "nearest":
                np.testing.assert_array_equal(F.resized_crop(img_HWC, *box, size, 0, device=device), out)


@pytest.mark.parametrize("size", [20, [20], (20,)])
def test_one_number_is_the_shorter_side_of_the_box(size: Any) -> None:
    assert F.resized_crop(photo(60, 90), 5, 6, 30, 50, size).shape == (20, 33, 3)
    assert F.resized_crop(photo(60, 90), 5, 6, 50, 30, size).shape == (33, 20, 3)
