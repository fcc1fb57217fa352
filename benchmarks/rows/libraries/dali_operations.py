"""DALI's operators for the rows of one operation: images -> images and what the last operator is to do besides."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from nvidia.dali import fn, types
from nvidia.dali import math as dali_math
from nvidia.dali.auto_aug import augmentations

from benchmarks.inputs import MEAN, STD
from benchmarks.rows import catalogue as C

Row = Callable[[Any], tuple[Any, dict[str, Any]]]
NEAREST, LINEAR = types.INTERP_NN, types.INTERP_LINEAR
KINDS = (("", NEAREST), ("_bilinear", LINEAR))
# What the last operator fills in is not normalised any more.
BLACK = [-mean / std for mean, std in zip(MEAN, STD, strict=True)]
# Pillow's sharpness 2.
KERNEL = np.full((3, 3), -1 / 13, np.float32)
KERNEL[1, 1] = 21 / 13


def uniform(low: float, high: float, **options: Any) -> Any:
    return fn.random.uniform(range=[low, high], **options)


def around(width: float) -> Any:
    return uniform(1 - width, 1 + width)


def kept(images: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
    return images, options


def warped(images: Any, matrix: Any, how: Any) -> tuple[Any, dict[str, Any]]:
    """``matrix``: from source to result."""
    return fn.warp_affine(images, matrix=matrix, interp_type=how, fill_value=0, inverse_map=False), {}


def rotated(images: Any, how: Any) -> tuple[Any, dict[str, Any]]:
    angle = uniform(-C.ANGLE, C.ANGLE)
    return fn.rotate(images, angle=angle, keep_size=True, interp_type=how, fill_value=0), {}


def sheared(images: Any, axis: int, how: Any) -> tuple[Any, dict[str, Any]]:
    pair = [uniform(-C.SHEAR, C.SHEAR), 0.0] if axis == 0 else [0.0, uniform(-C.SHEAR, C.SHEAR)]
    return warped(images, fn.transforms.shear(shear=fn.stack(*pair)), how)


def translated(images: Any, axis: int) -> tuple[Any, dict[str, Any]]:
    span = (-C.TRANSLATE, C.TRANSLATE)
    pair = [uniform(*span), 0.0] if axis == 0 else [0.0, uniform(*span)]
    return warped(images, fn.transforms.translation(offset=fn.stack(*pair)), NEAREST)


def affine(images: Any, how: Any) -> tuple[Any, dict[str, Any]]:
    centre, shift = (112.0, 112.0), C.AFFINE_SHIFT * 224
    matrix = fn.transforms.shear(angles=fn.stack(uniform(-C.AFFINE_SHEAR, C.AFFINE_SHEAR), 0.0), center=centre)
    scale = uniform(*C.AFFINE_SCALE)
    matrix = fn.transforms.scale(matrix, scale=fn.stack(scale, scale), center=centre)
    matrix = fn.transforms.rotation(matrix, angle=uniform(-C.AFFINE_ANGLE, C.AFFINE_ANGLE), center=centre)
    matrix = fn.transforms.translation(matrix, offset=uniform(-shift, shift, shape=[2]))
    return warped(images, matrix, how)


def stretched(images: Any) -> tuple[Any, dict[str, Any]]:
    scale = uniform(*C.STRETCH, shape=[2])
    return warped(images, fn.transforms.scale(scale=scale, center=(112.0, 112.0)), LINEAR)


def compressed(images: Any) -> Any:
    quality = fn.random.uniform(range=[C.QUALITY[0], C.QUALITY[1] + 1], dtype=types.INT32)
    return fn.jpeg_compression_distortion(images, quality=quality)


def quarter_turns(images: Any) -> tuple[Any, dict[str, Any]]:
    angle = fn.random.uniform(values=[90.0, 180.0, 270.0])
    return fn.rotate(images, angle=angle, keep_size=True, interp_type=NEAREST, fill_value=0), {}


def padded(images: Any, size: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    return images, {"crop": (size, size), "out_of_bounds_policy": "pad", "fill_values": BLACK, **options}


def random_crop(images: Any, size: int, padding: int) -> Any:
    whole = size + 2 * padding
    images = fn.crop(images, crop=(whole, whole), out_of_bounds_policy="pad")
    return fn.crop(images, crop=(size, size), crop_pos_x=uniform(0, 1), crop_pos_y=uniform(0, 1))


def resized(images: Any, how: Any) -> tuple[Any, dict[str, Any]]:
    return fn.resize(images, size=[C.SMALLER, C.SMALLER], interp_type=how, antialias=True), {}


def resized_crop(images: Any, how: Any = LINEAR, size: int = 224, scale: tuple[float, float] = (0.08, 1.0)) -> Any:
    return fn.random_resized_crop(images, size=[size, size], random_area=list(scale), interp_type=how, antialias=True)


def jitter(images: Any, widths: tuple[float, ...]) -> Any:
    brightness, contrast, saturation, hue = widths
    factors = {"brightness": around(brightness), "contrast": around(contrast), "saturation": around(saturation)}
    if hue > 0:
        factors["hue"] = uniform(-360 * hue, 360 * hue)
    return fn.color_twist(images, **factors)


def solarized(images: Any) -> Any:
    # In bytes throughout: a comparison is 0 or 1.
    inverted = types.Constant(255, types.UINT8) - images
    return inverted * (images >= C.THRESHOLD) + images * (images < C.THRESHOLD)


def grayscale(images: Any) -> Any:
    gray = fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)
    return fn.color_space_conversion(gray, image_type=types.GRAY, output_type=types.RGB)


def blurred(images: Any, kernel: int) -> Any:
    return fn.gaussian_blur(images, window_size=kernel, sigma=uniform(*C.SIGMA))


def erased(images: Any, shape: Any, normalized: bool = False) -> tuple[Any, dict[str, Any]]:
    anchor = uniform(0, 1, shape=[2])
    options = {"normalized_anchor": True, "normalized_shape": normalized, "centered_anchor": True}
    return fn.erase(images, anchor=anchor, shape=shape, axis_names="HW", fill_value=0, **options), {}


def random_erasing(images: Any) -> tuple[Any, dict[str, Any]]:
    area, ratio = uniform(0.02, 0.33), dali_math.exp(uniform(math.log(0.3), math.log(3.3)))
    sides = fn.stack(dali_math.sqrt(area * ratio), dali_math.sqrt(area / ratio))
    return erased(images, dali_math.min(sides, 1.0), normalized=True)


def grid_mask(images: Any) -> tuple[Any, dict[str, Any]]:
    tile = fn.random.uniform(range=[C.GRID[0], C.GRID[1] + 1], dtype=types.INT32)
    shift = uniform(0, C.GRID[0])
    return fn.grid_mask(images, ratio=0.5, tile=tile, shift_x=shift, shift_y=shift), {}


def simple(operation: Callable[[Any], Any]) -> Row:
    """A row of one operator that leaves nothing to the last one."""

    def row(images: Any) -> tuple[Any, dict[str, Any]]:
        return operation(images), {}

    return row


ROWS: dict[str, Row] = {
    "normalize": kept,
    "hflip": partial(kept, mirror=1),
    "vflip": simple(lambda images: fn.flip(images, vertical=1, horizontal=0)),
    "transpose": simple(lambda images: fn.transpose(images, perm=[1, 0, 2], transpose_layout=False)),
    "rotate90": quarter_turns,
    "pad": partial(padded, size=224 + 2 * C.PADDING),
    "center_crop": partial(padded, size=C.CUT),
    "random_crop": simple(lambda images: random_crop(images, 224, C.PADDING)),
    "resize": partial(resized, how=LINEAR),
    "resize_bicubic": partial(resized, how=types.INTERP_CUBIC),
    "resized_crop": simple(resized_crop),
    "resized_crop_bicubic": simple(lambda images: resized_crop(images, types.INTERP_CUBIC)),
    "shear_y": partial(sheared, axis=1, how=NEAREST),
    "translate_x": partial(translated, axis=0),
    "translate_y": partial(translated, axis=1),
    "stretch": stretched,
    "brightness": simple(lambda images: fn.brightness(images, brightness=around(C.FACTOR))),
    "contrast": simple(lambda images: fn.contrast(images, contrast=around(C.FACTOR))),
    "saturation": simple(lambda images: fn.saturation(images, saturation=around(C.FACTOR))),
    "hue": simple(lambda images: fn.hue(images, hue=uniform(-360 * C.HUE, 360 * C.HUE))),
    "color_jitter": simple(lambda images: jitter(images, C.JITTER)),
    "sharpness": simple(lambda images: fn.experimental.filter(images, KERNEL, dtype=types.UINT8)),
    "posterize": simple(lambda images: images & types.Constant(256 - (1 << (8 - C.BITS)), types.UINT8)),
    "solarize": simple(solarized),
    "invert": simple(lambda images: types.Constant(255, types.UINT8) - images),
    "autocontrast": simple(augmentations.auto_contrast),
    "equalize": simple(fn.experimental.equalize),
    "grayscale": simple(grayscale),
    "blur_5": simple(lambda images: blurred(images, 5)),
    "blur_23": simple(lambda images: blurred(images, 23)),
    "jpeg": simple(compressed),
    "clahe": simple(lambda images: fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)),
    "gaussian_noise": simple(lambda images: fn.noise.gaussian(images, stddev=255 * C.NOISE)),
    "salt_and_pepper": simple(lambda images: fn.noise.salt_and_pepper(images, prob=C.SALT)),
    "shot_noise": simple(lambda images: fn.noise.shot(images, factor=uniform(*C.PHOTONS))),
    "cutout": partial(erased, shape=[float(C.HOLE), float(C.HOLE)]),
    "random_erasing": random_erasing,
    "grid_mask": grid_mask,
}
for _word, _how in KINDS:
    ROWS[f"rotate{_word}"] = partial(rotated, how=_how)
    ROWS[f"affine{_word}"] = partial(affine, how=_how)
    ROWS[f"shear_x{_word}"] = partial(sheared, axis=0, how=_how)
