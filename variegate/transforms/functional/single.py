"""One transform, or one instruction, on one image: what all functions of the functional interface do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from variegate.backends.devices import get_executor
from variegate.program.ops import Interpolation, Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.transforms.arguments import ArgumentError
from variegate.transforms.base import Transform
from variegate.transforms.magnitude import MagnitudeOp

# A uint8 array [H, W, C] with C = 1 or 3, or [H, W]; or a torch tensor of the same shapes.
Img = TypeVar("Img", bound=Any)
Declared = TypeVar("Declared", bound=Transform)

UINT8 = Output(layout="NHWC")
# The error of every function here: the argument, the value it got and what is accepted.
refused = partial(ArgumentError, None)
ROW = np.zeros(1, np.intp)
_ACCEPTED = "a uint8 array [height, width, channels] with 1 or 3 channels, or [height, width]"


def shape_of(img: Any) -> tuple[int, int, int]:
    """Height, width and channels of a checked image.

    Raises:
        ValueError: for anything that is not a uint8 [H, W, 1 or 3] or [H, W] array of at least one pixel.
    """
    shape, dtype = getattr(img, "shape", None), getattr(img, "dtype", None)
    if shape is None or dtype is None:
        raise refused("img", type(img).__name__, _ACCEPTED)
    if str(dtype).removeprefix("torch.") != "uint8":
        raise refused("img.dtype", str(dtype), "uint8")
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
        raise refused("img.shape", tuple(shape), _ACCEPTED)
    if 0 in shape:
        raise refused("img.shape", tuple(shape), "at least one pixel")
    return int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1


class Single(Generic[Img]):
    """A program for one image, written instruction by instruction."""

    def __init__(self, img: Img, seed: int = 0) -> None:
        self.img = img
        self.height, self.width, self.channels = shape_of(img)
        self.sampling = Sampling(
            np.array([[self.height, self.width, self.channels]], np.int32),
            np.zeros(1, np.uint64),
            stream_key(seed, 0),
            num_slots=0,
        )

    def emit(
        self,
        op: Op,
        *args: float,
        interpolation: str = "nearest",
        fill: Sequence[int] | None = None,
        size: npt.NDArray[np.int32] | None = None,
    ) -> Single[Img]:
        """Append an instruction; ``size`` int[1, 2] where it changes."""
        flags = int(Interpolation[interpolation.upper()])
        self.sampling.emit(ROW, op, *args, flags=flags, fill=fill, size=size)
        return self

    def run(self, device: str, output: Output = UINT8) -> Img:
        """The image after all instructions, in the rank and kind (array or tensor) of the input."""
        img: Any = self.img
        is_tensor = not isinstance(img, np.ndarray) and hasattr(img, "numpy")
        array: npt.NDArray[np.uint8] = img.cpu().numpy() if is_tensor else np.asarray(img)
        image_HWC = np.ascontiguousarray(array.reshape(self.height, self.width, self.channels))
        out = get_executor(device)(self.sampling.finish(output), [image_HWC])[0]
        if array.ndim == 2:
            out = out[..., 0]
        if not is_tensor:
            return cast(Img, out)
        import torch

        return cast(Img, torch.from_numpy(np.ascontiguousarray(out)).to(img.device))


def declared(declare: Callable[[], Declared], **names: str) -> Declared:
    """The transform that ``declare`` makes. ``names``: what its arguments are called here, for what is said of them."""
    try:
        return declare()
    except ArgumentError as error:
        raise refused(names.get(error.argument, error.argument), error.got, error.accepted) from None


def run(img: Img, device: str, declare: Callable[[], Transform], **names: str) -> Img:
    """``img`` through the transform that ``declare`` makes, which draws nothing; ``names`` as for ``declared``."""
    transform = declared(declare, **names)
    single = Single(img)
    transform.sample(single.sampling, ROW, 0)
    return single.run(device)


def run_at(img: Img, device: str, operation: type[MagnitudeOp], name: str, value: object, **others: Any) -> Img:
    """``img`` through an operation of one instruction at exactly one number, ``value``, which is called ``name`` here.

    ``others``: what the operation takes besides.
    """
    number = operation.check_number(name, value, error=refused)
    if others:
        return run(img, device, lambda: operation(**{operation._number: number}, **others))
    return Single(img).emit(operation._op, number, *operation.constants()).run(device)
