"""AlbumentationsX: it has no RandAugment, so the same fourteen operations are drawn by its ``SomeOf(n=2)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import albumentations as A
import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg
import torch

from benchmarks.inputs import CROPPING, MEAN, NUM_OPS, SIZE, STD, Inputs, is_from_files
from benchmarks.peers.base import NextBatch, Peer

# What torchvision's RandAugment means by magnitude 9 of 31 bins at 224 x 224.
SHEAR = math.degrees(math.atan(0.09))
TRANSLATE = int(150 / 331 * SIZE * 9 / 30)
ROTATE, ENHANCE, BITS, SOLARIZE = 9.0, 0.27, 7, 178.5 / 255

Image = npt.NDArray[np.uint8]


def operations() -> list[Any]:
    """The fourteen operations at that magnitude, each by its fastest counterpart of the same meaning."""
    nearest: dict[str, Any] = {
        "interpolation": cv2.INTER_NEAREST,
        "border_mode": cv2.BORDER_CONSTANT,
        "fill": 0,
        "p": 1,
    }
    # A pair (low, high) is drawn from evenly; torchvision's strength has one size and a random sign. The cost is equal.
    around_one = (1 - ENHANCE, 1 + ENHANCE)
    jitter: dict[str, Any] = {"brightness_range": (1, 1), "contrast_range": (1, 1), "saturation_range": (1, 1)}
    jitter |= {"hue_range": (0, 0), "p": 1}
    return [
        A.NoOp(p=1),
        A.Affine(shear={"x": (-SHEAR, SHEAR), "y": (0.0, 0.0)}, **nearest),
        A.Affine(shear={"x": (0.0, 0.0), "y": (-SHEAR, SHEAR)}, **nearest),
        A.Affine(translate_px={"x": (-TRANSLATE, TRANSLATE), "y": (0, 0)}, **nearest),
        A.Affine(translate_px={"x": (0, 0), "y": (-TRANSLATE, TRANSLATE)}, **nearest),
        A.Rotate(angle_range=(-ROTATE, ROTATE), **nearest),
        # A factor on every pixel is this transform's `contrast`: a multiplication, compiled to a table.
        A.RandomBrightnessContrast(brightness_range=(0, 0), contrast_range=(-ENHANCE, ENHANCE), p=1),
        A.ColorJitter(**(jitter | {"saturation_range": around_one})),
        A.ColorJitter(**(jitter | {"contrast_range": around_one})),
        A.Sharpen(alpha_range=(0.0, ENHANCE), lightness_range=(1.0, 1.0), method="kernel", p=1),
        A.Posterize(num_bits=(BITS, BITS), p=1),
        A.Solarize(threshold_range=(SOLARIZE, SOLARIZE), p=1),
        A.AutoContrast(method="cdf", p=1),
        A.Equalize(mode="cv", by_channels=True, p=1),
    ]


def pipeline(work: str, normalize: bool) -> Any:
    crop = []
    if is_from_files(work):
        side, scale = CROPPING[work]
        crop = [A.RandomResizedCrop((side, side), scale=scale, interpolation=cv2.INTER_LINEAR, p=1)]
    drawn = A.SomeOf(operations(), n=NUM_OPS, replace=True, p=1)
    last = [A.Normalize(MEAN, STD), A.ToTensorV2()] if normalize else []
    return A.Compose([*crop, A.HorizontalFlip(p=0.5), drawn, *last])


def decode_cv2(data: bytes) -> Image:
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def decode_simplejpeg(data: bytes) -> Image:
    return simplejpeg.decode_jpeg(data)


class AlbumentationsX(Peer):
    name = "AlbumentationsX"
    packages = ("albumentationsx", "opencv-python-headless", "simplejpeg")

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        if is_from_files(work):
            return {
                f"{decode.__name__}, {word}": _jpeg_variant(decode, finish, inputs, batch)
                for decode in (decode_simplejpeg, decode_cv2)
                for word, finish in _finishers(work).items()
            }
        return {word: _image_variant(finish, inputs, batch) for word, finish in _finishers(work).items()}


def normalise(images_NHWC: torch.Tensor) -> torch.Tensor:
    """uint8 -> float32 NCHW, for the whole batch."""
    scale = torch.tensor([1 / (255 * s) for s in STD]).view(1, 3, 1, 1)
    bias = torch.tensor([-m / s for m, s in zip(MEAN, STD, strict=True)]).view(1, 3, 1, 1)
    return torch.addcmul(bias, images_NHWC.permute(0, 3, 1, 2).contiguous().float(), scale)


def _finishers(work: str) -> dict[str, Callable[[list[Image]], torch.Tensor]]:
    each, pixels = pipeline(work, normalize=True), pipeline(work, normalize=False)

    def per_sample(images: list[Image]) -> torch.Tensor:
        return torch.stack([each(image=image)["image"] for image in images])

    def per_batch(images: list[Image]) -> torch.Tensor:
        return normalise(torch.from_numpy(np.stack([pixels(image=image)["image"] for image in images])))

    return {"Normalize and ToTensorV2 per sample": per_sample, "normalized as a batch by torch": per_batch}


def _jpeg_variant(
    decode: Callable[[bytes], Image], finish: Callable[[list[Image]], torch.Tensor], inputs: Inputs, batch: int
) -> NextBatch:
    jpegs = inputs.jpeg_batches(batch)
    return lambda: finish([decode(data) for data in next(jpegs)])


def _image_variant(finish: Callable[[list[Image]], torch.Tensor], inputs: Inputs, batch: int) -> NextBatch:
    images = inputs.image_batches(batch)
    return lambda: finish(list(next(images)))


PEER = AlbumentationsX()
