"""Mixes of several samples: every executor gives the reference's bits, also the kernels in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests import oracle
from tests.executors.contract import DEVICES, Device
from tests.images import gray, noise, photo
from tests.validating import validate
from variegate import transforms as T

pytestmark = pytest.mark.usefixtures("validated")

SIZES = [(1, 1), (3, 2), (17, 31), (16, 64), (9, 65)]
MIXES: list[Any] = [T.MixUp(alpha=0.4), T.CutMix(), T.ResizeMix(), T.Mosaic((0.0, 1.0))]
TAILS: list[list[T.Transform]] = [[], [T.Normalize(0.4, 0.2)], [T.Normalize(0.4, 0.2), T.RandomErasing(1.0)]]


def _run_interpreted(*args: Any, **options: Any) -> Any:
    from tests.executors.poison import poisoned_executor, run_poisoned

    return run_poisoned(poisoned_executor("cpu", (16, 64)), *args, **options)


INTERPRETED = Device("interpreted", _run_interpreted)


def compare(device: Device, t: T.Transform, images: list[Any], layout: Any = "NCHW") -> None:
    program = vg.Augmenter(t, "oracle", seed=1, layout=layout).program(images, range(len(images)), partners="batch")
    results = device.run(validate(program), images, geometry="exact")
    for out, wanted in zip(results, oracle.run(program, images), strict=True):
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("tail", TAILS, ids=["bytes", "floats", "erased"])
@pytest.mark.parametrize("mixer", MIXES, ids=lambda mixer: type(mixer).__name__)
@pytest.mark.parametrize("device", [pytest.param(d, id=d.name, marks=d.marks) for d in (*DEVICES, INTERPRETED)])
def test_every_mix(device: Device, mixer: T.Transform, tail: list[T.Transform]) -> None:
    sizes = SIZES if device is not INTERPRETED else SIZES[2:3]
    for number, (height, width) in enumerate(sizes):
        for make in (photo, gray):
            images = [make(height, width), noise(height, width), photo(height, width)[::-1].copy()]
            images = [image[..., : images[0].shape[2]] for image in images]
            t = T.Compose([T.RandomHorizontalFlip(), T.Rotate(20), mixer, *tail])
            compare(device, t, images, ("NCHW", "NHWC")[number % 2])


@pytest.mark.parametrize("mixer", MIXES, ids=lambda mixer: type(mixer).__name__)
def test_after_augmix(mixer: T.Transform) -> None:
    """Every image has four rows, each of which its partner gets its part of."""
    for layout in ("NCHW", "NHWC"):
        compare(
            DEVICES[0], T.Compose([T.AugMix(interpolation="nearest"), mixer]), [photo(17, 31), noise(17, 31)], layout
        )


def test_sums_longer_than_a_span() -> None:
    images = [photo(70, 90), noise(70, 90), photo(70, 90)[:, ::-1].copy()]
    compare(DEVICES[0], T.Compose([T.MixUp()]), images)
    compare(DEVICES[0], T.Compose([T.AugMix(interpolation="nearest"), T.MixUp()]), images)
    compare(DEVICES[0], T.Compose([T.MixUp(), T.Normalize(0.5, 0.5)]), [photo(64, 64), noise(64, 64)] * 300)
