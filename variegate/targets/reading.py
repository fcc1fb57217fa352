"""Arrays, boxes and torchvision's ``tv_tensors`` as samples bring them, or an error that names the value."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from variegate.errors import shown
from variegate.targets.settings import BOX_FORMATS, Targets, columns_of, corners_of, edges_of

Floats = npt.NDArray[np.float64]
# Results are float32.
_MOST = float(np.finfo(np.float32).max) / 1e3


def as_array(name: str, value: Any, accepted: str) -> npt.NDArray[Any]:
    """In the order of this machine's bytes."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_meta:
            kind = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
            raise TypeError(f"{name}: got a {kind} tensor; accepted: {accepted}, as a dense tensor that holds values")
        value = value.detach().cpu()
        return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: got {shown(value)}; accepted: {accepted}") from error
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_numbers(name: str, value: Any, accepted: str) -> Floats:
    array = as_array(name, value, accepted)
    if array.dtype.kind not in "iuf":
        what = f"{array.dtype}{list(array.shape)}" if array.ndim else shown(value)
        raise TypeError(f"{name}: got {what}; accepted: {accepted}")
    return array.astype(np.float64)


def not_finite(values: Floats) -> Any:
    """bool[M]: which lines of [M, N] hold what is no finite number, or none as float32."""
    return ~(np.abs(values) <= _MOST).all(axis=1)


# So far beyond its image a box may reach for rounding's sake, in pixels.
_SLACK = 1e-2


class GivenBoxes(NamedTuple):
    """Those of one image of ``size`` (height, width). ``own_format``: what the value itself says, None for nothing."""

    name: str
    value: Any
    size: tuple[int, int]
    own_format: Any = None


def read_boxes(given: Sequence[GivenBoxes], options: Targets) -> list[Floats]:
    """Corners of each image's boxes, float64[M, 4, 2], in pixels. Raises TypeError or ValueError for the first wrong
    box."""
    each = [_numbers(of_one, options) for of_one in given]
    counts = [len(boxes) for boxes in each]
    ends = np.cumsum(counts)
    boxes = np.concatenate(each)
    whole = np.repeat([(width, height) * 2 for _, _, (height, width), _ in given], counts, axis=0).astype(np.float64)

    def refuse(values: Floats, wrong: Any, accepted: str) -> None:
        n = int(np.searchsorted(ends, wrong.argmax(), side="right"))
        own = slice(ends[n] - counts[n], ends[n])
        height, width = given[n].size
        refuse_line(given[n].name, values[own], wrong[own], accepted.format(width=width, height=height))

    if (wrong := not_finite(boxes)).any():
        refuse(boxes, wrong, _accepted(options.box_format))
    if options.normalized:
        boxes = boxes * whole
    if options.box_format == "cxcywhr":
        if (wrong := (boxes[:, 2:4] < 0).any(axis=1)).any():
            refuse(boxes, wrong, "widths and heights of 0 or more")
        corners = corners_of(boxes, options.box_format)
    else:
        edges = edges_of(boxes, options.box_format)
        if (wrong := (edges[:, :2] > edges[:, 2:]).any(axis=1)).any():
            refuse(edges, wrong, "left <= right and top <= bottom, as (left, top, right, bottom) in pixels")
        if not options.clip and (wrong := ((edges < -_SLACK) | (edges > whole + _SLACK)).any(axis=1)).any():
            span = "0 to 1" if options.normalized else "0 to {width} and 0 to {height} pixels"
            within = f"boxes within the image, {span}, or vg.Targets(clip=True)"
            refuse(edges / whole if options.normalized else edges, wrong, within)
        corners = corners_of(np.clip(edges, 0.0, whole), "xyxy")
    return [corners[end - count : end] for count, end in zip(counts, ends.tolist(), strict=True)]


def refuse_line(name: str, values: Floats, wrong: Any, accepted: str) -> None:
    """Raises ValueError for the first of the lines that are ``wrong``, bool[M]."""
    at = int(wrong.argmax())
    raise ValueError(f"{name}[{at}]: got {[round(v, 4) for v in values[at].tolist()]}; accepted: {accepted}")


def _accepted(box_format: str) -> str:
    return f"finite numbers [M, {columns_of(box_format)}], {box_format}"


def _numbers(given: GivenBoxes, options: Targets) -> Floats:
    name, box_format = given.name, options.box_format
    if given.own_format is not None and given.own_format.name.lower() != box_format:
        own = given.own_format.name
        same = "the same, as vg.Targets(box_format=) says"
        accepted = same if own.lower() in BOX_FORMATS else f"formats {', '.join(BOX_FORMATS).upper()}"
        raise ValueError(
            f"{name}: got BoundingBoxes with format={own}, and box_format={box_format!r}; accepted: {accepted}"
        )
    columns, accepted = columns_of(box_format), _accepted(box_format)
    boxes = as_numbers(name, given.value, accepted)
    boxes = boxes.reshape(0, columns) if boxes.size == 0 else boxes
    if boxes.ndim != 2 or boxes.shape[1] != columns:
        raise ValueError(f"{name}: got shape {boxes.shape}; accepted: {accepted}")
    return boxes


def has_tv_tensors() -> bool:
    """True if any value could be one; whoever has one has imported torchvision."""
    return "torchvision.tv_tensors" in sys.modules


def is_tv_tensor(value: Any) -> bool:
    return type(value).__module__.startswith("torchvision.tv_tensors")


def check_canvas(name: str, kinds: dict[str, Any], size: tuple[int, int]) -> None:
    """Raises ValueError for boxes or key points of a sample that say that they are of an image of another size."""
    for key, value in kinds.items():
        canvas = getattr(value, "canvas_size", None)
        if canvas is not None and tuple(canvas) != size:
            raise ValueError(
                f"{name}[{key!r}]: got canvas_size={tuple(canvas)}; accepted: the image's own height and width, {size}"
            )


def wrapped_as(tensor: Any, like: Any, **metadata: Any) -> Any:
    return sys.modules["torchvision.tv_tensors"].wrap(tensor, like=like, **metadata)


def wrap_results(result: dict[str, Any], kinds: dict[str, Any], size: tuple[int, int]) -> None:
    """Give entries of ``result`` the types of the tv_tensors that came (``kinds``), with the new image's size."""
    for key, like in kinds.items():
        if key in result:
            sized = {"canvas_size": size} if hasattr(like, "canvas_size") else {}
            result[key] = wrapped_as(result[key], like, **sized)
