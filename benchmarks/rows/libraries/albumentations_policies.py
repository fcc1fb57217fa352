"""RandAugment and TrivialAugment of AlbumentationsX, which has neither: their operations, drawn by its own choices."""

from __future__ import annotations

import math
from typing import Any

import albumentations as A
import cv2

from benchmarks.rows import catalogue as C

NEAREST: dict[str, Any] = {"interpolation": cv2.INTER_NEAREST, "border_mode": cv2.BORDER_CONSTANT, "fill": 0, "p": 1}
NONE = (0.0, 0.0)


def _operations(shear: float, pixels: int, angle: float, enhance: float, bits: tuple[int, int], solarize: float) -> Any:
    """The fourteen of both policies; each strength is drawn evenly from none to the one given, with either sign."""
    degrees = math.degrees(math.atan(shear))
    around_one = (1 - enhance, 1 + enhance)
    jitter: dict[str, Any] = {"brightness_range": (1, 1), "contrast_range": (1, 1), "saturation_range": (1, 1)}
    jitter |= {"hue_range": (0, 0), "p": 1}
    return [
        A.NoOp(p=1),
        A.Affine(shear={"x": (-degrees, degrees), "y": NONE}, **NEAREST),
        A.Affine(shear={"x": NONE, "y": (-degrees, degrees)}, **NEAREST),
        A.Affine(translate_px={"x": (-pixels, pixels), "y": (0, 0)}, **NEAREST),
        A.Affine(translate_px={"x": (0, 0), "y": (-pixels, pixels)}, **NEAREST),
        A.Rotate(angle_range=(-angle, angle), **NEAREST),
        A.RandomBrightnessContrast(brightness_range=(0, 0), contrast_range=(-enhance, enhance), p=1),
        A.ColorJitter(**(jitter | {"saturation_range": around_one})),
        A.ColorJitter(**(jitter | {"contrast_range": around_one})),
        A.Sharpen(alpha_range=(0.0, enhance), lightness_range=(1.0, 1.0), method="kernel", p=1),
        A.Posterize(num_bits=bits, p=1),
        A.Solarize(threshold_range=(solarize, 1.0), p=1),
        A.AutoContrast(method="cdf", p=1),
        A.Equalize(mode="cv", by_channels=True, p=1),
    ]


def rand_augment(size: int) -> Any:
    """Magnitude 9 of 31 bins at images of ``size``, as torchvision has it."""
    translate = int(150 / 331 * size * C.MAGNITUDE / 30)
    drawn = _operations(0.09, translate, 9.0, 0.27, (7, 7), 178.5 / 255)
    return A.SomeOf(drawn, n=C.NUM_OPS, replace=True, p=1)


def trivial_augment(size: int) -> Any:
    """The wide ranges, but that it cannot keep all 8 bits; ``size`` bounds a translation."""
    return A.OneOf(_operations(0.99, min(32, size), 135.0, 0.99, (2, 7), 0.0), p=1)
