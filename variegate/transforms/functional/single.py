"""Run one transform, or one instruction, on one image: the core of the functional interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt
import PIL.Image

from variegate.arrays import ImageArray
from variegate.executors.batches import depth_of_batch
from variegate.executors.runners.devices import compiled_for_one, get_executor
from variegate.ops.arguments import ArgumentError, InterpolationName, PaddingMode
from variegate.ops.base import Recorded, Transform
from variegate.ops.magnitude import (
    BORDER_FLAGS,
    INTERPOLATION_FLAGS,
)
from variegate.program.depth import ACCEPTED, Depth, in_native_order
from variegate.program.ops import INTERPOLATION_BITS, Op
from variegate.program.program import MAX_SIDE, Output, is_kernel_image
from variegate.program.rng import stream_of
from variegate.program.scalar_draw import NeedsBatch, ScalarDraw, single_sampling

# An array [H, W, C] with C = 1 or 3, or [H, W], of a ``Depth``; a torch tensor of these shapes or [C, H, W]; or a PIL
# image.
Img = TypeVar("Img", bound=Any)
Declared = TypeVar("Declared", bound=Transform)
Function = TypeVar("Function", bound=Callable[..., Any])

UINT8 = Output(layout="NHWC")
# The error of every function here: the argument, the value it got and accepted values.
refused = partial(ArgumentError, None)
# Flags of maps that read between pixels.
INTERPOLATED = (1 << INTERPOLATION_BITS) - 1
_ACCEPTED = "an array [height, width, channels] with 1 or 3 channels, or [height, width]"
_ALSO = f"{_ACCEPTED}; a tensor, also [channels, height, width]; or a PIL image"


def shape_of(img: Any) -> tuple[int, int, int]:
    """Height, width and channels of a checked image.

    Raises:
        ValueError: unless it is a PIL image, an array [H, W, 1 or 3] or [H, W], or a tensor of such a shape or
            [1 or 3, H, W], with at least one pixel; and for dtypes that are no ``Depth``.
    """
    if is_kernel_image(img) or isinstance(img, Recorded):
        return img.shape
    if isinstance(img, PIL.Image.Image):
        if 0 in img.size:
            raise refused("img.size", img.size, "at least one pixel")
        from variegate.decode.pillow import is_gray_mode

        return img.height, img.width, 1 if is_gray_mode(img.mode) else 3
    shape, dtype = getattr(img, "shape", None), getattr(img, "dtype", None)
    if shape is None or dtype is None:
        raise refused("img", type(img).__name__, _ALSO)
    if getattr(dtype, "name", str(dtype)).removeprefix("torch.") not in map(str, Depth):
        raise refused("img.dtype", str(dtype), ACCEPTED)
    if getattr(img, "requires_grad", False):
        raise refused("img", "a tensor that requires a gradient", "tensor.detach()")
    if is_planar(img):
        shape = (*shape[1:], shape[0])
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
        raise refused("img.shape", tuple(shape), _ALSO if _is_tensor(img) else _ACCEPTED)
    if 0 in shape:
        raise refused("img.shape", tuple(img.shape), "at least one pixel")
    return int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1


def is_planar(img: Any) -> bool:
    """True for a tensor [C, H, W]; channels come last where they could be first as well."""
    return _is_tensor(img) and len(img.shape) == 3 and img.shape[2] not in (1, 3) and img.shape[0] in (1, 3)


def _is_tensor(img: Any) -> bool:
    return not isinstance(img, np.ndarray) and hasattr(img, "numpy")


def pixels_of(img: Any) -> ImageArray:
    """A checked image as a contiguous array [H, W, C]. PIL images of other modes become gray or RGB."""
    if is_kernel_image(img):
        return img
    if isinstance(img, PIL.Image.Image):
        from variegate.decode import pixels_of_pil

        return pixels_of_pil(img, "img", keeps_depth=True)
    array: ImageArray = img.cpu().numpy() if _is_tensor(img) else in_native_order(np.asarray(img))
    if is_planar(img):
        array = array.transpose(1, 2, 0)
    return np.ascontiguousarray(array if array.ndim == 3 else array[:, :, None])


def like(img: Img, out_HWC: npt.NDArray[Any]) -> Img:
    """A result [H, W, C] in the rank and kind of ``img``: an array, a tensor or a PIL image."""
    if is_kernel_image(img):
        return cast(Img, out_HWC)
    if isinstance(img, PIL.Image.Image):
        gray = out_HWC.shape[2] == 1
        if not gray and out_HWC.dtype != np.uint8:
            accepted = "an array, as PIL images of more than 8 bits are gray"
            raise refused(
                "img", f"a PIL image of mode {img.mode} for a result of {out_HWC.shape[2]} channels", accepted
            )
        return cast(Img, PIL.Image.fromarray(np.ascontiguousarray(out_HWC[..., 0]) if gray else out_HWC))
    out = out_HWC[..., 0] if img.ndim == 2 and out_HWC.shape[2] == 1 else out_HWC
    if not _is_tensor(img):
        return cast(Img, out)
    import torch

    planar = is_planar(img) or (img.ndim == 2 and out.ndim == 3)
    tensor = torch.from_numpy(np.ascontiguousarray(out.transpose(2, 0, 1) if planar else out)).to(img.device)
    return cast(Img, tensor if type(img) is torch.Tensor else tensor.as_subclass(type(img)))


class Single(Generic[Img]):
    """A program for one image, written instruction by instruction."""

    def __init__(self, img: Img, seed: int = 0) -> None:
        self.img = img
        shape = self.height, self.width, self.channels = shape_of(img)
        is_recorded = isinstance(img, Recorded)
        self.sampling = img.function_recorder() if is_recorded else ScalarDraw(shape, 0, stream_of(seed, 0, 0))

    def emit(
        self,
        op: Op,
        *args: float,
        flags: int = 0,
        fill: Sequence[int] | None = None,
        size: tuple[float, float] | None = None,
    ) -> Single[Img]:
        """Append an instruction; ``size``: height and width, where it changes them."""
        if flags & INTERPOLATED and max(self.height, self.width) > MAX_SIDE:
            accepted = f'sides of at most {MAX_SIDE:,} pixels, or interpolation="nearest"'
            raise refused("img.shape", (self.height, self.width), accepted)
        sides = None if size is None else (int(size[0]), int(size[1]))
        self.sampling.add(op, *args, flags=flags, fill=fill, size=sides)
        return self

    def run(self, device: str, output: Output = UINT8) -> Img:
        """The image after all instructions, in the rank and kind of the input (array, tensor or PIL image)."""
        if isinstance(self.img, Recorded):
            return cast(Img, self.img.recorded(self.sampling, device, output))
        return like(self.img, self.result(device, output))

    def run_as_batch(self, transform: Transform, device: str) -> Img:
        """The image through a transform that draws for batches alone."""
        if isinstance(self.img, Recorded):
            return cast(Img, transform(self.img.recorded(self.img.function_recorder(), device, UINT8)))
        image = self.sampling
        sampling = single_sampling(image.in_shape, image.sample_id, image.stream)
        sampling.output = UINT8
        transform.sample(sampling, np.zeros(1, np.intp), 0)
        pixels = pixels_of(self.img)
        program = sampling.finish(sampling.output).for_depth(depth_of_batch(pixels))
        read = np.ascontiguousarray(np.broadcast_to(pixels, program.in_shape[0]))
        return like(self.img, get_executor(device)(program, [read])[0])

    def result(self, device: str, output: Output = UINT8) -> npt.NDArray[Any]:
        """The image after all instructions as an array with three axes, in the layout of ``output``."""
        if isinstance(self.img, Recorded):
            self.img.refuse_pixels("this function")
        pixels = pixels_of(self.img)
        if device == "cpu":
            return compiled_for_one()(self.sampling, pixels, output)
        program = self.sampling.finish(output).for_depth(depth_of_batch(pixels))
        return get_executor(device)(program, [pixels])[0]


def declared(declare: Callable[[], Declared], **names: str) -> Declared:
    """The transform that ``declare`` makes. ``names``: the function's names of the arguments, for messages."""
    try:
        return declare()
    except ArgumentError as error:
        raise refused(names.get(error.argument, error.argument), error.got, error.accepted) from None


def run(img: Img, device: str, declare: Callable[[], Transform], **names: str) -> Img:
    """``img`` through the transform that ``declare`` makes, which draws nothing; ``names`` as for ``declared``."""
    transform = declared(declare, **names)
    single = Single(img)
    try:
        single.sampling.run(transform, 0)
    except NeedsBatch:
        return single.run_as_batch(transform, device)
    return single.run(device)


def run_map(
    img: Img,
    device: str,
    op: Op,
    args: Sequence[float],
    interpolation: InterpolationName,
    fill: Any,
    padding_mode: PaddingMode,
    size: Any = None,
) -> Img:
    """``img`` through a map of coordinates."""
    flags = INTERPOLATION_FLAGS[interpolation] | BORDER_FLAGS[padding_mode]
    return run_step(img, device, op, args, flags, fill, size)


def run_step(
    img: Img, device: str, op: Op, args: Sequence[float] = (), flags: int = 0, fill: Any = None, size: Any = None
) -> Img:
    """``img`` through one instruction; ``size``: height and width, where it changes them."""
    if isinstance(img, Recorded):
        return cast(Img, img.after(device, op, args, flags, fill, size))
    return Single(img).emit(op, *args, flags=flags, fill=fill, size=size).run(device)
