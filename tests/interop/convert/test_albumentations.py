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

RECORDED = Path(__file__).parent / "data" / "albumentationsx-2.5.1.json"
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

SHIFTS = {"r_shift_limit": [0.1, 0.1], "g_shift_limit": [0, 0], "b_shift_limit": [-9, -9]}
NO_SHIFTS = {f"{name}_shift_range": [0, 0] for name in ("hue", "sat", "val")}
NOISE_RANGES = {"noise_params": {"ranges": [[0.2, 0.3], [-0.2, 0.1], [-0.5, -0.4]]}}
UNSHARP = {"blur_range": [3, 5], "sigma_range": [0, 1], "alpha_range": [0.2, 0.3], "threshold": 4}
PAIR = {"interpolation_pair": {"downscale": 3, "upscale": 4}}
CONVERTED = [
    ("SmallestMaxSize", {"max_size": [10, 20], "interpolation": 2}, T.SmallestMaxSize([10, 20], "bicubic")),
    ("LongestMaxSize", {"max_size": [10, 20], "interpolation": 2}, T.LongestMaxSize([10, 20], "bicubic")),
    ("LetterBox", {"size": [8, 9], "fill": 7, "position": "center"}, T.LetterBox((8, 9), fill=7)),
    ("Downscale", {"scale_range": [0.2, 0.4]}, T.Downscale((0.2, 0.4))),
    ("Downscale", {"scale_range": [0.2, 0.4], **PAIR}, T.Downscale((0.2, 0.4), "bilinear", "lanczos")),
    ("CLAHE", {"clip_limit": [2, 3], "tile_grid_size": [4, 5]}, T.CLAHE((2, 3), (4, 5))),
    ("MedianBlur", {"blur_limit": [3, 6]}, T.MedianBlur((3, 7))),
    ("Emboss", {"alpha": [0.1, 0.2], "strength": [0.3, 0.4]}, T.Emboss((0.1, 0.2), (0.3, 0.4))),
    ("UnsharpMask", UNSHARP, T.UnsharpMask((3, 5), (0, 1), (0.2, 0.3), 4)),
    ("PixelDropout", {"dropout_prob": 0.1, "drop_value": 0}, T.PixelDropout(0.1)),
    ("ImageCompression", {"quality_range": [20, 90]}, T.JPEG((20, 90))),
    ("ImageCompression", {}, T.JPEG((99, 100))),
    ("ToFloat", {"max_value": 255}, T.ToDtype("float32", scale=True)),
    ("Erasing", {"scale": [0.1, 0.2], "ratio": [0.5, 4.0], "fill": "random"},
     T.RandomErasing(1.0, (0.1, 0.2), (0.25, 2.0), "random")),
    ("GaussianBlur", {"blur_range": [3, 7], "sigma_range": [0.5, 2.0]},
     T.OneOf([T.GaussianBlur(size, (0.5, 2.0)) for size in (3, 5, 7)])),
    ("GridDistortion", {"num_steps": 4, "distort_range": [-0.2, 0.1], "fill": 7},
     T.GridDistortion(4, (-0.2, 0.1), fill=7)),
    ("OpticalDistortion", {"distort_limit": [-0.1, 0.1], "mode": "camera"}, T.OpticalDistortion(0.1)),
    ("ThinPlateSpline", {"scale_range": [0.1, 0.2], "map_resolution_range": [1.0, 1.0]}, T.ThinPlateSpline((0.1, 0.2))),
    ("AdditiveNoise", NOISE_RANGES | {"per_channel": True}, T.RGBShift((51, 76), (-51, 26), (-128, -102))),
    ("AdditiveNoise", {}, T.RGBShift((-26, 26), (-26, 26), (-26, 26))),
    ("RGBShift", SHIFTS, T.RGBShift((26, 26), (0, 0), (-9, -9))),
    ("HueSaturationValue", NO_SHIFTS, T.Identity()),
    ("CoarseDropout", {"hole_height_range": [0.5, 1.0], "hole_width_range": [0.5, 1.0]},
     T.CoarseDropout((1, 2), (0, 1))),
    ("CoarseDropout", {"hole_height_range": [0.5, 0.9], "hole_width_range": [0.5, 0.9]},
     T.CoarseDropout((1, 2), (0.5, 0.9))),
    ("Rotate", {"limit": [-9, 9], "border_mode": 4}, T.Rotate((-9, 9), "bilinear", padding_mode="reflect")),
    ("BBoxSafeRandomCrop", {"erosion_rate": 0.1}, T.RandomBoxSafeCrop(0.1)),
    ("RandomSizedBBoxSafeCrop", {"height": 30, "width": 40}, T.RandomResizedBoxSafeCrop((30, 40))),
    ("AtLeastOneBBoxRandomCrop", {"p": 0.5, "height": 3, "width": 4, "erosion_factor": 0.2},
     T.RandomApply([T.RandomAtLeastOneBoxCrop((3, 4), 0.2)], p=0.5)),
]  # fmt: skip


@QUIET
@pytest.mark.parametrize(("name", "arguments", "expected"), CONVERTED)
def test_the_transform_of_a_class(name: str, arguments: dict[str, Any], expected: T.Transform) -> None:
    assert vg.from_albumentations(one(name, **arguments)) == expected


BOXES = {"bbox_params": {"coord_format": "coco"}}
POINTS = {"keypoint_params": {"coord_format": "xy", "remove_invisible": False}}
OLD_POINTS = {"keypoint_params": {"format": "xy", "remove_invisible": False}}
# A class, its arguments, the pipeline's targets, and the difference that is reported.
CLOSE: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("Resize", {"height": 8, "width": 8}, {}, "5 levels on average .*antialiased"),
    ("HueSaturationValue", {"hue_shift_range": [-20, 20]}, {}, "10 levels at most: hues have 256 steps"),
    ("HueSaturationValue", {"hue_shift_limit": [0, 0], "val_shift_limit": [0, 0]}, {}, "up to a third of the"),
    ("Equalize", {"mode": "cv"}, {}, "6 levels on average, 50 at most"),
    ("GaussNoise", {"std_range": [0.1, 0.2], "per_channel": False}, {}, "channels differ by 44 levels"),
    ("Downscale", {"scale_range": [0.5, 0.5]}, {}, "half of the reduction"),
    ("ImageCompression", {"quality_range": [20, 90]}, {}, "up to 2.5 levels on average"),
    ("Sharpen", {}, {}, "up to 2 levels on average"),
    ("ElasticTransform", {"sigma": 9}, {}, "2 levels on average .*within sigma=9 pixels"),
    ("Rotate", {"fill_mask": 255}, {}, r"vg.Targets\(mask_fill=255\)"),
    ("AtLeastOneBBoxRandomCrop", {"height": 3, "width": 4}, {}, "1 pixel at most"),
    ("CoarseDropout", {}, BOXES, "boxes do not change"),
    ("Rotate", {"border_mode": 4}, BOXES, "not mirrored into the border"),
    ("Rotate", {"border_mode": 4}, POINTS, "not mirrored into the border"),
    ("Rotate", {"rotate_method": "ellipse"}, BOXES, "1.41 times as wide"),
    ("SafeRotate", {}, BOXES, "0.5 pixels of boxes"),
    ("Resize", {"height": 8, "width": 8}, OLD_POINTS, "0.125 pixels of key points"),
]


@pytest.mark.parametrize(("name", "arguments", "targets", "message"), CLOSE)
def test_what_is_close_is_said(name: str, arguments: dict[str, Any], targets: dict[str, Any], message: str) -> None:
    with pytest.warns(
        ConversionWarning, match=rf"transforms\[0\] {name}: .*{message.removeprefix('close: ')}"
    ) as caught:
        vg.from_albumentations(compose(one(name, **arguments), **targets))
    assert caught[0].filename == __file__


@QUIET
def test_differences_of_targets_are_said_where_there_are_some() -> None:
    for name, arguments, targets, message in CLOSE:
        _, report = vg.from_albumentations(compose(one(name, **arguments)), report=True)
        assert bool(re.search(message, str(report))) != bool(targets), name


REFUSED: list[tuple[Any, str]] = [
    (one("Vignetting"), r"transforms\[0\] Vignetting: got 'Vignetting'; accepted: Illumination"),
    (one("FDA"), "accepted: ColorJitter or RandomToneCurve"),
    (one("RandomSnow"), "accepted: .*vg.transforms.RandomSnow"),
    (one("Unheard"), r"transforms\[0\] Unheard: got 'Unheard'; accepted: one of AdditiveNoise, .*Affine"),
    (one("Rotate", angle_range={}), r"transforms\[0\] Rotate.angle_range: got {}; accepted: a pair"),
    (one("my.Own"), r"transforms\[0\] Own: got 'my.Own'; .*CustomOp"),
    (one("Rotate", border_mode=5), r"transforms\[0\] Rotate.border_mode: got 5; accepted: 0 \(constant\), 1"),
    (one("Rotate", crop_border=True), r"Rotate.crop_border: got True; accepted: False"),
    (one("HorizontalFlip", p=2), r"transforms\[0\] HorizontalFlip.p: got 2; .*from 0 to 1"),
    (one("Normalize", p=0.5), r"transforms\[0\] Normalize.p: got 0.5; accepted: 1"),
    (one("OneOf", transforms=[one("Normalize")]), r"transforms\[0\].transforms\[0\] Normalize: .*main"),
    (one("MedianBlur", blur_range=[3, 9]), r"MedianBlur.blur_range: got \(3, 9\); accepted: an odd"),
    (one("ElasticTransform", control_grid_shape=[7, 6]), "accepted: GridDistortion or ThinPlateSpline"),
    (one("ThinPlateSpline"), "ThinPlateSpline: got 'a spline of version 2.0.*; accepted: that of Albu"),
    (one("ThinPlateSpline", map_resolution_range=[0.5, 1.0]), "map_resolution_range"),
    (one("RandomGamma", gamma_range=50), "RandomGamma.gamma_range: got 50; accepted: a pair"),
    (one("SomeOf", replace=True, transforms=[one("NoOp")]), "SomeOf.replace: got True"),
    (one("XYMasking", num_masks_x=[1, 3], mask_x_length=[5, 5]), r"num_masks_x_range: got \(1, 3\); accepted: one"),
    (3, r"transforms\[0\]: got 3; accepted: an object with"),
    # Names from before version 2.0.
    *((one(name, **{older: 7}), f"{name}.{older}: got 7; accepted: arguments of Albumentations 2.0")
      for name, older in (("CoarseDropout", "fill_value"), ("Rotate", "value"), ("ImageCompression", "quality_lower"),
                          ("Solarize", "threshold"), ("HorizontalFlip", "always_apply"))),
    *((one(name, fill_mask=255), f"{name}.fill_mask: got 255; accepted: None: masks are not erased")
      for name in ("CoarseDropout", "GridDropout", "Erasing", "XYMasking")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "message"),
    [
        *((compose(described), message) for described, message in REFUSED),
        ({"transform": 3}, "compose: got 3; accepted: an object"),
        (4, "compose: got 4; accepted: an albumentations.Compose"),
        (T.Resize(3), "compose: got Resize"),
    ],
)
def test_what_cannot_be_converted_is_named(source: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_albumentations(source)


# -- pixels and positions --------------------------------------------------------------------------------------------


def medians(level: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of 3 x 3 levels, as cv2's medianBlur."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(level, 1, mode="edge"), (3, 3))
    return np.asarray(np.median(around, axis=(2, 3)))


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
        ("MedianBlur", {"blur_range": [3, 3]}, medians(LEVEL)),
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


@QUIET
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    # Where 2.0.8 and 2.5.1 take (0, 0), (47, 0), (0, 39) and (30, 10) of an image of 48 x 40 pixels.
    [
        ("Affine", {"shear": {"x": [20, 20], "y": [-15, -15]}},
         [(7.0974, -6.2968), (54.0974, 6.2968), (-7.0974, 32.7032), (33.4577, 11.7417)]),
        ("Affine", {"shear": {"x": [25, 25], "y": [10, 10]}, "rotate": [20, 20], "scale": [1.2, 1.2]},
         [(-5.2466, 13.2399), (56.7471, -15.3951), (-9.7471, 54.3951), (33.1699, 5.5148)]),
        ("Affine", {"scale": {"x": [1.2, 1.2], "y": [0.8, 0.8]}, "keep_ratio": False,
                    "translate_px": {"x": [7, 7], "y": [-5, -5]}},
         [(2.3, -1.1), (58.7, -1.1), (2.3, 30.1), (38.3, 6.9)]),
        ("Affine", {"scale": {"x": [1.2, 1.2], "y": [0.9, 0.9]}, "keep_ratio": False, "rotate": [25, 25],
                    "shear": {"x": [10, 10], "y": [-5, -5]}, "translate_percent": {"x": [0.1, 0.1], "y": [-0.2, -0.2]}},
         [(-4.7717, 4.6272), (50.547, -14.7364), (4.453, 37.7364), (32.9034, 0.757)]),
        ("ShiftScaleRotate", {"rotate_range": [90, 90], "scale_range": [0, 0], "shift_range": [0, 0]},
         [(4, 43), (4, -4), (43, 43), (14, 13)]),
        ("Rotate", {"angle_range": [90, 90]}, [(4, 43), (4, -4), (43, 43), (14, 13)]),
        ("SafeRotate", {"limit": [90.0, 90.0], "rotate": [90.0, 90.0], "fit_output": True},
         [(0.6, 39.5833), (0.6, 0.4167), (47.4, 39.5833), (12.6, 14.5833)]),
    ],
)  # fmt: skip
def test_maps_are_the_librarys(name: str, arguments: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    points = [(0, 0), (47, 0), (0, 39), (30, 10)]
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": points}
    augmenter = vg.Augmenter(vg.from_albumentations(one(name, **arguments)), seed=0)
    for batch in (1, 3):  # one image has a code path of its own
        result = augmenter([sample] * batch, targets=vg.Targets(point_origin="centre"))[-1]
        np.testing.assert_allclose(result["keypoints"], expected, atol=1e-3)


@QUIET
def test_axes_of_shift_scale_rotate_have_factors_of_their_own() -> None:
    limits = {"scale_limit": [-0.5, 0.5], "rotate_limit": [0, 0], "shift_limit": [0, 0]}
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": [(23.5, 19.5), (27.5, 23.5)]}
    augmenter = vg.Augmenter(vg.from_albumentations(one("ShiftScaleRotate", **limits)))
    results = augmenter([sample] * 200, targets=vg.Targets(point_origin="centre"))
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
    flips = [T.RandomHorizontalFlip(), T.RandomVerticalFlip()]
    turned = T.Compose([T.RandomRotate90(0.75), T.RandomHorizontalFlip()])
    expected = [
        T.RandomResizedCrop((48, 48), edges="crop"),
        T.RandomHorizontalFlip(),
        T.OneOf([T.Posterize((4, 6)), T.Gamma((0.8, 1.2))], p=0.3, weights=(0.2, 0.6)),
        T.SomeOf([T.RandomInvert(), T.RandomVerticalFlip(1.0)], 1),
        T.RandomApply([T.Compose([T.RandomRotate90(0.75), turned])], p=0.4),
        T.OneOf([T.RandomHorizontalFlip(1.0), T.Identity()], weights=(0.25, 0.75)),
        T.RandomOrder(flips),
        T.RandomApply([T.Compose([T.Contrast((0.8, 1.2)), T.Brightness((0.8, 1.2))])], p=0.5),
        T.RandomApply([T.CoarseDropout((1, 2), (4, 8), (1, 2, 3))], p=0.5),
        T.RandomApply([T.Rotate((-20.0, 20.0), "bilinear")], p=0.7),
        T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
    ]
    described = json.loads(RECORDED.read_text())

    class Pipeline:
        def to_dict(self) -> dict[str, Any]:
            return dict(described)

    for source in (RECORDED, str(RECORDED), described, described["transform"], Pipeline()):
        assert vg.from_albumentations(source).to_dict() == T.Compose(expected).to_dict()


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
