"""The functional interface: torchvision's names and arguments, Pillow's pixels, and clear refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from tests.images import gray, noise, photo, sized_images
from tests.pillow_oracle import run_pillow
from variegate import transforms
from variegate.transforms import functional as F

IMAGES = sized_images()
FILL = (10, 200, 77)
NAN = math.nan


@pytest.fixture(params=["oracle", "cpu"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# What a call should equal: the instruction, its arguments and its flags.
CASES: dict[str, tuple[Callable[..., Any], str, tuple[float, ...], int]] = {
    "rotate": (partial(F.rotate, angle=30.0, fill=FILL), "ROTATE", (30.0, NAN, NAN, 0), 0),
    "rotate expand": (
        partial(F.rotate, angle=17.0, expand=True, fill=FILL, interpolation="bilinear"),
        "ROTATE",
        (17.0, NAN, NAN, 1),
        1,
    ),
    **{
        f"rotate expand {name}": (
            partial(F.rotate, angle=-33.0, expand=True, center=(3, 50.5), fill=FILL, interpolation=name),
            "ROTATE",
            (-33.0, 3, 50.5, 1),
            flags,
        )
        for flags, name in enumerate(("nearest", "bilinear", "bicubic"))
    },
    "rotate center": (
        partial(F.rotate, angle=-70, center=(2, 3.5), fill=FILL, interpolation="bicubic"),
        "ROTATE",
        (-70.0, 2, 3.5, 0),
        2,
    ),
    "rotate 90 expand": (partial(F.rotate, angle=90, expand=True, fill=FILL), "ROTATE", (90, NAN, NAN, 1), 0),
    "shear_x": (partial(F.shear_x, shear=0.3, fill=FILL), "SHEAR_X", (0.3,), 0),
    "shear_y": (partial(F.shear_y, shear=-0.2, fill=FILL, interpolation="bilinear"), "SHEAR_Y", (-0.2,), 1),
    "translate_x": (partial(F.translate_x, pixels=5, fill=FILL), "TRANSLATE_X", (5.0,), 0),
    "translate_y": (partial(F.translate_y, pixels=-2.5, fill=FILL), "TRANSLATE_Y", (-2.5,), 0),
    "horizontal_flip": (F.horizontal_flip, "HFLIP", (), 0),
    "vertical_flip": (F.vertical_flip, "VFLIP", (), 0),
    "pad": (partial(F.pad, padding=(1, 2, 3, 4), fill=FILL), "PAD", (1, 2, 3, 4), 0),
    "pad two": (partial(F.pad, padding=[3, 1], fill=FILL), "PAD", (3, 1, 3, 1), 0),
    "adjust_brightness": (partial(F.adjust_brightness, brightness_factor=1.3), "BRIGHTNESS", (1.3,), 0),
    "adjust_contrast": (partial(F.adjust_contrast, contrast_factor=0.4), "CONTRAST", (0.4,), 0),
    "adjust_saturation": (partial(F.adjust_saturation, saturation_factor=1.9), "SATURATION", (1.9,), 0),
    "adjust_hue": (partial(F.adjust_hue, hue_factor=-0.2), "HUE", (-0.2,), 0),
    "adjust_gamma": (partial(F.adjust_gamma, gamma=2.2, gain=0.9), "GAMMA", (2.2, 0.9), 0),
    "adjust_sharpness": (partial(F.adjust_sharpness, sharpness_factor=1.7), "SHARPNESS", (1.7,), 0),
    "posterize": (partial(F.posterize, bits=3), "POSTERIZE", (3,), 0),
    "posterize to one bit": (partial(F.posterize, bits=1), "POSTERIZE", (1,), 0),
    "solarize": (partial(F.solarize, threshold=99.5), "SOLARIZE", (99.5,), 0),
    "solarize_add": (partial(F.solarize_add, addition=60), "SOLARIZE_ADD", (60, 128), 0),
    "invert": (F.invert, "INVERT", (), 0),
    "autocontrast": (F.autocontrast, "AUTOCONTRAST", (), 0),
    "equalize": (F.equalize, "EQUALIZE", (), 0),
    "resize": (partial(F.resize, size=(19, 23)), "RESIZED_CROP", (0, 0, NAN, NAN, 19, 23), 1),
    "resize nearest": (
        partial(F.resize, size=(19, 23), interpolation="nearest"),
        "RESIZED_CROP",
        (0, 0, NAN, NAN, 19, 23),
        0,
    ),
}


def assert_same(out: np.ndarray, expected: np.ndarray, flags: int, name: str = "") -> None:
    """Bit for bit, except that interpolation, which is not in double precision, may be a level off."""
    assert out.dtype == expected.dtype
    assert out.shape == expected.shape
    tolerance = 0 if flags == 0 else 1
    assert np.abs(out.astype(int) - expected).max() <= tolerance, name


@pytest.mark.parametrize("case", CASES)
def test_equals_pillow(case: str, device: str) -> None:
    call, op_name, args, flags = CASES[case]
    for name, img_HWC in IMAGES.items():
        if op_name == "RESIZED_CROP":
            args = (0, 0, *img_HWC.shape[:2], *args[4:])
        expected = run_pillow(op_name, img_HWC, *args, flags=flags, fill=FILL)
        # Resampling is Pillow's to the bit.
        looseness = 0 if op_name == "RESIZED_CROP" else flags
        assert_same(call(img_HWC, device=device), expected, looseness, name)
        if img_HWC.shape[2] == 1:
            flat = call(img_HWC[..., 0], device=device)
            assert_same(flat, expected[..., 0], looseness, f"{name} without a channel axis")


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_affine_is_torchvisions_matrix(interpolation: str, device: str) -> None:
    img_HWC = photo(40, 50)
    flags = ("nearest", "bilinear", "bicubic").index(interpolation)
    # torchvision 0.28 _get_inverse_affine_matrix([25.0, 20.0], 30.0, [4.0, -3.0], 1.25, [10.0, -5.0])
    matrix = (
        *(0.6116016605142625, 0.5159922709786133, -1.5083167615500344),
        *(-0.46061392412527935, 0.6578248576171812, 22.17478122014102),
    )
    expected = run_pillow("AFFINE", img_HWC, *matrix, flags=flags, fill=FILL)
    out = F.affine(img_HWC, 30.0, (4, -3), 1.25, [10.0, -5.0], interpolation, FILL, device=device)
    assert_same(out, expected, flags)


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
    assert_same(F.perspective(img_HWC, start, end, fill=FILL, device=device), expected, flags=1)
    given = F.perspective(img_HWC, None, None, fill=FILL, coefficients=coefficients, device=device)
    assert_same(given, expected, flags=1)


@pytest.mark.parametrize(
    ("size", "max_size", "expected"),
    [(20, None, (20, 30)), ([20], None, (20, 30)), (20, 25, (16, 25)), (None, 30, (20, 30)), ((7, 9), None, (7, 9))],
)
def test_resize_keeps_proportions(size: Any, max_size: int | None, expected: tuple[int, int], device: str) -> None:
    assert F.resize(photo(40, 60), size, max_size=max_size, device=device).shape == (*expected, 3)
    assert F.resize(photo(60, 40), size, max_size=max_size, device=device).shape[:2] in (expected[::-1], (7, 9))


def test_crops(device: str) -> None:
    img_HWC = photo(40, 50)
    np.testing.assert_array_equal(F.crop(img_HWC, 5, 6, 7, 8, device=device), img_HWC[5:12, 6:14])
    np.testing.assert_array_equal(F.center_crop(img_HWC, 21, device=device), img_HWC[10:31, 14:35])
    wide = F.center_crop(img_HWC, (10, 53), device=device)
    np.testing.assert_array_equal(wide, np.pad(img_HWC[15:25], ((0, 0), (1, 2), (0, 0))))
    outside = F.crop(img_HWC, -2, 45, 10, 10, device=device)
    np.testing.assert_array_equal(outside[2:, :5], img_HWC[:8, 45:])
    assert not outside[:2].any()
    assert not outside[:, 5:].any()


def test_resized_crop(device: str) -> None:
    img_HWC = photo(40, 50)
    out = F.resized_crop(img_HWC, 3, 5.5, 20, 30.25, (24, 24), device=device)
    assert_same(out, run_pillow("RESIZED_CROP", img_HWC, 3, 5.5, 20, 30.25, 24, 24, flags=1), flags=0)
    across = F.resized_crop(img_HWC, -4, -4, 20, 20, (24, 24), device=device)
    cut = F.crop(img_HWC, -4, -4, 20, 20, device=device)
    np.testing.assert_array_equal(across, F.resize(cut, (24, 24), device=device))


def test_pad_modes(device: str) -> None:
    for mode in ("edge", "reflect", "symmetric"):
        expected = np.pad(photo(9, 8), ((2, 2), (3, 3), (0, 0)), mode=mode)
        np.testing.assert_array_equal(F.pad(photo(9, 8), (3, 2), padding_mode=mode, device=device), expected)


def test_grayscale(device: str) -> None:
    img_HWC = photo(9, 8)
    luma = run_pillow("GRAYSCALE", img_HWC)
    np.testing.assert_array_equal(F.rgb_to_grayscale(img_HWC, device=device), luma[..., :1])
    np.testing.assert_array_equal(F.grayscale(img_HWC, num_output_channels=3, device=device), luma)
    np.testing.assert_array_equal(F.grayscale(gray(9, 8), 3, device=device), gray(9, 8).repeat(3, axis=2))


def test_permute_channels(device: str) -> None:
    out = F.permute_channels(photo(9, 8), [2, 0, 1], device=device)
    np.testing.assert_array_equal(out, photo(9, 8)[..., [2, 0, 1]])
    np.testing.assert_array_equal(F.permute_channels(gray(), [0], device=device), gray())


def test_blurs_keep_a_constant_image_and_lower_contrast(device: str) -> None:
    flat = np.full((9, 10, 3), 77, np.uint8)
    assert (F.gaussian_blur(flat, 5, device=device) == 77).all()
    assert (F.motion_blur(flat, 5, 30.0, 0.5, device=device) == 77).all()
    assert (F.median_blur(flat, 5, device=device) == 77).all()
    assert F.gaussian_blur(noise(), (3, 5), (1.0, 2.0), device=device).std() < noise().std() / 2
    assert F.motion_blur(noise(), 9, 20.0, device=device).std() < noise().std() / 2


def test_gaussian_noise_is_a_function_of_its_seed(device: str) -> None:
    flat = np.full((50, 60, 3), 128, np.uint8)
    one, same, other = (F.gaussian_noise(flat, sigma=0.1, seed=s, device=device) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).mean() > 0.5
    assert abs(one.std() - 25.5) < 1


def test_erase(device: str) -> None:
    expected = photo(9, 8)
    expected[2:5, 3:] = (1, 2, 3)
    np.testing.assert_array_equal(F.erase(photo(9, 8), 2, 3, 3, 99, (1, 2, 3), device=device), expected)


@pytest.mark.parametrize("img", [photo(9, 8), gray(9, 8), gray(9, 8)[..., 0]], ids=["rgb", "gray", "flat"])
def test_normalize(img: np.ndarray, device: str) -> None:
    rgb = img.ndim == 3 and img.shape[2] == 3
    mean, std = ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)) if rgb else (0.4, 0.2)
    out = F.normalize(img, mean, std, device=device)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, (img / 255 - mean) / std, atol=2e-6)


def test_tensors_come_back_as_tensors(device: str) -> None:
    tensor = torch.from_numpy(photo(9, 8))
    out = F.invert(tensor, device=device)
    assert isinstance(out, torch.Tensor)
    np.testing.assert_array_equal(out.numpy(), 255 - photo(9, 8))
    assert F.rgb_to_grayscale(tensor, device=device).shape == (9, 8, 1)


def test_strided_and_read_only_images(device: str) -> None:
    view = photo(20, 20)[::2, ::-2]
    view.flags.writeable = False
    np.testing.assert_array_equal(F.equalize(view, device=device), run_pillow("EQUALIZE", view.copy()))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.invert(photo().astype(np.float64)), r"img.dtype='float64'; accepted: uint8, uint16 or float32"),
    (lambda: F.invert(torch.zeros(3, 3).half()), r"img.dtype='torch.float16'; accepted: uint8, uint16 or float32"),
    (lambda: F.invert("photo.jpg"), r"img='str'; accepted: an array"),
    (lambda: F.invert(photo()[..., :2]), r"img.shape=\(64, 80, 2\); accepted: .* 1 or 3 channels"),
    (lambda: F.invert(photo()[None]), r"img.shape=\(1, 64, 80, 3\); accepted"),
    (lambda: F.invert(photo()[:0]), r"img.shape=\(0, 80, 3\); accepted: at least one pixel"),
    (lambda: F.rotate(photo(), NAN), r"angle=nan; accepted: a number from -1e\+09 to"),
    (lambda: F.rotate(photo(), "30"), r"angle='30'; accepted: a number from -1e\+09 to"),
    (
        lambda: F.rotate(photo(), 30, "cubic"),
        r"interpolation='cubic'; accepted: one of 'nearest', 'bilinear', 'bicubic'",
    ),
    (
        lambda: F.rotate(photo(), 30, fill="red"),
        r"fill='red'; accepted: a level \(0..255\), or one",
    ),
    (lambda: F.rotate(photo(), 30, fill=(1, 2)), r"fill=\(1, 2\); accepted"),
    (lambda: F.rotate(photo(), 30, center=(1,)), r"center=\(1,\); accepted: None, or a pair \(x, y\)"),
    (lambda: F.affine(photo(), 0, (0, 0), 0, 0), r"scale=0; accepted: a number from 1e-09 to"),
    (lambda: F.affine(photo(), 0, 5, 1, 0), r"translate=5; accepted: \(x, y\)"),
    (lambda: F.perspective(photo(), [[0, 0]] * 3, None), r"startpoints=.*; accepted: four corners"),
    (lambda: F.perspective(photo(), [[0, NAN]] * 4, [[0, 0]] * 4), r"startpoints=.*; accepted: four corners"),
    (lambda: F.perspective(photo(), [[0, 0]] * 4, [[0, 0]] * 4), r"endpoints=.*; .*no three are in line"),
    (lambda: F.adjust_brightness(photo(), NAN), r"brightness_factor=nan; accepted: a number from -1e\+09 to 1e\+09"),
    (lambda: F.adjust_contrast(photo(), math.inf), r"contrast_factor=inf; accepted"),
    (lambda: F.adjust_hue(photo(), 0.6), r"hue_factor=0.6; accepted: a number from -0.5 to 0.5"),
    (lambda: F.adjust_gamma(photo(), -1), r"gamma=-1; accepted: a number from 0 to 1e\+09"),
    (lambda: F.posterize(photo(), 0), r"bits=0; accepted: an integer from 1 to 8"),
    (lambda: F.posterize(photo(), 2.5), r"bits=2.5; accepted: an integer from 1 to 8"),
    (lambda: F.solarize(photo(), "x"), r"threshold='x'; accepted: a number from -1e\+09 to 1e\+09"),
    (lambda: F.pad(photo(), -32), r"padding: cuts \(64, 64\) pixels off an image of \(64, 80\).* at least one pixel"),
    (lambda: F.pad(photo(), (1, 2, 3)), r"padding=\(1, 2, 3\); accepted: an integer, or two or four"),
    (lambda: F.pad(photo(), 1, padding_mode="around"), r"padding_mode='around'; accepted: one of 'constant', 'edge'"),
    (lambda: F.crop(photo(), 0, 0, 0, 5), r"height=0; accepted: an integer from 1 to 1,048,576"),
    (lambda: F.resize(photo(), (0, 5)), r"size=\(0, 5\); accepted: None, or a positive integer or a"),
    (lambda: F.resize(photo(), 5, max_size=5), r"max_size=5; accepted: None, or an integer above size \(5\) and up to"),
    (lambda: F.resize(photo(), 5, antialias=2), r"antialias=2; accepted: None, or one of True, False"),
    (lambda: F.resized_crop(photo(), 0, 0, 5.5, 5, 5, edges="crop"), r"edges='crop'; accepted: \"image\" for a box"),
    (lambda: F.erase(photo(), 0, 0, 2, 3, np.zeros((3, 2, 3))), r"v='shape \(3, 2, 3\)'; accepted: a level, 3 of"),
    (lambda: F.normalize(PIL.Image.new("L", (3, 3)), 0.5, 0.5), r"img='Image'; accepted: an array or a tensor"),
    (lambda: F.five_crop(photo(), 65), r"size=\(65, 65\); accepted: at most the image's \(64, 80\)"),
    (
        lambda: F.invert(torch.zeros(4, 9, 9, dtype=torch.uint8)),
        r"img.shape=\(4, 9, 9\); .*\[channels, height,",
    ),
    (lambda: F.resized_crop(photo(), 0, 0, NAN, 5, 5), r"accepted: a box in pixels"),
    (lambda: F.gaussian_blur(photo(), 4), r"kernel_size=4; accepted: an odd positive integer"),
    (lambda: F.gaussian_blur(photo(), 3, 0), r"sigma=0; accepted: None, or a number from 1e-09 to"),
    (lambda: F.median_blur(photo(), 9), r"kernel_size=9; accepted: an odd integer from 3 to 7"),
    (lambda: F.motion_blur(photo(), 5, 0, 2), r"direction=2; accepted: a number from -1 to 1"),
    (lambda: F.normalize(photo(), (0.5, 0.5), 1), r"mean=\(0.5, 0.5\); accepted: one number or 3"),
    (lambda: F.normalize(photo(), 0.5, 0), r"std=0; accepted: numbers greater than 0"),
    (lambda: F.permute_channels(photo(), (0, 1, 1)), r"permutation=\(0, 1, 1\); accepted: the channels 0..2"),
    (lambda: F.rgb_to_grayscale(photo(), 2), r"num_output_channels=2; accepted: 1, or 3 for equal"),
    (lambda: F.invert(photo(), device="tpu"), r"device: got 'tpu'; accepted: 'cpu'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals_name_argument_value_and_what_is_accepted(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("shape", [(3, 40_000, 3), (40_000, 3, 3), (2, 70_000, 1)])
def test_images_wider_than_batches_take(shape: tuple[int, int, int]) -> None:
    """Whole and nearest operations take them; places between their pixels have too few bits."""
    img_HWC = noise(*shape)
    calls = [
        lambda device: F.horizontal_flip(img_HWC, device=device),
        lambda device: F.rotate(img_HWC, 1.0, fill=7, device=device),
        lambda device: F.resize(img_HWC, [7, 9], device=device),
    ]
    if shape[0] < 40_000:  # its planes would be as wide as it is high: 5 GB, a page of which is touched for every row
        calls.append(lambda device: F.gaussian_blur(img_HWC, 5, 2.0, device=device))
    for call in calls:
        np.testing.assert_array_equal(call("cpu"), call("oracle"))
    with pytest.raises(
        ValueError, match=r"img.shape=\(\d+, \d+\); accepted: sides of at most 32,767 pixels, or interp"
    ):
        F.rotate(img_HWC, 1.0, interpolation="bilinear")


def test_gray_images_of_any_kind_become_rgb() -> None:
    gray_HW = photo(9, 12)[..., 0]
    three = np.repeat(gray_HW[..., None], 3, axis=2)
    np.testing.assert_array_equal(F.grayscale_to_rgb(gray_HW), three)
    np.testing.assert_array_equal(F.grayscale_to_rgb(gray_HW[..., None]), three)
    np.testing.assert_array_equal(F.grayscale_to_rgb(photo(9, 12)), photo(9, 12))
    assert F.grayscale_to_rgb(PIL.Image.fromarray(gray_HW)).mode == "RGB"
    assert transforms.functional is F
