"""Images of many channels on a GPU, here in Triton's interpreter: equal to the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import variegate as vg
from tests.executors.poison import poisoned_executor
from tests.images import noise
from variegate import transforms as T
from variegate.executors.runners.cuda import CudaRunner

RUNNER = CudaRunner("cpu", None, "composed", executor=poisoned_executor("cpu"))
TRANSFORM = T.Compose(
    [
        T.RandomCrop(7),
        T.RandomHorizontalFlip(),
        T.Pad(1, fill=9),
        T.PercentileStretch(5, 90),
        T.RandomPosterize(4),
        T.Normalize(0.5, 0.5),
    ]
)


@pytest.mark.parametrize(
    ("channels", "dtype"), [(2, "uint8"), (5, "uint8"), (7, "uint8"), (4, "uint16"), (5, "float32")]
)
def test_channels_as_on_the_cpu(channels: int, dtype: str) -> None:
    levels = np.stack([noise(9, 11, channels, seed) for seed in range(3)])
    images = (levels * {"uint8": 1.0, "uint16": 257.0, "float32": 1 / 255}[dtype]).astype(dtype)
    augmenter = vg.Augmenter(TRANSFORM, "cpu")
    expected, program = augmenter(images, ids=range(3)), augmenter.program(images, ids=range(3))
    for batch in (RUNNER.take(images), RUNNER.take([torch.from_numpy(image).permute(2, 0, 1) for image in images])):
        made = RUNNER.run(program, batch)
        torch.testing.assert_close(made, expected, rtol=0, atol=0)
