"""torchvision v2: on Pillow images, as most training scripts use it, and on uint8 tensors.

It works sample by sample, because its policies draw once per call.
"""

from __future__ import annotations

import functools
import io
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import simplejpeg
import torch
from PIL import Image
from torch.utils.data import DataLoader, default_collate

from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import feed
from benchmarks.libraries import Absent, Library, LoaderInputs, NextBatch, Openers, Ways
from benchmarks.libraries.steps import steps_of


def import_v2() -> Any:
    """Import ``torchvision.transforms.v2``, also with a CPU build of torch, which lacks two of its operators."""
    try:
        from torchvision.transforms import v2
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_v2._library = library  # type: ignore[attr-defined]  # the definitions live as long as this object
        from torchvision.transforms import v2
    return v2


v2: Any = import_v2()
F = v2.functional


@functools.cache
def table() -> dict[str, list[Any]]:
    gamma = v2.Lambda(lambda image: F.adjust_gamma(image, random.uniform(*C.GAMMA)))  # it has the function only
    return steps_of(v2) | {"gamma": [gamma]}


# Besides operations for Pillow images and uint8 tensors: for tensors only, and for floats before the normalization.
TENSORS = {"random_erasing": [v2.RandomErasing(1.0)]}
FLOATS = {"gaussian_noise": [v2.GaussianNoise(sigma=C.NOISE)]}
MIXES = ("mixup", "cutmix")


def steps_by_case() -> set[str]:
    """Names of the cases that it has."""
    return {*table(), *TENSORS, *FLOATS}


@dataclass(frozen=True)
class Parts:
    """A case in two parts: draws per sample, and the rest, which some leave to the batch for speed."""

    pixels: Callable[[Any], torch.Tensor]
    finish: Callable[[torch.Tensor], torch.Tensor]

    def per_sample(self, samples: list[Any]) -> torch.Tensor:
        return torch.stack([self.finish(self.pixels(sample)) for sample in samples])

    def per_batch(self, samples: list[Any]) -> torch.Tensor:
        return self.finish(torch.stack([self.pixels(sample) for sample in samples])).contiguous()


def parts_of(key: str, dtype: str, to_tensor: list[Any]) -> Parts:
    steps = [] if key in MIXES else table().get(key, [])
    pixels = v2.Compose([*steps, *to_tensor, *TENSORS.get(key, [])] or [v2.Identity()])
    if dtype == "uint8":
        return Parts(pixels, lambda images: images)
    last = [
        v2.ToDtype(torch.float32, scale=True),
        *FLOATS.get(key, []),
        v2.Normalize(C.MEAN, C.STD, inplace=True),
    ]
    return Parts(pixels, v2.Compose(last))


def mixed(key: str, next_batch: NextBatch) -> NextBatch:
    """Its mixes follow the rest, once for a batch."""
    if key not in MIXES:
        return next_batch
    mix = v2.Compose(table()[key])

    def next_mixed() -> Any:
        images = next_batch()
        return mix(images, torch.arange(len(images)) % C.CLASSES)[0]

    return next_mixed


def open_jpeg(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB")


def decode(data: bytes) -> torch.Tensor:
    """uint8 [3, H, W], a view. By simplejpeg, because torchvision's own decoder is missing with CPU torch; both use
    libjpeg-turbo."""
    return torch.from_numpy(simplejpeg.decode_jpeg(data)).permute(2, 0, 1)


class TorchvisionPil(Library):
    name = "torchvision v2, PIL"
    packages = ("torchvision", "torch", "pillow")

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind in ("function", "call"):
            raise Absent("functions are compared with Pillow's")
        self.need(case, steps_by_case())
        to_tensor = [v2.PILToTensor()]
        if case.is_single:
            parts = parts_of(case.key, "float32", to_tensor)
            images = itertools.cycle([Image.fromarray(image) for image in inputs])
            return {"one call": lambda: parts.finish(parts.pixels(next(images)))}
        if case.views:
            return {"normalized per sample": feed(inputs, batch, partial(_views, _groups(case)))}
        parts = parts_of(case.key, case.dtype, to_tensor)
        read = open_jpeg if case.reads_files else Image.fromarray
        runs = {"normalized per sample": parts.per_sample, "normalized as a batch": parts.per_batch}
        ways = {way: feed(inputs, batch, partial(_read_and_run, read, run)) for way, run in runs.items()}
        return {way: mixed(case.key, next_batch) for way, next_batch in ways.items()}

    def loaders(self, given: LoaderInputs) -> Openers:
        from torchvision.datasets.folder import pil_loader

        return data_loaders(given, {"": (pil_loader, parts_of("w1", "float32", [v2.PILToTensor()]))})


def _groups(case: Case) -> list[list[Parts]]:
    return [[parts_of(name, "float32", [v2.PILToTensor()]) for name in names] for names in case.views]


def _views(groups: list[list[Parts]], files: list[bytes]) -> tuple[torch.Tensor, ...]:
    """Each file opened once, each view made separately."""
    opened = [open_jpeg(file) for file in files]
    return tuple(torch.stack([view.per_sample(opened) for view in views], dim=1) for views in groups)


class TorchvisionTensor(Library):
    name = "torchvision v2, tensor"
    packages = ("torchvision", "torch", "simplejpeg")
    lacks: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("rotate_bicubic", "affine_bicubic"),
            "its rotation of tensors is nearest or bilinear",
        ),
        **dict.fromkeys(("dino", "jpeg"), "its own coder of JPEG files is not part of this build"),
    }

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        self.need(case, steps_by_case())
        parts = parts_of(case.key, case.dtype, [])
        if case.reads_files:
            reads: dict[str, Any] = {"view of HWC": (inputs, decode)}
        else:
            # Its users hold tensors as CHW, so it gets them so; the conversion does not count.
            planar = np.ascontiguousarray(inputs.transpose(0, 3, 1, 2))
            view = lambda image: torch.from_numpy(image).permute(2, 0, 1)  # noqa: E731
            reads = {"view of HWC": (inputs, view), "CHW": (planar, torch.from_numpy)}
        ways: Ways = {}
        for layout, (items, read) in reads.items():
            for word, run in (
                ("per sample", parts.per_sample),
                ("as a batch", parts.per_batch),
            ):
                make = partial(_read_and_run, read, run)
                ways[f"{layout}, normalized {word}"] = mixed(case.key, feed(items, batch, make))
        return ways

    def loaders(self, given: LoaderInputs) -> Openers:
        read = lambda path: decode(Path(path).read_bytes())  # noqa: E731
        return data_loaders(given, {"": (read, parts_of("w1", "float32", []))})


def _read_and_run(read: Callable[[Any], Any], run: Callable[[list[Any]], torch.Tensor], items: Any) -> torch.Tensor:
    return run([read(one) for one in items]).contiguous()


# -- torch's DataLoader ------------------------------------------------------------------------------------------------

Read = Callable[[str], Any]


def data_loaders(given: LoaderInputs, kinds: dict[str, tuple[Read, Parts]]) -> Openers:
    """Each way with as many workers as cores, which the main process then shares, and with one more."""
    openers: Openers = {}
    for kind, (read, parts) in kinds.items():
        for word in ("per sample", "as a batch"):
            for workers in (given.cores, given.cores + 1):
                opener = partial(_open, given, read, parts, word == "as a batch", workers)
                openers[f"{kind}normalized {word}, {workers} workers"] = opener
    return openers


def _open(
    given: LoaderInputs,
    read: Read,
    parts: Parts,
    is_batched: bool,
    workers: int,
) -> Any:
    from torchvision.datasets import ImageFolder

    each = parts.pixels if is_batched else lambda image: parts.finish(parts.pixels(image))
    return DataLoader(
        ImageFolder(str(given.folder), transform=each, loader=read),
        batch_size=given.batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=True,
        collate_fn=partial(_collate, parts.finish) if is_batched else default_collate,
        multiprocessing_context="fork",
    )


def _collate(finish: Callable[[torch.Tensor], torch.Tensor], samples: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Runs in the worker process, so that the main process only trains."""
    images, labels = default_collate(samples)
    return finish(images).contiguous(), labels


LIBRARIES = {
    "torchvision_pil": TorchvisionPil(),
    "torchvision_tensor": TorchvisionTensor(),
}
