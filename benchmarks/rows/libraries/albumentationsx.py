"""AlbumentationsX: each row by its fastest transform of the same meaning, and what differs where none is the same."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import albumentations as A
import cv2
import numpy as np
import torch

from benchmarks.inputs import MEAN, STD
from benchmarks.peers.albumentationsx import decode_simplejpeg, normalise
from benchmarks.peers.base import NextBatch
from benchmarks.rows import catalogue as C
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.albumentations_policies import rand_augment, trivial_augment
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn

BLACK: dict[str, Any] = {"border_mode": cv2.BORDER_CONSTANT, "fill": 0, "p": 1}
KINDS = (("", cv2.INTER_NEAREST), ("_bilinear", cv2.INTER_LINEAR), ("_bicubic", cv2.INTER_CUBIC))
# Standard deviation of a corner as far as torchvision's even draw from 0 to a quarter of the side.
CORNERS = C.DISTORTION / 2 / math.sqrt(3)


def around(width: float) -> tuple[float, float]:
    return 1 - width, 1 + width


def jitter(
    brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, hue: float = 0.0, p: float = 1
) -> Any:
    """torchvision's ColorJitter; a width of 0 leaves its part out."""
    return A.ColorJitter(around(brightness), around(contrast), around(saturation), (-hue, hue), p=p)


def affine(interpolation: int) -> Any:
    shift = (-C.AFFINE_SHIFT, C.AFFINE_SHIFT)
    return A.Affine(
        scale=C.AFFINE_SCALE,
        translate_percent={"x": shift, "y": shift},
        rotate=(-C.AFFINE_ANGLE, C.AFFINE_ANGLE),
        shear={"x": (-C.AFFINE_SHEAR, C.AFFINE_SHEAR), "y": (0.0, 0.0)},
        interpolation=interpolation,
        **BLACK,
    )


def geometry() -> dict[str, list[Any]]:
    degrees, nearest = math.degrees(math.atan(C.SHEAR)), BLACK | {"interpolation": cv2.INTER_NEAREST}
    pixels, none = (-C.TRANSLATE, C.TRANSLATE), (0, 0)
    cases: dict[str, list[Any]] = {
        "normalize": [],
        "hflip": [A.HorizontalFlip(p=1)],
        "vflip": [A.VerticalFlip(p=1)],
        "rotate90": [A.RandomRotate90(group_elements=("r90", "r180", "r270"))],
        "pad": [A.Pad(C.PADDING, border_mode=cv2.BORDER_CONSTANT)],
        "center_crop": [A.CenterCrop(C.CUT, C.CUT)],
        "random_crop": [A.Pad(C.PADDING, border_mode=cv2.BORDER_CONSTANT), A.RandomCrop(224, 224)],
        "resize": [A.Resize(C.SMALLER, C.SMALLER, interpolation=cv2.INTER_LINEAR)],
        "resize_bicubic": [A.Resize(C.SMALLER, C.SMALLER, interpolation=cv2.INTER_CUBIC)],
        "resized_crop": [A.RandomResizedCrop((224, 224))],
        "resized_crop_bicubic": [A.RandomResizedCrop((224, 224), interpolation=cv2.INTER_CUBIC)],
        "shear_y": [A.Affine(shear={"x": (0.0, 0.0), "y": (-degrees, degrees)}, **nearest)],
        "translate_x": [A.Affine(translate_px={"x": pixels, "y": none}, **nearest)],
        "translate_y": [A.Affine(translate_px={"x": none, "y": pixels}, **nearest)],
        "transpose": [A.Transpose(p=1)],
        "d4": [A.D4()],
        "downscale": [A.Downscale((C.COARSER, C.COARSER), p=1)],
        "elastic": [A.ElasticTransform(p=1)],
        "grid_distortion": [A.GridDistortion(p=1)],
        "optical_distortion": [A.OpticalDistortion(p=1)],
        "thin_plate": [A.ThinPlateSpline(p=1)],
        "stretch": [A.Affine(scale={"x": C.STRETCH, "y": C.STRETCH}, keep_ratio=False, **BLACK)],
    }
    for word, how in KINDS:
        cases[f"rotate{word}"] = [A.Rotate((-C.ANGLE, C.ANGLE), interpolation=how, **BLACK)]
        cases[f"affine{word}"] = [affine(how)]
        shear = {"x": (-degrees, degrees), "y": (0.0, 0.0)}
        cases[f"shear_x{word}"] = [A.Affine(shear=shear, interpolation=how, **BLACK)]
        cases[f"perspective{word}"] = [A.Perspective((CORNERS, CORNERS), interpolation=how, **BLACK)]
    return cases


def values() -> dict[str, list[Any]]:
    # A factor on every pixel is this transform's `contrast`: a multiplication, compiled to a table.
    factor = A.RandomBrightnessContrast(brightness_range=(0, 0), contrast_range=(-C.FACTOR, C.FACTOR), p=1)
    hole, holes = (C.HOLE, C.HOLE), C.HOLE_SIZES
    gray, gamma = A.ToGray(p=1), A.RandomGamma((100 * C.GAMMA[0], 100 * C.GAMMA[1]), p=1)
    return {
        "brightness": [factor],
        "contrast": [jitter(contrast=C.FACTOR)],
        "saturation": [jitter(saturation=C.FACTOR)],
        "hue": [jitter(hue=C.HUE)],
        "color_jitter": [jitter(*C.JITTER)],
        "photometric_distort": [A.PhotoMetricDistort(p=1)],
        "gamma": [gamma],
        # The kernel of Pillow's sharpness 2: 21/13 in the middle, -1/13 around it.
        "sharpness": [A.Sharpen(alpha_range=(1 / 13, 1 / 13), lightness_range=(1.0, 1.0), method="kernel", p=1)],
        "posterize": [A.Posterize(num_bits=(C.BITS, C.BITS), p=1)],
        "solarize": [A.Solarize(threshold_range=(C.THRESHOLD / 255, C.THRESHOLD / 255), p=1)],
        "invert": [A.InvertImg(p=1)],
        # Its default method, "cdf", is another operation: 38 levels away from Pillow's on average.
        "autocontrast": [A.AutoContrast(method="pil", p=1)],
        "equalize": [A.Equalize(mode="cv", by_channels=True, p=1)],
        "grayscale": [gray],
        "channel_permutation": [A.ChannelShuffle(p=1)],
        "rgb_shift": [A.RGBShift(p=1)],
        "blur_5": [A.GaussianBlur((5, 5), C.SIGMA, p=1)],
        "blur_23": [A.GaussianBlur((23, 23), C.SIGMA, p=1)],
        "motion_blur": [A.MotionBlur((7, 7), allow_shifted=False, p=1)],
        "jpeg": [A.ImageCompression(quality_range=C.QUALITY, p=1)],
        **{f"median_blur_{size}": [A.MedianBlur((size, size), p=1)] for size in (3, 5, 7)},
        "clahe": [A.CLAHE((2.0, 2.0), (8, 8), p=1)],
        "gaussian_noise": [A.GaussNoise(std_range=(C.NOISE, C.NOISE), per_channel=True, p=1)],
        "salt_and_pepper": [A.SaltAndPepper((C.SALT, C.SALT), (0.5, 0.5), p=1)],
        "shot_noise": [A.ShotNoise((C.PHOTONS[0] / 255, C.PHOTONS[1] / 255), p=1)],
        "cutout": [A.CoarseDropout((1, 1), hole, hole, p=1)],
        "random_erasing": [A.Erasing(p=1)],
        "coarse_dropout": [A.CoarseDropout(C.HOLES, holes, holes, p=1)],
        "grid_mask": [A.GridDropout(0.5, unit_size_range=C.GRID, p=1)],
        "color_temperature": [A.PlanckianJitter(temperature_range=C.KELVIN, p=1)],
        "channel_dropout": [A.ChannelDropout(p=1)],
        "pixel_dropout": [A.PixelDropout(C.DROPPED, p=1)],
        "emboss": [A.Emboss(p=1)],
        "unsharp_mask": [A.UnsharpMask(p=1)],
        "fog": [A.RandomFog(p=1)],
        "rain": [A.RandomRain(p=1)],
        "snow": [A.RandomSnow(p=1)],
        "snow_texture": [A.RandomSnow(method="texture", p=1)],
        "sun_flare": [A.RandomSunFlare(p=1)],
        "sun_flare_physics": [A.RandomSunFlare(method="physics_based", p=1)],
        "shadow": [A.RandomShadow(p=1)],
        "gravel": [A.RandomGravel(p=1)],
        "spatter": [A.Spatter(p=1)],
        "spatter_mud": [A.Spatter(mode="mud", p=1)],
        "illumination": [A.Illumination(p=1)],
        "illumination_corner": [A.Illumination("corner", p=1)],
        "illumination_spot": [A.Illumination("gaussian", p=1)],
    }


def pipelines() -> dict[str, list[Any]]:
    flip, gray = A.HorizontalFlip(p=0.5), A.ToGray(p=0.2)
    cubic = cv2.INTER_CUBIC
    blur = [A.GaussianBlur((C.SIMCLR_KERNEL,) * 2, C.SIGMA, p=p) for p in (0.5, 1.0)]
    small_blur = [A.GaussianBlur((C.DINO_KERNEL,) * 2, C.SIGMA, p=p) for p in (0.1, 0.5)]
    solarize = [A.Solarize(threshold_range=(C.THRESHOLD / 255, C.THRESHOLD / 255), p=p) for p in (0.2, 1.0)]
    strong, mild = (jitter(*widths, p=0.8) for widths in (C.SIMCLR_JITTER, C.BYOL_JITTER))
    large = A.RandomResizedCrop((224, 224), C.GLOBAL_SCALE, interpolation=cubic)
    small = A.RandomResizedCrop((96, 96), C.LOCAL_SCALE, interpolation=cubic)
    one = [A.ToGray(p=1), solarize[1], A.GaussianBlur((C.THREE_KERNEL,) * 2, C.SIGMA, p=1)]
    perspective = A.Perspective((CORNERS, CORNERS), **(BLACK | {"p": 0.5}))
    hole = (8, 8)
    cifar = [A.Pad(4, border_mode=cv2.BORDER_CONSTANT), A.RandomCrop(32, 32), flip]
    return {
        "imagenet": [A.RandomResizedCrop((224, 224)), flip],
        "cifar": [*cifar, A.CoarseDropout((1, 1), hole, hole, p=1)],
        "simclr": [A.RandomResizedCrop((224, 224)), flip, strong, gray, blur[0]],
        "byol": [A.RandomResizedCrop((224, 224), interpolation=cubic), flip, mild, gray, blur[1]],
        "dino_first": [large, flip, mild, gray, A.GaussianBlur((C.DINO_KERNEL,) * 2, C.SIGMA, p=1)],
        "dino_global": [large, flip, mild, gray, small_blur[0], solarize[0]],
        "dino_local": [small, flip, mild, gray, small_blur[1]],
        "jitter_affine": [jitter(*C.JITTER), affine(cv2.INTER_LINEAR)],
        "jitter_perspective": [flip, jitter(*C.JITTER), perspective],
        "trivialaugment": [flip, trivial_augment(224)],
        "three_augment": [flip, A.OneOf(one, p=1), jitter(0.3, 0.3, 0.3)],
        "randaugment_32": [flip, rand_augment(32)],
        "randaugment_1024": [flip, rand_augment(1024)],
        "randaugment": [flip, rand_augment(224)],
        "randaugment_uint8": [flip, rand_augment(224)],
    }


@functools.cache
def rows() -> dict[str, list[Any]]:
    return geometry() | values() | pipelines()


class AlbumentationsX(RowLibrary):
    name = "AlbumentationsX"
    packages = ("albumentationsx", "opencv-python-headless")
    lacks: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("solarize_add", "occlusion_diffusion"), "no such operation"),
        "autoaugment": "no AutoAugment",
        "augmix": "no AugMix",
        "edges": "no such operation",
        **dict.fromkeys(("mixup", "cutmix", "resizemix"), "no such operation"),
        "mosaic": "its Mosaic crops and resizes the parts",
    }
    differs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("resize", "resize_bicubic", "dino_local", "dino"), "reduces without antialiasing"),
        **dict.fromkeys(
            ("perspective", "perspective_bilinear", "perspective_bicubic", "jitter_perspective"),
            "corners by a normal distribution",
        ),
        **dict.fromkeys(("hue", "color_jitter", "simclr", "jitter_affine"), "hue in 180 steps"),
        "jpeg": "red and blue exchanged",
        "clahe": "on the lightness of LAB",
        "elastic": "has no torchvision's: a spline of 7 x 7 control points",
        "shot_noise": "in linear light, so other strengths",
        **dict.fromkeys(
            ("randaugment_32", "randaugment", "randaugment_1024", "randaugment_uint8"),
            "has no RandAugment: SomeOf its 14 operations, strengths drawn evenly up to the magnitude",
        ),
        "trivialaugment": "has no TrivialAugment: OneOf its 14 operations with the same ranges",
    }

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        if case.views:
            return {"simplejpeg, Normalize and ToTensorV2 per sample": _views(case, images, batch)}
        steps = rows()[case.name]
        is_float = case.dtype == "float32"
        each = A.Compose([*steps, *([A.Normalize(MEAN, STD)] if is_float else []), A.ToTensorV2()])
        pixels = A.Compose(steps)
        batches = in_turn(images, batch)

        def per_sample() -> torch.Tensor:
            return torch.stack([each(image=image)["image"] for image in next(batches)])

        def per_batch() -> torch.Tensor:
            whole = torch.from_numpy(np.stack([pixels(image=image)["image"] for image in next(batches)]))
            return normalise(whole) if is_float else whole.permute(0, 3, 1, 2).contiguous()

        return {"Normalize and ToTensorV2 per sample": per_sample, "finished as a batch by torch": per_batch}


def _views(case: Case, files: list[bytes], batch: int) -> NextBatch:
    """Each file decoded once, each view of it made by itself."""
    batches = in_turn(files, batch)
    end = [A.Normalize(MEAN, STD), A.ToTensorV2()]
    made = [[A.Compose([*rows()[name], *end]) for name in names] for names in case.views]

    def next_batch() -> tuple[torch.Tensor, ...]:
        decoded = [decode_simplejpeg(file) for file in next(batches)]
        return tuple(
            torch.stack([torch.stack([one(image=image)["image"] for one in views]) for image in decoded])
            for views in made
        )

    return next_batch


LIBRARY = AlbumentationsX()
