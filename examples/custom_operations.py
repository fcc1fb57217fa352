"""Custom operations, one of each form, separately and inside RandAugment. See docs/custom.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import variegate as vg
from variegate import transforms as T


class Warm(T.CustomOp):
    """A table for each channel: red up, blue down."""

    magnitude = T.Magnitude(0, 60, unit="levels")

    def lut(self, m: float) -> npt.NDArray[np.uint8]:
        x = np.arange(256)
        return np.stack([x + m, x, x - m]).clip(0, 255).astype(np.uint8)


class Lean(T.CustomOp):
    """An affine map: shear about the center, to either side."""

    magnitude = T.Magnitude(0, 0.4, signed=True)

    def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
        return (1, m, -m * height / 2, 0, 1, 0)


class Sepia(T.CustomOp):
    """A color matrix on 0..255, from the identity (0) to brown (1)."""

    magnitude = T.Magnitude(0, 1)

    def color_matrix(self, m: float) -> npt.NDArray[np.float64]:
        brown = np.array([[0.393, 0.769, 0.189, 0], [0.349, 0.686, 0.168, 0], [0.272, 0.534, 0.131, 0]])
        return (1 - m) * np.eye(3, 4) + m * brown


class Vibrance(T.CustomOp):
    """A function of a pixel: dull colors become more vivid."""

    magnitude = T.Magnitude(0, 1)

    @staticmethod
    def point(r: Any, g: Any, b: Any, m: Any) -> tuple[Any, ...]:
        mean = (r + g + b) / 3
        spread = vg.math.maximum(r, g, b) - vg.math.minimum(r, g, b)
        gain = 1 + m * (1 - spread / 255)
        return tuple(mean + gain * (channel - mean) for channel in (r, g, b))


if __name__ == "__main__":
    image = np.random.default_rng(0).integers(0, 256, (160, 160, 3), dtype=np.uint8)

    always = vg.Augmenter(T.Compose([Warm(30), Lean((0.1, 0.4)), Sepia(0.5), Vibrance()]))
    print(always.explain(id=7, size=image.shape))
    print(always([image], ids=[7]).shape, "\n")

    policy = T.RandAugment(num_ops=2, magnitude=15, operations=["Rotate", "Posterize", Warm, Lean, Sepia, Vibrance])
    aug = vg.Augmenter(policy)
    for sample in range(3):
        print(aug.explain(id=sample, size=image.shape))
