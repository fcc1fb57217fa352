"""Every public transform of Albumentations 2.0.8 and AlbumentationsX 2.5.1 with its default arguments, as ``to_dict()``
wrote it: converted to the same, to something close with the difference said, or refused with what to use instead.

Levels and places in these tests are those that the libraries give for the same draw.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from benchmarks.albumentations_audit import LIMITS
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning
from variegate.interop.convert.albumentations import COMPOSITIONS
from variegate.interop.convert.albumentations_table import REFUSED, RULES

DATA = Path(__file__).parent / "data"
VERSIONS = ("albumentations-2.0.8", "albumentationsx-2.5.1")
AUDITS = {version: json.loads((DATA / f"{version}-audit.json").read_text()) for version in VERSIONS}
OF_BOXES = ("AtLeastOneBBoxRandomCrop", "BBoxSafeRandomCrop", "RandomSizedBBoxSafeCrop")
# Of one version only: splines in AlbumentationsX, and positions that move farther in Albumentations 2.0.
OF_ONE_VERSION = ("ElasticTransform", "ThinPlateSpline")
MIN_CLASSES = 90  # of AlbumentationsX 2.5.1 that convert, with the compositions
# Outputs are tensors or have one format here; compositions only choose.
NOT_AUDITED = ("ToTensorV2", "ToRGB", *COMPOSITIONS)


def one(name: str, **arguments: Any) -> dict[str, Any]:
    return {"__class_fullname__": name, "p": 1.0, **arguments}


def converted(described: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        return vg.from_albumentations(described)


def done(described: dict[str, Any], image: Any) -> np.ndarray[Any, Any]:
    output = vg.Augmenter(converted(described), seed=0)([image])[0]
    return np.asarray(output.numpy().transpose(1, 2, 0))


def within_limits(row: dict[str, Any], *targets: str) -> bool:
    return all(target in row and row[target] <= LIMITS[target] for target in targets)


def outcome_of(described: dict[str, Any], place: str = "") -> str:
    """Whether a transform converts to the same, to something close, or is refused."""
    _, report = vg.from_albumentations(described, report=True)
    if report.refused:
        return "refused"
    return "close" if any(path.startswith(place) for path in report.approximate) else "same"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_defaults_of_all_classes(version: str) -> None:
    """What converts can be sampled as well, for images of several sizes; the same is said of audited classes only."""
    proven = {row["class"] for row in AUDITS[version] if within_limits(row, "image", "mask")} | set(NOT_AUDITED)
    for name, described in json.loads((DATA / f"{version}-defaults.json").read_text()).items():
        transform, report = vg.from_albumentations(described, report=True)
        if report.refused:
            assert name in REFUSED or name in OF_ONE_VERSION
            with pytest.raises(ConversionError, match=f"{name}.*; accepted: "):
                vg.from_albumentations(described)
            continue
        assert report.approximate or name in proven, name
        if name not in OF_BOXES:
            vg.Augmenter(transform).program([(90, 120), (61, 80), (30, 30)])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_outcomes_are_those_of_the_audit(version: str) -> None:
    """Of samples with a mask, boxes and key points; the same is what differs by less than the audit's limits."""
    kind = "format" if version == VERSIONS[0] else "coord_format"
    params = {"bbox_params": {kind: "pascal_voc", "label_fields": ["labels"]}, "keypoint_params": {kind: "xy"}}
    for row in AUDITS[version]:
        described = one("Compose", transforms=[row["description"]], **params)
        assert outcome_of(described, "transforms[0]") == row["outcome"], row
        assert row["outcome"] != "same" or within_limits(row, *LIMITS), row
        # Without boxes and key points, differences of those are not reported.
        without = outcome_of(one("Compose", transforms=[row["description"]]))
        assert without != "same" or within_limits(row, "image", "mask"), row


def test_every_rule_is_audited() -> None:
    audited = {row["class"] for rows in AUDITS.values() for row in rows if row["outcome"] != "refused"}
    assert set(RULES) <= audited


def test_ninety_classes_of_albumentations_x_convert() -> None:
    audited = {row["class"] for row in AUDITS[VERSIONS[1]] if row["outcome"] != "refused"}
    assert len(audited) + len(COMPOSITIONS) >= MIN_CLASSES


def test_names_from_before_version_2_are_refused() -> None:
    """Names that Albumentations 2.0 has no more, and classes without one number for their difference."""
    for name, older in {
        "CoarseDropout": "fill_value",
        "Rotate": "value",
        "Affine": "mask_value",
        "ImageCompression": "quality_lower",
        "Solarize": "threshold",
        "HorizontalFlip": "always_apply",
    }.items():
        with pytest.raises(ConversionError, match=f"{name}.{older}: got 7; accepted: arguments of Albumentations 2.0"):
            vg.from_albumentations(one(name, **{older: 7}))
    for name, nearest in {
        "FDA": "ColorJitter or RandomToneCurve",
        "HistogramMatching": "ColorJitter",
        "PixelDistributionAdaptation": "ColorJitter",
        "FilmGrain": "GaussNoise",
        "AdvancedBlur": "GaussianBlur",
        "Enhance": "Sharpen",
        "RingingOvershoot": "Sharpen or UnsharpMask",
        "RandomSnow": "vg.transforms.RandomSnow",
        "ShotNoise": "vg.transforms.ShotNoise",
        "PlanckianJitter": "vg.transforms.ColorTemperature",
    }.items():
        with pytest.raises(ConversionError, match=f"{name}: got '{name}'; accepted: .*{nearest}"):
            vg.from_albumentations(one(name))


def test_a_description_without_a_probability_has_the_librarys() -> None:
    """As text has that people write."""
    for name, described in json.loads((DATA / "albumentationsx-2.5.1-defaults.json").read_text()).items():
        bare = {key: value for key, value in described.items() if key != "p"}
        assert vg.from_albumentations(bare, report=True) == vg.from_albumentations(described, report=True), name


def test_bands_are_as_long_as_drawn() -> None:
    image = np.full((30, 50, 3), 9, np.uint8)
    described = one("XYMasking", num_masks_x_range=[1, 1], mask_x_length_range=[5, 5], fill=0)
    both = {"num_masks_y_range": [1, 1], "mask_y_length_range": [2, 4]}
    for more, lines in (({}, {0}), (both, {2, 3, 4})):
        output = vg.Augmenter(converted({**described, **more}))([image] * 20)
        dark = output.numpy()[:, 0] == 0
        assert set(dark.all(axis=1).sum(axis=1).tolist()) == {5}
        assert set(dark.all(axis=2).sum(axis=1).tolist()) == lines
    with pytest.raises(ConversionError, match=r"num_masks_x_range: got \(1, 3\); accepted: one band"):
        converted({**described, "num_masks_x_range": [1, 3]})


def test_bands_may_have_no_length() -> None:
    bands = vg.Augmenter(converted(one("FrequencyMasking", freq_mask_param=3)))(
        [np.full((30, 50, 3), 9, np.uint8)] * 400
    )
    lines = (bands.numpy()[:, 0] == 0).all(axis=2).sum(axis=1)
    assert np.bincount(lines).size == 4
    np.testing.assert_allclose(np.bincount(lines) / 400, 0.25, atol=0.08)
    older = one("TimeMasking", num_masks_x=[0, 1], mask_x_length=[0, 1], num_masks_y=[0, 0], time_mask_param=1)
    bands = vg.Augmenter(converted(older))([np.full((30, 50, 3), 9, np.uint8)] * 400)
    assert 0.18 < (bands.numpy() == 0).any(axis=(1, 2, 3)).mean() < 0.32


@pytest.mark.parametrize("name", ["SomeOf", "RandomOrder", "OneOrOther"])
def test_what_one_of_has_chosen_keeps_its_chance_where_it_does_there(name: str) -> None:
    flip, nothing = one("HorizontalFlip"), one("NoOp")
    inner = {**one(name, transforms=[flip, nothing] if name == "OneOrOther" else [flip]), "p": 0.2}
    augmenter = vg.Augmenter(converted(one("OneOf", transforms=[inner, {**nothing, "p": 0.2}])))
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    share = (augmenter([image] * 1000).numpy().transpose(0, 2, 3, 1) != image).any(axis=(1, 2, 3)).mean()
    assert 0.07 < share < 0.13


def test_additive_noise_of_all_versions() -> None:
    ranges = [[0.2, 0.3], [-0.2, 0.1], [-0.5, -0.4]]
    shift = T.RGBShift((51, 76), (-51, 26), (-128, -102))
    for more in ({"approximation": 1.0}, {"per_channel": True}, {"per_channel": False}):
        assert vg.from_albumentations(one("AdditiveNoise", noise_params={"ranges": ranges}, **more)) == shift
    assert vg.from_albumentations(one("AdditiveNoise")) == T.RGBShift((-26, 26), (-26, 26), (-26, 26))


def test_shifts_of_zero_do_nothing() -> None:
    none = {f"{name}_shift_range": [0, 0] for name in ("hue", "sat", "val")}
    assert vg.from_albumentations(one("HueSaturationValue", **none)) == T.Identity()


def test_holes_that_reach_1_are_pixels() -> None:
    for size, ours in (([0.5, 1.0], (0, 1)), ([10.0, 20.0], (10, 20)), ([0.5, 0.9], (0.5, 0.9))):
        dropout = converted(one("CoarseDropout", hole_height_range=size, hole_width_range=size))
        assert dropout == T.CoarseDropout((1, 2), ours, 0)


def test_axes_of_shift_scale_rotate_have_factors_of_their_own() -> None:
    limits = {"scale_limit": [-0.5, 0.5], "rotate_limit": [0, 0], "shift_limit": [0, 0]}
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": [(23.5, 19.5), (27.5, 23.5)]}
    augmenter = vg.Augmenter(converted(one("ShiftScaleRotate", **limits)))
    results = augmenter([sample] * 200, targets=vg.Targets(point_origin="centre"))
    factors = np.array([(result["keypoints"][1] - result["keypoints"][0]) / 4 for result in results])
    assert abs(np.corrcoef(factors.T)[0, 1]) < 0.25
    np.testing.assert_allclose([factors.min(), factors.max()], [0.5, 1.5], atol=0.03)


def test_one_report_of_a_whole_pipeline() -> None:
    steps = [one("HorizontalFlip"), one("CenterCrop", height=8, width=8), one("ISONoise"), one("Equalize")]
    inner = one("OneOf", transforms=[one("VerticalFlip"), one("Superpixels")])
    with pytest.warns(ConversionWarning) as caught:
        transform, report = vg.from_albumentations(one("Compose", transforms=[*steps, inner]), report=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert report.converted == ("transforms[0] HorizontalFlip", "transforms[4].transforms[0] VerticalFlip")
    assert list(report.approximate) == ["transforms[1] CenterCrop", "transforms[3] Equalize"]
    assert "6 levels on average" in report.approximate["transforms[3] Equalize"][0]
    assert report.refused["transforms[4].transforms[1] Superpixels"] == "Posterize or Downscale"
    lines = str(caught[0].message).splitlines()
    assert lines[0] == "2 the same, 2 close, 2 refused:"
    assert lines[1].startswith("  transforms[1] CenterCrop: where an odd number")
    assert lines[3].startswith("  transforms[2] ISONoise: skipped; accepted: GaussNoise")
    assert [step["type"] for step in transform.to_dict()["transforms"]] == [
        "RandomHorizontalFlip", "CenterCrop", "Equalize", "OneOf",
    ]  # fmt: skip
    with pytest.raises(ConversionError, match=r"ISONoise: .*; refused as well: transforms\[4\].transforms\[1\] Sup"):
        vg.from_albumentations(one("Compose", transforms=[*steps, inner]))


@pytest.mark.parametrize(("brightness", "contrast"), [(0.2, 0.2), (-0.2, 0.2), (0.2, -0.2), (-0.2, -0.2)])
def test_nothing_is_cut_off_between_contrast_and_brightness(brightness: float, contrast: float) -> None:
    """``c x + b``, by a share of 255 or of the mean."""
    level = np.arange(256, dtype=np.uint8).reshape(16, 16)
    image = level[..., None].repeat(3, axis=2)
    limits = {"brightness_limit": [brightness] * 2, "contrast_limit": [contrast] * 2, "ensure_safe_range": False}
    for of_max, of in ((True, 255.0), (False, float(level.mean()))):
        described = one("RandomBrightnessContrast", brightness_by_max=of_max, **limits)
        expected = np.clip((1 + contrast) * level + brightness * of, 0, 255)
        np.testing.assert_allclose(done(described, image)[..., 0], expected, atol=2)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    # Where 2.0.8 takes (0, 0), (47, 0), (0, 39) and (30, 10) of an image of 48 x 40 pixels.
    [
        ("Affine", {"scale": {"x": [1.2, 1.2], "y": [0.8, 0.8]}, "keep_ratio": False,
                    "translate_px": {"x": [7, 7], "y": [-5, -5]}},
         [(2.3, -1.1), (58.7, -1.1), (2.3, 30.1), (38.3, 6.9)]),
        ("Affine", {"scale": {"x": [1.2, 1.2], "y": [0.9, 0.9]}, "keep_ratio": False, "rotate": [25, 25],
                    "shear": {"x": [10, 10], "y": [-5, -5]}, "translate_percent": {"x": [0.1, 0.1], "y": [-0.2, -0.2]}},
         [(-4.7717, 4.6272), (50.547, -14.7364), (4.453, 37.7364), (32.9034, 0.757)]),
        ("SafeRotate", {"limit": [90.0, 90.0], "rotate": [90.0, 90.0], "fit_output": True},
         [(0.6, 39.5833), (0.6, 0.4167), (47.4, 39.5833), (12.6, 14.5833)]),
    ],
)  # fmt: skip
def test_maps_are_the_librarys(name: str, arguments: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    points = [(0, 0), (47, 0), (0, 39), (30, 10)]
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": points}
    result = vg.Augmenter(converted(one(name, **arguments)))([sample], targets=vg.Targets(point_origin="centre"))[0]
    np.testing.assert_allclose(result["keypoints"], expected, atol=1e-3)


def test_borders_are_the_librarys() -> None:
    image = np.random.default_rng(0).integers(0, 256, (31, 40, 3), np.uint8)
    for position, before in (("center", (4, 2)), ("top_left", (0, 0)), ("bottom_right", (9, 5)), ("top_right", (0, 5))):
        padded = done(one("PadIfNeeded", min_height=40, min_width=45, position=position, border_mode=4), image)
        sides = [(before[0], 9 - before[0]), (before[1], 5 - before[1]), (0, 0)]
        np.testing.assert_array_equal(padded, np.pad(image, sides, mode="reflect"), position)
    divided = one("PadIfNeeded", min_height=None, min_width=None, pad_height_divisor=16, pad_width_divisor=20)
    assert done(divided, image).shape == (32, 40, 3)
    cropped = done(one("Crop", x_min=3, y_min=5, x_max=20, y_max=30), image)
    np.testing.assert_array_equal(cropped, image[5:30, 3:20])
    cut = one("CropAndPad", px=[-5, 7, -3, 2], keep_size=False, interpolation=1)  # top, right, bottom, left
    np.testing.assert_array_equal(done(cut, image), np.pad(image[5:-3], [(0, 0), (2, 7), (0, 0)]))
    scaled = done(one("RandomScale", scale_limit=[0.3, 0.3], interpolation=1), image)
    assert scaled.shape == (40, 52, 3)


def test_filters_are_the_librarys() -> None:
    image = np.random.default_rng(0).integers(60, 200, (31, 40, 3), np.uint8)
    around = np.lib.stride_tricks.sliding_window_view(image.astype(float), (3, 3), axis=(0, 1))
    mean = around.mean(axis=(-2, -1))
    np.testing.assert_allclose(done(one("Blur", blur_limit=[3, 3]), image)[1:-1, 1:-1], mean, atol=0.51)
    alpha, light = 0.3, 0.7
    sharp = (1 - alpha) * image[1:-1, 1:-1] + alpha * ((9 + light) * image[1:-1, 1:-1] - 9 * mean)
    got = done(one("Sharpen", alpha=[alpha] * 2, lightness=[light] * 2), image)[1:-1, 1:-1]
    assert np.abs(got - np.clip(sharp, 0, 255)).max() <= 6
    np.testing.assert_array_equal(
        done(one("RGBShift", r_shift_limit=[0.1, 0.1], g_shift_limit=[0, 0], b_shift_limit=[-9, -9]), image),
        np.clip(image.astype(int) + np.array([26, 0, -9]), 0, 255),
    )


def test_grids_may_be_shares_of_the_image() -> None:
    grid = vg.Augmenter(converted(one("GridDropout", ratio=0.5)), seed=0)([np.full((80, 200, 3), 255, np.uint8)] * 50)
    assert 0.23 < float((grid == 0).float().mean()) < 0.27
    with pytest.raises(ValueError, match=r"unit=0; accepted: an integer.*; or a share of the shorter side"):
        vg.transforms.GridMask(0)
