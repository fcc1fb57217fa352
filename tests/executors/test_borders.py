"""Maps whose image goes on beyond its edges: NumPy's pad is the oracle; all executors give the reference's bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests import oracle
from tests.executors.contract import Device, check, every_device
from tests.images import Image, gray, noise, photo
from tests.oracle.places import FRACTION_BITS, folded, places
from tests.programs import Step, crop, program_of, random_step, rotate, step
from variegate import transforms as T
from variegate.program import passes as P
from variegate.program.describe import operations_of
from variegate.program.lowering import lower
from variegate.program.ops import INTERPOLATION_BITS, Interpolation, Op, PadMode
from variegate.program.passes import PassSource
from variegate.transforms import functional as F

MODES = (PadMode.EDGE, PadMode.REFLECT, PadMode.SYMMETRIC, PadMode.WRAP)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
every_interpolation = pytest.mark.parametrize("interpolation", [0, 1, 2], ids=["nearest", "bilinear", "bicubic"])
SIZES = ((1, 1), (1, 7), (6, 1), (2, 2), (13, 17), (30, 23))
# Binary fractions, so that a shift of places rounds nothing.
AFFINE = (
    (0.875, 0.25, -3.5, -0.25, 1.125, 2.25),
    (-1.25, 0.75, 40.0, 0.5, -0.625, 33.0),
    (1.0, 0.0, -37.0, 0.0, 1.0, 55.0),
    (1.0, 0.0, -37.25, 0.0, 1.0, 55.5),
    (1.75, 0.0, -20.0, 0.0, 1.25, -9.0),
)


def with_border(taken: Step, mode: PadMode) -> Step:
    return replace(taken, flags=taken.flags & 7 | mode << INTERPOLATION_BITS)


@every_mode
@every_interpolation
@pytest.mark.parametrize("size", SIZES)
def test_as_a_wide_pad_and_a_constant_map(mode: PadMode, interpolation: int, size: tuple[int, int]) -> None:
    image, wide = noise(*size, 3, 5), 150
    (height, width), flags = size, interpolation | mode << INTERPOLATION_BITS
    around = ((wide, wide), (wide, wide), (0, 0))
    padded = np.pad(image, around, mode=mode.name.lower())  # type: ignore[call-overload]
    inside = slice(wide, wide + height), slice(wide, wide + width)
    for a, b, c, d, e, f in AFFINE:
        moved = (a, b, c + wide - (a + b) * wide, d, e, f + wide - (d + e) * wide)
        expected = oracle.apply(Op.AFFINE, padded, moved, interpolation, (255, 0, 255))[inside]
        np.testing.assert_array_equal(oracle.apply(Op.AFFINE, image, (a, b, c, d, e, f), flags), expected)


@every_mode
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_indices_fold_as_numpy_pads(mode: PadMode, size: int) -> None:
    line = np.arange(size)
    expected = np.pad(line, 40, mode=mode.name.lower())  # type: ignore[call-overload]
    np.testing.assert_array_equal(folded(np.arange(-40, size + 40), size, mode), expected)


def far_maps(height: int, width: int) -> list[Step]:
    """Also by many times the image's size, and to where numbers end."""
    return [
        rotate(31.0), rotate(180.0), step(Op.AFFINE, 0.83, 0.2, 1.7, 1e-4, 0.9, 0.4),
        step(Op.AFFINE, 1, 0, -3.0 * width - 2, 0, 1, 5.0 * height + 1), step(Op.AFFINE, 30, 7, -40 * width, -9, 25, 3),
        step(Op.AFFINE, 1, 0, -3.25 * width, 0, 1, 5.5), step(Op.AFFINE, 1.7, 0, -20, 0, -0.3, 9),
        step(Op.AFFINE, 1e200, 3, 1e300, 2, 1e4, -1e9), step(Op.AFFINE, 1, 0, 1e300, 0, 1, -1e13),
        step(Op.AFFINE, 2, 0, 1e300, 0, 1e300, -1e13), step(Op.SHEAR_X, -1.27),
        step(Op.SHEAR_Y, -0.33), step(Op.TRANSLATE_Y, -2.0 * height),
        step(Op.PERSPECTIVE, 1.02, 0.1, -3, 1e-4, 1.1, 1, 0.11 / width, 1e-3),
        # Behind the viewer, and through infinity.
        step(Op.PERSPECTIVE, -0.9, 0.03, width / 2, -1e-3, 0.7, 9.3, -2.03 / width, 1e-3),
        step(Op.PERSPECTIVE, 0, 0, 1, 0, 0, 1, -1 / (width // 2 + 0.5), 0),
        random_step(np.random.default_rng(height), Op.DISPLACE, height, width),
    ]  # fmt: skip


@every_device
@every_mode
@every_interpolation
def test_all_executors_agree(device: Device, mode: PadMode, interpolation: int) -> None:
    chains: list[list[Step]] = []
    images: list[Image] = []
    rng = np.random.default_rng(mode)
    for n, size in enumerate(((1, 1), (1, 7), (9, 23), (33, 64))):
        maps = [with_border(replace(each, flags=interpolation), mode) for each in far_maps(*size)]
        others = [step(Op.HFLIP), step(Op.ROT90, 2.0), rotate(20.0, interpolation, (9, 8, 7)), step(Op.INVERT)]
        chains += [[each] for each in maps]
        chains += [[(maps + others)[i] for i in rng.integers(len(maps + others), size=3)] for _ in range(6)]
        images += [gray(*size) if n == 1 else photo(*size)] * (len(maps) + 6)
    for geometry in ("exact", "composed") if interpolation == 0 else ("exact",):
        check(device, program_of(chains, images), images, chains, geometry=geometry)


def sources(chain: list[Step], size: tuple[int, int], geometry: str = "composed") -> list[PassSource]:
    fused = lower(program_of([chain], [photo(*size)]), geometry)
    assert fused.num_passes is not None
    assert fused.passes is not None
    return [PassSource(int(fused.passes[0, p, P.SOURCE])) for p in range(int(fused.num_passes[0]))]


def test_chains_are_one_pass() -> None:
    turned, slanted = with_border(rotate(30.0), PadMode.REFLECT), with_border(step(Op.SHEAR_X, 0.3), PadMode.WRAP)
    size = (20, 30)
    assert sources([turned, step(Op.INVERT), slanted, rotate(9.0)], size) == [PassSource.FOLDED]
    assert sources([rotate(9.0), step(Op.SHEAR_X, 0.3)], size) == [PassSource.CHAIN]
    smooth = [replace(each, flags=each.flags | 1) for each in (turned, slanted)]
    assert sources([*smooth, rotate(9.0, 1)], size) == [PassSource.INTERPOLATED]
    assert sources(smooth, size, "exact") == [PassSource.INTERPOLATED] * 2
    # What never leaves the image has nothing to fold.
    assert sources([with_border(rotate(180.0), PadMode.WRAP)], size) == [PassSource.ROW_COPY]
    # A histogram is not that of the source's window.
    shifted = with_border(step(Op.TRANSLATE_X, 5.0), PadMode.REFLECT)
    assert sources([shifted, step(Op.EQUALIZE)], size) == [PassSource.FOLDED, PassSource.DIRECT]


@every_mode
@every_interpolation
def test_flips_and_crops_join_and_shifts_do_not(mode: PadMode, interpolation: int) -> None:
    turned = with_border(rotate(30.0, interpolation), mode)
    for first in ([step(Op.HFLIP)], [step(Op.VFLIP), crop(3, 4, 12, 20)]):
        fused = lower(program_of([[*first, turned]], [photo(20, 30)]))
        assert fused.length[0] == 1
    shifted = with_border(step(Op.TRANSLATE_X, 4.0), mode)
    assert lower(program_of([[step(Op.TRANSLATE_X, 4.0), shifted]], [photo(20, 30)])).length[0] == 2
    assert lower(program_of([[shifted, step(Op.TRANSLATE_X, 4.0)]], [photo(20, 30)])).length[0] == 2


def continued(place: np.ndarray, size: int, mode: PadMode) -> np.ndarray:
    """A place less half a pixel, in the image: what the documentation says of composed maps."""
    if mode is PadMode.EDGE:
        return np.clip(place, 0, size - 1)
    if mode is PadMode.WRAP:
        return (place + 0.5) % size - 0.5
    lead, length = (0.0, size - 1) if mode is PadMode.REFLECT else (-0.5, size)
    place = (place - lead) % (2 * length)
    return lead + np.where(place > length, 2 * length - place, place)


@every_mode
def test_composed_maps_fold_at_each_stage(mode: PadMode) -> None:
    """A ramp of places, read once: the later map's place folds, the earlier map takes it, and that folds again."""
    height, width = 40, 50
    first, then = (0.75, 0.25, -9.0, -0.5, 1.0, 13.0), (1.5, 0.5, -30.0, 0.25, 0.75, -21.0)
    flags = 1 | mode << INTERPOLATION_BITS
    image = np.repeat(np.linspace(0, 255, width)[None, :, None], height, axis=0).repeat(3, axis=2).astype(np.uint8)
    chain = [Step(Op.AFFINE, each, flags) for each in (first, then)]
    fused = lower(program_of([chain], [image]))
    assert fused.num_passes is not None
    assert fused.num_passes[0] == 1
    x, y = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    for a, b, c, d, e, f in (then, first):
        u, v = a * (x + 0.5) + b * (y + 0.5) + c - 0.5, d * (x + 0.5) + e * (y + 0.5) + f - 0.5
        x, y = continued(u, width, mode), continued(v, height, mode)
    line = np.concatenate([image[0, -1:, 0], image[0, :, 0], image[0, :1, 0]]).astype(float)
    if mode is not PadMode.WRAP:
        line[0], line[-1] = line[1], line[-2]
    expected = np.interp(x, np.arange(-1, width + 1), line)
    transform = _both(first, then, mode.name.lower())
    out = vg.Augmenter(transform, layout="NHWC", num_threads=1)([image])[0].numpy()[..., 0]
    # Bilinear truncates to levels.
    assert np.abs(out - expected).max() < 1.01


class _Shift(T.CustomOp):
    def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
        return 1.0, 0.0, 3.0, 0.0, 1.0, 0.0

    padding_mode = "wrap"


def _both(first: tuple[float, ...], then: tuple[float, ...], mode: str) -> T.Transform:
    @vg.pipeline
    def both(image: Any) -> Any:
        for each in (first, then):
            image = F.perspective(image, None, None, coefficients=(*each, 0.0, 0.0), padding_mode=mode)
        return image

    return both


def test_custom_operations_fold() -> None:
    image = photo(8, 9)
    out = vg.Augmenter(_Shift(), layout="NHWC", num_threads=1)([image])[0].numpy()
    np.testing.assert_array_equal(out, np.roll(image, -3, axis=1))


TRANSFORMS = (
    lambda **border: T.Rotate((-60, 60), **border),
    lambda **border: T.ShearX((-0.9, 0.9), **border),
    lambda **border: T.ShearY((-0.9, 0.9), **border),
    lambda **border: T.TranslateX((-90, 90), **border),
    lambda **border: T.TranslateY((-90, 90), **border),
    lambda **border: T.Stretch((0.2, 0.5), (0.2, 0.5), **border),
    lambda **border: T.RandomRotation(60, expand=True, **border),
    lambda **border: T.RandomAffine(60, (0.4, 0.4), (0.2, 0.6), 20, **border),
    lambda **border: T.RandomPerspective(0.7, p=1.0, **border),
    lambda **border: T.ElasticTransform(300.0, **border),
    lambda **border: T.GridDistortion(distort_limit=0.9, normalized=False, **border),
    lambda **border: T.OpticalDistortion((0.6, 0.6), **border),
    lambda **border: T.OpticalFlowWarp(magnitude=9.0, **border),
    lambda **border: T.ThinPlateSpline((0.9, 0.9), **border),
)


@pytest.mark.parametrize("number", range(len(TRANSFORMS)))
def test_masks_fold_with_the_image_and_boxes_do_not(number: int) -> None:
    """Nearest images show what masks of their own pixels show; nothing is fill. Boxes and points are those of the
    constant border."""
    make, (height, width) = TRANSFORMS[number], (33, 46)
    image = np.maximum(noise(height, width, 3, 7), 1)
    sample = {
        "image": image, "mask": image[..., 0].copy(), "labels": np.array([1]),
        "boxes": np.array([[10, 8, 30, 25]], np.float32), "keypoints": np.array([[20.0, 15.0]], np.float32),
    }  # fmt: skip
    kept = vg.Augmenter(make(interpolation="nearest"), layout="NHWC", num_threads=1)([dict(sample)] * 3)
    for mode in MODES:
        transform = make(interpolation="nearest", padding_mode=mode.name.lower())
        assert T.from_dict(transform.to_dict()) == transform
        outs = vg.Augmenter(transform, layout="NHWC", num_threads=1)([dict(sample)] * 3)
        for out, constant in zip(outs, kept, strict=True):
            np.testing.assert_array_equal(out["mask"], out["image"].numpy()[..., 0], f"{transform}")
            assert out["mask"].min() > 0
            for name in ("boxes", "keypoints"):
                np.testing.assert_array_equal(out[name], constant[name])
            # Inside it is what it is with a constant border.
            seen = constant["image"].numpy().min(axis=2) > 0
            np.testing.assert_array_equal(out["image"].numpy()[seen], constant["image"].numpy()[seen])


def test_functions_and_transforms_are_the_same() -> None:
    image = photo(30, 40)
    for how in ("nearest", "bilinear", "bicubic"):
        border = {"interpolation": how, "padding_mode": "reflect"}
        for transform, out in (
            (T.Rotate(33.0, **border), F.rotate(image, 33.0, **border)),  # type: ignore[arg-type]
            (T.ShearX(0.4, **border), F.shear_x(image, 0.4, **border)),  # type: ignore[arg-type]
            (T.TranslateY(9.0, **border), F.translate_y(image, 9.0, **border)),  # type: ignore[arg-type]
        ):
            made = vg.Augmenter(transform, layout="NHWC", num_threads=1)([image])[0].numpy()
            np.testing.assert_array_equal(made, out)
    flow = np.random.default_rng(1).normal(0, 0.2, (30, 40, 2)).astype(np.float32)
    bent = F.elastic(image, flow, padding_mode="wrap")
    np.testing.assert_array_equal(bent, F.elastic(image, flow, padding_mode="wrap", device="oracle"))
    moved = F.affine(image, 0.0, (7, 0), 1.0, 0.0, padding_mode="wrap")
    np.testing.assert_array_equal(moved, np.roll(image, 7, axis=1))


def test_wrong_modes_are_named() -> None:
    accepted = "accepted: one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap'"
    with pytest.raises(ValueError, match=f"Rotate: padding_mode='mirror'; {accepted}"):
        T.Rotate(9.0, padding_mode="mirror")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"padding_mode='mirror'; {accepted}"):
        F.rotate(photo(5, 5), 9.0, padding_mode="mirror")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="class Wrong: padding_mode='mirror'; accepted: 'constant', 'edge'"):

        class Wrong(T.CustomOp):
            padding_mode = "mirror"  # type: ignore[assignment]

            def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
                return 1.0, 0.0, 3.0, 0.0, 1.0, 0.0


def test_descriptions_say_the_border() -> None:
    augmenter = vg.Augmenter(T.Rotate(30.0, fill=9, padding_mode="reflect"), seed=0)
    assert augmenter.program([(20, 20)], ids=[0]).flags[0, 0] == PadMode.REFLECT << INTERPOLATION_BITS
    assert "  Rotate 30, border reflect\n" in augmenter.explain(0)
    described = operations_of(augmenter.program([(20, 20)], ids=[0]), 0)
    assert described == [{"op": "Rotate", "angle": 30, "padding_mode": "reflect"}]


def test_far_places_of_smooth_maps_are_exact() -> None:
    """Of a translation by a hundred widths and a quarter of a pixel, as of one by a quarter alone."""
    image = photo(20, 32)
    near, far = (
        oracle.apply(Op.AFFINE, image, (1, 0, shift, 0, 1, 0), 1 | PadMode.WRAP << INTERPOLATION_BITS)
        for shift in (0.25, 3200.25)
    )
    np.testing.assert_array_equal(near, far)
    assert not places([1, 0, 1e15, 0, 1, 0], (2, 2), (2, 2), FRACTION_BITS[Interpolation.BILINEAR]).inside_HW.any()
