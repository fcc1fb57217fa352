"""Functions of ``F`` in a pipeline do what they do to an image, at numbers that differ from sample to sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate.transforms import functional as F

IMAGES = [np.random.default_rng(i).integers(0, 256, size, np.uint8) for i, size in enumerate([(17, 31, 3), (20, 9, 1)])]
# function, constant arguments, and numbers that are drawn: for each a list of one per image.
CASES: list[tuple[str, dict[str, Any], dict[str, list[Any]]]] = [
    ("rotate", {"fill": 7}, {"angle": [30.5, -4]}),
    ("rotate", {"expand": True, "interpolation": "bilinear"}, {"angle": [30.5, 90]}),
    ("rotate", {"center": (3, 4)}, {"angle": [12, 180]}),
    ("affine", {"translate": (1, 2), "scale": 1.5, "shear": 3}, {"angle": [5.5, -8]}),
    (
        "affine",
        {"angle": 3, "shear": (1, 2), "center": (1, 1), "fill": (9, 8, 7)},
        {"scale": [0.5, 1.25], "tx": [2, 3]},
    ),
    ("perspective", {"startpoints": [(0, 0), (9, 0), (9, 9), (0, 9)]}, {"corner": [1, 2.5]}),
    ("shear_x", {}, {"shear": [0.25, -0.5]}),
    ("translate_y", {"interpolation": "bicubic"}, {"pixels": [1.5, -3]}),
    ("pad", {"padding_mode": "reflect"}, {"padding": [1, 3]}),
    ("crop", {"width": 6, "left": -2}, {"top": [1, 3], "height": [4, 30]}),
    ("center_crop", {}, {"output_size": [5, 30]}),
    ("resize", {"interpolation": "bicubic"}, {"size": [8, 25]}),
    ("resized_crop", {"left": 1.5, "height": 5, "width": 4, "size": (6, 7)}, {"top": [0.5, 12]}),
    ("resized_crop", {"height": 5, "width": 4, "size": (6, 7)}, {"top": [0.5, 3], "left": [1, 2.5]}),
    *[(f"adjust_{n}", {}, {f"{n}_factor": [0.5, 1.75]}) for n in ("brightness", "contrast", "saturation", "sharpness")],
    ("adjust_hue", {}, {"hue_factor": [-0.25, 0.5]}),
    ("adjust_gamma", {"gain": 0.9}, {"gamma": [0.5, 2]}),
    ("posterize", {}, {"bits": [3, 8]}),
    ("solarize", {}, {"threshold": [100.5, 256]}),
    ("solarize_add", {"threshold": 99}, {"addition": [10, -20]}),
    ("gaussian_blur", {"kernel_size": (3, 5)}, {"sigma": [0.5, 2]}),
    ("motion_blur", {"angle": 30}, {"kernel_size": [3, 5], "direction": [0, 0.5]}),
    ("median_blur", {}, {"kernel_size": [3, 7]}),
    ("erase", {"i": 1, "v": (1, 2, 3)}, {"j": [2, 5], "h": [3, 100], "w": [4, 5]}),
    *[(name, {}, {}) for name in ("hflip", "vertical_flip", "invert", "autocontrast", "equalize")],
    ("solarize_add", {"addition": 1.5}, {}),
]


def _spelled(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Numbers within lists."""
    if "tx" in arguments:
        arguments["translate"] = [arguments.pop("tx"), -1]
    if "corner" in arguments:
        corner = arguments.pop("corner")
        arguments["endpoints"] = [(corner, corner), (8, 0), (9, 9), (0, 8)]
    return arguments


@pytest.mark.parametrize(("name", "constants", "drawn"), CASES, ids=lambda value: value if type(value) is str else "")
def test_it_is_the_function(name: str, constants: dict[str, Any], drawn: dict[str, list[Any]]) -> None:
    def arguments(row: int) -> dict[str, Any]:
        return _spelled(name, {**constants, **{key: entries[row] for key, entries in drawn.items()}})

    pipeline = vg.pipeline(lambda image, row: getattr(F, name)(image, **arguments(row)))
    out = vg.Augmenter(pipeline, layout="NHWC")(IMAGES, ids=[0, 1], conditions={"row": [0, 1]})
    for row, image in enumerate(IMAGES):
        expected = getattr(F, name)(image, **arguments(row))
        np.testing.assert_array_equal(np.asarray(out[row]), np.asarray(expected).reshape(out[row].shape))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda image: F.rotate(image, "x"), r"angle='x'; accepted: a number from"),
        (lambda image: F.adjust_hue(image, vg.uniform(3, 4)), r"hue_factor=3.*; accepted: a number from -0.5 to 0.5"),
        (lambda image: F.posterize(image, 3.5), r"bits=3.5; accepted: an integer from 1 to 8"),
        (lambda image: F.crop(image, 0, 0, 0, 3), r"height=0; accepted: an integer from 1"),
        (lambda image: F.gaussian_noise(image, seed=3), r"seed=3; accepted: nothing in a pipeline"),
        (lambda image: F.invert(image, device="oracle"), r"device='oracle'; accepted: nothing: the Augmenter has a"),
        (lambda image: F.normalize(image, 0.5, 0.5), r"F.normalize of an image of a pipeline; accepted: T.Normalize"),
        (lambda image: F.grayscale_to_rgb(image), "this function depends on pixels"),
        (lambda image: F.erase(image, 0, 0, 3, 3, np.zeros((3, 3, 3))), "this function depends on pixels"),
    ],
)
def test_what_functions_do_not_take(function: Any, message: str) -> None:
    with pytest.raises(vg.PipelineError, match=rf"{__file__}:\d+: `.*`: pipeline, sample 0: {message}"):
        vg.Augmenter(vg.pipeline(function)).program([(9, 9)], ids=[0])


def test_several_images_of_one() -> None:
    pipeline = vg.pipeline(lambda image, which: F.ten_crop(image, (5, 6))[which])
    images = [IMAGES[0]] * 10
    out = vg.Augmenter(pipeline, layout="NHWC")(images, ids=range(10), conditions={"which": range(10)})
    for made, wanted in zip(out, F.ten_crop(IMAGES[0], (5, 6)), strict=True):
        np.testing.assert_array_equal(np.asarray(made), wanted)


def test_grayscale_and_displacements() -> None:
    flow = np.full((17, 31, 2), 0.125, np.float32)
    pipeline = vg.pipeline(lambda image: F.elastic(F.rgb_to_grayscale(image, 3), flow))
    out = vg.Augmenter(pipeline, layout="NHWC")([IMAGES[0]])[0]
    np.testing.assert_array_equal(np.asarray(out), F.elastic(F.rgb_to_grayscale(IMAGES[0], 3), flow))
