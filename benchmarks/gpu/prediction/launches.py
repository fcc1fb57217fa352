"""W3's launches as the executor queues them, for a batch of images of any size; no GPU is needed to make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import variegate as vg
from benchmarks.inputs import MAGNITUDE, NUM_OPS
from variegate import transforms as T
from variegate.executors.cuda.executor import CudaExecutor, addresses
from variegate.executors.cuda.images import place_tensor
from variegate.executors.cuda.launch import Launch
from variegate.program.lowering import lower


@dataclass(frozen=True)
class Made:
    """``tiles``: programs that an image is cut into; ``uploaded``: bytes of the program that the host copies over.
    ``owners`` keep the memory that the launches point to."""

    launches: list[Launch]
    tiles: int
    images: int
    uploaded: int
    owners: list[Any]


def make(images: int, height: int, width: int) -> Made:
    """``images`` of W3's policy, ids 0, 1, 2, ..., bfloat16 out."""
    normalize = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
    t = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(num_ops=NUM_OPS, magnitude=MAGNITUDE), normalize])
    program = vg.Augmenter(t, dtype="bfloat16").program([(height, width)] * images, ids=np.arange(images))
    fused = lower(program, measured_once=True)
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.integers(0, 256, (images, height, width, 3), dtype=np.uint8))
    executor = CudaExecutor(torch.device("cpu"))
    stacked, results = executor.allocate(fused)
    prepared = executor.prepare(fused, place_tensor(pixels, True), addresses(stacked, results))
    tiles = prepared.launches[-1].tiles
    buffer = next(one for one in prepared.launches[0].arguments if isinstance(one, torch.Tensor))
    owners = [pixels, stacked, results, prepared]
    return Made(prepared.launches, tiles, images, buffer.nbytes, owners)
