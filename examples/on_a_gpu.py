"""Batches on a GPU: uploaded once, augmented there, normalized bfloat16 out. Runs on the CPU where there is no GPU.

Also a custom operation that has both forms. See docs/gpu.md. A GPU needs Triton, which
comes with PyTorch's CUDA builds (and with Variegate's extra ``cuda``).
"""

from __future__ import annotations

import numpy as np
import torch

import variegate as vg
from variegate import transforms as T

try:
    import triton
    import triton.language as tl
except ImportError:  # nothing here needs it on a CPU
    triton = None


def lift_dull_colors(r: float, g: float, b: float, m: float) -> tuple[float, float, float]:
    mean = (r + g + b) / 3
    gain = 1 + m * (1 - (max(r, g, b) - min(r, g, b)) / 255)
    return mean + gain * (r - mean), mean + gain * (g - mean), mean + gain * (b - mean)


def lift_dull_colors_triton(r, g, b, m):  # type: ignore[no-untyped-def]
    mean = (r + g + b) / 3
    spread = tl.maximum(tl.maximum(r, g), b) - tl.minimum(tl.minimum(r, g), b)  # pyright: ignore
    gain = 1 + m * (1 - spread / 255)
    return mean + gain * (r - mean), mean + gain * (g - mean), mean + gain * (b - mean)


class Vibrance(T.CustomOp):
    magnitude = T.Magnitude(0, 1)
    point = staticmethod(lift_dull_colors)
    if triton is not None:
        point_triton = staticmethod(triton.jit(lift_dull_colors_triton))


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
