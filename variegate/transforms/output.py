"""What leaves the pipeline: normalised floats, or uint8 as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from variegate.program.sampling import Rows, Sampling
from variegate.transforms.base import ArgumentError, Transform, set_field
from variegate.transforms.magnitude import is_number

_DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Normalize(Transform):
    """Float output ``(x / 255 - mean) / std``; three numbers each, or one for all channels, on the 0..1 scale.

    It belongs at the end: only an erasing may follow. Raises ArgumentError for a std that is not positive, and where
    it is part of a choice, since all images of a batch leave in one format.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    inplace: bool = False

    def __post_init__(self) -> None:
        for argument, smallest in (("mean", -np.inf), ("std", 0.0)):
            value = getattr(self, argument)
            numbers = tuple(value) if isinstance(value, (list, tuple)) else (value,)
            if len(numbers) not in (1, 3) or not all(is_number(v) and v > smallest for v in numbers):
                positive = "" if argument == "mean" else "positive "
                raise ArgumentError(
                    self, argument, value, f"three {positive}numbers (red, green, blue), or one for all"
                )
            set_field(self, argument, numbers)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        _normalize(self, sampling, rows, self.mean, self.std)


@dataclass(frozen=True)
class ToDtype(Transform):
    """Float output: on 0..1 with ``scale``, else on 0..255. A ``Normalize`` may follow, as in torchvision.

    ``dtype`` is a name or a torch dtype: float32, float16 or bfloat16; the Augmenter's own ``dtype`` goes before it.
    """

    dtype: str = "float32"
    scale: bool = True

    def __post_init__(self) -> None:
        name = str(self.dtype).removeprefix("torch.")
        if name not in _DTYPES:
            raise ArgumentError(self, "dtype", self.dtype, "one of " + ", ".join(map(repr, _DTYPES)))
        set_field(self, "dtype", name)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        _normalize(self, sampling, rows, (0.0,), (1.0 if self.scale else 1.0 / 255.0,))
        sampling.output = replace(sampling.output, dtype=self.dtype)


@dataclass(frozen=True)
class ConvertImageDtype(ToDtype):
    """``ToDtype(dtype, scale=True)`` under its older torchvision name."""


@dataclass(frozen=True)
class Identity(Transform):
    """Nothing at all: the empty branch of a choice."""

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        return


@dataclass(frozen=True)
class ToImage(Identity):
    """Nothing: images are arrays already. Kept so that torchvision pipelines read the same."""


def _normalize(
    owner: Transform, sampling: Sampling, rows: Rows, mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    if len(rows) < len(sampling.length) and len(np.unique(sampling.source[rows])) <= sampling.source.max():
        raise ValueError(
            f"{type(owner).__name__} inside a choice (OneOf, RandomApply, Cond, ...): all images of a batch leave in "
            "one format; put it last, outside of the choice."
        )
    before = sampling.output
    if before.mean is not None and before.std is not None:
        # ((x - m1) / s1 - m2) / s2 = (x - (m1 + s1 m2)) / (s1 s2)
        size = max(len(before.mean), len(mean))
        m1, s1, m2, s2 = (np.resize(v, size) for v in (before.mean, before.std, mean, std))
        mean, std = tuple((m1 + s1 * m2).tolist()), tuple((s1 * s2).tolist())
    sampling.output = replace(before, mean=mean, std=std)
