"""Cases that Variegate and a peer write by the same names and arguments.

``T`` is ``variegate.transforms``, or ``torchvision.transforms.v2``; for ``layers`` AlbumentationsX.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks import cases as C


def geometry(T: Any) -> dict[str, Any]:
    degrees = math.degrees(math.atan(C.SHEAR))
    share = C.TRANSLATE / C.SIZE
    shift = (C.AFFINE_SHIFT, C.AFFINE_SHIFT)
    cubic = T.InterpolationMode["BICUBIC"]
    steps: dict[str, Any] = {
        "normalize": [],
        "hflip": T.RandomHorizontalFlip(1.0),
        "vflip": T.RandomVerticalFlip(1.0),
        "pad": T.Pad(C.PADDING),
        "center_crop": T.CenterCrop(C.CUT),
        "random_crop": T.RandomCrop(C.SIZE, padding=C.PADDING),
        "resize": T.Resize((C.SMALLER, C.SMALLER)),
        "resize_bicubic": T.Resize((C.SMALLER, C.SMALLER), cubic),
        "resized_crop": T.RandomResizedCrop(C.SIZE),
        "resized_crop_bicubic": T.RandomResizedCrop(C.SIZE, interpolation=cubic),
        "elastic": T.ElasticTransform(),
        "translate_x": T.RandomAffine(0, translate=(share, 0)),
    }
    for word in ("", "_bilinear", "_bicubic"):
        how = T.InterpolationMode[word[1:].upper() or "NEAREST"]
        angle = C.AFFINE_ANGLE
        scale = C.AFFINE_SCALE
        tilt = C.AFFINE_SHEAR
        steps[f"rotate{word}"] = T.RandomRotation(C.ANGLE, how)
        steps[f"affine{word}"] = T.RandomAffine(angle, shift, scale, tilt, how)
        steps[f"shear_x{word}"] = T.RandomAffine(0, shear=(-degrees, degrees), interpolation=how)
        steps[f"perspective{word}"] = T.RandomPerspective(C.DISTORTION, 1.0, interpolation=how)
    return steps


def values(T: Any) -> dict[str, Any]:
    return {
        "brightness": T.ColorJitter(brightness=C.FACTOR),
        "contrast": T.ColorJitter(contrast=C.FACTOR),
        "saturation": T.ColorJitter(saturation=C.FACTOR),
        "hue": T.ColorJitter(hue=C.HUE),
        "color_jitter": T.ColorJitter(*C.JITTER),
        "photometric_distort": T.RandomPhotometricDistort(),
        "sharpness": T.RandomAdjustSharpness(C.SHARPNESS, 1.0),
        "posterize": T.RandomPosterize(C.BITS, 1.0),
        "solarize": T.RandomSolarize(C.THRESHOLD, 1.0),
        "invert": T.RandomInvert(1.0),
        "autocontrast": T.RandomAutocontrast(1.0),
        "equalize": T.RandomEqualize(1.0),
        "grayscale": T.RandomGrayscale(1.0),
        "channel_permutation": T.RandomChannelPermutation(),
        "blur_5": T.GaussianBlur(5, C.SIGMA),
        "blur_23": T.GaussianBlur(23, C.SIGMA),
        "jpeg": T.JPEG(C.QUALITY),
    }


def mixes(T: Any) -> dict[str, Any]:
    return {
        "mixup": T.MixUp(alpha=C.ALPHA, num_classes=C.CLASSES),
        "cutmix": T.CutMix(alpha=C.ALPHA, num_classes=C.CLASSES),
    }


def pipelines(T: Any) -> dict[str, Any]:
    cubic = T.InterpolationMode["BICUBIC"]
    crop = T.RandomResizedCrop(C.SIZE)
    flip = T.RandomHorizontalFlip()
    gray = T.RandomGrayscale(0.2)
    blur = T.GaussianBlur(C.SIMCLR_KERNEL, C.SIGMA)
    small_blur = T.GaussianBlur(C.DINO_KERNEL, C.SIGMA)
    strong = T.RandomApply([T.ColorJitter(*C.SIMCLR_JITTER)], 0.8)
    mild = T.RandomApply([T.ColorJitter(*C.BYOL_JITTER)], 0.8)
    large = [
        T.RandomResizedCrop(C.SIZE, C.GLOBAL_SCALE, interpolation=cubic),
        flip,
        mild,
        gray,
    ]
    small = [
        T.RandomResizedCrop(96, C.LOCAL_SCALE, interpolation=cubic),
        flip,
        mild,
        gray,
    ]
    bicubic = T.RandomResizedCrop(C.SIZE, interpolation=cubic)
    one = [
        T.RandomGrayscale(1.0),
        T.RandomSolarize(C.THRESHOLD, 1.0),
        T.GaussianBlur(C.THREE_KERNEL, C.SIGMA),
    ]
    drawn = [flip, T.RandAugment(num_ops=C.NUM_OPS, magnitude=C.MAGNITUDE)]
    affine = geometry(T)["affine_bilinear"]
    return {
        "imagenet": [crop, flip],
        "simclr": [crop, flip, strong, gray, T.RandomApply([blur], 0.5)],
        "byol": [bicubic, flip, mild, gray, blur],
        "dino_first": [*large, small_blur],
        "dino_global": [
            *large,
            T.RandomApply([small_blur], 0.1),
            T.RandomSolarize(C.THRESHOLD, 0.2),
        ],
        "dino_local": [*small, T.RandomApply([small_blur], 0.5)],
        "jitter_affine": [T.ColorJitter(*C.JITTER), affine],
        "jitter_perspective": [
            flip,
            T.ColorJitter(*C.JITTER),
            T.RandomPerspective(C.DISTORTION, 0.5),
        ],
        "autoaugment": [flip, T.AutoAugment()],
        "trivialaugment": [flip, T.TrivialAugmentWide()],
        "augmix": T.AugMix(),
        "three_augment": [flip, T.RandomChoice(one), T.ColorJitter(0.3, 0.3, 0.3)],
        **dict.fromkeys(("randaugment", "randaugment_32", "randaugment_1024"), drawn),
        "w1": [crop, *drawn],
        "w1_local": [T.RandomResizedCrop(96, C.LOCAL_SCALE), *drawn],
    }


def layers(T: Any) -> dict[str, Any]:
    """Layers over the image, by the names that Variegate and AlbumentationsX share."""
    return {
        "fog": T.RandomFog(p=1),
        "rain": T.RandomRain(p=1),
        "snow": T.RandomSnow(p=1),
        "snow_texture": T.RandomSnow(method="texture", p=1),
        "sun_flare": T.RandomSunFlare(p=1),
        "sun_flare_physics": T.RandomSunFlare(method="physics_based", p=1),
        "shadow": T.RandomShadow(p=1),
        "gravel": T.RandomGravel(p=1),
        "spatter": T.Spatter(p=1),
        "spatter_mud": T.Spatter(mode="mud", p=1),
        "illumination": T.Illumination(p=1),
        "illumination_spot": T.Illumination("gaussian", p=1),
    }


def steps_of(T: Any) -> dict[str, list[Any]]:
    return as_lists(geometry(T) | values(T) | mixes(T) | pipelines(T))


def as_lists(table: dict[str, Any]) -> dict[str, list[Any]]:
    """Values are a transform, or a list of them."""
    return {name: steps if isinstance(steps, list) else [steps] for name, steps in table.items()}
