"""Interpolation in integers: near Pillow's doubles at any width, the same bits everywhere, mirrored images alike."""

from __future__ import annotations

import numpy as np
import pytest

from tests import oracle
from tests.executors.contract import Device, check, every_device
from tests.images import Image, gray, noise, photo
from tests.pillow_oracle import run_pillow
from tests.programs import Step, crop, program_of, rotate, step
from variegate.program.lowering import lower
from variegate.program.ops import Interpolation, Op

FILL = (255, 0, 255)
SMOOTH = pytest.mark.parametrize("flags", [1, 2], ids=["bilinear", "bicubic"])


def wide(width: int, height: int = 24) -> Image:
    """A photo's pixels stretched over a strip, which is smooth, beside noise, which is not."""
    strip = np.concatenate([photo(height // 2, 300)] * (width // 300 + 1), axis=1)[:, :width]
    return np.concatenate([strip, noise(height - height // 2, width)])


def warps(width: int, flags: int) -> list[Step]:
    middle = width / 2
    return [
        rotate(0.31, flags, FILL),
        Step(Op.AFFINE, (0.83, 0.2, 1.7, 1e-4, 0.9, 0.4), flags, FILL),
        step(Op.SHEAR_X, -0.27, flags=flags, fill=FILL),
        Step(Op.PERSPECTIVE, (1.02, 0.1, -3, 1e-4, 1.1, 1, 0.11 / width, 1e-3), flags, FILL),
        # Behind the viewer, on the right of the image's middle.
        Step(Op.PERSPECTIVE, (-0.9, 0.03, middle, -1e-3, 0.7, 9.3, -2.03 / width, 1e-3), flags, FILL),
    ]


@SMOOTH
@pytest.mark.parametrize("width", [32, 223, 1024, 4000])
def test_like_pillow_at_any_width(flags: int, width: int) -> None:
    img = wide(width)
    for warp in warps(width, flags):
        out = oracle.apply(warp.op, img, warp.args, flags, FILL).astype(int)
        difference = np.abs(out - run_pillow(warp.op.name, img, *warp.args, flags=flags, fill=FILL))
        assert np.count_nonzero(difference > 1) <= difference.size // 1000, warp
        assert difference.max() <= 2, warp


@every_device
@SMOOTH
def test_wide_images_are_the_same_bits(device: Device, flags: int) -> None:
    images = [wide(width) for width in (1500, 4000) for _ in warps(width, flags)]
    chains = [[warp] for width in (1500, 4000) for warp in warps(width, flags)]
    check(device, program_of(chains, images), images, chains)


@every_device
@SMOOTH
@pytest.mark.parametrize("first", [Op.HFLIP, Op.VFLIP], ids=lambda op: op.name)
def test_what_a_map_takes_in_changes_no_bit(device: Device, flags: int, first: Op) -> None:
    """A flip or a crop before, or a flip or a quarter turn behind: one pass, and yet the pixels of two."""
    images = [photo(97, 61), noise(33, 64), gray(40, 50)]
    for warp in (rotate(17.3, flags, FILL), Step(Op.AFFINE, (1.3, -0.2, 3.1, 0.4, 0.8, -2.7), flags, FILL)):
        chains = []
        for image in images:
            height, width = image.shape[:2]
            chains.append([step(first), warp, Step(Op.ROT90, (1,), size=(width, height))])
        program = program_of(chains, images)
        assert lower(program).num_passes.tolist() == [1, 1, 1]  # type: ignore[union-attr]
        check(device, program, images, chains)
    cropped = [[crop(5, 3, 21, 22), warp] for warp in warps(22, flags)]
    check(device, program_of(cropped, [images[1]] * 5), [images[1]] * 5, cropped)


@every_device
@SMOOTH
def test_axes_that_changed_places_stay_the_same_bits(device: Device, flags: int) -> None:
    """Sums are rounded along x first, so that a quarter turn before must be run by itself."""
    images = [noise(40, 40), photo(33, 20)]
    chains = [[Step(Op.ROT90, (1,), size=i.shape[1::-1]), rotate(23.0, flags, FILL)] for i in images]
    check(device, program_of(chains, images), images, chains)


@every_device
@SMOOTH
def test_tables_act_on_what_is_read(device: Device, flags: int) -> None:
    tables = [step(Op.POSTERIZE, 3), step(Op.AUTOCONTRAST), step(Op.RGB_SHIFT, 40, -20, 7), step(Op.EQUALIZE)]
    images = [noise(41, 67), gray(41, 67), photo(17, 65), noise(9, 5)]
    for table in tables:
        # The second pass reads what the first wrote.
        chains = [[table, warp, rotate(5.0), table, warp] for warp in warps(67, flags)[:4]]
        check(device, program_of(chains, images), images, chains, geometry="exact")


@every_device
@SMOOTH
def test_every_map_of_a_chain_has_its_own_outside(device: Device, flags: int) -> None:
    """20.25 pixels to the left, then 30.25 to the right: whole pixels in all, so that the source's own are read. What
    the first map shifted in has its colour, what the second did, that of the second."""
    img = noise(9, 70)
    chain = [
        step(Op.TRANSLATE_X, -20.25, flags=flags, fill=(1, 2, 3)),
        step(Op.TRANSLATE_X, 30.25, flags=flags, fill=(9, 8, 7)),
    ]
    program = program_of([chain], [img])
    assert lower(program).num_passes.tolist() == [1]  # type: ignore[union-attr]
    out = device.run(program, [img], geometry="composed")[0]
    np.testing.assert_array_equal(out[:, :30], np.broadcast_to((9, 8, 7), (9, 30, 3)))
    # x = 30 lies a quarter of a pixel within the second map's border.
    np.testing.assert_array_equal(out[:, 30:], img[:, 20:60])
    chain = [chain[1], chain[0]]
    out = device.run(program_of([chain], [img]), [img], geometry="composed")[0]
    np.testing.assert_array_equal(out[:, :10], np.broadcast_to((9, 8, 7), (9, 10, 3)))
    np.testing.assert_array_equal(out[:, 10:50], img[:, :40])
    np.testing.assert_array_equal(out[:, 50:], np.broadcast_to((1, 2, 3), (9, 20, 3)))


@every_device
@SMOOTH
@pytest.mark.parametrize(
    "matrix",
    [(1e300, 0, 0, 0, 1, 0), (1, 0, 1e17, 0, 1, 0), (1e6, 3.0, -5e5, 0.2, 1.0, 0.0), (1, 1e8, 0, 0, 1e8, 0)],
)
def test_wild_matrices_are_safe(device: Device, flags: int, matrix: tuple[float, ...]) -> None:
    images = [noise(20, 33), noise(1, 1), gray(3, 2)]
    for op, args in ((Op.AFFINE, matrix), (Op.PERSPECTIVE, (*matrix, 0.01, -2.0)), (Op.PERSPECTIVE, (*matrix, 1e9, 3))):
        chains = [[Step(op, args, flags, FILL)] for _ in images]
        check(device, program_of(chains, images), images, chains)


def test_weights_of_both_kinds_sum_up_to_one() -> None:
    """A constant image stays constant, to the bit, wherever it is read."""
    img = np.full((20, 30, 3), (255, 1, 130), np.uint8)
    for flags in (Interpolation.BILINEAR, Interpolation.BICUBIC):
        for warp in warps(30, flags):
            out = oracle.apply(warp.op, img, warp.args, flags, (255, 1, 130))
            np.testing.assert_array_equal(out, img)
