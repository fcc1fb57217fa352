"""torchvision's spelling of the rows, for Pillow images and for tensors."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.inputs import MEAN, STD
from benchmarks.peers.base import NextBatch
from benchmarks.peers.torchvision_stub import import_v2
from benchmarks.rows import catalogue as C
from benchmarks.rows.catalogue import Case

v2: Any = import_v2()
F = v2.functional
NEAREST, BILINEAR, BICUBIC = (v2.InterpolationMode[name] for name in ("NEAREST", "BILINEAR", "BICUBIC"))
LACKS = {
    "rotate90": "no random quarter turns",
    "stretch": "its affine scale is the same along both axes",
    "solarize_add": "no such operation",
    **dict.fromkeys(C.LAYERS, "no such operation"),
    "rgb_shift": "no such operation",
    **dict.fromkeys(("grid_distortion", "optical_distortion", "thin_plate"), "no such operation"),
    "motion_blur": "no such operation",
    **dict.fromkeys(("clahe", "median_blur_3", "median_blur_5", "median_blur_7"), "no such operation"),
    "salt_and_pepper": "no such operation",
    "shot_noise": "no such operation",
    "cutout": "its erasing draws a shape",
    "cifar": "no cutout",
    "coarse_dropout": "no such operation",
    **dict.fromkeys(("grid_mask", "transpose", "d4", "downscale", "color_temperature"), "no such operation"),
    **dict.fromkeys(("channel_dropout", "pixel_dropout", "emboss", "unsharp_mask", "edges"), "no such operation"),
    **dict.fromkeys(("resizemix", "mosaic"), "no such operation"),
    "occlusion_diffusion": "no such operation",
}


@dataclass(frozen=True)
class Steps:
    """``pixels``: for Pillow images or uint8 tensors; ``tensors``: for uint8 tensors alone; ``floats``: between the
    conversion to 0..1 and the normalisation; ``batches``: for a finished batch and its labels."""

    pixels: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    floats: list[Any] = field(default_factory=list)
    batches: list[Any] = field(default_factory=list)


def finish(case: Case, steps: Steps) -> Callable[[Any], Any]:
    """uint8 -> the output, for one sample or a batch."""
    if case.dtype == "uint8":
        return lambda tensor: tensor
    last = [v2.ToDtype(torch.float32, scale=True), *steps.floats, v2.Normalize(MEAN, STD, inplace=True)]
    composed: Callable[[Any], Any] = v2.Compose(last)
    return composed


def mixed(steps: Steps, next_batch: NextBatch) -> NextBatch:
    """Its mixes come after the rest, once for a whole batch."""
    if not steps.batches:
        return next_batch
    mix = v2.Compose(steps.batches)

    def next_mixed() -> torch.Tensor:
        images = next_batch()
        pixels: torch.Tensor = mix(images, torch.arange(len(images)) % C.CLASSES)[0]
        return pixels

    return next_mixed


def affine(interpolation: Any) -> Any:
    shift = (C.AFFINE_SHIFT, C.AFFINE_SHIFT)
    return v2.RandomAffine(C.AFFINE_ANGLE, shift, C.AFFINE_SCALE, C.AFFINE_SHEAR, interpolation)


def geometry() -> dict[str, Steps]:
    degrees, share = math.degrees(math.atan(C.SHEAR)), C.TRANSLATE / 224
    cases: dict[str, list[Any]] = {
        "normalize": [],
        "hflip": [v2.RandomHorizontalFlip(1.0)],
        "vflip": [v2.RandomVerticalFlip(1.0)],
        "pad": [v2.Pad(C.PADDING)],
        "center_crop": [v2.CenterCrop(C.CUT)],
        "random_crop": [v2.RandomCrop(224, padding=C.PADDING)],
        "resize": [v2.Resize((C.SMALLER, C.SMALLER))],
        "resize_bicubic": [v2.Resize((C.SMALLER, C.SMALLER), BICUBIC)],
        "resized_crop": [v2.RandomResizedCrop(224)],
        "resized_crop_bicubic": [v2.RandomResizedCrop(224, interpolation=BICUBIC)],
        "elastic": [v2.ElasticTransform()],
        "shear_y": [v2.RandomAffine(0, shear=(0, 0, -degrees, degrees))],
        "translate_x": [v2.RandomAffine(0, translate=(share, 0))],
        "translate_y": [v2.RandomAffine(0, translate=(0, share))],
    }
    for word, how in (("", NEAREST), ("_bilinear", BILINEAR), ("_bicubic", BICUBIC)):
        cases[f"rotate{word}"] = [v2.RandomRotation(C.ANGLE, how)]
        cases[f"affine{word}"] = [affine(how)]
        cases[f"shear_x{word}"] = [v2.RandomAffine(0, shear=(-degrees, degrees), interpolation=how)]
        cases[f"perspective{word}"] = [v2.RandomPerspective(C.DISTORTION, 1.0, interpolation=how)]
    return {name: Steps(steps) for name, steps in cases.items()}


def random_gamma(image: Any) -> Any:
    """It has the function alone, so its users draw the number themselves."""
    return F.adjust_gamma(image, random.uniform(*C.GAMMA))


def values() -> dict[str, Steps]:
    cases: dict[str, list[Any]] = {
        "brightness": [v2.ColorJitter(brightness=C.FACTOR)],
        "contrast": [v2.ColorJitter(contrast=C.FACTOR)],
        "saturation": [v2.ColorJitter(saturation=C.FACTOR)],
        "hue": [v2.ColorJitter(hue=C.HUE)],
        "color_jitter": [v2.ColorJitter(*C.JITTER)],
        "photometric_distort": [v2.RandomPhotometricDistort()],
        "gamma": [v2.Lambda(random_gamma)],
        "sharpness": [v2.RandomAdjustSharpness(C.SHARPNESS, 1.0)],
        "posterize": [v2.RandomPosterize(C.BITS, 1.0)],
        "solarize": [v2.RandomSolarize(C.THRESHOLD, 1.0)],
        "invert": [v2.RandomInvert(1.0)],
        "autocontrast": [v2.RandomAutocontrast(1.0)],
        "equalize": [v2.RandomEqualize(1.0)],
        "grayscale": [v2.RandomGrayscale(1.0)],
        "channel_permutation": [v2.RandomChannelPermutation()],
        "blur_5": [v2.GaussianBlur(5, C.SIGMA)],
        "blur_23": [v2.GaussianBlur(23, C.SIGMA)],
        "jpeg": [v2.JPEG(C.QUALITY)],
    }
    return {
        **{name: Steps(steps) for name, steps in cases.items()},
        "gaussian_noise": Steps(floats=[v2.GaussianNoise(sigma=C.NOISE)]),
        "random_erasing": Steps(tensors=[v2.RandomErasing(1.0)]),
        "mixup": Steps(batches=[v2.MixUp(alpha=C.ALPHA, num_classes=C.CLASSES)]),
        "cutmix": Steps(batches=[v2.CutMix(alpha=C.ALPHA, num_classes=C.CLASSES)]),
    }


def pipelines() -> dict[str, Steps]:
    flip, gray = v2.RandomHorizontalFlip(), v2.RandomGrayscale(0.2)
    blur, small_blur = v2.GaussianBlur(C.SIMCLR_KERNEL, C.SIGMA), v2.GaussianBlur(C.DINO_KERNEL, C.SIGMA)
    strong, mild = (v2.RandomApply([v2.ColorJitter(*jitter)], 0.8) for jitter in (C.SIMCLR_JITTER, C.BYOL_JITTER))
    large, small = (
        v2.RandomResizedCrop(out, scale, interpolation=BICUBIC)
        for out, scale in ((224, C.GLOBAL_SCALE), (96, C.LOCAL_SCALE))
    )
    bicubic = v2.RandomResizedCrop(224, interpolation=BICUBIC)
    one = [v2.RandomGrayscale(1.0), v2.RandomSolarize(C.THRESHOLD, 1.0), v2.GaussianBlur(C.THREE_KERNEL, C.SIGMA)]
    drawn = [flip, v2.RandAugment(num_ops=C.NUM_OPS, magnitude=C.MAGNITUDE)]
    cases: dict[str, list[Any]] = {
        "imagenet": [v2.RandomResizedCrop(224), flip],
        "simclr": [v2.RandomResizedCrop(224), flip, strong, gray, v2.RandomApply([blur], 0.5)],
        "byol": [bicubic, flip, mild, gray, blur],
        "dino_first": [large, flip, mild, gray, small_blur],
        "dino_global": [
            *(large, flip, mild, gray, v2.RandomApply([small_blur], 0.1)),
            v2.RandomSolarize(C.THRESHOLD, 0.2),
        ],
        "dino_local": [small, flip, mild, gray, v2.RandomApply([small_blur], 0.5)],
        "jitter_affine": [v2.ColorJitter(*C.JITTER), affine(BILINEAR)],
        "jitter_perspective": [flip, v2.ColorJitter(*C.JITTER), v2.RandomPerspective(C.DISTORTION, 0.5)],
        "autoaugment": [flip, v2.AutoAugment()],
        "trivialaugment": [flip, v2.TrivialAugmentWide()],
        "augmix": [v2.AugMix()],
        "three_augment": [flip, v2.RandomChoice(one), v2.ColorJitter(0.3, 0.3, 0.3)],
        **dict.fromkeys(("randaugment_32", "randaugment", "randaugment_1024", "randaugment_uint8"), drawn),
    }
    return {name: Steps(steps) for name, steps in cases.items()}


@functools.cache
def rows() -> dict[str, Steps]:
    """Of every row that torchvision has."""
    return geometry() | values() | pipelines()
