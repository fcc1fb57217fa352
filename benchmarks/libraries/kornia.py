"""Kornia: batches of float tensors. Its RandAugment draws the operations once per call, for the whole batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import kornia.augmentation as K
import torch
from kornia.augmentation.auto import RandAugment

from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import feed
from benchmarks.libraries import Absent, Library, Ways
from benchmarks.libraries.steps import as_lists


def augmentation() -> Any:
    """All operations except the crop. It stays on the CPU, where its RandAugment draws; its operations follow the
    images."""
    return K.AugmentationSequential(
        K.RandomHorizontalFlip(p=0.5),
        RandAugment(n=C.NUM_OPS, m=C.MAGNITUDE, transformation_matrix_mode="skip"),
        K.Normalize(torch.tensor(C.MEAN), torch.tensor(C.STD)),
    )


def ways_of(floats: Callable[[], torch.Tensor], dtype: torch.dtype) -> Ways:
    transform = augmentation()

    @torch.inference_mode()
    def whole_batch() -> torch.Tensor:
        return torch.as_tensor(transform(floats())).to(dtype).contiguous()

    @torch.inference_mode()
    def per_sample() -> torch.Tensor:
        return torch.cat([transform(image[None]) for image in floats()]).to(dtype).contiguous()

    return {"one draw for the batch": whole_batch, "one draw per sample": per_sample}


def deep_steps() -> dict[str, list[Any]]:
    """Its operations on floats, with the strengths of the cases."""
    shift = (C.AFFINE_SHIFT, C.AFFINE_SHIFT)
    degrees = math.degrees(math.atan(C.SHEAR))
    around = (1 - C.FACTOR, 1 + C.FACTOR)
    side = (C.SIZE, C.SIZE)
    jitter = K.ColorJitter(*C.JITTER, p=1.0)
    flip = K.RandomHorizontalFlip(p=0.5)
    affine = {"degrees": C.AFFINE_ANGLE, "translate": shift, "scale": C.AFFINE_SCALE, "shear": C.AFFINE_SHEAR, "p": 1.0}
    steps: dict[str, Any] = {
        "normalize": K.Normalize(torch.tensor(C.MEAN), torch.tensor(C.STD)),
        "hflip": K.RandomHorizontalFlip(p=1.0),
        "vflip": K.RandomVerticalFlip(p=1.0),
        "center_crop": K.CenterCrop(C.CUT),
        "random_crop": K.RandomCrop(side, padding=C.PADDING, p=1.0),
        "resize": K.Resize((C.SMALLER, C.SMALLER), antialias=True),
        "rotate90": K.RandomRotation90((1, 3), p=1.0),
        "shear_x_bilinear": K.RandomShear((-degrees, degrees), p=1.0),
        "translate_x": K.RandomTranslate((-C.TRANSLATE / C.SIZE, C.TRANSLATE / C.SIZE), resample="nearest", p=1.0),
        "elastic": K.RandomElasticTransform(p=1.0),
        "thin_plate": K.RandomThinPlateSpline(p=1.0),
        "brightness": K.RandomBrightness(around, p=1.0),
        "contrast": K.RandomContrast(around, p=1.0),
        "saturation": K.RandomSaturation(around, p=1.0),
        "hue": K.RandomHue((-C.HUE, C.HUE), p=1.0),
        "color_jitter": jitter,
        "jitter_affine": [jitter, K.RandomAffine(**affine)],
        "gamma": K.RandomGamma(C.GAMMA, p=1.0),
        "sharpness": K.RandomSharpness(C.SHARPNESS, p=1.0),
        "posterize": K.RandomPosterize(C.BITS, p=1.0),
        "solarize": K.RandomSolarize(0.0, 0.0, p=1.0),
        "invert": K.RandomInvert(p=1.0),
        "autocontrast": K.RandomAutoContrast(p=1.0),
        "equalize": K.RandomEqualize(p=1.0),
        "grayscale": K.RandomGrayscale(p=1.0),
        "channel_permutation": K.RandomChannelShuffle(p=1.0),
        "blur_5": K.RandomGaussianBlur((5, 5), C.SIGMA, p=1.0),
        "blur_23": K.RandomGaussianBlur((23, 23), C.SIGMA, p=1.0),
        "motion_blur": K.RandomMotionBlur(7, 180.0, 0.0, p=1.0),
        "median_blur_5": K.RandomMedianBlur((5, 5), p=1.0),
        "gaussian_noise": K.RandomGaussianNoise(std=C.NOISE, p=1.0),
        "salt_and_pepper": K.RandomSaltAndPepperNoise(C.SALT, p=1.0),
        "random_erasing": K.RandomErasing(p=1.0),
        "randaugment": [flip, RandAugment(n=C.NUM_OPS, m=C.MAGNITUDE, transformation_matrix_mode="skip")],
    }
    for word in ("", "_bilinear", "_bicubic"):
        how = word[1:] or "nearest"
        steps[f"rotate{word}"] = K.RandomRotation(C.ANGLE, resample=how, p=1.0)
        steps[f"affine{word}"] = K.RandomAffine(**affine, resample=how)
        steps[f"perspective{word}"] = K.RandomPerspective(C.DISTORTION, resample=how, p=1.0)
    for word in ("", "_bicubic"):
        crop = K.RandomResizedCrop(side, resample=word[1:] or "bilinear")
        steps[f"resized_crop{word}"] = crop
    steps["imagenet"] = [steps["resized_crop"], flip]
    return as_lists(steps)


def deep_way(case: Case, inputs: Any, batch: int) -> Ways:
    """A batch of floats from 0 to 1 in NCHW: its users hold floats so. uint16 is converted in each call."""
    steps = deep_steps()
    if case.key not in steps:
        raise Absent("no such operation")
    transform = K.AugmentationSequential(*steps[case.key])
    planar = torch.from_numpy(inputs.transpose(0, 3, 1, 2).copy())
    white = 65535.0 if case.depth == "uint16" else 1.0

    @torch.inference_mode()
    def augment(images: torch.Tensor) -> torch.Tensor:
        floats = images if images.dtype is torch.float32 else images.float().div_(white)
        return torch.as_tensor(transform(floats)).contiguous()

    return {"one call": feed(planar, batch, augment)}


class Kornia(Library):
    name = "Kornia"
    packages = ("kornia", "torch")

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind == "deep operation":
            return deep_way(case, inputs, batch)
        if case.key != "randaugment":
            raise Absent("only W2 and W3 are written for it")
        floats = lambda images: torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().float().div_(255)  # noqa: E731
        return ways_of(feed(inputs, batch, floats), torch.float32)


class KorniaGpu(Library):
    name = "Kornia"
    packages = ("kornia", "torch")

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        placed = [[torch.from_numpy(image).cuda().permute(2, 0, 1) for image in one] for one in inputs]
        crop = None if case.size else K.RandomResizedCrop((case.out, case.out))
        images: Any = itertools.cycle(placed if crop else [torch.stack(one) for one in placed])

        def floats() -> torch.Tensor:
            if crop is None:
                return next(images).float().div_(255)
            # Images of different sizes are no batch, so the crop runs once per image.
            return torch.cat([crop(image[None].float().div_(255)) for image in next(images)])

        return ways_of(floats, torch.bfloat16)


LIBRARIES = {"kornia": Kornia(), "kornia_gpu": KorniaGpu()}
