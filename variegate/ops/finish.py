"""Operations on result tensors after the last fused pass: conversions of dtype, multi-crops, and user functions.

Each is a *step* of the program's ``Output``, run by PyTorch, which reads and writes the full batch. Only further steps
may follow a step, because all instructions run before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from variegate.ops.arguments import ArgumentError, Size
from variegate.ops.base import Transform
from variegate.ops.schema import Converted
from variegate.program.draws.recorder import DrawContext
from variegate.program.program import Output

if TYPE_CHECKING:
    import torch

_WHOLE_BITS = {"uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16}


def followed_by(output: Output, step: Any) -> Output:
    """Return ``output`` with one more step."""
    return replace(output, steps=(*output.steps, step))


def is_cut_only(output: Output) -> bool:
    """Return whether all steps only crop, so that values may be changed before them with the same result."""
    return all(isinstance(step, _Cuts) for step in output.steps)


def cuts_of(output: Output) -> Any:
    """Return the multi-crop step of ``output``; None without such a step."""
    return next((step for step in output.steps if isinstance(step, _Cuts)), None)


@dataclass(frozen=True)
class Cast:
    """Step that converts the dtype, as torchvision's ``to_dtype``. ``scale`` maps one dtype's range to the other's."""

    dtype: str
    scale: bool
    takes_batches: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.dtype

    def __call__(self, images: torch.Tensor, layout: str) -> torch.Tensor:
        import torch

        dtype: torch.dtype = getattr(torch, self.dtype)
        if images.dtype == dtype or not self.scale or (images.is_floating_point() and dtype.is_floating_point):
            return images.to(dtype)
        before = str(images.dtype).removeprefix("torch.")
        if images.is_floating_point():
            if torch.iinfo(dtype).bits > 16:
                accepted = "integers of at most 16 bits, as the range of larger ones is beyond that of such a float"
                raise ValueError(f"ToDtype({self.dtype!r}, scale=True) of {before}: accepted: {accepted}")
            # As in torchvision: below max + 1, so that only 1.0 becomes the maximum. Clipped, because float32 rounds
            # the factor of uint16 to max + 1, and float16 would round that of uint8.
            greatest = torch.iinfo(dtype).max
            numbers = images.to(torch.promote_types(images.dtype, torch.float32)).mul(float(greatest) + 1.0 - 1e-3)
            return numbers.clamp(torch.iinfo(dtype).min, greatest).to(dtype)
        if dtype.is_floating_point:
            return images.to(dtype).mul_(1.0 / torch.iinfo(images.dtype).max)
        if images.dtype == torch.uint16:
            images = images.to(torch.int32)  # PyTorch does not shift uint16
        shift = _WHOLE_BITS[self.dtype] - _WHOLE_BITS[before]
        if shift < 0:
            return images.bitwise_right_shift(-shift).to(dtype)
        return (images.to(torch.int64) << shift).to(dtype)


@dataclass(frozen=True)
class Standardize:
    """Step that computes ``(x - mean) / std`` per channel. Raises ValueError for integers."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    takes_batches: ClassVar[bool] = True

    def __str__(self) -> str:
        return "normalize"

    def __call__(self, images: torch.Tensor, layout: str) -> torch.Tensor:
        import torch

        if not images.is_floating_point():
            raise ValueError(f"Normalize after {images.dtype}: accepted: floats, as ToDtype(torch.float64, scale=True)")
        shape = (-1, 1, 1) if layout == "NCHW" else (-1,)
        mean, std = (torch.tensor(v, dtype=images.dtype, device=images.device) for v in (self.mean, self.std))
        if images.shape[-3 if layout == "NCHW" else -1] == 1 and len(self.mean) == 3:
            mean, std = mean.mean()[None], std.mean()[None]
        return (images - mean.reshape(shape)) / std.reshape(shape)


class _Cuts:
    """Base class of steps that return several crops per image."""


@dataclass(frozen=True)
class Crops(_Cuts):
    """Step that crops images [..., C, H, W] to [..., 5 or 10, C, h, w], or likewise with channels last."""

    height: int
    width: int
    mirror: str | None = None
    takes_batches: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{10 if self.mirror else 5} crops of {self.height}x{self.width}"

    def __call__(self, images: torch.Tensor, layout: str) -> torch.Tensor:
        import torch

        down, across = (-2, -1) if layout == "NCHW" else (-3, -2)
        crops = self._five(images, down, across)
        if self.mirror:
            # PyTorch does not flip uint16.
            bits = images.view(torch.int16) if images.dtype == torch.uint16 else images
            mirrored = bits.flip(down if self.mirror == "vertical" else across).view(images.dtype)
            crops += self._five(mirrored, down, across)
        return torch.stack(crops, dim=-4)

    def _five(self, images: torch.Tensor, down: int, across: int) -> list[torch.Tensor]:
        spare = images.shape[down] - self.height, images.shape[across] - self.width
        middle = [round(rest / 2.0) for rest in spare]
        corners = [(0, 0), (0, spare[1]), (spare[0], 0), spare, middle]
        return [images.narrow(down, top, self.height).narrow(across, left, self.width) for top, left in corners]


@dataclass(frozen=True)
class Call:
    """Step that calls a user's function for each image."""

    function: Callable[[Any], Any]
    takes_batches: ClassVar[bool] = False

    # Compared by identity, because a callable object need not be hashable.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.function is other.function

    def __hash__(self) -> int:
        return id(self.function)

    def __str__(self) -> str:
        return f"Lambda({getattr(self.function, '__name__', type(self.function).__name__)})"

    def __call__(self, image: torch.Tensor, layout: str) -> Any:
        return self.function(image)


class _Finishing(Transform, abstract=True):
    """Base class of transforms that only add a step."""

    _changes_bytes = False
    _format_advice = "put it last, outside of the choice"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_final_op", self)

    def _step(self) -> Any:
        raise NotImplementedError

    def draw(self, image: DrawContext, slot: int) -> None:
        image.set_output(followed_by(image.output, self._step()), self, "put it last, outside of the choice.")


@dataclass(frozen=True)
class FiveCrop(_Finishing):
    """Crop the four corners and the center, ``size`` pixels each, from the finished tensor.

    Returns [5, C, h, w] for an image, [N, 5, C, h, w] for a batch (torchvision's tuple, stacked). ``Normalize``,
    ``ToDtype`` and ``Lambda`` may follow. Raises ValueError while sampling for an image smaller than ``size``.
    """

    size: Size

    def _step(self) -> Crops:
        height, width = self.size  # type: ignore[misc]
        return Crops(height, width)

    def draw(self, image: DrawContext, slot: int) -> None:
        height, width = self.size  # type: ignore[misc]
        lines, columns = image.height, image.width
        image.check((lines >= height) & (columns >= width), self._too_small, lines, columns)
        super().draw(image, slot)

    def _too_small(self, lines: float, columns: float) -> ValueError:
        got = (int(lines), int(columns))
        return ValueError(f"{type(self).__name__}: size={self.size} (height, width) is larger than an image of {got}")


@dataclass(frozen=True)
class TenCrop(FiveCrop):
    """Apply ``FiveCrop`` of ``size`` to the image and its mirror, left-right or with ``vertical_flip`` top-bottom."""

    vertical_flip: bool = False

    def _step(self) -> Crops:
        height, width = self.size  # type: ignore[misc]
        return Crops(height, width, "vertical" if self.vertical_flip else "horizontal")


def _function(value: Any) -> Callable[[Any], Any] | None:
    return value if callable(value) and not isinstance(value, Transform) else None


class Lambda(_Finishing, abstract=True):
    """Call a Python function with the finished tensor of each image ([C, H, W], or as ``layout`` says).

    It runs outside of the fused passes, one image at a time; only operations on finished tensors may follow. Results
    are stacked if all are tensors of one shape, else returned as a list. ``to_dict`` raises ValueError. To change
    pixels in the fused pass, declare a ``CustomOp``.

    Args:
        lambd: the function.
        types: for torchvision's signature; if given, must include ``torch.Tensor``.
    """

    lambd: Annotated[Callable[[Any], Any], Converted(_function, "a function of a tensor")]
    types: tuple[type, ...]

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        object.__setattr__(self, "lambd", lambd)
        object.__setattr__(self, "types", types)
        super().__post_init__()
        if types:
            import torch

            if not any(isinstance(each, type) and issubclass(torch.Tensor, each) for each in types):
                raise ArgumentError(self, "types", types, "none, or some of which one is torch.Tensor")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lambda) and self.lambd is other.lambd and self.types == other.types

    def __hash__(self) -> int:
        return hash((type(self), id(self.lambd), self.types))

    def __repr__(self) -> str:
        return str(self._step())

    def _step(self) -> Call:
        return Call(self.lambd)

    def to_dict(self) -> dict[str, Any]:
        raise ValueError(f"{self!r}: a function cannot be written down; accepted: a CustomOp, which has a name")
