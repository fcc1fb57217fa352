"""AlbumentationsX: each case by its fastest transform of the same meaning, or of the nearest one."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import albumentations as A
import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg
import torch

from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import feed
from benchmarks.libraries import Library, LoaderInputs, NextBatch, Openers, Ways
from benchmarks.libraries.steps import as_lists, layers

Image = npt.NDArray[np.uint8]
BLACK: dict[str, Any] = {"border_mode": cv2.BORDER_CONSTANT, "fill": 0, "p": 1}
NEAREST: dict[str, Any] = BLACK | {"interpolation": cv2.INTER_NEAREST}
NONE = (0.0, 0.0)


def _operations(
    shear: float,
    pixels: int,
    angle: float,
    enhance: float,
    bits: tuple[int, int],
    solarize: float,
) -> Any:
    """The fourteen of both policies; each strength is drawn evenly from none to the one given, with either sign."""
    degrees = math.degrees(math.atan(shear))
    return [
        A.NoOp(p=1),
        A.Affine(shear={"x": (-degrees, degrees), "y": NONE}, **NEAREST),
        A.Affine(shear={"x": NONE, "y": (-degrees, degrees)}, **NEAREST),
        A.Affine(translate_px={"x": (-pixels, pixels), "y": (0, 0)}, **NEAREST),
        A.Affine(translate_px={"x": (0, 0), "y": (-pixels, pixels)}, **NEAREST),
        A.Rotate(angle_range=(-angle, angle), **NEAREST),
        A.RandomBrightnessContrast(brightness_range=(0, 0), contrast_range=(-enhance, enhance), p=1),
        jitter(saturation=enhance),
        jitter(contrast=enhance),
        A.Sharpen(alpha_range=(0.0, enhance), lightness_range=(1.0, 1.0), method="kernel", p=1),
        A.Posterize(num_bits=bits, p=1),
        A.Solarize(threshold_range=(solarize, 1.0), p=1),
        A.AutoContrast(method="cdf", p=1),
        A.Equalize(mode="cv", by_channels=True, p=1),
    ]


def rand_augment(size: int) -> Any:
    """Magnitude 9 of 31 bins at images of ``size``, as torchvision has it."""
    translate = int(150 / 331 * size * C.MAGNITUDE / 30)
    drawn = _operations(0.09, translate, 9.0, 0.27, (7, 7), 178.5 / 255)
    return A.SomeOf(drawn, n=C.NUM_OPS, replace=True, p=1)


def trivial_augment(size: int) -> Any:
    """The wide ranges, but that it cannot keep all 8 bits; ``size`` bounds a translation."""
    return A.OneOf(_operations(0.99, min(32, size), 135.0, 0.99, (2, 7), 0.0), p=1)


# -- cases -----------------------------------------------------------------------------------------------------------

KINDS = (
    ("", cv2.INTER_NEAREST),
    ("_bilinear", cv2.INTER_LINEAR),
    ("_bicubic", cv2.INTER_CUBIC),
)
# Standard deviation of a corner as far as torchvision's even draw from 0 to a quarter of the side.
CORNERS = C.DISTORTION / 2 / math.sqrt(3)


def around(width: float) -> tuple[float, float]:
    return 1 - width, 1 + width


def jitter(
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    hue: float = 0.0,
    p: float = 1,
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


def geometry() -> dict[str, Any]:
    degrees = math.degrees(math.atan(C.SHEAR))
    pixels = (-C.TRANSLATE, C.TRANSLATE)
    cases: dict[str, Any] = {
        "normalize": [],
        "hflip": A.HorizontalFlip(p=1),
        "vflip": A.VerticalFlip(p=1),
        "rotate90": A.RandomRotate90(group_elements=("r90", "r180", "r270")),
        "pad": A.Pad(C.PADDING, border_mode=cv2.BORDER_CONSTANT),
        "center_crop": A.CenterCrop(C.CUT, C.CUT),
        "random_crop": [
            A.Pad(C.PADDING, border_mode=cv2.BORDER_CONSTANT),
            A.RandomCrop(224, 224),
        ],
        "resize": A.Resize(C.SMALLER, C.SMALLER, interpolation=cv2.INTER_LINEAR),
        "resize_bicubic": A.Resize(C.SMALLER, C.SMALLER, interpolation=cv2.INTER_CUBIC),
        "resized_crop": A.RandomResizedCrop((224, 224)),
        "resized_crop_bicubic": A.RandomResizedCrop((224, 224), interpolation=cv2.INTER_CUBIC),
        "translate_x": A.Affine(translate_px={"x": pixels, "y": (0, 0)}, **NEAREST),
        "transpose": A.Transpose(p=1),
        "d4": A.D4(),
        "downscale": A.Downscale((C.COARSER, C.COARSER), p=1),
        "elastic": A.ElasticTransform(p=1),
        "grid_distortion": A.GridDistortion(p=1),
        "optical_distortion": A.OpticalDistortion(p=1),
        "thin_plate": A.ThinPlateSpline(p=1),
        "stretch": A.Affine(scale={"x": C.STRETCH, "y": C.STRETCH}, keep_ratio=False, **BLACK),
    }
    for word, how in KINDS:
        cases[f"rotate{word}"] = A.Rotate((-C.ANGLE, C.ANGLE), interpolation=how, **BLACK)
        cases[f"affine{word}"] = affine(how)
        shear = {"x": (-degrees, degrees), "y": (0.0, 0.0)}
        cases[f"shear_x{word}"] = A.Affine(shear=shear, interpolation=how, **BLACK)
        cases[f"perspective{word}"] = A.Perspective((CORNERS, CORNERS), interpolation=how, **BLACK)
    return cases


def values() -> dict[str, Any]:
    # A factor on every pixel is this transform's `contrast`: a multiplication, compiled to a table.
    factor = A.RandomBrightnessContrast(brightness_range=(0, 0), contrast_range=(-C.FACTOR, C.FACTOR), p=1)
    hole = (C.HOLE, C.HOLE)
    holes = C.HOLE_SIZES
    gray = A.ToGray(p=1)
    gamma = A.RandomGamma((100 * C.GAMMA[0], 100 * C.GAMMA[1]), p=1)
    return {
        "brightness": factor,
        "contrast": jitter(contrast=C.FACTOR),
        "saturation": jitter(saturation=C.FACTOR),
        "hue": jitter(hue=C.HUE),
        "color_jitter": jitter(*C.JITTER),
        "photometric_distort": A.PhotoMetricDistort(p=1),
        "gamma": gamma,
        # The kernel of Pillow's sharpness 2: 21/13 in the middle, -1/13 around it.
        "sharpness": A.Sharpen(
            alpha_range=(1 / 13, 1 / 13),
            lightness_range=(1.0, 1.0),
            method="kernel",
            p=1,
        ),
        "posterize": A.Posterize(num_bits=(C.BITS, C.BITS), p=1),
        "solarize": A.Solarize(threshold_range=(C.THRESHOLD / 255, C.THRESHOLD / 255), p=1),
        "invert": A.InvertImg(p=1),
        # Its default method, "cdf", is another operation: 38 levels away from Pillow's on average.
        "autocontrast": A.AutoContrast(method="pil", p=1),
        "equalize": A.Equalize(mode="cv", by_channels=True, p=1),
        "grayscale": gray,
        "channel_permutation": A.ChannelShuffle(p=1),
        "rgb_shift": A.RGBShift(p=1),
        "blur_5": A.GaussianBlur((5, 5), C.SIGMA, p=1),
        "blur_23": A.GaussianBlur((23, 23), C.SIGMA, p=1),
        "motion_blur": A.MotionBlur((7, 7), allow_shifted=False, p=1),
        "jpeg": A.ImageCompression(quality_range=C.QUALITY, p=1),
        "median_blur_5": A.MedianBlur((5, 5), p=1),
        "clahe": A.CLAHE((2.0, 2.0), (8, 8), p=1),
        "gaussian_noise": A.GaussNoise(std_range=(C.NOISE, C.NOISE), per_channel=True, p=1),
        "salt_and_pepper": A.SaltAndPepper((C.SALT, C.SALT), (0.5, 0.5), p=1),
        "shot_noise": A.ShotNoise((C.PHOTONS[0] / 255, C.PHOTONS[1] / 255), p=1),
        "cutout": A.CoarseDropout((1, 1), hole, hole, p=1),
        "random_erasing": A.Erasing(p=1),
        "coarse_dropout": A.CoarseDropout(C.HOLES, holes, holes, p=1),
        "grid_mask": A.GridDropout(0.5, unit_size_range=C.GRID, p=1),
        "color_temperature": A.PlanckianJitter(temperature_range=C.KELVIN, p=1),
        "channel_dropout": A.ChannelDropout(p=1),
        "pixel_dropout": A.PixelDropout(C.DROPPED, p=1),
        "emboss": A.Emboss(p=1),
        "unsharp_mask": A.UnsharpMask(p=1),
    }


def pipelines() -> dict[str, Any]:
    flip = A.HorizontalFlip(p=0.5)
    gray = A.ToGray(p=0.2)
    cubic = cv2.INTER_CUBIC
    blur = [A.GaussianBlur((C.SIMCLR_KERNEL,) * 2, C.SIGMA, p=p) for p in (0.5, 1.0)]
    small_blur = [A.GaussianBlur((C.DINO_KERNEL,) * 2, C.SIGMA, p=p) for p in (0.1, 0.5)]
    solarize = [A.Solarize(threshold_range=(C.THRESHOLD / 255, C.THRESHOLD / 255), p=p) for p in (0.2, 1.0)]
    strong, mild = (jitter(*widths, p=0.8) for widths in (C.SIMCLR_JITTER, C.BYOL_JITTER))
    large = A.RandomResizedCrop((224, 224), C.GLOBAL_SCALE, interpolation=cubic)
    small = A.RandomResizedCrop((96, 96), C.LOCAL_SCALE, interpolation=cubic)
    one = [
        A.ToGray(p=1),
        solarize[1],
        A.GaussianBlur((C.THREE_KERNEL,) * 2, C.SIGMA, p=1),
    ]
    perspective = A.Perspective((CORNERS, CORNERS), **(BLACK | {"p": 0.5}))
    hole = (8, 8)
    cifar = [A.Pad(4, border_mode=cv2.BORDER_CONSTANT), A.RandomCrop(32, 32), flip]
    return {
        "imagenet": [A.RandomResizedCrop((224, 224)), flip],
        "cifar": [*cifar, A.CoarseDropout((1, 1), hole, hole, p=1)],
        "simclr": [A.RandomResizedCrop((224, 224)), flip, strong, gray, blur[0]],
        "byol": [
            A.RandomResizedCrop((224, 224), interpolation=cubic),
            flip,
            mild,
            gray,
            blur[1],
        ],
        "dino_first": [
            large,
            flip,
            mild,
            gray,
            A.GaussianBlur((C.DINO_KERNEL,) * 2, C.SIGMA, p=1),
        ],
        "dino_global": [large, flip, mild, gray, small_blur[0], solarize[0]],
        "dino_local": [small, flip, mild, gray, small_blur[1]],
        "jitter_affine": [jitter(*C.JITTER), affine(cv2.INTER_LINEAR)],
        "jitter_perspective": [flip, jitter(*C.JITTER), perspective],
        "trivialaugment": [flip, trivial_augment(224)],
        "three_augment": [flip, A.OneOf(one, p=1), jitter(0.3, 0.3, 0.3)],
        "randaugment_32": [flip, rand_augment(32)],
        "randaugment_1024": [flip, rand_augment(1024)],
        "randaugment": [flip, rand_augment(224)],
        "w1": [
            A.RandomResizedCrop((224, 224), C.IMAGENET_SCALE),
            flip,
            rand_augment(224),
        ],
        "w1_local": [
            A.RandomResizedCrop((96, 96), C.LOCAL_SCALE),
            flip,
            rand_augment(96),
        ],
    }


@functools.cache
def table() -> dict[str, list[Any]]:
    return as_lists(geometry() | values() | layers(A) | pipelines())


def targets(case: Case) -> list[Any]:
    by = {
        "interpolation": cv2.INTER_LINEAR,
        "mask_interpolation": cv2.INTER_NEAREST,
        "p": 1,
    }
    shift = (-C.TARGETS_SHIFT, C.TARGETS_SHIFT)
    angle = (-C.TARGETS_ANGLE, C.TARGETS_ANGLE)
    turn = A.Affine(
        scale=C.TARGETS_SCALE,
        translate_percent={"x": shift, "y": shift},
        rotate=angle,
        **by,
    )
    flip = A.HorizontalFlip(p=0.5)
    size = (case.out, case.out)
    colors = jitter(*C.JITTER)
    steps: dict[str, list[Any]] = {
        "targets_affine": [turn, colors, flip],
        "targets_mosaic": [
            A.Mosaic(target_size=size, cell_shape=size, p=1),
            flip,
            colors,
        ],
        "targets_crop": [
            A.RandomResizedCrop(size, scale=C.TARGETS_CROP, **by),
            flip,
            colors,
        ],
        "targets_flip": [flip],
    }
    return steps[case.key]


# -- the library -------------------------------------------------------------------------------------------------------


def decode_cv2(data: bytes) -> Image:
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def decode_simplejpeg(data: bytes) -> Image:
    return simplejpeg.decode_jpeg(data)


def normalize(images_NHWC: torch.Tensor) -> torch.Tensor:
    """uint8 -> float32 NCHW, for the whole batch."""
    scale = torch.tensor([1 / (255 * s) for s in C.STD]).view(1, 3, 1, 1)
    bias = torch.tensor([-m / s for m, s in zip(C.MEAN, C.STD, strict=True)]).view(1, 3, 1, 1)
    return torch.addcmul(bias, images_NHWC.permute(0, 3, 1, 2).contiguous().float(), scale)


def finishers(steps: list[Any], is_float: bool) -> dict[str, Callable[[list[Image]], torch.Tensor]]:
    each = A.Compose([*steps, *([A.Normalize(C.MEAN, C.STD)] if is_float else []), A.ToTensorV2()])
    pixels = A.Compose(steps)

    def per_sample(images: list[Image]) -> torch.Tensor:
        return torch.stack([each(image=image)["image"] for image in images])

    def per_batch(images: list[Image]) -> torch.Tensor:
        batch = torch.from_numpy(np.stack([pixels(image=image)["image"] for image in images]))
        return normalize(batch) if is_float else batch.permute(0, 3, 1, 2).contiguous()

    return {
        "Normalize and ToTensorV2 per sample": per_sample,
        "finished as a batch by torch": per_batch,
    }


class AlbumentationsX(Library):
    name = "AlbumentationsX"
    packages = ("albumentationsx", "opencv-python-headless")
    differs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("resize", "resize_bicubic", "dino_local", "dino"),
            "reduces without antialiasing",
        ),
        **dict.fromkeys(
            (
                "perspective",
                "perspective_bilinear",
                "perspective_bicubic",
                "jitter_perspective",
            ),
            "corners by a normal distribution",
        ),
        **dict.fromkeys(("hue", "color_jitter", "simclr", "jitter_affine"), "hue in 180 steps"),
        "jpeg": "red and blue exchanged",
        "clahe": "on the lightness of LAB",
        "elastic": "has no torchvision's: a spline of 7 x 7 control points",
        "shot_noise": "in linear light, so other strengths",
        **dict.fromkeys(
            ("randaugment_32", "randaugment", "randaugment_1024", "w1", "w1_local"),
            "has no RandAugment: SomeOf its 14 operations, strengths drawn evenly up to the magnitude",
        ),
        "trivialaugment": "has no TrivialAugment: OneOf its 14 operations with the same ranges",
    }

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.kind == "targets":
            return {"one by one": _with_targets(case, inputs)}
        self.need(case, table())
        if case.kind == "deep operation":
            return {"stacked, then contiguous": feed(inputs, batch, partial(_deep, _deep_steps(case)))}
        if case.views:
            return {
                "simplejpeg, Normalize and ToTensorV2 per sample": feed(inputs, batch, partial(_views, _groups(case)))
            }
        ways: Ways = {}
        for word, finish in finishers(table()[case.key], case.dtype == "float32").items():
            if not case.reads_files:
                ways[word] = feed(inputs, batch, finish)
                continue
            for decode in (decode_simplejpeg, decode_cv2):
                ways[f"{decode.__name__}, {word}"] = feed(inputs, batch, partial(_decode_all, decode, finish))
        return ways

    def loaders(self, given: LoaderInputs) -> Openers:
        from benchmarks.libraries.torchvision import Parts, data_loaders

        cv2.setNumThreads(0)  # the worker processes are the threads, and they inherit this
        compose = A.Compose(table()["w1"])

        def pixels(image: Image) -> torch.Tensor:
            # A flipped image is a view with a negative stride, which torch does not take.
            return torch.from_numpy(np.ascontiguousarray(compose(image=image)["image"]))

        def finish(images: torch.Tensor) -> torch.Tensor:
            return normalize(images) if images.ndim == 4 else normalize(images[None])[0]

        kinds: dict[str, Any] = {}
        for decode in (decode_cv2, decode_simplejpeg):
            kinds[f"{decode.__name__}, "] = (
                partial(_read, decode),
                Parts(pixels, finish),
            )
        return data_loaders(given, kinds)


def _read(decode: Callable[[bytes], Image], path: str) -> Image:
    return decode(Path(path).read_bytes())


def _decode_all(
    decode: Callable[[bytes], Image],
    finish: Callable[[list[Image]], Any],
    files: list[bytes],
) -> Any:
    return finish([decode(data) for data in files])


def _groups(case: Case) -> list[list[Any]]:
    end = [A.Normalize(C.MEAN, C.STD), A.ToTensorV2()]
    return [[A.Compose([*table()[name], *end]) for name in names] for names in case.views]


def _views(groups: list[list[Any]], files: list[bytes]) -> tuple[torch.Tensor, ...]:
    """Each file decoded once, each view made separately."""
    decoded = [decode_simplejpeg(file) for file in files]
    return tuple(
        torch.stack([torch.stack([view(image=image)["image"] for view in views]) for image in decoded])
        for views in groups
    )


def _deep_steps(case: Case) -> Any:
    """Statistics of `Normalize` are on the scale from 0 to 1."""
    white = 65535.0 if case.depth == "uint16" else 1.0
    return A.Compose([*table()[case.key], *([A.Normalize(C.MEAN, C.STD, white)] if case.key == "normalize" else [])])


def _deep(compose: Any, images: npt.NDArray[Any]) -> torch.Tensor:
    stacked = np.stack([compose(image=image)["image"] for image in images])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).contiguous()


def _with_targets(case: Case, samples: list[dict[str, Any]]) -> NextBatch:
    boxes = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=0.0)
    names = {f"mask{k}": "mask" for k in range(1, case.objects.masks)} or None
    t = A.Compose(targets(case), bbox_params=boxes, additional_targets=names, seed=0)
    given = [_as_given(sample) for sample in samples]
    if case.key != "targets_mosaic":
        return lambda: [t(**one) for one in given]
    starts = itertools.count()

    def mosaic() -> list[Any]:
        start = next(starts)
        count = len(given)
        made = []
        for n in range(count):
            others = [given[(n + 1 + (start + k) % (count - 1)) % count] for k in range(3)]
            made.append(t(**given[n], mosaic_metadata=[_as_metadata(one) for one in others]))
        return made

    return mosaic


def _as_given(sample: dict[str, Any]) -> dict[str, Any]:
    named = {"bboxes" if name == "boxes" else name: value for name, value in sample.items()}
    mask = sample.get("mask")
    return named | mask if isinstance(mask, dict) else named


def _as_metadata(given: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in given.items() if key != "labels"}
    return kept | {"bbox_labels": {"labels": given["labels"]}}


LIBRARIES = {"albumentationsx": AlbumentationsX()}
