"""Two hundred random policies: what the CUDA kernels make of them is what the CPU makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.executors.contract import DEVICES
from tests.executors.poison import poisoned_executor, run_poisoned
from tests.images import Image, gray, photo
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter, load_policy
from variegate import transforms as T
from variegate.executors.cpu import executor as cpu
from variegate.transforms import Transform

# Large tiles: the interpreter takes as long for small ones.
EXECUTOR = poisoned_executor("cpu", (32, 64))
NAMES = ("imagenet", "cifar10", "svhn", "pba-cifar10", "rand-m9-mstd0.5-inc1")
INTERPOLATIONS = ("nearest", "nearest", "bilinear", "bicubic")


def random_policy(seed: int) -> Transform:
    """A policy with crops, flips and erasing around it."""
    rng = np.random.default_rng(seed)
    interpolation = str(rng.choice(INTERPOLATIONS))
    fill = tuple(int(v) for v in rng.integers(0, 256, 3))
    kind = int(rng.integers(6))
    core: Transform
    if kind == 0:
        core = T.RandAugment(int(rng.integers(1, 5)), int(rng.integers(0, 31)), interpolation=interpolation, fill=fill)
    elif kind == 1:
        core = T.TrivialAugmentWide(interpolation=interpolation, fill=fill)
    elif kind == 2:
        core = T.AutoAugment(str(rng.choice(["imagenet", "cifar10", "svhn"])), interpolation=interpolation, fill=fill)
    elif kind == 3:
        core = T.AugMix(interpolation=interpolation, fill=fill, mixture_width=int(rng.integers(1, 4)))
    else:
        core = load_policy(str(rng.choice(NAMES)))
    before: list[Transform] = [T.RandomHorizontalFlip()]
    if rng.random() < 0.5:
        before.append(T.RandomCrop(24, padding=3))
    after: list[Transform] = []
    if rng.random() < 0.5:
        after.append(T.Normalize(IMAGENET_MEAN, IMAGENET_STD))
        if rng.random() < 0.5:
            after.append(T.RandomErasing(0.7))
    return T.Compose([*before, core, *after])


def _images(seed: int) -> list[Image]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(24, 44, (3, 2)).tolist()
    return [photo(*sizes[0]), photo(sizes[1][0], sizes[1][1], name="coffee"), gray(*sizes[2])]


def _agree(seed: int, run: Any) -> None:
    transform = random_policy(seed)
    images = _images(seed)
    layout = "NHWC" if seed % 2 else "NCHW"
    program = Augmenter(transform, seed=seed, layout=layout).program(images, ids=[seed, 7, 2**40])
    results: list[npt.NDArray[Any]] = run(program, images)
    for out, wanted in zip(results, cpu.run(program, images, 1), strict=True):
        np.testing.assert_array_equal(out, wanted, err_msg=repr(transform))


@pytest.mark.parametrize(
    "first", [*range(0, 30, 10), *(pytest.param(n, marks=pytest.mark.slow) for n in range(30, 200, 10))]
)
@pytest.mark.random
def test_random_policies_in_the_interpreter(first: int) -> None:
    for seed in range(first, first + 10):
        _agree(seed, lambda program, images: run_poisoned(EXECUTOR, program, images))


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_random_policies_on_a_gpu(first: int) -> None:
    for seed in range(first, first + 10):
        _agree(seed, next(device.run for device in DEVICES if device.name == "cuda"))
