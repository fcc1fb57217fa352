"""``Function``: what ``F`` does to an image, in a batch, at numbers that differ from row to row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from variegate import transforms as T
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
    values = [("$" + key, "given", f"the {key}") for key in drawn]
    transform = T.TracedPipeline(
        [T.Function(name, _spelled(name, {**constants, **{key: "$" + key for key in drawn}}))], values
    )
    out = vg.Augmenter(transform, layout="NHWC")(
        IMAGES, ids=[0, 1], conditions={f"the {key}": entries for key, entries in drawn.items()}
    )
    for row, image in enumerate(IMAGES):
        arguments = _spelled(name, {**constants, **{key: entries[row] for key, entries in drawn.items()}})
        expected = getattr(F, name)(image, **arguments)
        np.testing.assert_array_equal(np.asarray(out[row]), np.asarray(expected).reshape(out[row].shape))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("turn", {}, "Function: function='turn'; accepted: one of adjust_brightness, "),
        ("rotate", {}, r"Function: arguments\['angle'\]=None; accepted: a value: F.rotate requires it"),
        ("rotate", {"degrees": 3}, r"arguments\['degrees'\]=3; accepted: arguments of F.rotate: angle, interpolation"),
        ("rotate", {"angle": "x"}, r"Function: angle='x'; accepted: a number from"),
        ("adjust_hue", {"hue_factor": 3}, r"hue_factor=3; accepted: a number from -0.5 to 0.5"),
        ("gaussian_noise", {"seed": 3}, r"arguments\['seed'\]=3; accepted: nothing: noise is drawn from"),
        ("crop", {"top": 0, "left": 0, "height": 0, "width": 3}, "height=0; accepted: an integer from 1"),
        ("invert", 3, "arguments=3; accepted: a dict of the arguments of F.invert"),
    ],
)
def test_bad_arguments_are_named(name: str, arguments: Any, message: str) -> None:
    with pytest.raises(T.ArgumentError, match=message):
        T.Function(name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "value", "message"),
    [
        (
            "adjust_hue",
            {"hue_factor": "$v"},
            0.75,
            r"F.adjust_hue: hue_factor=0.75; accepted: a number from -0.5 to 0.5",
        ),
        ("posterize", {"bits": "$v"}, 3.5, r"F.posterize: bits=3.5; accepted: an integer from 1 to 8"),
        ("crop", {"top": "$v", "left": 0, "height": 3, "width": 3}, 0.5, r"F.crop: top=0.5; accepted: whole numbers"),
        (
            "affine",
            {"angle": 0, "translate": [0, "$v"], "scale": 1, "shear": 0},
            np.inf,
            r"F.affine: translate=inf; acc",
        ),
        ("resize", {"size": "$v"}, -3, r"F.resize: size=-3; accepted: a positive integer"),
        (
            "rotate",
            {"angle": "$v"},
            "x",
            r"F.rotate: angle='x'; accepted: a number, as it differs from sample to sample",
        ),
    ],
)
def test_numbers_that_are_drawn_are_checked(name: str, arguments: Any, value: Any, message: str) -> None:
    transform = T.TracedPipeline([T.Function(name, arguments)], [("$v", "given", "v")])
    with pytest.raises(T.ArgumentError, match=message):
        vg.Augmenter(transform).program([(9, 9)], ids=[0], conditions={"v": [value]})


def test_without_a_pipeline_its_values_are_missing() -> None:
    with pytest.raises(T.ArgumentError, match=r"F.rotate: arguments=.*; accepted: a TracedPipeline around it that def"):
        vg.Augmenter(T.Function("rotate", {"angle": "$v"})).program([(9, 9)], ids=[0])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("perspective", {"startpoints": None, "endpoints": None, "coefficients": (1, "$a", 0, 0, 1, "$b", 0, 0)}),
        ("pad", {"padding": (1, "$b", -2, 3), "padding_mode": "edge"}),
        ("resize", {"size": ("$b", 9)}),
    ],
)
def test_written_for_a_batch_as_row_by_row(
    function: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [["$a", "uniform", 0.0, 0.3], ["$b", "randint", 1, 6]]
    augmenter = vg.Augmenter(T.TracedPipeline([T.Function(function, arguments)], values), seed=0)
    images = [np.arange(30 * (9 + i), dtype=np.uint8).reshape(9 + i, 10, 3) for i in range(4)]
    written = augmenter(images, ids=range(4))
    monkeypatch.setattr("variegate.ops.traced.function.write", lambda *_: False)
    assert all(torch.equal(one, other) for one, other in zip(written, augmenter(images, ids=range(4)), strict=True))
