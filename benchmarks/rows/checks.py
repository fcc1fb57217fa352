"""Our pixels of a row against the plain executor's, by the code and at the level that is timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import variegate as vg
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images
from benchmarks.rows.libraries.ours import outputs
from benchmarks.works.base import Check
from benchmarks.works.compare import within

# Images of a check, as the plain executor is slow.
SAMPLES = {32: 64, 224: 16, 1024: 2}
TO_THE_BIT: dict[str, Any] = {"mostly": 0, "share": 1.0, "anywhere": 0}
# Where sums of weights and normal numbers are floats, their last bit differs now and then: one level, which a contrast
# behind it stretches.
ROUNDED: dict[str, Any] = {"mostly": 1, "share": 0.999, "anywhere": 4}
IN_FLOATS = (
    *("blur_5", "blur_23", "motion_blur", "gaussian_noise", "shot_noise"),
    *("simclr", "byol", "dino_global", "dino_local", "three_augment"),
)


def checks(case: Case, images: Images) -> Iterator[Check]:
    few = images[: SAMPLES[case.size]]
    fused = outputs(case, few, "cpu", is_float=False)
    plain = outputs(case, few, "reference", is_float=False)
    if case.name in IN_FLOATS:
        yield within("cpu as the plain executor", fused, plain, **ROUNDED)
    else:
        yield within("cpu equals the plain executor", fused, plain, **TO_THE_BIT)
    if case.dtype == "float32":
        yield normalised(case, few, fused)


def normalised(case: Case, images: Images, pixels: Images) -> Check:
    """Float outputs are ``(x / 255 - mean) / std`` of the uint8 ones, up to float32's rounding (values reach 2.7)."""
    expected = (pixels.astype(np.float64) / 255 - np.array(vg.IMAGENET_MEAN)) / np.array(vg.IMAGENET_STD)
    off = float(np.abs(outputs(case, images, "cpu", is_float=True) - expected).max())
    return Check("normalised as (x / 255 - mean) / std", off < 2e-6, f"largest difference {off:.1e}")
