"""NVIDIA DALI's CPU pipeline with its own RandAugment."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import rand_augment

from benchmarks.inputs import CROPPING, MAGNITUDE, MEAN, NUM_OPS, STD, Crop, Inputs, is_from_files
from benchmarks.peers.base import NextBatch, Peer

DECODE_WAYS = ("random crop", "whole image")


def decode_and_crop(data: Any, way: str, crop: Crop | None = None) -> Any:
    """Files -> random crops of uint8 pixels."""
    side, scale = crop or Crop()
    size, area, resample = [side, side], list(scale), types.INTERP_TRIANGULAR
    if way == "random crop":
        part = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, random_area=area)
        return fn.resize(part, size=size, interp_type=resample)
    whole = fn.decoders.image(data, device="cpu", output_type=types.RGB)
    return fn.random_resized_crop(whole, size=size, random_area=area, interp_type=resample)


def augment(images: Any, dtype: Any = types.FLOAT) -> Any:
    """Crops -> normalised CHW. For a pipeline with ``enable_conditionals``."""
    images = rand_augment.rand_augment(
        images, n=NUM_OPS, m=MAGNITUDE, fill_value=0, interp_type=types.INTERP_NN, max_translate_abs=101
    )
    return normalised(images, dtype, mirror=fn.random.coin_flip(probability=0.5))


def normalised(images: Any, dtype: Any = types.FLOAT, **options: Any) -> Any:
    """Images -> normalised CHW. ``options``: of the operator, inside which flips, crops and the change of layout are
    free, and which is how DALI's users write them."""
    return fn.crop_mirror_normalize(
        images,
        dtype=dtype,
        output_layout="CHW",
        mean=[255 * m for m in MEAN],
        std=[255 * s for s in STD],
        **options,
    )


@pipeline_def(enable_conditionals=True)
def _pipeline(feed: Any, decode: str | None, crop: Crop | None) -> Any:
    if decode is None:
        return augment(fn.external_source(feed, batch=True, dtype=types.UINT8, layout="HWC", no_copy=True))
    data = fn.external_source(feed, batch=True, dtype=types.UINT8, no_copy=True)
    return augment(decode_and_crop(data, decode, crop))


class Dali(Peer):
    name = "DALI CPU"
    packages = ("nvidia-dali-cuda120",)

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        if not is_from_files(work):
            images = inputs.image_batches(batch)
            return {"external source": _runner(lambda: list(next(images)), None, batch)}
        crop = CROPPING[work]
        return {f"decode {way}": _runner(_jpeg_feed(inputs, batch), way, batch, crop) for way in DECODE_WAYS}


def _jpeg_feed(inputs: Inputs, batch: int) -> Any:
    jpegs = inputs.jpeg_batches(batch)
    return lambda: [np.frombuffer(data, np.uint8) for data in next(jpegs)]


def _runner(feed: Any, decode: str | None, batch: int, crop: Crop | None = None) -> NextBatch:
    # A queue of one: what is made ahead while the clock stands still is then the one batch that is not counted.
    options = {"batch_size": batch, "num_threads": 1, "device_id": None, "seed": 1, "prefetch_queue_depth": 1}
    pipeline = _pipeline(feed, decode, crop, **options)

    def next_batch() -> torch.Tensor:
        (output,) = pipeline.run()
        return torch.from_numpy(np.array(output.as_array()))

    return next_batch


PEER = Dali()
