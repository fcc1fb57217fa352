"""Our pixels of a row against the plain executor's, by the code and at the level that is timed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import variegate as vg
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images
from benchmarks.rows.libraries.ours import outputs
from benchmarks.works.base import Check
from benchmarks.works.compare import equal

# Images of a check, as the plain executor is slow.
SAMPLES = {32: 64, 224: 16, 1024: 2}


def checks(case: Case, images: Images) -> Iterator[Check]:
    few = images[: SAMPLES[case.size]]
    fused = outputs(case, few, "cpu", is_float=False)
    plain = outputs(case, few, "reference", is_float=False)
    yield equal("cpu equals the reference", fused, plain)
    if case.dtype == "float32":
        yield normalised(case, few, fused)


def normalised(case: Case, images: Images, pixels: Images) -> Check:
    """Float outputs are ``(x / 255 - mean) / std`` of the uint8 ones, up to float32's rounding (values reach 2.7)."""
    expected = (pixels.astype(np.float64) / 255 - np.array(vg.IMAGENET_MEAN)) / np.array(vg.IMAGENET_STD)
    off = float(np.abs(outputs(case, images, "cpu", is_float=True) - expected).max())
    return Check("normalized as (x / 255 - mean) / std", off < 2e-6, f"largest difference {off:.1e}")
