"""One instruction on one image: what all functions of the functional interface do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from variegate.backends.devices import get_executor
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.transforms.functional.arguments import refused

# A uint8 array [H, W, C] with C = 1 or 3, or [H, W]; or a torch tensor of the same shapes.
Img = TypeVar("Img", bound=Any)

UINT8 = Output(layout="NHWC")
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
        flags: int = 0,
        fill: Sequence[int] | None = None,
        size: tuple[int, int] | None = None,
    ) -> Single[Img]:
        """Append an instruction; ``size`` (height, width) where it changes."""
        new_size = None if size is None else np.array([size], np.int32)
        self.sampling.emit(np.zeros(1, np.intp), op, *args, flags=flags, fill=fill, size=new_size)
        return self

    def run(self, device: str, output: Output = UINT8) -> Img:
        """The image after all instructions, in the rank and kind (array or tensor) of the input."""
        img: Any = self.img
        is_tensor = not isinstance(img, np.ndarray) and hasattr(img, "numpy")
        array: npt.NDArray[np.uint8] = img.cpu().numpy() if is_tensor else np.asarray(img)
        image_HWC = np.ascontiguousarray(array.reshape(self.height, self.width, self.channels))
        out = get_executor(device).run(self.sampling.finish(output), [image_HWC])[0]
        if array.ndim == 2:
            out = out[..., 0]
        if not is_tensor:
            return cast(Img, out)
        import torch

        return cast(Img, torch.from_numpy(np.ascontiguousarray(out)).to(img.device))


def run_one(img: Img, device: str, op: Op, *args: float, flags: int = 0, fill: Sequence[int] | None = None) -> Img:
    """One instruction that keeps the image's size."""
    return Single(img).emit(op, *args, flags=flags, fill=fill).run(device)
