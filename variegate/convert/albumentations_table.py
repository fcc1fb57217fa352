"""Albumentations' transforms, and what becomes of them.

A class with arguments that mean the same is one line here, ``of(Class, argument="its name there")``; names that older
versions used follow today's. Others have a function in ``albumentations_rules.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from variegate.convert import albumentations_boxes as boxes
from variegate.convert import albumentations_filters as filters
from variegate.convert import albumentations_geometry as geometry
from variegate.convert import albumentations_rules as rules
from variegate.convert.albumentations_arguments import Arguments
from variegate.transforms.base import Transform
from variegate.transforms.channels import ChannelDropout
from variegate.transforms.color import ChannelPermutation, Posterize
from variegate.transforms.crop import RandomHorizontalFlip, RandomVerticalFlip
from variegate.transforms.jitter import RandomInvert
from variegate.transforms.symmetries import Transpose

Rule = Callable[[Arguments], Transform | None]


def of(cls: type[Transform], constants: Mapping[str, Any] | None = None, **names: str) -> Rule:
    """A rule: ``cls`` with ``constants``, and the arguments that are called ``names`` there, where they are given."""

    def rule(given: Arguments) -> Transform:
        taken = {argument: given.take(name) for argument, name in names.items()}
        there = {argument: value for argument, value in taken.items() if value is not None}
        called = {argument: name.split()[0] for argument, name in names.items()}
        return given.place.build(cls, {**(constants or {}), **there}, called)

    return rule


def nothing(given: Arguments) -> None:
    return None


ALWAYS = {"p": 1.0}  # the probability is put in afterwards

RULES: Mapping[str, Rule] = {
    # Exact.
    "HorizontalFlip": of(RandomHorizontalFlip, ALWAYS),
    "VerticalFlip": of(RandomVerticalFlip, ALWAYS),
    "Transpose": of(Transpose, ALWAYS),
    "InvertImg": of(RandomInvert, ALWAYS),
    "ChannelDropout": of(ChannelDropout, ALWAYS, channel_drop_range="channel_drop_range", fill="fill fill_value"),
    "Posterize": of(Posterize, {"bits": 4}, bits="num_bits"),
    "ChannelSwap": of(ChannelPermutation, order="channel_order"),
    "NoOp": nothing,
    "ChannelShuffle": rules.channel_shuffle,
    "MedianBlur": filters.median_blur,
    "PixelDropout": filters.pixel_dropout,
    "RandomRotate90": rules.rotate90,
    "D4": rules.square_symmetry,
    "SquareSymmetry": rules.square_symmetry,
    "Solarize": rules.solarize,
    "RandomBrightnessContrast": rules.brightness_contrast,
    "RandomCrop": geometry.random_crop,
    "BBoxSafeRandomCrop": boxes.safe_crop,
    "RandomSizedBBoxSafeCrop": boxes.resized_safe_crop,
    "AtLeastOneBBoxRandomCrop": boxes.crop_with_one,
    "Pad": geometry.pad,
    "CoarseDropout": rules.coarse_dropout,
    # Close, each with a warning that says how.
    "CenterCrop": geometry.center_crop,
    "Resize": geometry.resize,
    "SmallestMaxSize": geometry.smallest_side,
    "LongestMaxSize": geometry.longest_side,
    "LetterBox": geometry.letter_box,
    "Downscale": geometry.downscale,
    "RandomResizedCrop": geometry.resized_crop,
    "Rotate": geometry.rotate,
    "ShiftScaleRotate": geometry.shift_scale_rotate,
    "Affine": geometry.affine,
    "GridDistortion": geometry.grid_distortion,
    "OpticalDistortion": geometry.optical_distortion,
    "ThinPlateSpline": geometry.thin_plate_spline,
    "ColorJitter": rules.color_jitter,
    "HueSaturationValue": rules.hue,
    "RandomGamma": rules.gamma,
    "ToGray": rules.to_gray,
    "RGBShift": rules.rgb_shift,
    "Equalize": rules.equalize,
    "AutoContrast": rules.autocontrast,
    "GaussianBlur": filters.gaussian_blur,
    "MotionBlur": filters.motion_blur,
    "CLAHE": rules.clahe,
    "Emboss": filters.emboss,
    "UnsharpMask": filters.unsharp_mask,
    "GaussNoise": filters.gauss_noise,
    "SaltAndPepper": filters.salt_and_pepper,
    "Erasing": rules.erasing,
    "ImageCompression": filters.image_compression,
}
