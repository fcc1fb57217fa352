"""Every function of ``variegate.transforms.functional``: how it is called, and the transform that a batch of it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.transforms import functional as F

# A perspective's corners, at 224 px; Pillow is given the coefficients that they make.
START = [[0, 0], [223, 0], [223, 223], [0, 223]]
END = [[20, 10], [210, 25], [200, 215], [5, 200]]
COEFFICIENTS = [1.2, 0.05, -20.0, 0.03, 1.15, -10.0, 0.0004, 0.0002]
MATRIX = {"angle": 20.0, "translate": [10, -8], "scale": 1.1, "shear": 5.0}
# Of 5 pixels at most, at 224 px, in halves of the sides.
_WAVE = np.sin(np.arange(224, dtype=np.float32) / 20) * np.float32(5 / 112)
DISPLACEMENT = np.stack(np.meshgrid(_WAVE, _WAVE), axis=-1)[None]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

FUNCTIONS: dict[str, Case] = {
    "horizontal_flip": (F.horizontal_flip, (), {}),
    "vertical_flip": (F.vertical_flip, (), {}),
    "rotate": (F.rotate, (30.0,), {}),
    "rotate, bilinear": (F.rotate, (30.0, "bilinear"), {}),
    "affine": (F.affine, (), MATRIX),
    "affine, bilinear": (F.affine, (), MATRIX | {"interpolation": "bilinear"}),
    "perspective": (F.perspective, (None, None), {"coefficients": COEFFICIENTS}),
    "elastic": (F.elastic, (DISPLACEMENT,), {}),
    "shear_x": (F.shear_x, (0.2,), {}),
    "shear_y": (F.shear_y, (0.2,), {}),
    "translate_x": (F.translate_x, (20,), {}),
    "translate_y": (F.translate_y, (20,), {}),
    "pad": (F.pad, (16,), {}),
    "crop": (F.crop, (10, 12, 120, 130), {}),
    "center_crop": (F.center_crop, ([96, 96],), {}),
    "resize": (F.resize, ([160, 160],), {}),
    "resized_crop": (F.resized_crop, (10, 12, 120, 130, [160, 160]), {}),
    "adjust_brightness": (F.adjust_brightness, (1.3,), {}),
    "adjust_contrast": (F.adjust_contrast, (1.3,), {}),
    "adjust_saturation": (F.adjust_saturation, (1.3,), {}),
    "adjust_hue": (F.adjust_hue, (0.1,), {}),
    "adjust_gamma": (F.adjust_gamma, (1.3,), {}),
    "adjust_sharpness": (F.adjust_sharpness, (1.3,), {}),
    "autocontrast": (F.autocontrast, (), {}),
    "equalize": (F.equalize, (), {}),
    "grayscale": (F.rgb_to_grayscale, (3,), {}),
    "invert": (F.invert, (), {}),
    "permute_channels": (F.permute_channels, ([2, 0, 1],), {}),
    "posterize": (F.posterize, (4,), {}),
    "solarize": (F.solarize, (128,), {}),
    "solarize_add": (F.solarize_add, (20,), {}),
    "erase": (F.erase, (30, 40, 50, 60), {}),
    "gaussian_blur": (F.gaussian_blur, ([5, 5], [1.0, 1.0]), {}),
    "gaussian_noise": (F.gaussian_noise, (), {}),
    "jpeg": (F.jpeg, (75,), {}),
    "median_blur": (F.median_blur, (5,), {}),
    "motion_blur": (F.motion_blur, (7, 0.0), {}),
    "normalize": (F.normalize, (list(MEAN), list(STD)), {}),
}

# The same pixels' work by the batch, for the functions that have a transform without chance.
BATCHED: dict[str, T.Transform] = {
    "horizontal_flip": T.RandomHorizontalFlip(1.0),
    "vertical_flip": T.RandomVerticalFlip(1.0),
    "rotate": T.Rotate(30.0),
    "rotate, bilinear": T.Rotate(30.0, "bilinear"),
    "affine": T.RandomAffine((20, 20), scale=(1.1, 1.1), shear=(5, 5)),
    "affine, bilinear": T.RandomAffine((20, 20), scale=(1.1, 1.1), shear=(5, 5), interpolation="bilinear"),
    "shear_x": T.ShearX(0.2),
    "shear_y": T.ShearY(0.2),
    "translate_x": T.TranslateX(20),
    "translate_y": T.TranslateY(20),
    "pad": T.Pad(16),
    "center_crop": T.CenterCrop(96),
    "resize": T.Resize((160, 160)),
    "adjust_brightness": T.Brightness(1.3),
    "adjust_contrast": T.Contrast(1.3),
    "adjust_saturation": T.Color(1.3),
    "adjust_hue": T.Hue(0.1),
    "adjust_gamma": T.Gamma(1.3),
    "adjust_sharpness": T.Sharpness(1.3),
    "autocontrast": T.AutoContrast(),
    "equalize": T.Equalize(),
    "grayscale": T.RandomGrayscale(1.0),
    "invert": T.Invert(),
    "permute_channels": T.ChannelPermutation((2, 0, 1)),
    "posterize": T.Posterize(4),
    "solarize": T.Solarize(128),
    "solarize_add": T.SolarizeAdd(20),
    "gaussian_blur": T.GaussianBlur(5, 1.0),
    "gaussian_noise": T.GaussianNoise(),
    "jpeg": T.JPEG(75),
    "median_blur": T.MedianBlur(5),
    "motion_blur": T.MotionBlur(7, 0.0, 0.0),
    "normalize": T.Normalize(MEAN, STD),
}
