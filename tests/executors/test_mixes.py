"""Mixes of several rows or samples: every executor gives the reference's bits, also in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests import oracle
from tests.executors.contract import CPU, DEVICES, Device, assert_equal
from tests.images import gray, noise, photo
from tests.validating import validate
from variegate import transforms as T

pytestmark = pytest.mark.usefixtures("validated")


def _run_interpreted(*args: Any, **options: Any) -> Any:
    from tests.executors.poison import poisoned_executor, run_poisoned

    return run_poisoned(poisoned_executor("cpu", (16, 64)), *args, **options)


INTERPRETED = Device("interpreted", _run_interpreted)
AUGMIX = T.AugMix(severity=8, interpolation="nearest")
MIXES: dict[str, list[T.Transform]] = {
    "MixUp": [T.RandomHorizontalFlip(), T.Rotate(20), T.MixUp(alpha=0.4)],
    "CutMix": [T.RandomHorizontalFlip(), T.Rotate(20), T.CutMix()],
    "ResizeMix": [T.RandomHorizontalFlip(), T.Rotate(20), T.ResizeMix()],
    "Mosaic": [T.RandomHorizontalFlip(), T.Rotate(20), T.Mosaic((0.0, 1.0))],
    "AugMix": [AUGMIX],
    # Every image has four rows, each of which its partner gets its part of.
    "AugMix, MixUp": [AUGMIX, T.MixUp(alpha=0.4)],
    "AugMix, CutMix": [AUGMIX, T.CutMix()],
    "AugMix, Mosaic": [AUGMIX, T.Mosaic((0.0, 1.0))],
}
TAILS: list[list[T.Transform]] = [
    [],
    [T.Normalize(0.4, 0.2)],
    [T.Normalize((0.5,), (0.25,)), T.RandomErasing(1.0, value="random")],
]
# Sums of full images are made 4,096 values at a time: a few, around one span of an image in color and of a plane, many.
SIZES = [(1, 1), (3, 2), (17, 31), (35, 39), (1, 1366), (64, 64), (17, 241), (100, 223)]


def compare(device: Device, t: T.Transform, images: list[Any], layout: Any = "NCHW") -> None:
    augmenter = vg.Augmenter(t, "oracle", seed=1, layout=layout)
    partners = "batch" if t._mixers else None
    program = augmenter.program(images, range(len(images)), partners=partners)
    results = device.run(validate(program), images, geometry="exact", poison=0x77)
    assert_equal(results, oracle.run(program, images))


@pytest.mark.parametrize("tail", TAILS, ids=["bytes", "floats", "erased"])
@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("device", [pytest.param(d, id=d.name, marks=d.marks) for d in (*DEVICES, INTERPRETED)])
def test_every_mix(device: Device, name: str, tail: list[T.Transform]) -> None:
    t = T.Compose([*MIXES[name], *tail])
    if device is INTERPRETED and "AugMix" in name:
        pytest.skip("chains of AugMix are in cuda/test_interpreted.py")
    sizes = SIZES if device is not INTERPRETED else SIZES[2:3]
    for number, (height, width) in enumerate(sizes):
        channels = (3, 1)[number // 2 % 2]
        images = [noise(height, width, channels, seed) for seed in range(3)]
        compare(device, t, images, ("NCHW", "NHWC")[number % 2])


def test_gray_and_color_and_many() -> None:
    blend = T.Compose([AUGMIX, T.RandomHorizontalFlip(1.0)])
    compare(CPU, blend, [photo(33, 65), gray(9, 63), photo(64, 64, "coffee"), photo(1, 7)])
    compare(CPU, T.Compose([T.MixUp(), T.Normalize(0.5, 0.5)]), [photo(64, 64), noise(64, 64)] * 300)


def test_sizes_are_on_both_sides_of_a_span() -> None:
    values = np.array([height * width for height, width in SIZES])
    for channels in (1, 3):
        assert ((channels * values > 4096 - 4) & (channels * values <= 4096)).any()
        assert ((channels * values > 4096) & (channels * values < 4096 + 4)).any()
