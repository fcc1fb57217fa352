"""Corner cases of the executors' contract: arguments and chains that random programs seldom draw, as tables.

Each has gone wrong in some kernel, or is where numbers, vectors or tiles end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from tests.images import Image, gray, noise, photo
from tests.programs import (
    NAN,
    Step,
    crop,
    erase,
    grid,
    random_kernels,
    random_step,
    resized_crop,
    rotate,
    step,
)
from variegate.program.coords import MAX_COORD
from variegate.program.ops import INTERPOLATION_BITS, Op, PadMode

Case = tuple[list[Step], Image]

FILL = (255, 0, 255)
REAL = (1, 2)  # bilinear and bicubic
ALL = (0, *REAL)

# One instruction at the ends of its arguments, for images of every size.
EXTREMES: dict[str, Step] = {
    "blur of one pixel": step(Op.GAUSSIAN_BLUR, 1, 1, 1.0, 1.0),
    "blur of no width": step(Op.GAUSSIAN_BLUR, 3, 3, 1e-6, 0.3),
    "blur in part": step(Op.GAUSSIAN_BLUR, 7, 7, 2.0, 2.0, 0.3),
    "blur in full": step(Op.GAUSSIAN_BLUR, 3, 5, 1.0, 0.5, 1.0),
    "blur along x": step(Op.GAUSSIAN_BLUR, 23, 1, 50.0, 1.0),
    "widest blur": step(Op.GAUSSIAN_BLUR, 101, 401, 1000.0, 60.0),
    "no motion": step(Op.MOTION_BLUR, 1, 3.0, 0.0),
    "motion down": step(Op.MOTION_BLUR, 7, 90.0, -1.0),
    "much motion": step(Op.MOTION_BLUR, 23, 33.0, 1.0),
    "most motion": step(Op.MOTION_BLUR, 99, 170.0, 0.0),
    "clahe by 8": step(Op.CLAHE, 1.7, 8, 8),
    "clahe of one tile": step(Op.CLAHE, 30.0, 1, 1),
    "clahe by 3 and 16": step(Op.CLAHE, 9.0, 3, 16),
    "median of 3": step(Op.MEDIAN, 3),
    "median of 5": step(Op.MEDIAN, 5),
    "median of 7": step(Op.MEDIAN, 7),
    "dilation": step(Op.MORPHOLOGY, 2, 3, 1),
    "erosion by a line": step(Op.MORPHOLOGY, 31, 1, 0),
    "dilation by an ellipse": step(Op.MORPHOLOGY, 9, 31, 1),
    "most zooms": step(Op.ZOOM_BLUR, 30, 0.5),
    "wide fringes": step(Op.ABERRATION, 1, 1, -1, -1),
    "far scatter": step(Op.SCATTER, 400, 3, 7),
    "widest filter": step(Op.CONVOLVE_FLOAT, table=np.full((1, 31, 31), 256 / 961)),
    "filters of nothing": step(Op.CONVOLVE_FLOAT, table=np.zeros((2, 1, 1))),
    "unsharp by all": step(Op.UNSHARP_MASK, 7, 5, 0.8, 1.3, 1.5, 3),
}


def colors_mixed_before_a_map() -> Iterator[Case]:
    """What an interpolating map reads goes through a table per channel, which cannot mix channels."""
    sepia = np.array([[0.25, 0.75, 0.125, 0], [0.25, 0.5, 0.125, 8], [0.25, 0.5, 0.125, 0]], np.float32)
    mixing = [
        step(Op.SATURATION, 0.2),
        step(Op.HUE, 0.3),
        step(Op.GRAYSCALE),
        step(Op.PERMUTE, 2, 0, 1),
        step(Op.COLOR_MATRIX, table=sepia),
    ]
    for mix, flags in product(mixing, ALL):
        yield [mix, step(Op.PERSPECTIVE, 1.0, 0.05, 0.0, 0.02, 1.0, 0.0, 0.001, 0.001, flags=flags)], photo(40, 50)
        yield [mix, step(Op.AFFINE, 700, 3, -900, 0.1, 1, 0, flags=flags)], photo(40, 50)


def rectangles_outside() -> Iterator[Case]:
    boxes = [(0, -9, 5, 4), (-9, 0, 4, 5), (3, 50, 2, 2), (40, 3, 2, 2), (2, -3, 4, 3), (0, 0, 0, 5)]
    for box, random in product(boxes, (False, True)):
        yield [erase(box, random=random, fill=(9, 200, 1))], photo(40, 50)


def horizon_through_pixel_centers() -> Iterator[Case]:
    """At x = 2.5 the denominator is exactly 0."""
    for flags in ALL:
        yield [step(Op.PERSPECTIVE, 1, 0, 0, 0, 1, 0, -0.4, 0, flags=flags, fill=(7, 8, 9))], photo(20, 30)


def crops_far_outside() -> Iterator[Case]:
    for offset in (40_000, 65_536 + 3, -40_000):
        yield [rotate(20.0), crop(-5, offset, 30, 30, fill=(1, 2, 3))], photo(40, 50)


def points_on_the_border_after_a_flip() -> Iterator[Case]:
    """Inside is [0, W): a flip folded into the map must not make it (0, W], which trades a line of pixels for fill."""
    warps = [
        Step(Op.ROTATE, (-90.0, NAN, NAN, 0.0)),
        Step(Op.ROTATE, (90.0, NAN, NAN, 0.0)),
        step(Op.SHEAR_X, 1.0),
        step(Op.SHEAR_Y, -1.0),
        step(Op.TRANSLATE_X, 0.5),
        step(Op.TRANSLATE_X, -0.5),
        step(Op.TRANSLATE_Y, -0.5),
    ]
    firsts = [step(Op.HFLIP), step(Op.VFLIP), rotate(180.0)]
    for first, warp, flags, size in product(firsts, warps, REAL, ((20, 129), (33, 64), (17, 65))):
        yield [first, replace(warp, flags=flags, fill=FILL)], photo(*size)


def resized_boxes_with_fractions() -> Iterator[Case]:
    boxes = ((0.3, 0.7, 20.1, 30.7), (1.1, 2.2, 38.9, 47.8), (0.0, 0.5, 40.0, 1.0))
    for box, flags in product(boxes, ALL):
        yield [resized_crop(box, 33, 17, flags)], photo(40, 50)


def warps(width: int, flags: int) -> list[Step]:
    return [
        rotate(0.31, flags, FILL),
        Step(Op.AFFINE, (0.83, 0.2, 1.7, 1e-4, 0.9, 0.4), flags, FILL),
        step(Op.SHEAR_X, -0.27, flags=flags, fill=FILL),
        Step(Op.PERSPECTIVE, (1.02, 0.1, -3, 1e-4, 1.1, 1, 0.11 / width, 1e-3), flags, FILL),
        # Behind the viewer, on the right of the image's middle.
        Step(Op.PERSPECTIVE, (-0.9, 0.03, width / 2, -1e-3, 0.7, 9.3, -2.03 / width, 1e-3), flags, FILL),
    ]


def wide_images() -> Iterator[Case]:
    for width, flags in product((1500, 4000), REAL):
        strip = np.concatenate([photo(12, 300)] * (width // 300 + 1), axis=1)[:, :width]
        img_HWC = np.concatenate([strip, noise(12, width)])
        for warp in warps(width, flags):
            yield [warp], img_HWC


def maps_that_take_in_flips_and_crops() -> Iterator[Case]:
    """One pass, and yet the pixels of two."""
    for flags, first in product(REAL, (Op.HFLIP, Op.VFLIP)):
        for warp in (rotate(17.3, flags, FILL), Step(Op.AFFINE, (1.3, -0.2, 3.1, 0.4, 0.8, -2.7), flags, FILL)):
            for image in (photo(97, 61), noise(33, 64), gray(40, 50)):
                height, width = image.shape[:2]
                yield [step(first), warp, Step(Op.ROT90, (1,), size=(width, height))], image
    for flags in REAL:
        for warp in warps(22, flags):
            yield [crop(5, 3, 21, 22), warp], noise(33, 64)


def maps_after_a_quarter_turn() -> Iterator[Case]:
    """Sums are rounded along x first, so that a quarter turn before must be run by itself."""
    for flags, image in product(REAL, (noise(40, 40), photo(33, 20))):
        yield [Step(Op.ROT90, (1,), size=image.shape[1::-1]), rotate(23.0, flags, FILL)], image


def tables_before_maps() -> Iterator[Case]:
    """The second pass reads what the first wrote."""
    tables = [step(Op.POSTERIZE, 3), step(Op.AUTOCONTRAST), step(Op.RGB_SHIFT, 40, -20, 7), step(Op.EQUALIZE)]
    images = [noise(41, 67), gray(41, 67), photo(17, 65), noise(9, 5)]
    for flags, table in product(REAL, tables):
        for warp, image in zip(warps(67, flags)[:4], images, strict=True):
            yield [table, warp, rotate(5.0), table, warp], image


def wild_matrices() -> Iterator[Case]:
    matrices = [
        (1e300, 0, 0, 0, 1, 0),
        (1, 0, 1e17, 0, 1, 0),
        (1e6, 3.0, -5e5, 0.2, 1.0, 0.0),
        (1, 1e8, 0, 0, 1e8, 0),
    ]
    for matrix, flags, image in product(matrices, REAL, (noise(20, 33), noise(1, 1), gray(3, 2))):
        yield [Step(Op.AFFINE, matrix, flags, FILL)], image
        yield [Step(Op.PERSPECTIVE, (*matrix, 0.01, -2.0), flags, FILL)], image
        yield [Step(Op.PERSPECTIVE, (*matrix, 1e9, 3), flags, FILL)], image


# Where 16.16 numbers, int32, coordinates (MAX_COORD) and int64 end, and beyond all of them.
LIMITS = (2.0**15, 2.0**31, 2.0**45, MAX_COORD, 2.0**47, 2.0**62, 2.0**63, 1e300)


def maps_to_the_limits_of_coordinates(interpolation: int) -> Iterator[Case]:
    """A wrong limit once showed wrong pixels at every processor level, and no ordinary map came near it."""
    for limit, mode in product(LIMITS, PadMode):
        options = {"flags": interpolation | mode << INTERPOLATION_BITS, "fill": (7, 80, 200)}
        for far in (limit, -limit, limit - 1, 1 - limit, limit - 20, limit / 20):
            yield [step(Op.AFFINE, 1, 0, far, 0, 1, 0, **options)], photo(17, 21)
            yield [step(Op.AFFINE, 1, 0, 0, 0, 1, far, **options)], gray(9, 33)
            # From within the image to the limit, along a line and along a column.
            yield [step(Op.AFFINE, far, 0, 3, 0, 1, 0, **options)], photo(17, 21)
            yield [step(Op.AFFINE, 1, far, -7 * far, 0.25, 1, 2, **options)], gray(9, 33)
            yield [step(Op.PERSPECTIVE, 1, 0, far, 0, 1, 0, 0.01, 0.02, **options)], photo(17, 21)
            # Coordinates come back into the image: far from it before the division.
            yield [step(Op.PERSPECTIVE, far, 0, 0, 0, far, 0, 0, far / 16, **options)], gray(9, 33)


def chains_that_return_from_the_limits() -> Iterator[Case]:
    """Run one after another, the second map only sees what the first one left; nothing overflows between them."""
    for limit, flags in product(LIMITS, ALL):
        for first, second in ((limit, -limit), (-limit, limit), (limit, 0.0)):
            there = step(Op.AFFINE, 1, 0, first, 0, 1, first, flags=flags, fill=(1, 2, 3))
            back = step(Op.AFFINE, 1, 0, second, 0, 1, second, flags=flags, fill=(255, 0, 9))
            yield [there, back], photo(17, 21)
            yield [there, step(Op.INVERT), back, step(Op.HFLIP)], photo(17, 21)


def with_border(taken: Step, mode: PadMode) -> Step:
    return replace(taken, flags=taken.flags & 7 | mode << INTERPOLATION_BITS)


def far_maps(height: int, width: int) -> list[Step]:
    """Also by many times the image's size, and to where numbers end."""
    affine = [
        (0.83, 0.2, 1.7, 1e-4, 0.9, 0.4),
        (1, 0, -3.0 * width - 2, 0, 1, 5.0 * height + 1),
        (30, 7, -40 * width, -9, 25, 3),
        (1, 0, -3.25 * width, 0, 1, 5.5),
        (1.7, 0, -20, 0, -0.3, 9),
        (1e200, 3, 1e300, 2, 1e4, -1e9),
        (1, 0, 1e300, 0, 1, -1e13),
        (2, 0, 1e300, 0, 1e300, -1e13),
    ]
    perspective = [
        (1.02, 0.1, -3, 1e-4, 1.1, 1, 0.11 / width, 1e-3),
        # Behind the viewer, and through infinity.
        (-0.9, 0.03, width / 2, -1e-3, 0.7, 9.3, -2.03 / width, 1e-3),
        (0, 0, 1, 0, 0, 1, -1 / (width // 2 + 0.5), 0),
    ]
    return [
        *(rotate(31.0), rotate(180.0), step(Op.SHEAR_X, -1.27), step(Op.SHEAR_Y, -0.33)),
        step(Op.TRANSLATE_Y, -2.0 * height),
        *(step(Op.AFFINE, *matrix) for matrix in affine),
        *(step(Op.PERSPECTIVE, *coefficients) for coefficients in perspective),
        random_step(np.random.default_rng(height), Op.DISPLACE, height, width),
    ]


def borders(interpolation: int) -> Iterator[Case]:
    rng = np.random.default_rng(interpolation)
    others = [step(Op.HFLIP), step(Op.ROT90, 2.0), rotate(20.0, interpolation, (9, 8, 7)), step(Op.INVERT)]
    for mode, size in product(PadMode, ((1, 1), (1, 7), (9, 23), (33, 64))):
        image = gray(*size) if size == (1, 7) else photo(*size)
        maps = [with_border(replace(each, flags=interpolation), mode) for each in far_maps(*size)]
        for each in maps:
            yield [each], image
        for _ in range(6):
            yield [(maps + others)[i] for i in rng.integers(len(maps + others), size=3)], image


def displacements() -> Iterator[Case]:
    """Whole pixels before and after a grid."""
    size, turned, cropped = (61, 90), (90, 61), (40, 33)
    flip, upside_down = step(Op.HFLIP), step(Op.VFLIP)
    invert, solarize = step(Op.INVERT), step(Op.SOLARIZE, 100)
    turn, cut = step(Op.ROT90, 1, size=turned), crop(3, 20, *cropped)
    for flags in ALL:
        bent, bent_turned, bent_cropped = (smooth_grid(flags, each, flags) for each in (size, turned, cropped))
        chains = [
            [flip, bent],
            [upside_down, invert, flip, bent, solarize],
            [cut, bent_cropped],
            [turn, bent_turned, flip],
            [bent, solarize, cut, upside_down],
            [flip, bent, invert, step(Op.TRANSLATE_X, 5, fill=(1, 2, 3))],
            [bent, step(Op.EQUALIZE), flip],
        ]
        for number, chain in enumerate(chains):
            yield chain, (photo, gray)[number % 2](*size)


def smooth_grid(seed: int, size: tuple[int, int], flags: int = 1, fill: tuple[int, int, int] = (9, 99, 199)) -> Step:
    """Nodes 16 pixels apart, moved by 2 pixels or so."""
    lines, columns = ((side - 1) // 16 + 2 for side in size)
    nodes = np.random.default_rng(seed).normal(0, 128, (lines, columns, 2)).astype(np.int16)
    return grid(nodes, (16.0, 16.0), flags=flags, fill=fill)


def hues() -> Iterator[Case]:
    """Both ends of every channel and steps that share few divisors with 255, so that every sextant has many spans."""
    coarse = color_grid(np.arange(0, 256, 17), np.append(np.arange(0, 256, 3), 254))
    fine = color_grid(np.append(np.arange(0, 256, 29), 255), np.arange(256))
    for shift in (0, 1, 42, 127, 128, 255):
        yield [step(Op.HUE, (shift + 0.5) / 255)], coarse
    for shift in (0, 77):
        yield [step(Op.HUE, (shift + 0.5) / 255)], fine


def color_grid(red: np.ndarray, others: np.ndarray) -> Image:
    levels = np.meshgrid(red, others, others, indexing="ij")
    return np.stack(levels, axis=-1).reshape(-1, len(others), 3).astype(np.uint8)


def noisy_rows() -> Iterator[Case]:
    """Noise is drawn for 256 pixels at a time; then rectangles that begin and end anywhere in such a chunk."""
    for width, make in product((1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 543), (photo, gray)):
        rectangles = ((0, width // 3, 2, width // 2 + 1), (1, -4, 9, 6), (2, width - 1, 5, 5))
        erased = step(Op.ERASE, 3, 1, 9, table=rectangles)
        yield [step(Op.GAUSSIAN_NOISE, 0.05, 0.2, 4), erased], make(3, width)
        yield [step(Op.SHOT_NOISE, 2.5, 5)], make(3, width)
        yield [step(Op.SALT_AND_PEPPER, 0.4, 0.3, 6)], make(3, width)


def random_filters() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for size in ((1, 1), (3, 2), (17, 31), (9, 65), (40, 224)):
        for number in range(12):
            kernels = step(Op.CONVOLVE_FLOAT, table=random_kernels(rng))
            yield [step(Op.HFLIP), step(Op.INVERT), kernels], noise(*size, 3, number) if number % 2 else gray(*size)


# In which geometries the pixels are the oracle's: where one map follows another, rounding between them decides.
EXACT, BOTH = ("exact",), ("exact", "composed")
CORNERS: dict[str, tuple[Callable[[], Iterator[Case]], tuple[str, ...]]] = {
    "nearest borders": (lambda: borders(0), BOTH),
    "bilinear borders": (lambda: borders(1), EXACT),
    "bicubic borders": (lambda: borders(2), EXACT),
    "chains that return from the limits": (chains_that_return_from_the_limits, BOTH),
    "colors mixed before a map": (colors_mixed_before_a_map, BOTH),
    "crops far outside": (crops_far_outside, BOTH),
    "displacements": (displacements, BOTH),
    "horizon through pixel centers": (horizon_through_pixel_centers, EXACT),
    "hues": (hues, EXACT),
    "maps after a quarter turn": (maps_after_a_quarter_turn, BOTH),
    "maps that take in flips and crops": (maps_that_take_in_flips_and_crops, BOTH),
    "nearest maps to the limits": (lambda: maps_to_the_limits_of_coordinates(0), EXACT),
    "bilinear maps to the limits": (lambda: maps_to_the_limits_of_coordinates(1), EXACT),
    "bicubic maps to the limits": (lambda: maps_to_the_limits_of_coordinates(2), EXACT),
    "noisy rows": (noisy_rows, EXACT),
    "points on the border after a flip": (points_on_the_border_after_a_flip, BOTH),
    "random filters": (random_filters, EXACT),
    "rectangles outside": (rectangles_outside, EXACT),
    "resized boxes with fractions": (resized_boxes_with_fractions, EXACT),
    "tables before maps": (tables_before_maps, EXACT),
    "wide images": (wide_images, EXACT),
    "wild matrices": (wild_matrices, EXACT),
}
