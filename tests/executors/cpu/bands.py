"""An image in bands, in this process alone: what tests of bands share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import variegate as vg
from tests.images import Image
from variegate.executors.steps import Steps
from variegate.jobs.regions.memory import Memory
from variegate.jobs.regions.worker import Band, BandJob, BandSpec
from variegate.program.depth import depth_of
from variegate.program.program import Program


def in_bands(program: Program, image: Image, tile: int, device: Any = None) -> npt.NDArray[Any]:
    """A fused program's result, [H, W, C]; the bands of each step in no good order. ``device``: a ``DeviceBands``."""
    is_half = program.output.is_float and program.output.dtype == "float16"
    steps = Steps(program, image.shape, tile, is_direct=not is_half, is_cuda=device is not None)
    # Whatever is read before it is written is seen.
    memory: dict[str, Memory] = {name: np.full(size, 77, np.uint8) for name, size in steps.sizes.items()}
    is_planar = program.output.layout == "NCHW"
    height, width, channels = steps.made
    shape = (channels, height, width) if is_planar else (height, width, channels)
    made = np.empty(shape, program.output.dtype if program.output.is_float else image.dtype)
    memory |= {"source": np.ascontiguousarray(image), "result": made}
    job = BandJob(BandSpec(steps, None, None, memory, is_planar, flushes=False), "cpu", 1, device)
    for number, step in enumerate(steps.steps):
        bands = [Band(number, *lines) for lines in step.bands()]
        job.run(range(len(bands)), bands[::-1], lambda: None)
    return made.transpose(1, 2, 0) if is_planar else made


def check_bands(transform: vg.transforms.Transform, image: Image, tile: int, id: int = 0, **options: Any) -> None:
    """Bands make the pixels of the whole image's run."""
    augmenter = vg.Augmenter(transform, device="cpu", seed=1, layout="NHWC", num_threads=1, **options)
    expected = augmenter([image], ids=[id])[0].numpy()
    depth = depth_of(image.dtype)
    assert depth is not None
    made = in_bands(augmenter.plan_one(image.shape, id, depth=depth)[1], image, tile)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected, f"{transform}, {image.shape} in bands of {tile}, id {id}")
