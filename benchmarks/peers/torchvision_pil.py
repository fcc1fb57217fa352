"""torchvision v2 on Pillow images: what most training scripts do, and the meaning that our pixels are held to."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.inputs import CROPPING, MAGNITUDE, MEAN, NUM_OPS, STD, Inputs, is_from_files
from benchmarks.peers.base import NextBatch, Peer
from benchmarks.peers.torchvision_stub import import_v2

v2: Any = import_v2()
F = v2.functional


def steps(work: str, to_tensor: list[Any]) -> tuple[Any, Any, Any]:
    """The work as torchvision spells it, for Pillow images (``to_tensor`` converts) or tensors (nothing does).

    All of it for one sample; the part that is drawn per sample; the rest, which some leave to the batch for speed.
    """
    crop = [v2.RandomResizedCrop(*CROPPING[work])] if work in CROPPING else []
    chance = [*crop, v2.RandomHorizontalFlip(), v2.RandAugment(num_ops=NUM_OPS, magnitude=MAGNITUDE), *to_tensor]
    normalize = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD, inplace=True)]
    return v2.Compose([*chance, *normalize]), v2.Compose(chance), v2.Compose(normalize)


def pipelines(work: str, to_tensor: list[Any]) -> dict[str, Callable[[list[Any]], torch.Tensor]]:
    """Samples -> the batch."""
    each, pixels, last = steps(work, to_tensor)
    return {
        "normalized per sample": lambda samples: torch.stack([each(sample) for sample in samples]),
        "normalized as a batch": lambda samples: last(torch.stack([pixels(sample) for sample in samples])),
    }


def open_jpeg(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB")


class TorchvisionPil(Peer):
    name = "torchvision v2, PIL"
    packages = ("torchvision", "torch", "pillow")

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        return {
            name: self._variant(run, work, inputs, batch) for name, run in pipelines(work, [v2.PILToTensor()]).items()
        }

    def _variant(self, run: Callable[[list[Any]], torch.Tensor], work: str, inputs: Inputs, batch: int) -> NextBatch:
        if is_from_files(work):
            jpegs = inputs.jpeg_batches(batch)
            return lambda: run([open_jpeg(data) for data in next(jpegs)])
        images = inputs.image_batches(batch)
        return lambda: run([Image.fromarray(image) for image in next(images)])

    def replay(self, work: str, inputs: Inputs, programs: list[dict[str, Any]]) -> list[Any]:
        replayed = []
        for program in programs:
            index = program["index"]
            if inputs.images is None:
                image = open_jpeg(inputs.jpegs[index])
            else:
                image = Image.fromarray(inputs.images[index])
            for name, args in program["operations"]:
                image = OPERATIONS[name](image, *args)
            replayed.append(np.asarray(image))
        return replayed


def _affine(image: Image.Image, translate: tuple[int, int] = (0, 0), shear: tuple[float, float] = (0, 0)) -> Any:
    degrees = [math.degrees(math.atan(value)) for value in shear]
    center = [0, 0] if any(shear) else None
    return F.affine(image, angle=0, translate=list(translate), scale=1.0, shear=degrees, center=center, fill=0)


def _resized_crop(image: Image.Image, top: float, left: float, height: float, width: float, *size: float) -> Any:
    """Pillow's own resample of a box, which is what Variegate promises. torchvision cuts the box out first, so that the
    filter does not see past its border; the two differ there, in the outermost pixels alone."""
    box = (left, top, left + width, top + height)
    cropped = image.resize((int(size[1]), int(size[0])), Image.Resampling.BILINEAR, box=box)
    return F.horizontal_flip(cropped) if len(size) > 2 and size[2] else cropped


# Instructions of a Variegate program (by the names that `explain` prints) -> torchvision calls on Pillow images.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "HorizontalFlip": lambda image, *_: F.horizontal_flip(image),
    "ResizedCrop": _resized_crop,
    "Rotate": lambda image, angle, *_: F.rotate(image, angle, fill=0),
    "ShearX": lambda image, shear, *_: _affine(image, shear=(shear, 0)),
    "ShearY": lambda image, shear, *_: _affine(image, shear=(0, shear)),
    "TranslateX": lambda image, pixels, *_: _affine(image, translate=(int(pixels), 0)),
    "TranslateY": lambda image, pixels, *_: _affine(image, translate=(0, int(pixels))),
    "Brightness": lambda image, factor, *_: F.adjust_brightness(image, factor),
    "Color": lambda image, factor, *_: F.adjust_saturation(image, factor),
    "Contrast": lambda image, factor, *_: F.adjust_contrast(image, factor),
    "Sharpness": lambda image, factor, *_: F.adjust_sharpness(image, factor),
    "Posterize": lambda image, bits, *_: F.posterize(image, int(bits)),
    "Solarize": lambda image, threshold, *_: F.solarize(image, threshold),
    "AutoContrast": lambda image, *_: F.autocontrast(image),
    "Equalize": lambda image, *_: F.equalize(image),
    "Invert": lambda image, *_: F.invert(image),
}

PEER = TorchvisionPil()
