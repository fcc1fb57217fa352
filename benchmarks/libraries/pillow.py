"""Pillow's own operation for each function, as its users call it, on one image."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from benchmarks.cases import Case
from benchmarks.libraries import Absent, Library, Ways

NEAREST, BILINEAR = Image.Resampling.NEAREST, Image.Resampling.BILINEAR
AFFINE, PERSPECTIVE = Image.Transform.AFFINE, Image.Transform.PERSPECTIVE
COEFFICIENTS = (1.2, 0.05, -20.0, 0.03, 1.15, -10.0, 0.0004, 0.0002)


def _warp(coefficients: tuple[float, ...], how: Any = NEAREST, kind: Any = AFFINE) -> Callable[[Any], Any]:
    return lambda image: image.transform(image.size, kind, coefficients, how)


def _turned() -> tuple[float, ...]:
    """A rotation by 20 degrees with scale and shear; its exact numbers cost nothing more or less."""
    c, s = math.cos(math.radians(20)) / 1.1, math.sin(math.radians(20)) / 1.1
    return c, s - 0.08 * c, -15.0, -s, c, 40.0


def _hue(image: Any) -> Any:
    hue, saturation, value = image.convert("HSV").split()
    turned = np.asarray(hue) + np.uint8(25)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")


def _gamma(image: Any) -> Any:
    return image.point([int((255 + 1 - 1e-3) * (level / 255.0) ** 1.3) for level in range(256)] * 3)


def _center_crop(image: Any) -> Any:
    left, top = round((image.width - 96) / 2), round((image.height - 96) / 2)
    return image.crop((left, top, left + 96, top + 96))


def _erase(image: Any) -> Any:
    erased = image.copy()
    erased.paste((0, 0, 0), (40, 30, 100, 80))
    return erased


def _permute(image: Any) -> Any:
    red, green, blue = image.split()
    return Image.merge("RGB", (blue, red, green))


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "horizontal_flip": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "vertical_flip": lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    "rotate": lambda image: image.rotate(30.0),
    "rotate_bilinear": lambda image: image.rotate(30.0, BILINEAR),
    "affine": _warp(_turned()),
    "affine_bilinear": _warp(_turned(), BILINEAR),
    "perspective": _warp(COEFFICIENTS, BILINEAR, PERSPECTIVE),
    "shear_x": _warp((1, 0.2, 0, 0, 1, 0)),
    "shear_y": _warp((1, 0, 0, 0.2, 1, 0)),
    "translate_x": _warp((1, 0, -20, 0, 1, 0)),
    "translate_y": _warp((1, 0, 0, 0, 1, -20)),
    "pad": lambda image: ImageOps.expand(image, 16),
    "crop": lambda image: image.crop((12, 10, 142, 130)),
    "center_crop": _center_crop,
    "resize": lambda image: image.resize((160, 160), BILINEAR),
    "resized_crop": lambda image: image.resize((160, 160), BILINEAR, box=(12, 10, 142, 130)),
    "adjust_brightness": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "adjust_contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.3),
    "adjust_saturation": lambda image: ImageEnhance.Color(image).enhance(1.3),
    "adjust_hue": _hue,
    "adjust_gamma": _gamma,
    "adjust_sharpness": lambda image: ImageEnhance.Sharpness(image).enhance(1.3),
    "autocontrast": ImageOps.autocontrast,
    "equalize": ImageOps.equalize,
    "grayscale": lambda image: image.convert("L").convert("RGB"),
    "invert": ImageOps.invert,
    "permute_channels": _permute,
    "posterize": lambda image: ImageOps.posterize(image, 4),
    "solarize": lambda image: ImageOps.solarize(image, 128),
    "solarize_add": lambda image: image.point([min(x + 20, 255) if x < 128 else x for x in range(256)] * 3),
    "erase": _erase,
    "median_blur": lambda image: image.filter(ImageFilter.MedianFilter(5)),
    "gaussian_blur": lambda image: image.filter(ImageFilter.GaussianBlur(1.0)),
}
# Where Pillow's pixels are not the function's, and why.
OTHERWISE = {
    "affine": "another matrix of the same kind",
    "affine_bilinear": "another matrix of the same kind",
    "gaussian_blur": "an approximation by box blurs",
}


class Pillow(Library):
    name = "Pillow"
    packages = ("pillow",)

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind != "function" or case.key not in OPERATIONS:
            raise Absent("no such operation")
        operation, images = OPERATIONS[case.key], itertools.cycle([Image.fromarray(image) for image in inputs])
        return {"one call": lambda: operation(next(images))}


LIBRARIES = {"pillow": Pillow()}
