"""Maps in the geometry of composed chains, displacements, and images that continue beyond their borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests import oracle
from tests.executors.contract import Device, check_chains, every_device
from tests.executors.corners import smooth_grid, with_border
from tests.images import noise, photo
from tests.oracle.geometry import rotation
from tests.oracle.places import FRACTION_BITS, places
from tests.programs import Step, crop, program_of, rotate, step
from variegate import transforms as T
from variegate.program import passes as P
from variegate.program.describe import operations_of
from variegate.program.lowering import lower
from variegate.program.ops import INTERPOLATION_BITS, Interpolation, Op, PadMode
from variegate.program.passes import PassSource
from variegate.transforms import functional as F

MODES = (PadMode.EDGE, PadMode.REFLECT, PadMode.SYMMETRIC, PadMode.WRAP)
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())


def made(transform: T.Transform, images: Any) -> Any:
    return vg.Augmenter(transform, layout="NHWC", num_threads=1)(images)


# -- how many passes ---------------------------------------------------------------------------------------------------

SIZE = (61, 90)
FLIP, INVERT, EQUALIZE = step(Op.HFLIP), step(Op.INVERT), step(Op.EQUALIZE)
BENT, LENS = smooth_grid(0, SIZE), step(Op.PERSPECTIVE, 1.05, 0.02, -3, -0.03, 0.97, 2, 4e-4, -3e-4, flags=1)
REFLECTED = with_border(rotate(30.0), PadMode.REFLECT)
WRAPPED = with_border(step(Op.SHEAR_X, 0.3), PadMode.WRAP)
SMOOTH_REFLECTED, SMOOTH_WRAPPED = (replace(each, flags=each.flags | 1) for each in (REFLECTED, WRAPPED))
SHIFT = step(Op.TRANSLATE_X, 4.0)
SHIFTED = with_border(SHIFT, PadMode.REFLECT)
# Chains, and how each of their passes reads the image.
SOURCES: list[tuple[list[Step], list[PassSource]]] = [
    ([FLIP, INVERT, BENT, step(Op.SOLARIZE, 100), step(Op.VFLIP)], [PassSource.INTERPOLATED]),
    ([crop(3, 20, 40, 33), smooth_grid(2, (40, 33), 0)], [PassSource.INTERPOLATED]),
    ([rotate(9, 1), BENT, rotate(5, 1)], [PassSource.INTERPOLATED]),
    ([BENT, LENS, smooth_grid(1, SIZE)], [PassSource.INTERPOLATED]),
    ([rotate(9, 0), BENT], [PassSource.FIXED, PassSource.INTERPOLATED]),  # another interpolation
    ([EQUALIZE, BENT, EQUALIZE], [PassSource.INTERPOLATED, PassSource.DIRECT]),
    ([REFLECTED, INVERT, WRAPPED, rotate(9.0)], [PassSource.FOLDED]),
    ([rotate(9.0), step(Op.SHEAR_X, 0.3)], [PassSource.CHAIN]),
    ([SMOOTH_REFLECTED, SMOOTH_WRAPPED, rotate(9.0, 1)], [PassSource.INTERPOLATED]),
    # What never leaves the image has nothing to fold.
    ([with_border(rotate(180.0), PadMode.WRAP)], [PassSource.ROW_COPY]),
    # A histogram is not that of the source's window.
    ([SHIFTED, EQUALIZE], [PassSource.FOLDED, PassSource.DIRECT]),
    ([FLIP, REFLECTED], [PassSource.FOLDED]),
    ([step(Op.VFLIP), crop(3, 4, 12, 20), REFLECTED], [PassSource.FOLDED]),
    ([SHIFT, SHIFTED], [PassSource.FOLDED]),
    ([SHIFTED, SHIFT], [PassSource.FOLDED]),
]


@pytest.mark.parametrize(
    ("chain", "sources"), SOURCES, ids=["-".join(s.op.name for s in chain) for chain, _ in SOURCES]
)
def test_a_chain_is_one_gather(chain: list[Step], sources: list[PassSource]) -> None:
    fused = lower(program_of([chain], [photo(*SIZE)]))
    assert fused.passes[0, : fused.num_passes[0], P.SOURCE].tolist() == sources


def test_the_exact_geometry_runs_smooth_maps_one_by_one() -> None:
    fused = lower(program_of([[SMOOTH_REFLECTED, SMOOTH_WRAPPED]], [photo(*SIZE)]), "exact")
    assert fused.passes[0, :, P.SOURCE].tolist() == [PassSource.INTERPOLATED] * 2


# -- composed chains, in float64 ---------------------------------------------------------------------------------------


def bilinear(img: Any, x: Any, y: Any) -> np.ndarray[Any, Any]:
    """In float64, edges repeated; ``x, y`` count from the center of the first pixel."""
    height, width = img.shape[:2]
    j, i = np.floor(x).astype(int), np.floor(y).astype(int)
    dx, dy = (x - j)[..., None], (y - i)[..., None]

    def tap(a: Any, b: Any) -> Any:
        return img[np.clip(a, 0, height - 1), np.clip(b, 0, width - 1)].astype(np.float64)

    upper = tap(i, j) * (1 - dx) + tap(i, j + 1) * dx
    below = tap(i + 1, j) * (1 - dx) + tap(i + 1, j + 1) * dx
    return upper * (1 - dy) + below * dy


def walk(chain: Sequence[Step], height: int, width: int) -> tuple[Any, Any, Any]:
    """Coordinates of a chain in float64, from the last map to the first, and whether all of them are inside."""
    x, y = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    inside = np.ones((height, width), np.bool_)
    for each in reversed(chain):
        if each.op is Op.DISPLACE:
            nodes = each.table.astype(np.float64) / 64
            moved = bilinear(nodes, np.clip(x, 0, width - 1) / 16, np.clip(y, 0, height - 1) / 16)
            x, y = x + moved[..., 0], y + moved[..., 1]
        else:
            is_turn = each.op is Op.ROTATE
            turned = [*rotation(each.args[0] % 360, height, width, None, False)[0], 0.0, 0.0] if is_turn else each.args
            a, b, c, d, e, f, g, h = turned
            u, v = x + 0.5, y + 0.5
            depth = g * u + h * v + 1
            x, y = (a * u + b * v + c) / depth - 0.5, (d * u + e * v + f) / depth - 0.5
        # Beyond the outermost centers, a grid that reads the source blends it with the fill.
        edge = 0.01 if each is chain[0] and each.op is Op.DISPLACE else -0.49
        inside &= (x > edge) & (x < width - 1 - edge) & (y > edge) & (y < height - 1 - edge)
    return x, y, inside


COMPOSED = {
    "rotated before": [rotate(14, 1), BENT],
    "rotated after": [BENT, rotate(14, 1)],
    "in perspective before": [LENS, BENT],
    "in perspective after": [BENT, LENS],
    "all": [rotate(8, 1), LENS, BENT, rotate(-11, 1), smooth_grid(1, SIZE), rotate(5, 1), LENS],
}


@every_device
@pytest.mark.parametrize("name", COMPOSED)
def test_chains_read_where_their_maps_lead(device: Device, name: str) -> None:
    """Within 1.5 values, of which one is cut off; and within the 2**-14 pixels by which each map rounds."""
    chain, img = COMPOSED[name], photo(*SIZE)
    out = device.run(program_of([chain], [img]), [img], geometry="composed")[0].astype(int)
    x, y, inside = walk(chain, *SIZE)
    assert inside.mean() > 0.5
    assert np.abs(out - bilinear(img, x, y))[inside].max() < 1.5
    check_chains(device, [chain], [img], geometry="exact")


# -- borders -----------------------------------------------------------------------------------------------------------

# Binary fractions, so that a shift of coordinates rounds nothing.
AFFINE = (
    (0.875, 0.25, -3.5, -0.25, 1.125, 2.25),
    (-1.25, 0.75, 40.0, 0.5, -0.625, 33.0),
    (1.0, 0.0, -37.0, 0.0, 1.0, 55.0),
    (1.0, 0.0, -37.25, 0.0, 1.0, 55.5),
    (1.75, 0.0, -20.0, 0.0, 1.25, -9.0),
)


@every_mode
def test_a_border_is_a_wide_pad_and_a_constant_map(mode: PadMode) -> None:
    for height, width in ((1, 1), (1, 7), (6, 1), (13, 17)):
        image, wide = noise(height, width, 3, 5), 80
        sides = ((wide, wide), (wide, wide), (0, 0))
        padded = np.pad(image, sides, mode=mode.name.lower())  # type: ignore[call-overload]
        inside = slice(wide, wide + height), slice(wide, wide + width)
        for matrix in AFFINE:
            a, b, c, d, e, f = matrix
            moved = (a, b, c + wide - (a + b) * wide, d, e, f + wide - (d + e) * wide)
            for interpolation in range(3):
                expected = oracle.apply(Op.AFFINE, padded, moved, interpolation, (255, 0, 255))[inside]
                out = oracle.apply(Op.AFFINE, image, matrix, interpolation | mode << INTERPOLATION_BITS)
                np.testing.assert_array_equal(out, expected)


def fold(place: np.ndarray, size: int, mode: PadMode) -> np.ndarray:
    """A coordinate less half a pixel, in the image: what the documentation says of composed maps."""
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
    ramp = np.linspace(0, 255, width)[None, :, None]
    image = np.broadcast_to(ramp, (height, width, 3)).astype(np.uint8)
    x, y = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    for a, b, c, d, e, f in (then, first):
        u, v = a * (x + 0.5) + b * (y + 0.5) + c - 0.5, d * (x + 0.5) + e * (y + 0.5) + f - 0.5
        x, y = fold(u, width, mode), fold(v, height, mode)
    line = np.concatenate([image[0, -1:, 0], image[0, :, 0], image[0, :1, 0]]).astype(float)
    if mode is not PadMode.WRAP:
        line[0], line[-1] = line[1], line[-2]
    expected = np.interp(x, np.arange(-1, width + 1), line)

    @vg.pipeline
    def both(image: Any) -> Any:
        for each in (first, then):
            coefficients = (*each, 0.0, 0.0)
            image = F.perspective(image, None, None, coefficients=coefficients, padding_mode=mode.name.lower())
        return image

    # Bilinear truncates to integers.
    assert np.abs(made(both, [image])[0].numpy()[..., 0] - expected).max() < 1.01


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


@pytest.mark.parametrize("make", TRANSFORMS, ids=lambda make: type(make()).__name__)
def test_masks_fold_with_the_image_and_boxes_do_not(make: Any) -> None:
    """Nearest images show what masks of their own pixels show; nothing is fill. Boxes and points are those of the
    constant border."""
    image = np.maximum(noise(33, 46, 3, 7), 1)
    sample = {
        "image": image,
        "mask": image[..., 0].copy(),
        "labels": np.array([1]),
        "boxes": np.array([[10, 8, 30, 25]], np.float32),
        "keypoints": np.array([[20.0, 15.0]], np.float32),
    }
    kept = made(make(interpolation="nearest"), [dict(sample)] * 3)
    for mode in MODES:
        transform = make(interpolation="nearest", padding_mode=mode.name.lower())
        assert T.from_dict(transform.to_dict()) == transform
        for out, constant in zip(made(transform, [dict(sample)] * 3), kept, strict=True):
            np.testing.assert_array_equal(out["mask"], out["image"].numpy()[..., 0], f"{transform}")
            assert out["mask"].min() > 0
            for name in ("boxes", "keypoints"):
                np.testing.assert_array_equal(out[name], constant[name])
            # Inside it is what it is with a constant border.
            seen = constant["image"].numpy().min(axis=2) > 0
            np.testing.assert_array_equal(out["image"].numpy()[seen], constant["image"].numpy()[seen])


def test_functions_and_custom_operations_take_borders() -> None:
    image = photo(30, 40)
    for how in ("nearest", "bilinear", "bicubic"):
        border: Any = {"interpolation": how, "padding_mode": "reflect"}
        np.testing.assert_array_equal(made(T.Rotate(33.0, **border), [image])[0], F.rotate(image, 33.0, **border))
        np.testing.assert_array_equal(made(T.ShearX(0.4, **border), [image])[0], F.shear_x(image, 0.4, **border))
        moved = F.translate_y(image, 9.0, **border)
        np.testing.assert_array_equal(made(T.TranslateY(9.0, **border), [image])[0], moved)
    flow = np.random.default_rng(1).normal(0, 0.2, (30, 40, 2)).astype(np.float32)
    bent = F.elastic(image, flow, padding_mode="wrap")
    np.testing.assert_array_equal(bent, F.elastic(image, flow, padding_mode="wrap", device="oracle"))
    moved = F.affine(image, 0.0, (7, 0), 1.0, 0.0, padding_mode="wrap")
    np.testing.assert_array_equal(moved, np.roll(image, 7, axis=1))

    class Shift(T.CustomOp):
        padding_mode = "wrap"

        def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
            return 1.0, 0.0, 3.0, 0.0, 1.0, 0.0

    T.Transform.registry.pop("Shift")
    np.testing.assert_array_equal(made(Shift(), [image])[0], np.roll(image, -3, axis=1))
    with pytest.raises(TypeError, match="class Wrong: padding_mode='mirror'; accepted: 'constant', 'edge'"):

        class Wrong(Shift):
            padding_mode = "mirror"  # type: ignore[assignment]


def test_descriptions_say_the_border() -> None:
    augmenter = vg.Augmenter(T.Rotate(30.0, fill=9, padding_mode="reflect"), seed=0)
    assert "  Rotate 30, border reflect\n" in augmenter.explain(0)
    described = operations_of(augmenter.program([(20, 20)], ids=[0]), 0)
    assert described == [{"op": "Rotate", "angle": 30, "padding_mode": "reflect"}]


def test_far_coordinates_of_smooth_maps_are_exact() -> None:
    """Of a translation by a hundred widths and a quarter of a pixel, as of one by a quarter alone."""
    flags = 1 | PadMode.WRAP << INTERPOLATION_BITS
    near, far = (oracle.apply(Op.AFFINE, photo(20, 32), (1, 0, by, 0, 1, 0), flags) for by in (0.25, 3200.25))
    np.testing.assert_array_equal(near, far)
    bits = FRACTION_BITS[Interpolation.BILINEAR]
    assert not places([1, 0, 1e15, 0, 1, 0], (2, 2), (2, 2), bits).inside_HW.any()
