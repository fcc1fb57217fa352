"""Check input images, and select the channels of output tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
import torch.utils.dlpack

from variegate.arrays import AnyArray, ImageArray, Int32Array
from variegate.decode import pixels_of_pil
from variegate.executors.batches import depth_of_batch, packed_offsets, shapes_of, write_images
from variegate.executors.runners.devices import resolve
from variegate.program.depth import ACCEPTED, Depth, depth_of, in_native_order
from variegate.program.program import MAX_CHANNELS, MAX_SIDE, Output, is_kernel_image

Image = ImageArray
_TENSOR_DTYPES = {getattr(torch, str(depth)) for depth in Depth}
# Outputs: one tensor, or a list if shapes differ; a tuple with one entry per group for several views per image.
Tensors = torch.Tensor | list[torch.Tensor] | tuple[Any, ...]

# Default format of an image's name in errors.
NAMES = "images[{}]"
_ACCEPTED = f"{ACCEPTED} [H, W, C] with C = 1 to 32, or [H, W]"
_ACCEPTED_TENSORS = f"{ACCEPTED} [H, W, C], [C, H, W] or [H, W] with C = 1 to 32"


def channels_last(first: int, last: int, may_be_first: bool = True) -> bool | None:
    """True if the last axis of an image is its channels, False if the first is; None for neither.

    An axis of size 1 or 3 is preferred. Otherwise the smaller axis of at most MAX_CHANNELS is the channels, and for
    arrays (``may_be_first=False``) the last.
    """
    for is_last, side in ((True, last), (False, first)):
        if side in (1, 3):
            return is_last
    if last <= MAX_CHANNELS and not (may_be_first and first < last):
        return True
    return False if first <= MAX_CHANNELS else None


def check_images(images: Any, names: str = NAMES) -> list[Image] | Image:
    """Check a batch, a list or [N, H, W, C], and return contiguous [H, W, C] arrays of one of the ``Depth`` dtypes.

    ``names``: format of an image's name in errors.
    """
    if isinstance(images, np.ndarray):
        return _check_batch(images)
    if not isinstance(images, (list, tuple)):
        tensor = as_tensor(images)
        if tensor is not None:
            _check_is_here("images", tensor)
            last = check_tensor(tensor)
            return np.asarray((tensor if last else tensor.permute(0, 2, 3, 1)).contiguous().numpy())
        one = "; one image goes into a list" if isinstance(images, PIL.Image.Image) else ""
        raise TypeError(
            f"images: got {type(images).__name__}; accepted: a list of images or one array [N, H, W, C]{one}"
        )
    return [check_image(image, i if names is NAMES else names.format(i)) for i, image in enumerate(images)]


def _check_batch(whole: AnyArray) -> Image:
    whole = in_native_order(whole)
    if depth_of(whole.dtype) is None:
        more = ", or a list of images" if whole.dtype == object else ""
        raise TypeError(f"images: got dtype {whole.dtype}; accepted: {ACCEPTED} [N, H, W, C]{more}")
    if whole.ndim != 4 or not channels_last(whole.shape[1], whole.shape[3], may_be_first=False) or 0 in whole.shape[1:]:
        is_first = whole.ndim == 4 and whole.shape[1] in (1, 3)
        hint = "; the channels of an array come last: transpose(0, 2, 3, 1)" if is_first else ""
        hint = "; clips are for Augmenter(consistent=True)" if whole.ndim == 5 else hint
        raise ValueError(
            f"images: got shape {whole.shape}; accepted: one array [N, H, W, C] with C = 1 to 32, or a list "
            f"of images {_ACCEPTED}{hint}"
        )
    _check_sides("images", whole.shape, whole.shape[1:3])
    return np.ascontiguousarray(whole)


def check_image(image: Any, place: int | str) -> Image:
    """Check an image and return a contiguous [H, W, C] array. ``place``: its index in the batch, or its name."""
    where = place if isinstance(place, str) else NAMES.format(place)
    if is_kernel_image(image):
        return image
    if isinstance(image, np.ndarray):
        return _check_array(image, where)
    if isinstance(image, PIL.Image.Image):
        return pixels_of_pil(image, where, keeps_depth=True)
    tensor = as_tensor(image)
    if tensor is None:
        raise TypeError(
            f"{where}: got {type(image).__name__}; accepted: {_ACCEPTED}, as array or CPU tensor, or a PIL image"
        )
    _check_is_here(where, tensor)
    return np.asarray(_hwc(tensor, where).contiguous().numpy())


def _check_array(array: AnyArray, where: str) -> Image:
    array = in_native_order(array)
    if depth_of(array.dtype) is None:
        raise TypeError(f"{where}: got dtype {array.dtype}; accepted: {_ACCEPTED}")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or not channels_last(array.shape[0], array.shape[2], may_be_first=False) or 0 in array.shape:
        is_first = array.ndim == 3 and array.shape[0] in (1, 3)
        hint = "; the channels of an array come last: transpose(1, 2, 0)" if is_first else ""
        raise ValueError(f"{where}: got shape {array.shape}; accepted: {_ACCEPTED}, no side empty{hint}")
    _check_sides(where, array.shape, array.shape[:2])
    return np.ascontiguousarray(array)


def _check_sides(where: str, shape: tuple[int, ...], sides: tuple[int, ...]) -> None:
    if max(sides) > MAX_SIDE:
        raise ValueError(f"{where}: got shape {shape}; accepted: sides of at most {MAX_SIDE:,} pixels")


def _check_is_here(where: str, tensor: torch.Tensor) -> None:
    if tensor.device.type != "cpu":
        raise ValueError(f"{where}: got a tensor on {tensor.device}; accepted on this device: CPU tensors")


def as_tensor(value: Any) -> torch.Tensor | None:
    """Convert a tensor of any library with DLPack (PyTorch, CuPy, JAX, ...) without a copy; None for other types."""
    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return torch.utils.dlpack.from_dlpack(value)  # type: ignore[attr-defined, unused-ignore]
    return None


def check_tensor(tensor: torch.Tensor) -> bool:
    """Check a batch [N, H, W, C] or [N, C, H, W]. Returns True if channels are the last axis, also if ambiguous."""
    _check_kind("images", tensor, f"{ACCEPTED} [N, H, W, C] or [N, C, H, W]")
    shape = tuple(tensor.shape)
    is_last = channels_last(*shape[1::2]) if len(shape) == 4 else None
    if is_last is None or 0 in shape[1:]:
        raise ValueError(
            f"images: got shape {shape}; accepted: [N, H, W, C] or [N, C, H, W] with C = 1 to 32, or a list of "
            f"images {_ACCEPTED}"
        )
    _check_sides("images", shape, shape[1:3] if is_last else shape[2:])
    return is_last


def check_tensors(tensors: Sequence[torch.Tensor], names: str = NAMES) -> list[torch.Tensor]:
    """Check images [H, W, C], [C, H, W] or [H, W] on a device, and return [H, W, C] views of any strides."""
    return [_hwc(tensor, names.format(i)) for i, tensor in enumerate(tensors)]


def _hwc(tensor: torch.Tensor, where: str) -> torch.Tensor:
    """Check an image and return an [H, W, C] view; if the layout is ambiguous, the last axis is the channels."""
    _check_kind(where, tensor, _ACCEPTED_TENSORS)
    shape = tuple(tensor.shape)
    image = tensor[:, :, None] if tensor.ndim == 2 else tensor
    is_last = channels_last(*image.shape[::2]) if image.ndim == 3 else None
    if is_last is False:
        image = image.permute(1, 2, 0)
    if is_last is None or 0 in image.shape:
        raise ValueError(f"{where}: got shape {shape}; accepted: {_ACCEPTED_TENSORS}, no side empty")
    _check_sides(where, shape, tuple(image.shape[:2]))
    return image


def _check_kind(where: str, tensor: torch.Tensor, accepted: str) -> None:
    if tensor.dtype not in _TENSOR_DTYPES:
        raise TypeError(f"{where}: got dtype {str(tensor.dtype).removeprefix('torch.')}; accepted: {accepted}")
    if tensor.requires_grad:
        raise TypeError(f"{where}: got a tensor that requires a gradient; accepted: tensor.detach()")
    if tensor.layout != torch.strided:
        raise TypeError(f"{where}: got a tensor of layout {tensor.layout}; accepted: a dense one, {accepted}")


def looks_like_sizes(value: Any) -> bool:
    """True if ``value`` lists (height, width[, channels]) instead of images."""
    if isinstance(value, np.ndarray):
        return value.ndim == 2 and value.dtype.kind in "iu" and value.shape[1] in (2, 3) and value.dtype != np.uint8
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(v, (list, tuple)) and all(isinstance(n, (int, np.integer)) for n in v) for v in value)


def check_sizes(sizes: Any) -> Int32Array:
    """Check sizes and return int32[N, 3]: height, width, channels (3 by default)."""
    shapes = []
    for i, size in enumerate(sizes):
        shape = (*(int(n) for n in size), 3)[:3]
        if len(size) not in (2, 3) or min(shape) < 1 or shape[2] > MAX_CHANNELS:
            accepted = f"(height, width) or (height, width, channels), channels 1 to {MAX_CHANNELS}"
            raise ValueError(f"sizes[{i}]: got {tuple(size)}; accepted: {accepted}")
        _check_sides(f"sizes[{i}]", shape, shape[:2])
        shapes.append(shape)
    return np.array(shapes, np.int32).reshape(-1, 3)


def wants_one_channel(output: Output) -> bool:
    """True if the transform declares a one-channel output (``T.Grayscale()``)."""
    return getattr(output, "channels", None) == 1


def first_channel(image: torch.Tensor, layout: str) -> torch.Tensor:
    """Return a view of the first channel of [..., C, H, W] or, with "NHWC", of [..., H, W, C]."""
    return image[..., :1, :, :] if layout == "NCHW" else image[..., :1]


def with_wanted_channels(results: Any, output: Output, is_batch: bool = True) -> Tensors:
    """Select the output's channels and apply its steps on finished tensors; one tensor if the shapes agree."""
    if isinstance(results, tuple):
        return tuple(with_wanted_channels(group, output, is_batch) for group in results)
    if wants_one_channel(output):
        if isinstance(results, torch.Tensor):
            results = first_channel(results, output.layout).contiguous()
        else:
            results = _stacked([_one_channel(image, output) for image in results])
    if output.to_uint8 is not None and not output.is_float:
        results = _in_uint8(results, output)
    for step in output.steps:
        if not is_batch or (isinstance(results, torch.Tensor) and step.takes_batches):
            results = step(results, output.layout)
        else:
            results = _stacked([step(image, output.layout) for image in results])
    return results


def _one_channel(image: Any, output: Output) -> Any:
    """Copy the first channel of an image, or of each image of a group or clip."""
    if isinstance(image, torch.Tensor):
        return first_channel(image, output.layout).contiguous()
    return _stacked([_one_channel(part, output) for part in image])


def _in_uint8(results: Any, output: Output) -> Any:
    if isinstance(results, torch.Tensor):
        return output.to_uint8(results, output.layout)
    return [_in_uint8(part, output) for part in results]


def _stacked(images: list[Any]) -> Any:
    alike = all(isinstance(image, torch.Tensor) for image in images) and len({image.shape for image in images}) == 1
    return torch.stack(images) if alike else images


class RaggedBatch:
    """Contiguous uint8 images [H, W, C] of different sizes in one buffer.

    Args:
        data: uint8 [bytes], on the CPU or a CUDA device; not copied.
        shapes: int [N, 3]: height, width and channels (1 to 32) of each image.
        offsets: int [N], the byte of ``data`` at which each image begins; None if there are no gaps between images.

    Raises:
        TypeError, ValueError: naming the argument, its value and the accepted values.
    """

    def __init__(self, data: torch.Tensor, shapes: npt.ArrayLike, offsets: npt.ArrayLike | None = None) -> None:
        if not isinstance(data, torch.Tensor) or data.dtype != torch.uint8 or data.ndim != 1:
            got = f"{data.dtype}{list(data.shape)}" if isinstance(data, torch.Tensor) else type(data).__name__
            raise TypeError(f"data: got {got}; accepted: a torch.uint8 tensor of one dimension")
        if not data.is_contiguous():
            raise ValueError("data: got a tensor with gaps; accepted: a contiguous one")
        self.data = data
        self.shapes = _check_shapes(shapes)
        sizes = self.shapes.astype(np.int64).prod(axis=1)
        if offsets is None:
            offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), sizes]))[:-1]
        self.offsets = np.asarray(offsets, np.int64)
        if self.offsets.shape != (len(self.shapes),):
            raise ValueError(
                f"offsets: got shape {self.offsets.shape}; accepted: one per image, {len(self.shapes)} here"
            )
        outside = np.flatnonzero((self.offsets < 0) | (self.offsets + sizes > len(data)))
        if len(outside):
            i = int(outside[0])
            raise ValueError(
                f"offsets[{i}]: image {self.shapes[i].tolist()} from byte {self.offsets[i]} on; accepted: images "
                f"within the {len(data)} bytes of data"
            )

    @classmethod
    def pack(cls, images: Any, device: str | torch.device = "cpu") -> RaggedBatch:
        """Copy host ``images``, given as for an ``Augmenter``, into one buffer on ``device``.

        Raises TypeError or ValueError naming the image, or a device that is not available.
        """
        is_cuda = resolve(device).startswith("cuda")
        arrays = check_images(images)
        shapes, depth = shapes_of(arrays), depth_of_batch(arrays)
        if depth.is_deep:
            raise TypeError(f"images: got {depth}; accepted in a RaggedBatch: uint8")
        offsets, total = packed_offsets(shapes)
        data = torch.empty(total, dtype=torch.uint8, device="cpu", pin_memory=is_cuda)
        write_images(data.numpy(), arrays, offsets)
        return cls(data.to(resolve(device)) if is_cuda else data, shapes, offsets)

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, i: int) -> torch.Tensor:
        """Image ``i`` as a view, uint8 [H, W, C]."""
        shape = self.shapes[i].tolist()
        start = int(self.offsets[i])
        return self.data[start : start + int(np.prod(shape))].view(shape)


def _check_shapes(shapes: npt.ArrayLike) -> Int32Array:
    array = np.asarray(shapes)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        raise ValueError(f"shapes: got {array.dtype}{list(array.shape)}; accepted: int[N, 3]: height, width, channels")
    sides = array[:, :2]
    channels = array[:, 2]
    wrong = np.flatnonzero((array < 1).any(axis=1) | (sides > MAX_SIDE).any(axis=1) | (channels > MAX_CHANNELS))
    if len(wrong):
        i = int(wrong[0])
        most = f"{MAX_SIDE:,} pixels, 1 to {MAX_CHANNELS} channels"
        raise ValueError(f"shapes[{i}]: got {array[i].tolist()}; accepted: sides of 1 to {most}")
    return array.astype(np.int32)
