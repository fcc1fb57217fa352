"""Transforms that set the output format: normalization, dtype, and number of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast, get_args

import numpy as np

from variegate.arrays import Float32Array
from variegate.checks import Refusal, as_integer, refused
from variegate.ops.arguments import ArgumentError, several_numbers
from variegate.ops.base import Transform, set_field
from variegate.ops.finish import Cast, Standardize, followed_by, is_cut_only
from variegate.ops.magnitude import PlainOp
from variegate.ops.schema import LARGEST, Converted, OneOf
from variegate.program.depth import Depth
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import Op
from variegate.program.program import MAX_CHANNELS, Output
from variegate.program.sampling import Rows, Sampling

# Advice in errors for a transform inside a random choice.
_LAST = "put it last, outside of the choice."

DtypeName = Literal["float32", "float16", "bfloat16"]
FinishedName = Literal["float64", "uint8", "int8", "int16", "int32", "int64", "uint16"]
if TYPE_CHECKING:
    import torch

    AnyDtype = DtypeName | FinishedName | torch.dtype
else:
    AnyDtype = DtypeName | FinishedName
_DTYPE = OneOf((*get_args(DtypeName), *get_args(FinishedName)), read=lambda value: str(value).removeprefix("torch."))
_NUMBERS = "three numbers (red, green, blue), or one for all"
_POSITIVE = "three positive numbers (red, green, blue), or one for all"


def _per_channel(value: Any, least: float = -LARGEST) -> tuple[float, ...] | None:
    numbers = several_numbers(value, MAX_CHANNELS, least)
    return numbers if numbers is None or isinstance(numbers, tuple) else (numbers,)


def _mean_or_dataset(value: Any) -> tuple[float, ...] | Literal["dataset"] | None:
    return "dataset" if isinstance(value, str) and value == "dataset" else _per_channel(value)


def _std(value: Any) -> tuple[float, ...] | None:
    return _per_channel(value, 1 / LARGEST)


@dataclass(frozen=True)
class Normalize(Transform):
    """Normalize to floats: ``(x / 255 - mean) / std``.

    Args:
        mean: one number for all channels or one for each, on the 0..1 scale; numbers above 1 are refused, unless a
            ``ToDtype(scale=False)`` comes before. "dataset" takes mean and standard deviation from the ``Loader``'s
            source, as stored by ``variegate pack``, and works only there; of float32, in the images' own numbers.
        std: likewise; above 0.

    It belongs at the end of a transform: only an erasing may follow. It cannot be part of a choice, because all images
    of a batch have one format.
    """

    mean: Annotated[
        float | Sequence[float] | Literal["dataset"], Converted(_mean_or_dataset, f"{_NUMBERS}, or 'dataset'")
    ]
    std: Annotated[float | Sequence[float], Converted(_std, _POSITIVE)] | None = None
    inplace: bool = False
    _changes_bytes = False
    _format_advice = "put it last, outside of the choice"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.std is None and not self.is_of_dataset:
            raise ArgumentError(self, "std", None, _POSITIVE)
        if self.std is not None and self.is_of_dataset:
            raise ArgumentError(self, "std", self.std, "none with mean='dataset'")
        set_field(self, "_final_op", self)

    def __repr__(self) -> str:
        given = [self.mean] if self.std is None else [self.mean, self.std]
        return f"Normalize({', '.join(map(repr, given))}{', inplace=True' if self.inplace else ''})"

    @property
    def is_of_dataset(self) -> bool:
        """True for ``Normalize("dataset")`` before a ``Loader`` sets the numbers."""
        return self.mean == "dataset"

    @property
    def numbers(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation. Raises ValueError for ``Normalize("dataset")``."""
        if self.mean == "dataset" or self.std is None:
            raise ValueError(
                "Normalize('dataset'): there is no data set here; accepted: a Loader of what variegate pack wrote, or "
                "numbers: Normalize(mean, std)"
            )
        return cast("tuple[tuple[float, ...], tuple[float, ...]]", (self.mean, self.std))

    def draw(self, image: DrawContext, slot: int) -> None:
        image.set_output(_normalized(image.output, *self.numbers), self, _LAST)


@dataclass(frozen=True)
class ToDtype(Transform):
    """Convert to floats: on 0..1 with ``scale``, else the images' own numbers (0..255 of uint8), as in torchvision.

    ``dtype`` is a name or a torch dtype. float32, float16 and bfloat16 are overridden by the ``dtype`` of the
    Augmenter; a ``Normalize`` may follow. float64, int8, int16, int32, int64 and uint16 are computed from the finished
    tensor, outside of the fused pass. With ``scale``, integers are shifted to their range, as in torchvision. uint8
    leaves uint8 images unchanged, and any operation may follow; results of uint16 and float32 images are converted to
    it.
    """

    dtype: Annotated[AnyDtype, _DTYPE] = "float32"
    scale: bool = False
    _changes_bytes = False
    _always_described: ClassVar[tuple[str, ...]] = ("scale",)
    _format_advice = "put it last, outside of the choice"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "_final_op", None if self.dtype == "uint8" else self)

    def draw(self, image: DrawContext, slot: int) -> None:
        output, dtype = image.output, cast(str, self.dtype)
        is_cut = is_cut_only(output)
        if not is_cut or dtype not in get_args(DtypeName):
            conversion = Cast(dtype, self.scale)
            if dtype != "uint8" or output.is_float or not is_cut:
                image.set_output(followed_by(output, conversion), self, _LAST)
            else:
                image.set_output(replace(output, to_uint8=output.to_uint8 or conversion), self, _LAST)
            return
        if not output.is_float:
            output = _normalized(output, (0.0,), (1.0 if self.scale else 1.0 / 255.0,))
            # Images that are scaled to uint8 have its numbers, although they are not rounded.
            is_unscaled = not self.scale and (output.to_uint8 is None or not output.to_uint8.scale)
            output = replace(output, is_unscaled=is_unscaled)
        # Floats are converted without scaling, as in torchvision.
        image.set_output(replace(output, dtype=dtype), self, _LAST)


@dataclass(frozen=True)
class ConvertImageDtype(ToDtype):
    """Apply ``ToDtype(dtype, scale)`` under its older torchvision name."""

    scale: bool = True
    _always_described = ()


def _one_or_three(value: Any) -> int | None:
    channels = as_integer(value)
    return channels if channels in (1, 3) else None


GrayChannels = Annotated[int, Converted(_one_or_three, "1, or 3 for equal channels")]


@dataclass(frozen=True)
class Grayscale(PlainOp):
    """Convert to gray levels (Pillow's mode "L") in ``num_output_channels``, 1 or 3.

    One channel applies to all images of a batch, so it cannot be part of a choice; ``RandomGrayscale`` and policies
    keep the channels. Later operations still receive three equal channels, and the first channel is returned.
    """

    num_output_channels: GrayChannels = 1
    _op = Op.GRAYSCALE
    _always_described = ("num_output_channels",)
    _format_advice = "take num_output_channels=3, or RandomGrayscale"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_output_channels == 3:
            set_field(self, "_format_setter", None)

    def draw(self, image: DrawContext, slot: int) -> None:
        if self.num_output_channels == 3:
            title = "Grayscale(num_output_channels=3)"
            if isinstance(image.output, OneChannel):
                raise ValueError(f"{title} after Grayscale(), of which one channel leaves; accepted: one of the two")
            image.call_back(partial(_widen, title), slot)
        super().draw(image, slot)
        if self.num_output_channels == 1:
            before = image.output
            one_channel = OneChannel(**{field.name: getattr(before, field.name) for field in fields(Output)})
            image.set_output(one_channel, self, "take num_output_channels=3, or RandomGrayscale")

    def emit_at(self, image: DrawContext, value: Any, slot: int) -> None:
        super().draw(image, slot)


def _widen(title: str, sampling: Sampling, rows: Rows, slot: int) -> None:
    sampling.widen(rows, title)


@dataclass(frozen=True)
class OneChannel(Output):
    """Format of one channel: the first of the last pass (``executors/runners/images.py``), normalized as gray."""

    channels = 1

    def scale_and_bias(self, channels: int, depth: Depth = Depth.UINT8) -> tuple[Float32Array, Float32Array]:
        return super().scale_and_bias(1, depth)


@dataclass(frozen=True)
class Identity(Transform):
    """Do nothing, as the empty branch of a choice."""

    _changes_bytes = False

    def draw(self, image: DrawContext, slot: int) -> None:
        return


@dataclass(frozen=True)
class ToImage(Identity):
    """Do nothing: images are arrays already. For pipelines written for torchvision."""


@dataclass(frozen=True)
class PILToTensor(Identity):
    """Do nothing: PIL images are accepted everywhere, and uint8 tensors are returned."""


@dataclass(frozen=True)
class ToPureTensor(Identity):
    """Do nothing: results are plain tensors."""


@dataclass(frozen=True)
class ToTensor(ConvertImageDtype):
    """Apply ``ToDtype(dtype, scale)``, by default to floats on 0..1, under torchvision's oldest name."""


def check_fractions(
    mean: tuple[float, ...], std: tuple[float, ...], *, whose: str = "", error: Refusal = refused
) -> None:
    """Refuse statistics above 1, which are in the images' own numbers instead of on 0..1. Raises ``error``."""
    for name, values in (("mean", mean), ("std", std)):
        if max(values) > 1.0:
            accepted = "fractions of 1"
            if min(mean) >= 0 and max(*mean, *std) <= 255:
                means, stds = (f"({', '.join(f'{value / 255:.4g}' for value in each)})" for each in (mean, std))
                accepted += f": divided by 255, these are mean={means}, std={stds}"
            more = "statistics in the images' own numbers may follow T.ToDtype(torch.float32, scale=False)"
            raise error(whose + name, values, f"{accepted}; {more}")


def _is_on_unit_scale(output: Output) -> bool:
    """Return whether the next Normalize gets values on 0..1; False if values are on 0..255 or not known."""
    if not is_cut_only(output):
        last = output.steps[-1]
        return isinstance(last, Cast) and last.scale
    return not output.is_float or (output.mean == (0.0,) and output.std == (1.0,))


# Cached, so that a Normalize returns the identical ``Output`` for every batch: other caches look it up by identity.
@lru_cache(maxsize=256)
def _normalized(before: Output, mean: tuple[float, ...], std: tuple[float, ...]) -> Output:
    if _is_on_unit_scale(before):
        check_fractions(mean, std, whose="Normalize: ")
    if not is_cut_only(before):
        return followed_by(before, Standardize(mean, std))
    if before.mean is not None and before.std is not None:
        # ((x - m1) / s1 - m2) / s2 = (x - (m1 + s1 m2)) / (s1 s2)
        size = max(len(before.mean), len(mean))
        m1, s1, m2, s2 = (np.resize(v, size) for v in (before.mean, before.std, mean, std))
        mean, std = tuple((m1 + s1 * m2).tolist()), tuple((s1 * s2).tolist())
    return replace(before, mean=mean, std=std)
