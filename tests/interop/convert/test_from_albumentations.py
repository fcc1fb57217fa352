"""``vg.from_albumentations`` reads what ``to_dict()`` of AlbumentationsX 2.5.1, and of older versions, gives.

Levels in these tests are those that the library gives for the same draw.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning

RECORDED = Path(__file__).parent / "data" / "albumentationsx-2.5.1.json"
RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)[..., None].repeat(3, axis=2)


def one(name: str, p: float = 1.0, **arguments: Any) -> dict[str, Any]:
    return {"__class_fullname__": name, "p": p, **arguments}


def compose(*transforms: Any, **arguments: Any) -> dict[str, Any]:
    return {"__version__": "2.5.1", "transform": one("Compose", transforms=list(transforms), **arguments)}


def done(described: dict[str, Any], image: np.ndarray[Any, Any] = RAMP) -> np.ndarray[Any, Any]:
    output = vg.Augmenter(vg.from_albumentations(described), seed=0)([image])[0]
    return np.asarray(output.numpy().transpose(1, 2, 0))


def test_a_recorded_pipeline() -> None:
    with pytest.warns(ConversionWarning, match=r"transforms\[0\] RandomResizedCrop.interpolation") as caught:
        converted = vg.from_albumentations(RECORDED)
    assert caught[0].filename == __file__
    edges = {"edges": "crop"} if "edges" in T.RandomResizedCrop.__dataclass_fields__ else {}
    flips = [T.RandomHorizontalFlip(), T.RandomVerticalFlip()]
    turned = T.Compose([T.RandomRotate90(0.75), T.RandomHorizontalFlip()])
    expected = [
        T.RandomResizedCrop((48, 48), **edges),
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
    assert converted.to_dict() == T.Compose(expected).to_dict()


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_a_file_its_dict_and_an_object_are_the_same() -> None:
    described = json.loads(RECORDED.read_text())

    class Pipeline:
        def to_dict(self) -> dict[str, Any]:
            return dict(described)

    converted = vg.from_albumentations(str(RECORDED))
    for source in (RECORDED, described, described["transform"], Pipeline()):
        assert vg.from_albumentations(source) == converted


def test_values_are_the_librarys() -> None:
    level = RAMP[..., 0].astype(int)
    cases = [
        (one("Solarize", threshold_range=[0.5, 0.5]), np.where(level < 127.5, level, 255 - level)),
        (one("Posterize", num_bits=[3, 3]), level & 0xE0),
        (
            one("RandomBrightnessContrast", brightness_range=[0.2, 0.2], contrast_range=[0, 0], brightness_by_max=True),
            np.minimum(level + 51, 255),
        ),
        (one("RandomBrightnessContrast", brightness_limit=[0, 0], contrast_limit=[0.5, 0.5], brightness_by_max=True),
         np.minimum((level * 1.5).astype(int), 255)),
        (one("Transpose"), level.T),
        (one("ChannelDropout", channel_drop_range=[2, 2], fill=9), level),
        (one("PixelDropout", dropout_prob=1.0, drop_value=255), np.full_like(level, 255)),
        (one("MedianBlur", blur_range=[3, 3]), medians(level)),
        (one("RGBShift", **{f"{c}_shift_range": [20, 20] for c in "rgb"}), np.minimum(level + 20, 255)),
    ]  # fmt: skip
    for described, expected in cases:
        got = done(described)
        if described["__class_fullname__"] == "ChannelDropout":
            assert (got == 9).all(axis=(0, 1)).sum() == 2
            got = got[..., ~(got == 9).all(axis=(0, 1))]
        np.testing.assert_array_equal(got[..., 0], expected, err_msg=str(described))


def medians(level: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of 3 x 3 levels, as cv2's medianBlur."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(level, 1, mode="edge"), (3, 3))
    return np.asarray(np.median(around, axis=(2, 3)))


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_arguments_of_the_same_meaning() -> None:
    by_side = {"max_size": [10, 20], "interpolation": 2}
    for described, expected in (
        (one("SmallestMaxSize", **by_side), T.SmallestMaxSize([10, 20], "bicubic")),
        (one("LongestMaxSize", **by_side), T.LongestMaxSize([10, 20], "bicubic")),
        (one("LetterBox", size=[8, 9], fill=7, position="center"), T.LetterBox((8, 9), fill=7)),
        (one("Downscale", scale_range=[0.2, 0.4]), T.Downscale((0.2, 0.4))),
        (
            one("Downscale", scale_range=[0.2, 0.4], interpolation_pair={"downscale": 3, "upscale": 4}),
            T.Downscale((0.2, 0.4), "bilinear", "lanczos"),
        ),
        (one("CLAHE", clip_limit=[2, 3], tile_grid_size=[4, 5]), T.CLAHE((2, 3), (4, 5))),
        (one("MedianBlur", blur_limit=[3, 6]), T.MedianBlur((3, 7))),
        (one("Emboss", alpha=[0.1, 0.2], strength=[0.3, 0.4]), T.Emboss((0.1, 0.2), (0.3, 0.4))),
        (
            one("UnsharpMask", blur_range=[3, 5], sigma_range=[0, 1], alpha_range=[0.2, 0.3], threshold=4),
            T.UnsharpMask((3, 5), (0, 1), (0.2, 0.3), 4),
        ),
        (one("PixelDropout", dropout_prob=0.1, drop_value=0), T.PixelDropout(0.1)),
    ):
        assert vg.from_albumentations(described) == expected


def test_maps_turn_the_librarys_way() -> None:
    """Counter-clockwise in all three; the first axis of a padding is x; a quarter turn may be none."""
    image = np.zeros((31, 31, 3), np.uint8)
    image[13:18, 24:29] = 255  # right of the centre
    for described in (
        one("Rotate", angle_range=[90, 90]),
        one("Affine", rotate=[90, 90], interpolation=0),
        one("ShiftScaleRotate", rotate_range=[90, 90], scale_range=[0, 0], shift_range=[0, 0], interpolation=0),
    ):
        turned = done(described, image)
        assert turned[2:7, 13:18].min() == 255, described
    assert done(one("Pad", padding=[3, 5])).shape == (26, 22, 3)
    for mode, border in ((0, "constant"), (1, "edge"), (2, "symmetric"), (3, "wrap"), (4, "reflect")):  # cv2's codes
        around = [(3, 3), (2, 2), (0, 0)]
        padded = done(one("Pad", padding=[2, 3], border_mode=mode))
        np.testing.assert_array_equal(padded, np.pad(RAMP, around, mode=border), border)  # type: ignore[call-overload]
    turns: Any = vg.Augmenter(vg.from_albumentations(one("RandomRotate90", p=1)), seed=0)([RAMP] * 400)
    share = float((turns[:, 0].numpy() == RAMP[..., 0]).all(axis=(1, 2)).mean())
    assert 0.18 < share < 0.32


def test_borders_of_maps_are_the_librarys() -> None:
    for mode, border in ((1, "edge"), (2, "symmetric"), (3, "wrap"), (4, "reflect")):  # cv2's codes
        assert f"padding_mode='{border}'" in repr(vg.from_albumentations(one("Rotate", border_mode=mode)))
        moved = done(one("Affine", translate_px={"x": [40, 40], "y": [-5, -5]}, border_mode=mode))
        padded = np.pad(RAMP, [(0, 5), (40, 0), (0, 0)], mode=border)  # type: ignore[call-overload]
        np.testing.assert_array_equal(moved, padded[5:, :16], border)
        for name in ("Perspective", "GridDistortion", "OpticalDistortion", "SafeRotate"):
            assert done(one(name, border_mode=mode), np.full_like(RAMP, 9)).min() == 9, name


@pytest.mark.parametrize(
    ("described", "expected"),
    # Where Affine of Albumentations 2.0.8, whose matrix is that of AlbumentationsX 2.5.1, takes (0, 0), (47, 0),
    # (0, 39) and (30, 10) of an image of 48 x 40 pixels.
    [
        ({"shear": {"x": [10, 10], "y": [0, 0]}},
         [(3.4384, 0), (50.4384, 0), (-3.4384, 39), (31.6751, 10)]),
        ({"shear": {"x": [20, 20], "y": [-15, -15]}},
         [(7.0974, -6.2968), (54.0974, 6.2968), (-7.0974, 32.7032), (33.4577, 11.7417)]),
        ({"shear": {"x": [25, 25], "y": [10, 10]}, "rotate": [20, 20], "scale": [1.2, 1.2]},
         [(-5.2466, 13.2399), (56.7471, -15.3951), (-9.7471, 54.3951), (33.1699, 5.5148)]),
    ],
)  # fmt: skip
def test_shears_are_the_librarys(described: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    points = [(0, 0), (47, 0), (0, 39), (30, 10)]
    sample = {"image": np.zeros((40, 48, 3), np.uint8), "keypoints": points}
    augmenter = vg.Augmenter(vg.from_albumentations(one("Affine", **described)), seed=0)
    for batch in (1, 3):  # one image has a way of its own
        result = augmenter([sample] * batch, targets=vg.Targets(point_origin="centre"))[-1]
        np.testing.assert_allclose(result["keypoints"], expected, atol=2e-4)


def test_normalising_on_another_scale() -> None:
    described = compose(one("Normalize", mean=[0.5] * 3, std=[0.25] * 3, max_pixel_value=127.5))
    expected = (RAMP / 127.5 - 0.5) / 0.25
    np.testing.assert_allclose(done(described), expected, rtol=1e-5, atol=1e-6)
    assert vg.from_albumentations(one("ToFloat", max_value=255)) == T.ToDtype("float32", scale=True)


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_compressions() -> None:
    described = one("ImageCompression", compression_type="jpeg", quality_range=[20, 90])
    assert vg.from_albumentations(described) == T.JPEG((20, 90))
    assert vg.from_albumentations(one("ImageCompression")) == T.JPEG((99, 100))


def test_blurs_of_several_kernels_and_erasings() -> None:
    blur = vg.from_albumentations(one("GaussianBlur", blur_range=[3, 7], sigma_range=[0.5, 2.0]))
    assert blur == T.OneOf([T.GaussianBlur(size, (0.5, 2.0)) for size in (3, 5, 7)])
    erasing = vg.from_albumentations(one("Erasing", 0.4, scale=[0.1, 0.2], ratio=[0.5, 4.0], fill="random"))
    assert erasing == T.RandomErasing(0.4, (0.1, 0.2), (0.25, 2.0), "random")


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (one("Resize", height=8, width=8, interpolation=1), "Resize.interpolation='bilinear': images that shrink"),
        (one("HueSaturationValue", hue_shift_range=[-20, 20]), "HueSaturationValue.hue_shift_range=.*256 steps"),
        (one("Equalize", mode="cv"), "Equalize.mode='cv': Pillow's Equalize here: 6 levels"),
        (one("GaussNoise", std_range=[0.1, 0.2], per_channel=False), "GaussNoise.per_channel=False: each channel"),
        (one("Downscale", scale_range=[0.5, 0.5]), "Downscale.interpolation_pair.downscale='nearest': Pillow's"),
        (one("ImageCompression", quality_range=[20, 90]), "ImageCompression: red and blue change places"),
        (
            one("HueSaturationValue", hue_shift_limit=[0, 0], val_shift_limit=[0, 0]),
            "sat_shift_range=.*: up to a third of the shift",
        ),
        (one("Sharpen"), "up to 2 levels on average"),
        (one("ElasticTransform", sigma=9), "within sigma=9 pixels of borders move less here: 2 levels on average"),
    ],
)
def test_what_is_close_is_said(described: dict[str, Any], message: str) -> None:
    with pytest.warns(ConversionWarning, match=message):
        vg.from_albumentations(compose(described))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (compose(one("Vignetting")), r"transforms\[0\] Vignetting: got 'Vignetting'; accepted: Illumination"),
        (compose(one("Unheard")), r"transforms\[0\] Unheard: got 'Unheard'; accepted: one of AdditiveNoise, .*Affine"),
        (compose(one("Rotate", angle_range={})), r"transforms\[0\] Rotate.*; accepted: "),
        (compose(one("my.Own")), r"transforms\[0\] Own: got 'my.Own'; .*CustomOp"),
        (
            compose(one("Rotate", border_mode=5)),
            r"transforms\[0\] Rotate.border_mode: got 5; accepted: 0 \(constant\), 1",
        ),
        (compose(one("HorizontalFlip", p=2)), r"transforms\[0\] HorizontalFlip.p: got 2; .*from 0 to 1"),
        (compose(one("Normalize", p=0.5)), r"transforms\[0\] Normalize.p: got 0.5; accepted: 1"),
        (compose(one("OneOf", transforms=[one("Normalize")])), r"transforms\[0\].transforms\[0\] Normalize: .*main"),
        (compose(one("MedianBlur", blur_range=[3, 9])), r"MedianBlur.blur_range: got \(3, 9\); accepted: an odd"),
        (
            compose(one("ElasticTransform", control_grid_shape=[7, 6])),
            r"ElasticTransform: got 'a spline of control points'; accepted: GridDistortion or ThinPlateSpline",
        ),
        (
            compose(one("ThinPlateSpline")),
            "ThinPlateSpline: got 'a spline of version 2.0.*; accepted: that of Albu",
        ),
        (
            compose(one("RandomGamma", gamma_range=50)),
            "RandomGamma.gamma_range: got 50; accepted: a pair",
        ),
        (compose(one("SomeOf", replace=True, transforms=[one("NoOp")])), "SomeOf.replace: got True"),
        ({"transform": 3}, "compose: got 3; accepted: an object"),
        (compose(3), r"transforms\[0\]: got 3; accepted: an object with"),
        (4, "compose: got 4; accepted: an albumentations.Compose"),
        (T.Resize(3), "compose: got Resize"),
    ],
)
def test_what_cannot_be_converted_is_named(source: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_albumentations(source)


def test_files_that_hold_something_else(tmp_path: Path) -> None:
    for text in ("", "[1]", "{", "[" * 100_000):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(ConversionError, match=r"a\.json: got"):
            vg.from_albumentations(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        vg.from_albumentations(tmp_path / "none.json")


def test_deformations() -> None:
    with pytest.warns(ConversionWarning, match="strips follow one another"):
        grid = vg.from_albumentations(one("GridDistortion", num_steps=4, distort_range=[-0.2, 0.1], fill=7))
    with pytest.warns(ConversionWarning, match="half a pixel"):
        lens = vg.from_albumentations(one("OpticalDistortion", distort_limit=[-0.1, 0.1], mode="camera"))
    assert grid == T.GridDistortion(4, (-0.2, 0.1), fill=7)
    assert lens == T.OpticalDistortion(0.1)
    plate = vg.from_albumentations(one("ThinPlateSpline", scale_range=[0.1, 0.2], map_resolution_range=[1.0, 1.0]))
    assert plate == T.ThinPlateSpline((0.1, 0.2))
    with pytest.raises(ConversionError, match="map_resolution_range"):
        vg.from_albumentations(one("ThinPlateSpline", map_resolution_range=[0.5, 1.0]))
