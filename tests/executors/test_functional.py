"""The functional interface: torchvision's names and arguments, Pillow's pixels, every kind of image."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from tests.images import gray, noise, photo, sized_images
from tests.pillow_oracle import resize, run_pillow
from variegate import transforms as T
from variegate.transforms import functional as F

IMAGES = sized_images()
FILL = (10, 200, 77)
NAN = math.nan
every_device = pytest.mark.parametrize("device", ["oracle", "cpu"])
same = np.testing.assert_array_equal

# What a call should equal: the instruction, its arguments and its flags.
CASES: list[tuple[Callable[..., Any], str, tuple[float, ...], int]] = [
    (partial(F.rotate, angle=30.0, fill=FILL), "ROTATE", (30.0, NAN, NAN, 0), 0),
    (partial(F.rotate, angle=17.0, expand=True, fill=FILL, interpolation="bilinear"), "ROTATE", (17.0, NAN, NAN, 1), 1),
    (partial(F.rotate, angle=-33.0, expand=True, center=(3, 50.5), fill=FILL), "ROTATE", (-33.0, 3, 50.5, 1), 0),
    (partial(F.rotate, angle=-70, center=(2, 3.5), fill=FILL, interpolation="bicubic"), "ROTATE", (-70, 2, 3.5, 0), 2),
    (partial(F.rotate, angle=90, expand=True, fill=FILL), "ROTATE", (90, NAN, NAN, 1), 0),
    (partial(F.shear_x, shear=0.3, fill=FILL), "SHEAR_X", (0.3,), 0),
    (partial(F.shear_y, shear=-0.2, fill=FILL, interpolation="bilinear"), "SHEAR_Y", (-0.2,), 1),
    (partial(F.translate_x, pixels=5, fill=FILL), "TRANSLATE_X", (5.0,), 0),
    (partial(F.translate_y, pixels=-2.5, fill=FILL), "TRANSLATE_Y", (-2.5,), 0),
    (F.horizontal_flip, "HFLIP", (), 0),
    (F.vertical_flip, "VFLIP", (), 0),
    (partial(F.crop, top=-2, left=5, height=10, width=4), "CROP", (-2, 5, 10, 4), 0),
    (partial(F.pad, padding=(1, 2, 3, 4), fill=FILL), "PAD", (1, 2, 3, 4), 0),
    (partial(F.pad, padding=[3, 1], fill=FILL), "PAD", (3, 1, 3, 1), 0),
    (partial(F.adjust_brightness, brightness_factor=1.3), "BRIGHTNESS", (1.3,), 0),
    (partial(F.adjust_contrast, contrast_factor=0.4), "CONTRAST", (0.4,), 0),
    (partial(F.adjust_saturation, saturation_factor=1.9), "SATURATION", (1.9,), 0),
    (partial(F.adjust_hue, hue_factor=-0.2), "HUE", (-0.2,), 0),
    (partial(F.adjust_gamma, gamma=2.2, gain=0.9), "GAMMA", (2.2, 0.9), 0),
    (partial(F.adjust_sharpness, sharpness_factor=1.7), "SHARPNESS", (1.7,), 0),
    (partial(F.posterize, bits=3), "POSTERIZE", (3,), 0),
    (partial(F.posterize, bits=1), "POSTERIZE", (1,), 0),
    (partial(F.solarize, threshold=99.5), "SOLARIZE", (99.5,), 0),
    (partial(F.solarize_add, addition=60), "SOLARIZE_ADD", (60, 128), 0),
    (F.invert, "INVERT", (), 0),
    (F.autocontrast, "AUTOCONTRAST", (), 0),
    (partial(F.percentile_stretch, low=3.0, high=90.5), "PERCENTILE_STRETCH", (3.0, 90.5), 0),
    (partial(F.window, center=100.0, width=60.5), "WINDOW", (100.0, 60.5), 0),
    (F.equalize, "EQUALIZE", (), 0),
    (partial(F.resize, size=(19, 23)), "RESIZED_CROP", (0, 0, NAN, NAN, 19, 23), 1),
    (partial(F.resize, size=(19, 23), interpolation="nearest"), "RESIZED_CROP", (0, 0, NAN, NAN, 19, 23), 0),
]


def assert_close(out: np.ndarray, expected: np.ndarray, flags: int, what: str = "") -> None:
    """Bit for bit, except that interpolation, which is not in double precision, may be 1 off."""
    assert out.dtype == expected.dtype
    assert out.shape == expected.shape, what
    assert np.abs(out.astype(int) - expected).max() <= (1 if flags else 0), what


@every_device
@pytest.mark.parametrize(
    ("call", "op", "args", "flags"), CASES, ids=[f"{n}-{op}" for n, (_, op, *_) in enumerate(CASES)]
)
def test_equals_pillow(call: Callable[..., Any], op: str, args: tuple[float, ...], flags: int, device: str) -> None:
    for name, img_HWC in IMAGES.items():
        of_image = (0, 0, *img_HWC.shape[:2], *args[4:]) if op == "RESIZED_CROP" else args
        expected = run_pillow(op, img_HWC, *of_image, flags=flags, fill=FILL if op != "CROP" else (0, 0, 0))
        # Resampling is Pillow's to the bit.
        tolerance = 0 if op == "RESIZED_CROP" else flags
        assert_close(call(img_HWC, device=device), expected, tolerance, name)
        if img_HWC.shape[2] == 1:
            assert_close(call(img_HWC[..., 0], device=device), expected[..., 0], tolerance, f"{name} without channels")


@every_device
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_affine_is_torchvisions_matrix(interpolation: str, device: str) -> None:
    flags = ("nearest", "bilinear", "bicubic").index(interpolation)
    # torchvision 0.28 _get_inverse_affine_matrix([25.0, 20.0], 30.0, [4.0, -3.0], 1.25, [10.0, -5.0])
    matrix = (
        *(0.6116016605142625, 0.5159922709786133, -1.5083167615500344),
        *(-0.46061392412527935, 0.6578248576171812, 22.17478122014102),
    )
    expected = run_pillow("AFFINE", photo(40, 50), *matrix, flags=flags, fill=FILL)
    out = F.affine(photo(40, 50), 30.0, (4, -3), 1.25, [10.0, -5.0], interpolation, FILL, device=device)
    assert_close(out, expected, flags)


@every_device
def test_perspective_moves_the_corners(device: str) -> None:
    img_HWC = photo(40, 50)
    start, end = [[0, 0], [49, 0], [49, 39], [0, 39]], [[3, 2], [44, 5], [48, 36], [1, 39]]
    # torchvision 0.28 _get_perspective_coeffs(start, end), which are float32.
    coefficients = (
        *(1.0055423974990845, 0.05435363948345184, -3.1253342628479004),
        *(-0.08932258188724518, 1.2207419872283936, -2.173516035079956),
        *(-0.004015373531728983, 0.00427527679130435),
    )
    expected = run_pillow("PERSPECTIVE", img_HWC, *coefficients, flags=1, fill=FILL)
    assert_close(F.perspective(img_HWC, start, end, fill=FILL, device=device), expected, flags=1)
    given = F.perspective(img_HWC, None, None, fill=FILL, coefficients=coefficients, device=device)
    assert_close(given, expected, flags=1)


@pytest.mark.parametrize(
    ("size", "max_size", "expected"),
    [(20, None, (20, 30)), ([20], None, (20, 30)), (20, 25, (16, 25)), (None, 30, (20, 30)), ((7, 9), None, (7, 9))],
)
def test_resize_keeps_proportions(size: Any, max_size: int | None, expected: tuple[int, int]) -> None:
    assert F.resize(photo(40, 60), size, max_size=max_size).shape == (*expected, 3)
    assert F.resize(photo(60, 40), size, max_size=max_size).shape[:2] in (expected[::-1], (7, 9))


@every_device
def test_crops(device: str) -> None:
    img_HWC = photo(40, 50)
    same(F.crop(img_HWC, 5, 6, 7, 8, device=device), img_HWC[5:12, 6:14])
    same(F.center_crop(img_HWC, 21, device=device), img_HWC[10:31, 14:35])
    wide = F.center_crop(img_HWC, (10, 53), device=device)
    same(wide, np.pad(img_HWC[15:25], ((0, 0), (1, 2), (0, 0))))
    out = F.resized_crop(img_HWC, 3, 5.5, 20, 30.25, (24, 24), device=device)
    same(out, run_pillow("RESIZED_CROP", img_HWC, 3, 5.5, 20, 30.25, 24, 24, flags=1))
    across = F.resized_crop(img_HWC, -4, -4, 20, 20, (24, 24), device=device)
    cut = F.crop(img_HWC, -4, -4, 20, 20, device=device)
    same(across, F.resize(cut, (24, 24), device=device))


@pytest.mark.parametrize("size", [20, [20], (20,)])
def test_one_number_is_the_shorter_side_of_the_box(size: Any) -> None:
    assert F.resized_crop(photo(60, 90), 5, 6, 30, 50, size).shape == (20, 33, 3)
    assert F.resized_crop(photo(60, 90), 5, 6, 50, 30, size).shape == (33, 20, 3)


@every_device
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
            same(out, expected.reshape(out.shape))
            if interpolation == "nearest":
                same(F.resized_crop(img_HWC, *box, size, 0, device=device), out)


@every_device
@pytest.mark.parametrize("padding", [-1, (3, 2), (-2, 3), (-2, -1, 4, 5), (0, 0, -3, 0), (-4, 5, 30, -6)])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pads_are_numpys_and_negative_borders_cut(padding: Any, mode: Any, device: str) -> None:
    img_HWC = photo(17, 31)
    left, top, right, bottom = (padding,) * 4 if isinstance(padding, int) else padding * (4 // len(padding))
    if mode == "constant":
        expected = np.asarray(ImageOps.expand(Image.fromarray(img_HWC), (left, top, right, bottom), (9, 8, 7)))
    else:
        cut = img_HWC[max(-top, 0) : 17 - max(-bottom, 0), max(-left, 0) : 31 - max(-right, 0)]
        over = [max(side, 0) for side in (left, top, right, bottom)]
        expected = np.pad(cut, ((over[1], over[3]), (over[0], over[2]), (0, 0)), mode)
    same(F.pad(img_HWC, padding, (9, 8, 7), mode, device=device), expected)


@every_device
def test_grayscale_and_channels(device: str) -> None:
    img_HWC, flat = photo(9, 8), gray(9, 8)[..., 0]
    luma = run_pillow("GRAYSCALE", img_HWC)
    same(F.rgb_to_grayscale(img_HWC, device=device), luma[..., :1])
    same(F.grayscale(img_HWC, num_output_channels=3, device=device), luma)
    same(F.grayscale(gray(9, 8), 3, device=device), gray(9, 8).repeat(3, axis=2))
    same(F.rgb_to_grayscale(flat, 3, device=device), gray(9, 8).repeat(3, axis=2))
    assert F.rgb_to_grayscale(torch.from_numpy(flat), 3, device=device).shape == (3, 9, 8)
    same(F.rgb_to_grayscale(flat, device=device), flat)
    same(F.permute_channels(img_HWC, [2, 0, 1], device=device), img_HWC[..., [2, 0, 1]])
    same(F.permute_channels(gray(), [0], device=device), gray())


def test_gray_images_of_any_kind_become_rgb() -> None:
    gray_HW = photo(9, 12)[..., 0]
    three = np.repeat(gray_HW[..., None], 3, axis=2)
    same(F.grayscale_to_rgb(gray_HW), three)
    same(F.grayscale_to_rgb(gray_HW[..., None]), three)
    same(F.grayscale_to_rgb(photo(9, 12)), photo(9, 12))
    assert F.grayscale_to_rgb(Image.fromarray(gray_HW)).mode == "RGB"
    assert T.functional is F


@every_device
def test_blurs_lower_contrast(device: str) -> None:
    assert F.gaussian_blur(noise(), (3, 5), (1.0, 2.0), device=device).std() < noise().std() / 2
    assert F.motion_blur(noise(), 9, 20.0, device=device).std() < noise().std() / 2
    assert F.median_blur(noise(), 5, device=device).std() < noise().std() / 2


@every_device
def test_gaussian_noise_is_a_function_of_its_seed(device: str) -> None:
    flat = np.full((50, 60, 3), 128, np.uint8)
    one, again, other = (F.gaussian_noise(flat, sigma=0.1, seed=s, device=device) for s in (1, 1, 2))
    same(one, again)
    assert (one != other).mean() > 0.5
    assert abs(one.std() - 25.5) < 1


@every_device
@pytest.mark.parametrize("img", [photo(9, 8), gray(9, 8), gray(9, 8)[..., 0]], ids=["rgb", "gray", "flat"])
def test_normalize(img: np.ndarray, device: str) -> None:
    rgb = img.ndim == 3 and img.shape[2] == 3
    mean, std = ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)) if rgb else (0.4, 0.2)
    out = F.normalize(img, mean, std, device=device)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, (img / 255 - mean) / std, atol=2e-6)


@every_device
def test_strided_and_read_only_images(device: str) -> None:
    view = photo(20, 20)[::2, ::-2]
    view.flags.writeable = False
    same(F.equalize(view, device=device), run_pillow("EQUALIZE", view.copy()))


def planes(img_HWC: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(img_HWC).permute(2, 0, 1).contiguous()


@every_device
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
        same(tensor.numpy(), expected.transpose(2, 0, 1))
        image = call(Image.fromarray(img_HWC if img_HWC.shape[2] == 3 else img_HWC[..., 0]))
        assert isinstance(image, Image.Image)
        same(np.asarray(image).reshape(expected.shape), expected)


def test_which_axis_has_the_channels() -> None:
    last = torch.from_numpy(noise(3, 5, 3))
    same(F.hflip(last).numpy(), last.numpy()[:, ::-1])
    assert F.rgb_to_grayscale(torch.from_numpy(photo(9, 8))).shape == (9, 8, 1)
    assert F.normalize(planes(photo(4, 5)), 0.5, 0.5).shape == (3, 4, 5)
    assert F.invert(Image.new("RGBA", (4, 5))).mode == "RGB"
    assert F.invert(Image.new("LA", (4, 5))).mode == "L"

    class Image3(torch.Tensor):
        """As torchvision's tv_tensors.Image."""

    assert type(F.invert(planes(photo(4, 5)).as_subclass(Image3))) is Image3


def test_random_crop_of_negative_padding_stays_within_the_rest() -> None:
    img_HWC = np.arange(12, dtype=np.uint8)[:, None, None].repeat(12, 1)
    inside = T.RandomCrop(4, padding=-3, pad_if_needed=True)
    assert {int(inside(img_HWC)[0, 0, 0]) for _ in range(60)} == {3, 4, 5}
    # Nine pixels are wanted of six, so that three are added to each side: in sum none is cut.
    padded = T.RandomCrop(9, padding=-3, pad_if_needed=True)
    assert min(int(padded(img_HWC)[0, 0, 0]) for _ in range(60)) == 0


@every_device
def test_factors_thresholds_and_fills_have_no_bounds(device: str) -> None:
    enhancers = {
        F.adjust_brightness: ImageEnhance.Brightness,
        F.adjust_contrast: ImageEnhance.Contrast,
        F.adjust_saturation: ImageEnhance.Color,
        F.adjust_sharpness: ImageEnhance.Sharpness,
    }
    for img_HWC in (photo(17, 70), noise(20, 33)):
        image = Image.fromarray(img_HWC)
        for factor in (-0.3, -2.7, -1e4, -1e9, 300.0, 1e9):
            for function, enhancer in enhancers.items():
                same(function(img_HWC, factor, device=device), np.asarray(enhancer(image).enhance(factor)), str(factor))
        for threshold in (-3, 0, 255.5, 256, 1000):
            expected = np.asarray(ImageOps.solarize(image, threshold))
            same(F.solarize(img_HWC, threshold, device=device), expected)
        turned = image.rotate(30, fillcolor=(300, -5, 77))
        same(F.rotate(img_HWC, 30, fill=(300, -5, 77.9), device=device), np.asarray(turned))


@every_device
def test_erase_with_colors_and_pictures(device: str) -> None:
    img_HWC, patch = photo(9, 8), noise(3, 4)
    expected = img_HWC.copy()
    expected[2:5, 3:7] = patch
    for picture in (patch, planes(patch)):
        same(F.erase(img_HWC, 2, 3, 3, 4, picture, device=device), expected)
    tensor = F.erase(planes(img_HWC), 2, 3, 3, 4, planes(patch), device=device)
    same(tensor.numpy(), expected.transpose(2, 0, 1))
    expected[2:5, 3:7] = (1, 2, 3)
    color = torch.tensor([1.0, 2.5, 3.0])
    for v in ((1, 2, 3), color, color[:, None, None], np.array([[[1, 2, 3]]])):
        same(F.erase(img_HWC, 2, 3, 3, 4, v, device=device), expected)
    expected[7:, 5:] = noise(6, 6)[:2, :3]
    same(F.erase(expected, 7, 5, 6, 6, noise(6, 6), device=device), expected)


BY_CODE = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]


@pytest.mark.parametrize(("code", "name"), list(enumerate(BY_CODE)))
def test_codes_and_names_of_filters(code: int, name: Any) -> None:
    img_HWC = photo(40, 50)
    expected = np.asarray(resize(Image.fromarray(img_HWC), (23, 19), Image.Resampling(code)))
    for interpolation in (name, code, Image.Resampling(code), T.InterpolationMode(name)):
        for antialias in (True, False, None):
            same(F.resize(img_HWC, (19, 23), interpolation, antialias=antialias), expected)
    if name in ("nearest", "bilinear", "bicubic"):
        same(F.rotate(img_HWC, 9.0, code), F.rotate(img_HWC, 9.0, name))
    assert T.Resize(9, "nearest-exact").interpolation == T.Rotate(9, "nearest-exact").interpolation == "nearest"


@pytest.mark.parametrize("shape", [(3, 40_000, 3), (40_000, 3, 3), (2, 70_000, 1)])
def test_images_wider_than_batches_take(shape: tuple[int, int, int]) -> None:
    """Flips, resizes and nearest maps take them; coordinates between their pixels have too few bits."""
    img_HWC = noise(*shape)
    calls = [
        partial(F.horizontal_flip),
        partial(F.rotate, angle=1.0, fill=7),
        partial(F.resize, size=[7, 9]),
    ]
    if shape[0] < 40_000:  # its planes would be as wide as it is high: 5 GB, a page of which is touched for every row
        calls.append(partial(F.gaussian_blur, kernel_size=5, sigma=2.0))
    for call in calls:
        same(call(img_HWC, device="cpu"), call(img_HWC, device="oracle"))
    message = r"img.shape=\(\d+, \d+\); accepted: sides of at most 32,767 pixels, or interp"
    with pytest.raises(ValueError, match=message):
        F.rotate(img_HWC, 1.0, interpolation="bilinear")
