"""``vg.from_albumentations`` reads what ``to_dict()`` of AlbumentationsX 2.5.1 and Albumentations 2.0.8 gives.

Levels and positions in these tests are those that the libraries give for the same draw.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning

DATA = Path(__file__).parent / "data"
RECORDED = DATA / "albumentationsx-2.5.1.json"
# Classes and arguments there: the transform here, the difference that is reported, the message of the refusal, or where
# points go.
TABLE: Any = json.loads((DATA / "albumentations-conversions.json").read_text())
RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)[..., None].repeat(3, axis=2)
LEVEL = RAMP[..., 0].astype(int)
NOISE = np.random.default_rng(0).integers(60, 200, (31, 40, 3), np.uint8)
QUIET = pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")


def one(name: str, p: float = 1.0, **arguments: Any) -> dict[str, Any]:
    return {"__class_fullname__": name, "p": p, **arguments}


def compose(*transforms: Any, **arguments: Any) -> dict[str, Any]:
    return {"__version__": "2.5.1", "transform": one("Compose", transforms=list(transforms), **arguments)}


def run(described: dict[str, Any], images: Any) -> np.ndarray[Any, Any]:
    """Outputs [N, H, W, C]."""
    output: Any = vg.Augmenter(vg.from_albumentations(described), seed=0)(images)
    return np.asarray(output.numpy().transpose(0, 2, 3, 1))


# -- what becomes of a class -----------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize(("name", "arguments", "expected"), TABLE["becomes"])
def test_the_transform_of_a_class(name: str, arguments: dict[str, Any], expected: Any) -> None:
    assert vg.from_albumentations(one(name, **arguments)) == T.from_dict(expected)


@pytest.mark.parametrize(("name", "arguments", "targets", "message"), TABLE["close"])
def test_what_is_close_is_said(name: str, arguments: dict[str, Any], targets: dict[str, Any], message: str) -> None:
    with pytest.warns(ConversionWarning, match=rf"transforms\[0\] {name}: close: .*{message}") as caught:
        vg.from_albumentations(compose(one(name, **arguments), **targets))
    assert caught[0].filename == __file__


@QUIET
def test_differences_of_targets_are_said_where_there_are_some() -> None:
    for name, arguments, targets, message in TABLE["close"]:
        _, report = vg.from_albumentations(compose(one(name, **arguments)), report=True)
        assert bool(re.search(message, str(report))) != bool(targets), name


@pytest.mark.parametrize(
    ("source", "message"),
    [
        *((compose(described), message) for described, message in TABLE["refused"]),
        ({"transform": 3}, "compose: got 3; accepted: an object"),
        (4, "compose: got 4; accepted: an albumentations.Compose"),
        (T.Resize(3), "compose: got Resize"),
    ],
)
def test_what_cannot_be_converted_is_named(source: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_albumentations(source)


# -- pixels and positions --------------------------------------------------------------------------------------------


def pad(level: np.ndarray[Any, Any], sides: Any, mode: Any = "constant") -> np.ndarray[Any, Any]:
    return np.pad(level, sides, mode=mode)


def brightness(by_max: bool, shift: float, contrast: float) -> tuple[str, dict[str, Any], Any]:
    """``c x + b``, by a share of 255 or of the mean: nothing is cut off in between."""
    limits = {"brightness_limit": [shift] * 2, "contrast_limit": [contrast] * 2, "brightness_by_max": by_max}
    return "RandomBrightnessContrast", limits, (1 + contrast) * LEVEL + shift * (255.0 if by_max else LEVEL.mean())


@QUIET
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Solarize", {"threshold_range": [0.5, 0.5]}, np.where(LEVEL < 127.5, LEVEL, 255 - LEVEL)),
        ("Posterize", {"num_bits": [3, 3]}, LEVEL & 0xE0),
        ("Transpose", {}, LEVEL.T),
        ("PixelDropout", {"dropout_prob": 1.0, "drop_value": 255}, np.full_like(LEVEL, 255)),
        ("RGBShift", {f"{channel}_shift_range": [20, 20] for channel in "rgb"}, LEVEL + 20),
        ("Crop", {"x_min": 3, "y_min": 5, "x_max": 10, "y_max": 12}, LEVEL[5:12, 3:10]),
        ("CropAndPad", {"px": [-5, 7, -3, 2], "keep_size": False}, pad(LEVEL[5:-3], [(0, 0), (2, 7)])),
        *((brightness(by_max, shift, contrast))
          for by_max in (True, False) for shift in (-0.2, 0.2) for contrast in (-0.2, 0.2)),
        *(("PadIfNeeded", {"min_height": 25, "min_width": 21, "position": position, "border_mode": 4},
           pad(LEVEL, [(top, 9 - top), (left, 5 - left)], "reflect"))
          for position, top, left in (("center", 4, 2), ("top_left", 0, 0), ("bottom_right", 9, 5))),
        *(("Pad", {"padding": [2, 3], "border_mode": mode}, pad(LEVEL, [(3, 3), (2, 2)], border))
          for mode, border in enumerate(("constant", "edge", "symmetric", "wrap", "reflect"))),
        *(("Affine", {"translate_px": {"x": [40, 40], "y": [-5, -5]}, "border_mode": mode},
           pad(LEVEL, [(0, 5), (40, 0)], border)[5:, :16])
          for mode, border in ((1, "edge"), (2, "symmetric"), (3, "wrap"), (4, "reflect"))),
    ],
)  # fmt: skip
def test_levels_are_the_librarys(name: str, arguments: dict[str, Any], expected: Any) -> None:
    tolerance = 2 if name == "RandomBrightnessContrast" else 0
    levels = run(one(name, **arguments), [RAMP])[0, ..., 0].astype(int)
    np.testing.assert_allclose(levels, np.clip(expected, 0, 255), rtol=0, atol=tolerance)


@QUIET
def test_filters_are_the_librarys() -> None:
    around = np.lib.stride_tricks.sliding_window_view(NOISE.astype(float), (3, 3), axis=(0, 1))
    mean, inner = around.mean(axis=(-2, -1)), NOISE[1:-1, 1:-1]
    alpha, light = 0.3, 0.7
    sharp = np.clip((1 - alpha) * inner + alpha * ((9 + light) * inner - 9 * mean), 0, 255)
    for described, expected, tolerance in (
        (one("Blur", blur_limit=[3, 3]), mean, 0.51),
        (one("Sharpen", alpha=[alpha] * 2, lightness=[light] * 2), sharp, 6),
    ):
        np.testing.assert_allclose(run(described, [NOISE])[0, 1:-1, 1:-1], expected, rtol=0, atol=tolerance)


# Where the libraries take (0, 0), (47, 0), (0, 39) and (30, 10) of an image of 48 x 40 pixels.
@QUIET
@pytest.mark.parametrize(("name", "arguments", "expected"), TABLE["points"])
def test_maps_are_the_librarys(name: str, arguments: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    points = [(0, 0), (47, 0), (0, 39), (30, 10)]
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": points}
    augmenter = vg.Augmenter(vg.from_albumentations(one(name, **arguments)), seed=0)
    for batch in (1, 3):  # one image has a code path of its own
        result = augmenter([sample] * batch, targets=vg.Targets(point_origin="center"))[-1]
        np.testing.assert_allclose(result["keypoints"], expected, atol=1e-3)


@QUIET
def test_axes_of_shift_scale_rotate_have_factors_of_their_own() -> None:
    limits = {"scale_limit": [-0.5, 0.5], "rotate_limit": [0, 0], "shift_limit": [0, 0]}
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": [(23.5, 19.5), (27.5, 23.5)]}
    augmenter = vg.Augmenter(vg.from_albumentations(one("ShiftScaleRotate", **limits)))
    results = augmenter([sample] * 200, targets=vg.Targets(point_origin="center"))
    factors = np.array([(result["keypoints"][1] - result["keypoints"][0]) / 4 for result in results])
    assert abs(np.corrcoef(factors.T)[0, 1]) < 0.25
    np.testing.assert_allclose([factors.min(), factors.max()], [0.5, 1.5], atol=0.03)


@QUIET
def test_normalizing_on_another_scale() -> None:
    described = compose(one("Normalize", mean=[0.5] * 3, std=[0.25] * 3, max_pixel_value=127.5))
    np.testing.assert_allclose(run(described, [RAMP])[0], (RAMP / 127.5 - 0.5) / 0.25, rtol=1e-5, atol=1e-6)


# -- chances ---------------------------------------------------------------------------------------------------------

FLIP, NOTHING = one("HorizontalFlip"), one("NoOp")


def chosen(name: str, *transforms: Any) -> dict[str, Any]:
    """A OneOf of nothing and a composition, which keeps its chance of 0.2."""
    return one("OneOf", transforms=[one(name, 0.2, transforms=list(transforms)), {**NOTHING, "p": 0.2}])


@QUIET
@pytest.mark.parametrize(
    ("described", "share"),
    [
        (one("RandomRotate90"), 0.75),
        (chosen("SomeOf", FLIP), 0.1),
        (chosen("RandomOrder", FLIP), 0.1),
        (chosen("OneOrOther", FLIP, NOTHING), 0.1),
        (one("TimeMasking", num_masks_x=[0, 1], mask_x_length=[0, 1], time_mask_param=1), 0.25),
        (one("FrequencyMasking", freq_mask_param=3), 0.75),
    ],
)
def test_the_share_of_images_that_change(described: dict[str, Any], share: float) -> None:
    image = 1 + np.arange(147, dtype=np.uint8).reshape(7, 7, 3)
    changed = (run(described, [image] * 1000) != image).any(axis=(1, 2, 3))
    assert abs(changed.mean() - share) < 0.06


@QUIET
def test_bands_are_as_long_as_drawn() -> None:
    described = one("XYMasking", num_masks_x=[1, 1], mask_x_length=[5, 5])
    both = {"num_masks_y": [1, 1], "mask_y_length": [2, 4]}
    for more, lines in (({}, {0}), (both, {2, 3, 4})):
        dark = run({**described, **more}, [np.full((30, 50, 3), 9, np.uint8)] * 20)[..., 0] == 0
        assert set(dark.all(axis=1).sum(axis=1).tolist()) == {5}
        assert set(dark.all(axis=2).sum(axis=1).tolist()) == lines


@QUIET
def test_grids_are_shares_of_the_image() -> None:
    grid = run(one("GridDropout", ratio=0.5), [np.full((80, 200, 3), 255, np.uint8)] * 50)
    assert 0.23 < (grid == 0).mean() < 0.27


# -- pipelines, files and reports ------------------------------------------------------------------------------------


@QUIET
def test_a_recorded_pipeline() -> None:
    """Its file, its dict and an object with it convert to the same."""
    described = json.loads(RECORDED.read_text())

    class Pipeline:
        def to_dict(self) -> dict[str, Any]:
            return dict(described)

    for source in (RECORDED, str(RECORDED), described, described["transform"], Pipeline()):
        assert json.loads(json.dumps(vg.from_albumentations(source).to_dict())) == TABLE["pipeline"]


def test_arguments_are_in_one_order_in_every_process() -> None:
    """So that the text of a saved policy is, whatever the hashes of names are."""
    made: Any = vg.from_albumentations(one("PadIfNeeded"))
    sides = ["min_height", "min_width", "pad_height_divisor", "pad_width_divisor"]
    assert list(made.constants) == [*sides, "position", "fill", "padding_mode"]


def test_files_that_hold_something_else(tmp_path: Path) -> None:
    for text in ("", "[1]", "{", "[" * 100_000):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(ConversionError, match=r"a\.json: got"):
            vg.from_albumentations(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        vg.from_albumentations(tmp_path / "none.json")


def test_one_report_of_a_pipeline() -> None:
    inner = one("OneOf", transforms=[one("VerticalFlip"), one("Superpixels")])
    described = one("Compose", transforms=[FLIP, one("ISONoise"), one("Equalize"), inner])
    transform: Any
    with pytest.warns(ConversionWarning) as caught:
        transform, report = vg.from_albumentations(described, report=True)
    assert len(caught) == 1
    assert report.converted == ("transforms[0] HorizontalFlip", "transforms[3].transforms[0] VerticalFlip")
    assert report.refused["transforms[3].transforms[1] Superpixels"] == "Posterize or Downscale"
    assert list(report.counterparts) == list(report.approximate) == ["transforms[2] Equalize"]
    assert str(caught[0].message).splitlines() == [
        "2 the same, 1 close, 2 refused:",
        "  transforms[2] Equalize: close: 6 levels on average, 50 at most: Pillow's Equalize here",
        "  transforms[1] ISONoise: refused: use GaussNoise",
        "  transforms[3].transforms[1] Superpixels: refused: use Posterize or Downscale",
    ]
    assert [type(step).__name__ for step in transform.transforms] == ["RandomHorizontalFlip", "Equalize", "OneOf"]
    with pytest.raises(ConversionError, match=r"ISONoise: .*; refused as well: transforms\[3\].transforms\[1\] Sup"):
        vg.from_albumentations(described)
