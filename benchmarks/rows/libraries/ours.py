"""Variegate's rows, by its public names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import variegate as vg
from benchmarks.peers.base import NextBatch
from benchmarks.rows import catalogue as C
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn
from variegate import transforms as T

NORMALIZE = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
Steps = list[T.Transform]


def around(width: float) -> tuple[float, float]:
    return 1 - width, 1 + width


def affine(interpolation: Any) -> T.Transform:
    shift = (C.AFFINE_SHIFT, C.AFFINE_SHIFT)
    return T.RandomAffine(C.AFFINE_ANGLE, shift, C.AFFINE_SCALE, C.AFFINE_SHEAR, interpolation)


def geometry() -> dict[str, Steps]:
    span, shear = (-C.ANGLE, C.ANGLE), (-C.SHEAR, C.SHEAR)
    pixels = (-C.TRANSLATE, C.TRANSLATE)
    cases: dict[str, Steps] = {
        "normalize": [],
        "hflip": [T.RandomHorizontalFlip(1.0)],
        "vflip": [T.RandomVerticalFlip(1.0)],
        "rotate90": [T.RandomRotate90(1.0)],
        "pad": [T.Pad(C.PADDING)],
        "center_crop": [T.CenterCrop(C.CUT)],
        "random_crop": [T.RandomCrop(224, padding=C.PADDING)],
        "resize": [T.Resize((C.SMALLER, C.SMALLER))],
        "resize_bicubic": [T.Resize((C.SMALLER, C.SMALLER), "bicubic")],
        "resized_crop": [T.RandomResizedCrop(224)],
        "resized_crop_bicubic": [T.RandomResizedCrop(224, interpolation="bicubic")],
        "elastic": [T.ElasticTransform()],
        "grid_distortion": [T.GridDistortion()],
        "optical_distortion": [T.OpticalDistortion()],
        "thin_plate": [T.ThinPlateSpline()],
        "shear_y": [T.ShearY(shear)],
        "translate_x": [T.TranslateX(pixels)],
        "translate_y": [T.TranslateY(pixels)],
        "stretch": [T.Stretch(C.STRETCH, C.STRETCH)],
        "transpose": [T.Transpose(1.0)],
        "d4": [T.D4()],
        "downscale": [T.Downscale(C.COARSER)],
    }
    names: tuple[tuple[str, Any], ...] = (("", "nearest"), ("_bilinear", "bilinear"), ("_bicubic", "bicubic"))
    for word, how in names:
        cases[f"rotate{word}"] = [T.RandomRotation(span, how)]
        cases[f"affine{word}"] = [affine(how)]
        cases[f"shear_x{word}"] = [T.ShearX(shear, how)]
        cases[f"perspective{word}"] = [T.RandomPerspective(C.DISTORTION, 1.0, how)]
    return cases


def values() -> dict[str, Steps]:
    factor = around(C.FACTOR)
    return {
        "brightness": [T.Brightness(factor)],
        "contrast": [T.Contrast(factor)],
        "saturation": [T.Color(factor)],
        "hue": [T.Hue((-C.HUE, C.HUE))],
        "color_jitter": [T.ColorJitter(*C.JITTER)],
        "photometric_distort": [T.RandomPhotometricDistort()],
        "gamma": [T.Gamma(C.GAMMA)],
        "sharpness": [T.RandomAdjustSharpness(C.SHARPNESS, 1.0)],
        "posterize": [T.RandomPosterize(C.BITS, 1.0)],
        "solarize": [T.RandomSolarize(C.THRESHOLD, 1.0)],
        "solarize_add": [T.SolarizeAdd(C.SHIFT)],
        "invert": [T.RandomInvert(1.0)],
        "autocontrast": [T.RandomAutocontrast(1.0)],
        "equalize": [T.RandomEqualize(1.0)],
        "grayscale": [T.RandomGrayscale(1.0)],
        "channel_permutation": [T.RandomChannelPermutation()],
        "rgb_shift": [T.RGBShift()],
        "blur_5": [T.GaussianBlur(5, C.SIGMA)],
        "blur_23": [T.GaussianBlur(23, C.SIGMA)],
        "motion_blur": [T.MotionBlur(7)],
        "jpeg": [T.JPEG(C.QUALITY)],
        **{f"median_blur_{size}": [T.MedianBlur(size)] for size in (3, 5, 7)},
        "clahe": [T.CLAHE(2.0)],
        "gaussian_noise": [T.GaussianNoise(sigma=C.NOISE)],
        "salt_and_pepper": [T.SaltAndPepper(C.SALT)],
        "shot_noise": [T.ShotNoise(C.PHOTONS)],
        "cutout": [T.Cutout(C.HOLE)],
        "random_erasing": [T.RandomErasing(1.0)],
        "coarse_dropout": [T.CoarseDropout(C.HOLES, C.HOLE_SIZES)],
        "grid_mask": [T.GridMask(C.GRID)],
        "color_temperature": [T.ColorTemperature(C.KELVIN)],
        "channel_dropout": [T.ChannelDropout(p=1.0)],
        "pixel_dropout": [T.PixelDropout(C.DROPPED)],
        "emboss": [T.Emboss()],
        "unsharp_mask": [T.UnsharpMask()],
        "edges": [T.Edges("sobel")],
        "occlusion_diffusion": [T.OcclusionDiffusion()],
        "fog": [T.RandomFog(p=1)],
        "rain": [T.RandomRain(p=1)],
        "snow": [T.RandomSnow(p=1)],
        "snow_texture": [T.RandomSnow(method="texture", p=1)],
        "sun_flare": [T.RandomSunFlare(p=1)],
        "sun_flare_physics": [T.RandomSunFlare(method="physics_based", p=1)],
        "shadow": [T.RandomShadow(p=1)],
        "gravel": [T.RandomGravel(p=1)],
        "spatter": [T.Spatter(p=1)],
        "spatter_mud": [T.Spatter(mode="mud", p=1)],
        "illumination": [T.Illumination(p=1)],
        "illumination_corner": [T.Illumination("corner", p=1)],
        "illumination_spot": [T.Illumination("gaussian", p=1)],
    }


def mixes() -> dict[str, Steps]:
    return {
        "mixup": [T.MixUp(C.ALPHA, num_classes=C.CLASSES)],
        "cutmix": [T.CutMix(C.ALPHA, num_classes=C.CLASSES)],
        "resizemix": [T.ResizeMix(num_classes=C.CLASSES)],
        "mosaic": [T.Mosaic(num_classes=C.CLASSES)],
    }


def pipelines() -> dict[str, Steps]:
    flip, gray = T.RandomHorizontalFlip(), T.RandomGrayscale(0.2)
    blur, small_blur = T.GaussianBlur(C.SIMCLR_KERNEL, C.SIGMA), T.GaussianBlur(C.DINO_KERNEL, C.SIGMA)
    strong, mild = (T.RandomApply([T.ColorJitter(*jitter)], 0.8) for jitter in (C.SIMCLR_JITTER, C.BYOL_JITTER))
    large, small = (
        T.RandomResizedCrop(out, scale, interpolation="bicubic")
        for out, scale in ((224, C.GLOBAL_SCALE), (96, C.LOCAL_SCALE))
    )
    bicubic = T.RandomResizedCrop(224, interpolation="bicubic")
    drawn = [flip, T.RandAugment(num_ops=C.NUM_OPS, magnitude=C.MAGNITUDE)]
    perspective = T.RandomPerspective(C.DISTORTION, 0.5, "bilinear")
    return {
        "imagenet": [T.RandomResizedCrop(224), flip],
        "cifar": [T.RandomCrop(32, padding=4), flip, T.Cutout(8)],
        "simclr": [T.RandomResizedCrop(224), flip, strong, gray, T.RandomApply([blur], 0.5)],
        "byol": [bicubic, flip, mild, gray, blur],
        "dino_first": [large, flip, mild, gray, small_blur],
        "dino_global": [large, flip, mild, gray, T.RandomApply([small_blur], 0.1), T.RandomSolarize(C.THRESHOLD, 0.2)],
        "dino_local": [small, flip, mild, gray, T.RandomApply([small_blur], 0.5)],
        "jitter_affine": [T.ColorJitter(*C.JITTER), affine("bilinear")],
        "jitter_perspective": [flip, T.ColorJitter(*C.JITTER), perspective],
        "autoaugment": [flip, T.AutoAugment("imagenet")],
        "trivialaugment": [flip, T.TrivialAugmentWide()],
        "augmix": [T.AugMix()],
        "three_augment": [flip, T.ThreeAugment(), T.ColorJitter(0.3, 0.3, 0.3)],
        **dict.fromkeys(("randaugment_32", "randaugment", "randaugment_1024", "randaugment_uint8"), drawn),
    }


STEPS = geometry() | values() | mixes() | pipelines()


def transform(case: Case, is_float: bool | None = None) -> T.Transform:
    """The row; ``is_float`` in place of what it says of its output."""
    normalised = case.dtype == "float32" if is_float is None else is_float
    end = [NORMALIZE] if normalised else []
    if case.views:
        groups = [[T.Compose([*STEPS[name], *end]) for name in names] for names in case.views]
        return T.MultiView(groups, counts=[len(names) for names in case.views])
    return T.Compose([*STEPS[case.name], *end] or [T.Identity()])


def outputs(case: Case, images: Images, device: str, is_float: bool) -> npt.NDArray[Any]:
    """NHWC results with ids 0, 1, 2, ..., so that every call draws the same chances; of views all pixels [P, 3]."""
    augmenter = vg.Augmenter(transform(case, is_float), device=device, seed=0, layout="NHWC", num_threads=1)
    if case.views:
        groups = augmenter.decode_and_run(images, ids=list(range(len(images))))
        return np.concatenate([np.asarray(group).reshape(-1, 3) for group in groups])
    partners = "batch" if case.name in mixes() else None
    return np.asarray(augmenter(images, ids=list(range(len(images))), partners=partners))


class Variegate(RowLibrary):
    name = "Variegate"
    packages = ("numba", "numpy", "torch")

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        augmenter = vg.Augmenter(transform(case), device="cpu", num_threads=1)
        batches = in_turn(images, batch)
        if case.views:
            return {"files": lambda: augmenter.decode_and_run(next(batches))}
        if case.name in mixes():
            classes = np.arange(batch) % C.CLASSES
            return {"one array": lambda: augmenter(next(batches), partners="batch", labels=classes)[0]}
        return {"one array": lambda: augmenter(next(batches))}


LIBRARY = Variegate()
