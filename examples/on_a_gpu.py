"""Batches on a GPU: uploaded once, augmented there, normalized bfloat16 out. Runs on the CPU where there is no GPU.

Also a custom operation, whose function runs on both. See docs/gpu.md. A GPU needs Triton, which comes with PyTorch's
CUDA builds (and with Variegate's extra ``cuda``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import variegate as vg
from variegate import transforms as T


class Vibrance(T.CustomOp):
    """Dull colors become more vivid: one function, for the CPU and for GPUs."""

    magnitude = T.Magnitude(0, 1)

    @staticmethod
    def point(r: Any, g: Any, b: Any, m: Any) -> tuple[Any, ...]:
        mean = (r + g + b) / 3
        spread = vg.math.maximum(r, g, b) - vg.math.minimum(r, g, b)
        gain = 1 + m * (1 - spread / 255)
        return tuple(mean + gain * (channel - mean) for channel in (r, g, b))


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    normalize = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
    policy = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9), Vibrance(), normalize])
    aug = vg.Augmenter(policy, device=device, dtype="bfloat16")
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (8, 96, 128, 3), dtype=np.uint8)).to(device)

    batch = aug(images, ids=range(8), epoch=0)  # the same pixels as on any other device
    print(f"{tuple(batch.shape)} {batch.dtype} on {batch.device}")

    ragged = vg.RaggedBatch.pack([np.zeros((60 + i, 80, 3), np.uint8) for i in range(8)], device=device)
    crop = vg.Augmenter(T.Compose([T.RandomResizedCrop(64), policy]), device=device)
    print(f"{len(ragged)} images of several sizes -> {tuple(crop(ragged, ids=range(8)).shape)}")


if __name__ == "__main__":
    main()
