"""NVIDIA DALI: pipelines on the CPU and on a GPU, by its own operators and its own policies.

A function of the table takes the images, and returns them, or them and options of the last operator: inside it flips,
crops and the change of layout are free, as DALI's users write it. A probability is a condition, for which DALI runs the
operation on the chosen samples only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, tensors, types
from nvidia.dali import math as dali_math
from nvidia.dali.auto_aug import (
    augmentations,
    auto_augment,
    rand_augment,
    trivial_augment,
)
from torch.utils.dlpack import from_dlpack

from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import batches
from benchmarks.libraries import Library, LoaderInputs, NextBatch, Openers, Ways

# The images, or a tuple of them and of options of the last operator.
Row = Callable[[Any], Any]
NEAREST = types.INTERP_NN
LINEAR = types.INTERP_LINEAR
KINDS = (("", NEAREST), ("_bilinear", LINEAR))
# Pixels that the last operator fills in are not normalized.
BLACK = [-mean / std for mean, std in zip(C.MEAN, C.STD, strict=True)]
# Pillow's sharpness 2.
KERNEL = np.full((3, 3), -1 / 13, np.float32)
KERNEL[1, 1] = 21 / 13


def uniform(low: float, high: float, **options: Any) -> Any:
    return fn.random.uniform(range=[low, high], **options)


def around(width: float) -> Any:
    return uniform(1 - width, 1 + width)


def kept(images: Any, **options: Any) -> Any:
    return images, options


def warped(images: Any, matrix: Any, how: Any) -> Any:
    """``matrix``: from source to result."""
    return fn.warp_affine(images, matrix=matrix, interp_type=how, fill_value=0, inverse_map=False)


def rotated(images: Any, how: Any) -> Any:
    angle = uniform(-C.ANGLE, C.ANGLE)
    return fn.rotate(images, angle=angle, keep_size=True, interp_type=how, fill_value=0)


def sheared(images: Any, how: Any) -> Any:
    shear = fn.stack(uniform(-C.SHEAR, C.SHEAR), 0.0)
    return warped(images, fn.transforms.shear(shear=shear), how)


def translated(images: Any) -> Any:
    offset = fn.stack(uniform(-C.TRANSLATE, C.TRANSLATE), 0.0)
    return warped(images, fn.transforms.translation(offset=offset), NEAREST)


def affine(images: Any, how: Any) -> Any:
    center = (112.0, 112.0)
    shift = C.AFFINE_SHIFT * 224
    matrix = fn.transforms.shear(angles=fn.stack(uniform(-C.AFFINE_SHEAR, C.AFFINE_SHEAR), 0.0), center=center)
    scale = uniform(*C.AFFINE_SCALE)
    matrix = fn.transforms.scale(matrix, scale=fn.stack(scale, scale), center=center)
    matrix = fn.transforms.rotation(matrix, angle=uniform(-C.AFFINE_ANGLE, C.AFFINE_ANGLE), center=center)
    matrix = fn.transforms.translation(matrix, offset=uniform(-shift, shift, shape=[2]))
    return warped(images, matrix, how)


def stretched(images: Any) -> Any:
    scale = uniform(*C.STRETCH, shape=[2])
    return warped(images, fn.transforms.scale(scale=scale, center=(112.0, 112.0)), LINEAR)


def compressed(images: Any) -> Any:
    quality = fn.random.uniform(range=[C.QUALITY[0], C.QUALITY[1] + 1], dtype=types.INT32)
    return fn.jpeg_compression_distortion(images, quality=quality)


def quarter_turns(images: Any) -> Any:
    angle = fn.random.uniform(values=[90.0, 180.0, 270.0])
    return fn.rotate(images, angle=angle, keep_size=True, interp_type=NEAREST, fill_value=0)


def padded(images: Any, size: int, **options: Any) -> Any:
    return images, {
        "crop": (size, size),
        "out_of_bounds_policy": "pad",
        "fill_values": BLACK,
        **options,
    }


def random_crop(images: Any, size: int, padding: int) -> Any:
    whole = size + 2 * padding
    images = fn.crop(images, crop=(whole, whole), out_of_bounds_policy="pad")
    return fn.crop(images, crop=(size, size), crop_pos_x=uniform(0, 1), crop_pos_y=uniform(0, 1))


def resized(images: Any, how: Any) -> Any:
    return fn.resize(images, size=[C.SMALLER, C.SMALLER], interp_type=how, antialias=True)


def resized_crop(
    images: Any,
    how: Any = LINEAR,
    size: int = 224,
    scale: tuple[float, float] = (0.08, 1.0),
) -> Any:
    return fn.random_resized_crop(
        images,
        size=[size, size],
        random_area=list(scale),
        interp_type=how,
        antialias=True,
    )


def jitter(images: Any, widths: tuple[float, ...]) -> Any:
    brightness, contrast, saturation, hue = widths
    factors = {
        "brightness": around(brightness),
        "contrast": around(contrast),
        "saturation": around(saturation),
    }
    if hue > 0:
        factors["hue"] = uniform(-360 * hue, 360 * hue)
    return fn.color_twist(images, **factors)


def solarized(images: Any) -> Any:
    # In bytes throughout: a comparison is 0 or 1.
    inverted = types.Constant(255, types.UINT8) - images
    return inverted * (images >= C.THRESHOLD) + images * (images < C.THRESHOLD)


def grayscale(images: Any) -> Any:
    gray = fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)
    return fn.color_space_conversion(gray, image_type=types.GRAY, output_type=types.RGB)


def blurred(images: Any, kernel: int) -> Any:
    return fn.gaussian_blur(images, window_size=kernel, sigma=uniform(*C.SIGMA))


def erased(images: Any, shape: Any, normalized: bool = False) -> Any:
    anchor = uniform(0, 1, shape=[2])
    options = {
        "normalized_anchor": True,
        "normalized_shape": normalized,
        "centered_anchor": True,
    }
    return fn.erase(images, anchor=anchor, shape=shape, axis_names="HW", fill_value=0, **options)


def random_erasing(images: Any) -> Any:
    area = uniform(0.02, 0.33)
    ratio = dali_math.exp(uniform(math.log(0.3), math.log(3.3)))
    sides = fn.stack(dali_math.sqrt(area * ratio), dali_math.sqrt(area / ratio))
    return erased(images, dali_math.min(sides, 1.0), normalized=True)


def grid_mask(images: Any) -> Any:
    tile = fn.random.uniform(range=[C.GRID[0], C.GRID[1] + 1], dtype=types.INT32)
    shift = uniform(0, C.GRID[0])
    return fn.grid_mask(images, ratio=0.5, tile=tile, shift_x=shift, shift_y=shift)


# -- pipelines ---------------------------------------------------------------------------------------------------------

CUBIC = types.INTERP_CUBIC


def flip() -> dict[str, Any]:
    return {"mirror": fn.random.coin_flip(probability=0.5)}


def coin(p: float) -> Any:
    return fn.random.coin_flip(probability=p, dtype=types.BOOL)


def views(images: Any, widths: tuple[float, ...], kernel: int, blur: float, solarize: float) -> Any:
    """Operations of SimCLR, BYOL and DINO after the crop."""
    if coin(0.8):
        images = jitter(images, widths)
    if coin(0.2):
        images = grayscale(images)
    if coin(blur):
        images = blurred(images, kernel)
    if coin(solarize):
        images = solarized(images)
    return images, flip()


def simclr(images: Any) -> Any:
    return views(resized_crop(images), C.SIMCLR_JITTER, C.SIMCLR_KERNEL, 0.5, 0.0)


def byol(images: Any) -> Any:
    return views(resized_crop(images, CUBIC), C.BYOL_JITTER, C.SIMCLR_KERNEL, 1.0, 0.0)


def dino_global(images: Any) -> Any:
    crop = resized_crop(images, CUBIC, 224, C.GLOBAL_SCALE)
    return views(crop, C.BYOL_JITTER, C.DINO_KERNEL, 0.1, 0.2)


def dino_local(images: Any) -> Any:
    crop = resized_crop(images, CUBIC, 96, C.LOCAL_SCALE)
    return views(crop, C.BYOL_JITTER, C.DINO_KERNEL, 0.5, 0.0)


def imagenet(images: Any) -> Any:
    return resized_crop(images), flip()


def cifar(images: Any) -> Any:
    return erased(random_crop(images, 32, 4), [8.0, 8.0]), flip()


def jitter_affine(images: Any) -> Any:
    return affine(jitter(images, C.JITTER), LINEAR)


def three_augment(images: Any) -> Any:
    choice = fn.random.uniform(range=[0.0, 3.0])
    if choice < 1.0:
        images = grayscale(images)
    elif choice < 2.0:
        images = solarized(images)
    else:
        images = blurred(images, C.THREE_KERNEL)
    return jitter(images, (0.3, 0.3, 0.3, 0.0)), flip()


def auto(images: Any) -> Any:
    return auto_augment.auto_augment(images, "image_net", fill_value=0, interp_type=NEAREST), flip()


def trivial(images: Any) -> Any:
    return trivial_augment.trivial_augment_wide(images, fill_value=0, interp_type=NEAREST), flip()


def rand(size: int) -> Row:
    translate = int(150 / 331 * size)

    def row(images: Any) -> Any:
        images = rand_augment.rand_augment(
            images,
            n=C.NUM_OPS,
            m=C.MAGNITUDE,
            fill_value=0,
            interp_type=NEAREST,
            max_translate_abs=translate,
        )
        return images, flip()

    return row


TABLE: dict[str, Row] = {
    "normalize": kept,
    "hflip": partial(kept, mirror=1),
    "vflip": lambda images: fn.flip(images, vertical=1, horizontal=0),
    "transpose": lambda images: fn.transpose(images, perm=[1, 0, 2], transpose_layout=False),
    "rotate90": quarter_turns,
    "pad": partial(padded, size=224 + 2 * C.PADDING),
    "center_crop": partial(padded, size=C.CUT),
    "random_crop": lambda images: random_crop(images, 224, C.PADDING),
    "resize": partial(resized, how=LINEAR),
    "resize_bicubic": partial(resized, how=types.INTERP_CUBIC),
    "resized_crop": resized_crop,
    "resized_crop_bicubic": lambda images: resized_crop(images, types.INTERP_CUBIC),
    "translate_x": translated,
    "stretch": stretched,
    "brightness": lambda images: fn.brightness(images, brightness=around(C.FACTOR)),
    "contrast": lambda images: fn.contrast(images, contrast=around(C.FACTOR)),
    "saturation": lambda images: fn.saturation(images, saturation=around(C.FACTOR)),
    "hue": lambda images: fn.hue(images, hue=uniform(-360 * C.HUE, 360 * C.HUE)),
    "color_jitter": lambda images: jitter(images, C.JITTER),
    "sharpness": lambda images: fn.experimental.filter(images, KERNEL, dtype=types.UINT8),
    "posterize": lambda images: images & types.Constant(256 - (1 << (8 - C.BITS)), types.UINT8),
    "solarize": solarized,
    "invert": lambda images: types.Constant(255, types.UINT8) - images,
    "autocontrast": augmentations.auto_contrast,
    "equalize": fn.experimental.equalize,
    "grayscale": grayscale,
    "blur_5": lambda images: blurred(images, 5),
    "blur_23": lambda images: blurred(images, 23),
    "jpeg": compressed,
    "clahe": lambda images: fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0),
    "gaussian_noise": lambda images: fn.noise.gaussian(images, stddev=255 * C.NOISE),
    "salt_and_pepper": lambda images: fn.noise.salt_and_pepper(images, prob=C.SALT),
    "shot_noise": lambda images: fn.noise.shot(images, factor=uniform(*C.PHOTONS)),
    "cutout": partial(erased, shape=[float(C.HOLE), float(C.HOLE)]),
    "random_erasing": random_erasing,
    "grid_mask": grid_mask,
    "imagenet": imagenet,
    "cifar": cifar,
    "simclr": simclr,
    "byol": byol,
    "dino_global": dino_global,
    "dino_local": dino_local,
    "jitter_affine": jitter_affine,
    "autoaugment": auto,
    "trivialaugment": trivial,
    "three_augment": three_augment,
    "randaugment_32": rand(32),
    "randaugment": rand(224),
    "randaugment_1024": rand(1024),
    "w1": rand(224),
    "w1_local": rand(96),
}
for _word, _how in KINDS:
    TABLE[f"rotate{_word}"] = partial(rotated, how=_how)
    TABLE[f"affine{_word}"] = partial(affine, how=_how)
    TABLE[f"shear_x{_word}"] = partial(sheared, how=_how)

# -- the libraries -----------------------------------------------------------------------------------------------------

DECODE_WAYS = ("random crop", "whole image")
SCALES = {"w1": C.IMAGENET_SCALE, "w1_local": C.LOCAL_SCALE}
SHUFFLE_BUFFER = 1024  # DALI's own default


def decode_and_crop(data: Any, way: str, size: int, scale: tuple[float, float]) -> Any:
    area = list(scale)
    resample = types.INTERP_TRIANGULAR
    if way == "random crop":
        part = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, random_area=area)
        return fn.resize(part, size=[size, size], interp_type=resample)
    whole = fn.decoders.image(data, device="cpu", output_type=types.RGB)
    return fn.random_resized_crop(whole, size=[size, size], random_area=area, interp_type=resample)


def augment(images: Any, case: Case, dtype: Any) -> Any:
    """The case's operators, then the last one."""
    made = TABLE[case.key](images)
    images, options = made if isinstance(made, tuple) else (made, {})
    if dtype != types.UINT8:
        options |= {"mean": [255 * m for m in C.MEAN], "std": [255 * s for s in C.STD]}
    return fn.crop_mirror_normalize(images, dtype=dtype, output_layout="CHW", **options)


@pipeline_def(enable_conditionals=True)
def _in_memory(feed: Any, case: Case) -> Any:
    images = fn.external_source(feed, batch=True, dtype=types.UINT8, layout="HWC", no_copy=True)
    return augment(images, case, types.FLOAT if case.dtype == "float32" else types.UINT8)


@pipeline_def(enable_conditionals=True)
def _from_bytes(feed: Any, case: Case, way: str) -> Any:
    data = fn.external_source(feed, batch=True, dtype=types.UINT8, no_copy=True)
    return augment(decode_and_crop(data, way, case.out, SCALES[case.key]), case, types.FLOAT)


@pipeline_def(enable_conditionals=True)
def _from_folder(folder: str, way: str, files: int) -> Any:
    # A buffer larger than the folder would only make the first batch wait.
    fill = min(SHUFFLE_BUFFER, files)
    data, labels = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=fill, name="files")
    return augment(decode_and_crop(data, way, C.SIZE, C.IMAGENET_SCALE), C.W1, types.FLOAT), labels


@pipeline_def(enable_conditionals=True)
def _on_gpu(feed: Any, case: Case) -> Any:
    images = fn.external_source(feed, device="gpu", batch=True, dtype=types.UINT8, ndim=3, no_copy=True)
    if not case.size:
        images = resized_crop(images)
    return augment(images, case, types.FLOAT16)


class Dali(Library):
    name = "DALI CPU"
    packages = ("nvidia-dali-cuda120",)
    works_ahead = True
    lacks: ClassVar[dict[str, str]] = {
        "dino": "several crops of a file are branches of a pipeline, which this benchmark does not build",
    }
    differs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("contrast", "color_jitter", "jitter_affine"),
            "contrast about 128, hue as a linear matrix",
        ),
        **dict.fromkeys(
            ("hue", "simclr", "byol", "dino_global", "dino_local"),
            "colors by one linear matrix",
        ),
        "clahe": "multiplies colors by what the luma gains",
        "three_augment": "jitter as one linear matrix",
        **dict.fromkeys(("resized_crop", "imagenet"), "draws its box by a rule of its own"),
        **dict.fromkeys(
            ("autoaugment", "trivialaugment"),
            "translations and signs by rules of its own",
        ),
    }

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        self.need(case, TABLE)
        following = batches(inputs, batch)
        if not case.reads_files:
            return {"external source": _run(_in_memory(lambda: list(next(following)), case, **_options(batch)))}
        arrays = lambda: [np.frombuffer(data, np.uint8) for data in next(following)]  # noqa: E731
        return {f"decode {way}": _run(_from_bytes(arrays, case, way, **_options(batch))) for way in DECODE_WAYS}

    def loaders(self, given: LoaderInputs) -> Openers:
        return {f"decode {way}, {given.cores} threads": partial(_Loader, given, way) for way in DECODE_WAYS}


def _options(batch: int) -> dict[str, Any]:
    # A queue of one: the batch prepared while the clock is stopped is the batch that does not count.
    return {
        "batch_size": batch,
        "num_threads": 1,
        "device_id": None,
        "seed": 1,
        "prefetch_queue_depth": 1,
    }


def _run(pipeline: Any) -> NextBatch:
    def next_batch() -> torch.Tensor:
        (output,) = pipeline.run()
        return torch.from_numpy(np.array(output.as_array()))

    return next_batch


class _Loader:
    def __init__(self, given: LoaderInputs, way: str) -> None:
        from nvidia.dali.plugin.base_iterator import LastBatchPolicy
        from nvidia.dali.plugin.pytorch import DALIGenericIterator

        files = sum(1 for _ in given.folder.glob("*/*"))
        options = {
            "num_threads": given.cores,
            "prefetch_queue_depth": 2,
            "exec_async": True,
        }
        pipeline = _from_folder(str(given.folder), way, files, **(_options(given.batch) | options))
        # The last batch of an epoch is filled from the next one: dropping it would discard prepared batches.
        last = {
            "reader_name": "files",
            "auto_reset": True,
            "last_batch_policy": LastBatchPolicy.FILL,
        }
        self._iterator = DALIGenericIterator(pipeline, ["images", "labels"], **last)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for (output,) in self._iterator:
            yield output["images"], output["labels"].squeeze(-1)


class DaliGpu(Library):
    """DALI has no bfloat16 output; its float16 has as many bytes and is used unchanged."""

    name = "DALI GPU"
    packages = ("nvidia-dali-cuda120",)

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        placed = [[torch.from_numpy(image).cuda() for image in one] for one in inputs]
        # DALI's own view of the same memory, so that no Python runs per sample while the clock runs.
        lists = itertools.cycle(
            [tensors.TensorListGPU([tensors.TensorGPU(image, "HWC") for image in one], "HWC") for one in placed]
        )
        options = _options(batch) | {
            "num_threads": 8,
            "device_id": 0,
            "prefetch_queue_depth": 2,
        }
        pipeline = _on_gpu(lambda: next(lists), case, **options)

        def next_batch() -> torch.Tensor:
            (output,) = pipeline.run()
            batch: torch.Tensor = from_dlpack(output.as_tensor())
            return batch

        return {"TensorLists in, float16 out": next_batch}


LIBRARIES = {"dali": Dali(), "dali_gpu": DaliGpu()}
