"""Variegate, by its public names, and the checks of its pixels."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
import torch
from PIL import Image

import variegate as vg
from benchmarks import cases as C
from benchmarks.cases import BY_NAME, Case
from benchmarks.feeding import ceiling
from benchmarks.inputs import feed
from benchmarks.libraries import Library, LoaderInputs, NextBatch, Openers, Ways
from benchmarks.libraries.steps import as_lists, layers, steps_of
from variegate import transforms as T
from variegate.transforms import functional as F

NORMALIZE = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
Steps = list[Any]


def own_steps() -> dict[str, Any]:
    """Cases that torchvision lacks, or has in another form."""
    return {
        "rotate90": T.RandomRotate90(1.0),
        "grid_distortion": T.GridDistortion(),
        "optical_distortion": T.OpticalDistortion(),
        "thin_plate": T.ThinPlateSpline(),
        "stretch": T.Stretch(C.STRETCH, C.STRETCH),
        "transpose": T.Transpose(1.0),
        "d4": T.D4(),
        "downscale": T.Downscale(C.COARSER),
        "gamma": T.Gamma(C.GAMMA),
        "solarize_add": T.SolarizeAdd(C.SHIFT),
        "rgb_shift": T.RGBShift(),
        "motion_blur": T.MotionBlur(7),
        "median_blur_5": T.MedianBlur(5),
        "clahe": T.CLAHE(2.0),
        "gaussian_noise": T.GaussianNoise(sigma=C.NOISE),
        "salt_and_pepper": T.SaltAndPepper(C.SALT),
        "shot_noise": T.ShotNoise(C.PHOTONS),
        "cutout": T.Cutout(C.HOLE),
        "random_erasing": T.RandomErasing(1.0),
        "coarse_dropout": T.CoarseDropout(C.HOLES, C.HOLE_SIZES),
        "grid_mask": T.GridMask(C.GRID),
        "color_temperature": T.ColorTemperature(C.KELVIN),
        "channel_dropout": T.ChannelDropout(p=1.0),
        "pixel_dropout": T.PixelDropout(C.DROPPED),
        "emboss": T.Emboss(),
        "unsharp_mask": T.UnsharpMask(),
        "edges": T.Edges("sobel"),
        "occlusion_diffusion": T.OcclusionDiffusion(),
        "resizemix": T.ResizeMix(num_classes=C.CLASSES),
        "mosaic": T.Mosaic(num_classes=C.CLASSES),
        "cifar": [T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.Cutout(8)],
    }


MIXES = ("mixup", "cutmix", "resizemix", "mosaic")


def targets(case: Case) -> dict[str, Steps]:
    jitter = T.ColorJitter(*C.JITTER)
    flip = T.RandomHorizontalFlip()
    shift = (C.TARGETS_SHIFT, C.TARGETS_SHIFT)
    turn = T.RandomAffine(C.TARGETS_ANGLE, shift, C.TARGETS_SCALE, interpolation="bilinear")
    return {
        "targets_affine": [turn, jitter, flip],
        "targets_mosaic": [flip, jitter, T.Mosaic()],
        "targets_crop": [
            T.RandomResizedCrop(case.out, scale=C.TARGETS_CROP),
            flip,
            jitter,
        ],
        "targets_flip": [flip],
    }


STEPS = steps_of(T) | as_lists(own_steps() | layers(T))

# -- the library -------------------------------------------------------------------------------------------------------

# Kinds of a loader's workers, by the keys of benchmarks.run: `ours:process`.
WORKERS = {"threads": "thread", "process": "process", "ray": "ray"}


def transform(case: Case, is_float: bool | None = None) -> T.Transform:
    """The case's transform. ``is_float`` overrides the case's output type."""
    if case.kind == "targets":
        return T.Compose(targets(case)[case.key])
    has_floats = case.dtype != "uint8" if is_float is None else is_float
    if case.kind == "deep operation":
        has_floats = case.key == "normalize"
    end = [NORMALIZE] if has_floats else []
    if case.views:
        groups = [[T.Compose([*STEPS[name], *end]) for name in names] for names in case.views]
        return T.MultiView(groups, counts=[len(names) for names in case.views])
    return T.Compose([*STEPS[case.key], *end] or [T.Identity()])


def function(name: str, device: str = "cpu") -> Callable[[Any], Any]:
    return partial(getattr(F, name), device=device, **C.FUNCTIONS[name])


def partners_of(case: Case) -> str | None:
    return "batch" if case.key in MIXES or case.key == "targets_mosaic" else None


def make_index(jpegs: list[bytes]) -> vg.EntropyIndex:
    """The index of these files, as ``variegate index`` writes it, in memory."""
    with tempfile.TemporaryDirectory() as folder:
        index = vg.EntropyIndex(Path(folder) / "files.vgjpeg")
        for data in jpegs:
            index.add(data)
        index.save()
    return index


class Variegate(Library):
    """``is_indexed``: with an entropy index of the files. ``kind``: of a loader's workers. ``device``: cpu or a GPU."""

    packages = ("numpy", "torch", "simplejpeg")

    def __init__(self, kind: str = "", is_indexed: bool = False, device: str = "cpu") -> None:
        self.name = f"Variegate, {kind}" if kind else "Variegate"
        self.kind = kind
        self.is_indexed = is_indexed
        self.device = device

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind == "gpu":
            return {"one call": _on_gpu(case, inputs, batch, self.device)}
        if case.is_single:
            return {"one call": _single(case, inputs)}
        if case.kind == "targets":
            augmenter = vg.Augmenter(transform(case), seed=0, num_threads=1, layout="NHWC")
            return {"one call": lambda: augmenter(inputs, partners=partners_of(case))}
        augmenter = vg.Augmenter(transform(case), device="cpu", num_threads=1)
        if case.reads_files:
            index = make_index(inputs) if self.is_indexed else None
            ways = {"decode_and_run": feed(inputs, batch, partial(augmenter.decode_and_run, index=index))}
            if index is None and not case.views:
                whole = lambda files: augmenter([simplejpeg.decode_jpeg(data) for data in files])  # noqa: E731
                ways["whole images by simplejpeg"] = feed(inputs, batch, whole)
            return ways
        if case.key in MIXES:
            classes = np.arange(batch) % C.CLASSES
            mix = lambda images: augmenter(images, partners="batch", labels=classes)[0]  # noqa: E731
            return {"one array": feed(inputs, batch, mix)}
        return {"one array": feed(inputs, batch, augmenter)}

    def parts(self, case: Case, inputs: Any) -> dict[str, tuple[NextBatch, int]]:
        """Cases of one image per call: the same images in one call. Targets: images alone, with boxes, and with
        masks."""
        if case.kind == "targets":
            return _target_parts(case, inputs)
        if case.name == "feeds":
            return {"ceiling": (ceiling(inputs), inputs.batch)}
        if not case.is_single:
            return {}
        is_function = case.kind == "function"
        if is_function and case.key == "normalize":  # of an image of a pipeline, the class does it
            t: T.Transform = T.Normalize(**C.FUNCTIONS["normalize"])
        elif is_function:
            t = vg.pipeline(lambda image: function(case.key)(image))
        else:
            t = transform(BY_NAME[case.key])
        augmenter = vg.Augmenter(t, num_threads=1, layout="NHWC" if is_function else "NCHW")
        return {"in a batch": (lambda: augmenter(inputs), len(inputs))}

    def loaders(self, given: LoaderInputs) -> Openers:
        how = f"{given.cores} workers, {self.kind}" if self.kind else f"num_threads={given.cores}"
        return {how: partial(make_loader, given, self.kind)}


def _single(case: Case, images: list[Any]) -> NextBatch:
    if case.kind == "function":
        one = function(case.key)
        given = images
    elif case.kind == "call":
        one = transform(BY_NAME[case.key])
        given = images
    else:
        one = vg.as_transform(transform(BY_NAME[case.key]))
        given = [Image.fromarray(image) for image in images]
    following = itertools.cycle(given)
    return lambda: one(next(following))


# Components of the samples that remain when a part of the work is measured.
TARGET_PARTS = {"images": ("image",), "with boxes": ("image", "boxes", "labels"), "with masks": ("image", "mask")}


def _target_parts(case: Case, samples: list[dict[str, Any]]) -> dict[str, tuple[NextBatch, int]]:
    augmenter = vg.Augmenter(transform(case), seed=0, num_threads=1, layout="NHWC")
    parts: dict[str, tuple[NextBatch, int]] = {}
    for part, names in TARGET_PARTS.items():
        if part != "with masks" or case.objects.masks:
            some = [{name: sample[name] for name in names} for sample in samples]
            parts[part] = (partial(augmenter, some, partners=partners_of(case)), len(samples))
    return parts


def place(batch: list[Any], device: str) -> Any:
    """Images as an augmenter on ``device`` takes them: stacked or packed on a GPU, arrays on a CPU."""
    if not device.startswith("cuda"):
        return batch
    if len({image.shape for image in batch}) == 1:
        return torch.from_numpy(np.stack(batch)).to(device)
    return vg.RaggedBatch.pack(batch, device=device)


def _on_gpu(case: Case, batches: list[list[Any]], batch: int, device: str) -> NextBatch:
    augmenter = vg.Augmenter(transform(case), device=device, dtype="bfloat16", layout="NCHW", seed=0)
    inputs = itertools.cycle([place(one, device) for one in batches])
    starts = itertools.count(0, batch)  # every batch has new random numbers

    def next_batch() -> Any:
        start = next(starts)
        return augmenter(next(inputs), ids=np.arange(start, start + batch))

    return next_batch


def make_loader(given: LoaderInputs, kind: str = "", drop_last: bool = True) -> Any:
    where: dict[str, Any] = {"device": "cpu", "num_threads": given.cores}
    if kind:
        where = {
            "devices": [f"cpu:{n}" for n in range(given.cores)],
            "num_threads": 1,
            "workers": WORKERS[kind],
        }
    t = transform(C.W1)
    return vg.Loader(
        given.folder,
        t,
        batch_size=given.batch,
        seed=0,
        shuffle=True,
        drop_last=drop_last,
        **where,
    )


LIBRARIES = {"ours": Variegate()}
