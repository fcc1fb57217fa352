"""Pillow's own operation for each function, as its users call it, on one image."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from benchmarks.cases import Case
from benchmarks.libraries import Absent, Library, Ways

BILINEAR = Image.Resampling.BILINEAR


def _hue(image: Any) -> Any:
    hue, saturation, value = image.convert("HSV").split()
    turned = np.asarray(hue) + np.uint8(25)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")


SHEAR = (1, 0.2, 0, 0, 1, 0)
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "horizontal_flip": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "rotate": lambda image: image.rotate(30.0, BILINEAR),
    "shear_x": lambda image: image.transform(image.size, Image.Transform.AFFINE, SHEAR),
    "pad": lambda image: ImageOps.expand(image, 16),
    "crop": lambda image: image.crop((12, 10, 142, 130)),
    "resize": lambda image: image.resize((160, 160), BILINEAR),
    "adjust_brightness": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "adjust_contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.3),
    "adjust_hue": _hue,
    "adjust_sharpness": lambda image: ImageEnhance.Sharpness(image).enhance(1.3),
    "equalize": ImageOps.equalize,
    "solarize": lambda image: ImageOps.solarize(image, 128),
    "median_blur": lambda image: image.filter(ImageFilter.MedianFilter(5)),
    "gaussian_blur": lambda image: image.filter(ImageFilter.GaussianBlur(1.0)),
}
# Pillow's pixels are not the function's: an approximation by box blurs.
OTHERWISE = ("gaussian_blur",)


class Pillow(Library):
    name = "Pillow"
    packages = ("pillow",)

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind != "function" or case.key not in OPERATIONS:
            raise Absent("no such operation")
        operation = OPERATIONS[case.key]
        images = itertools.cycle([Image.fromarray(image) for image in inputs])
        return {"one call": lambda: operation(next(images))}


LIBRARIES = {"pillow": Pillow()}
