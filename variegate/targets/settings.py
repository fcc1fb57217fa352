"""Settings of targets: their names in samples, and the targets to keep. Parses arrays, boxes and torchvision's
``tv_tensors`` of samples by these settings, with errors that name the value."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import AnyArray, Float64Array, split
from variegate.checks import as_integer, integer, number, one_of, refused
from variegate.errors import short_repr
from variegate.targets.box_formats import BOX_FORMATS, columns_of, corners_of, edges_of

# What samples may hold.
KEYS = ("image", "mask", "masks", "boxes", "keypoints", "labels", "label")
# As Albumentations calls them.
_ELSEWHERE = {
    "coco": "'xywh'",
    "pascal_voc": "'xyxy'",
    "yolo": "'cxcywh' with normalized=True",
    "albumentations": "'xyxy' with normalized=True",
}


@dataclass(frozen=True)
class Targets:
    """Description of samples that are dicts, for ``vg.Augmenter(t)(samples, targets=vg.Targets(...))``.

    ``box_format``, ``normalized`` and ``point_origin`` describe coordinates in samples and in results alike. An
    annotated source (``vg.open_source(..., annotations=...)``) knows its own format; for it, they describe the batches.

    Args:
        box_format: in pixels from the image's top left corner: "xyxy" (left, top, right, bottom), "xywh" (left, top,
            width, height), "cxcywh" (center, width, height) or "cxcywhr" (with degrees, counter-clockwise).
        normalized: boxes and key points are shares of the image's width and height. Not for "cxcywhr".
        point_origin: origin of key points: "corner" of the image, as for boxes, or "center" of the first pixel
            (Albumentations, and torchvision's flips).
        mask_fill: value of masks where the image shows its fill color; 255 is the usual ignored class.
        min_area: drop boxes with a smaller area in the result, in pixels. Boxes without area are always dropped.
        min_visibility: drop boxes with a smaller visible share: area within the image divided by area of the full box,
            0 to 1.
        clip: clip boxes that exceed their image; otherwise they are an error.
        per_box: further keys with one entry per box, as "iscrowd", which are dropped and joined as boxes are.
        passed: further keys to return unchanged, as "image_id". Other keys are an error.
        padded: for a ``vg.Loader``: return keys with one entry per box as one padded tensor per batch, with "count" as
            the number of valid entries of each sample. Not accepted by an ``Augmenter``.
        min_size: drop boxes with a shorter side than this in the result, in pixels.
        mirrored_points: permutation of an image's (or a box's) key points when the image is mirrored, as YOLO's
            ``flip_idx``: [0, 2, 1] for nose, left eye and right eye. All lists then have this length. Empty: no
            permutation; a left eye remains "left" in a mirrored face.

    Raises:
        ValueError: naming the option.
    """

    box_format: str = "xyxy"
    normalized: bool = False
    point_origin: str = "corner"
    mask_fill: int = 0
    min_area: float = 0.0
    min_visibility: float = 0.0
    clip: bool = False
    per_box: Sequence[str] = ()
    passed: Sequence[str] = ()
    padded: bool = False
    min_size: float = 0.0
    mirrored_points: Sequence[int] = ()

    def __post_init__(self) -> None:
        if isinstance(self.box_format, str) and self.box_format in _ELSEWHERE:
            meant = f"{_ELSEWHERE[self.box_format]}, which is the same"
            raise refused("box_format", self.box_format, meant)
        one_of("box_format", self.box_format, BOX_FORMATS)
        one_of("point_origin", self.point_origin, ("corner", "center"))
        for name in ("normalized", "clip", "padded"):
            one_of(name, getattr(self, name), (True, False))
        integer("mask_fill", self.mask_fill, -(2**31), 2**31 - 1)
        object.__setattr__(self, "mirrored_points", _order("mirrored_points", self.mirrored_points))
        for name, most in (("min_area", math.inf), ("min_size", math.inf), ("min_visibility", 1.0)):
            number(name, getattr(self, name), 0.0, most)
        if self.normalized and self.box_format == "cxcywhr":
            raise refused("normalized", True, "False with box_format='cxcywhr', whose angle is that of pixels")
        taken: dict[str, str] = dict.fromkeys(KEYS, "the samples' own keys")
        for name in ("per_box", "passed"):
            keys = getattr(self, name)
            if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
                raise refused(name, keys, "a list of keys")
            for key in keys:
                if key in taken:
                    raise refused(name, keys, f"keys that are none of {taken[key]}")
                taken[key] = name
            object.__setattr__(self, name, tuple(keys))
        if self.padded and "count" in taken:
            raise refused(taken["count"], getattr(self, taken["count"]), "keys but 'count' with padded=True")

    def accepts(self) -> str:
        """The keys of samples, for errors."""
        return ", ".join(map(repr, (*KEYS, *self.per_box, *self.passed)))

    def with_format(self, box_format: Any) -> Targets:
        """The same for boxes that name their own format."""
        return self if box_format == self.box_format else replace(self, box_format=box_format)

    def of_edges(self) -> Targets:
        """The same for samples whose boxes are edges, and whose points count from the corner, in pixels."""
        return replace(self, box_format="xyxy", normalized=False, point_origin="corner")


def _order(name: str, value: Any) -> tuple[int, ...]:
    numbers = [as_integer(each) for each in value] if isinstance(value, (list, tuple)) else [None]
    found = [number for number in numbers if number is not None]
    if len(found) < len(numbers) or sorted(found) != list(range(len(found))):
        raise refused(name, value, "a list with each of 0, 1, 2, ... once, such as [0, 2, 1]")
    return tuple(found)


# Results are float32.
_MOST = float(np.finfo(np.float32).max) / 1e3


def as_array(name: str, value: Any, accepted: str) -> AnyArray:
    """Convert to native byte order."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_meta:
            kind = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
            raise TypeError(f"{name}: got a {kind} tensor; accepted: {accepted}, as a dense tensor that holds values")
        value = value.detach().cpu()
        return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: got {short_repr(value)}; accepted: {accepted}") from error
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_numbers(name: str, value: Any, accepted: str) -> Float64Array:
    array = as_array(name, value, accepted)
    if array.dtype.kind not in "iuf":
        what = f"{array.dtype}{list(array.shape)}" if array.ndim else short_repr(value)
        raise TypeError(f"{name}: got {what}; accepted: {accepted}")
    return array.astype(np.float64)


def not_finite(values: Float64Array) -> Any:
    """bool[M]: rows of [M, N] with a value that is not finite as float32."""
    return ~(np.abs(values) <= _MOST).all(axis=1)


# So far beyond its image a box may reach for rounding's sake, in pixels.
_SLACK = 1e-2


class InputBoxes(NamedTuple):
    """Boxes of one image of ``size`` (height, width). ``own_format``: the value's own format, None if it has none."""

    name: str
    value: Any
    size: tuple[int, int]
    own_format: Any = None


def read_boxes(given: Sequence[InputBoxes], options: Targets) -> list[Float64Array]:
    """Corners of each image's boxes, float64[M, 4, 2], in pixels. Raises TypeError or ValueError for the first wrong
    box."""
    each = [_numbers(of_one, options) for of_one in given]
    counts = [len(boxes) for boxes in each]
    ends = np.cumsum(counts)
    boxes = np.concatenate(each)
    whole = np.repeat([(width, height) * 2 for _, _, (height, width), _ in given], counts, axis=0).astype(np.float64)

    def refuse(values: Float64Array, wrong: Any, accepted: str) -> None:
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
    return split(corners, counts)


def refuse_line(name: str, values: Float64Array, wrong: Any, accepted: str) -> None:
    """Raises ValueError for the first of the lines that are ``wrong``, bool[M]."""
    at = int(wrong.argmax())
    raise ValueError(f"{name}[{at}]: got {[round(v, 4) for v in values[at].tolist()]}; accepted: {accepted}")


def _accepted(box_format: str) -> str:
    return f"finite numbers [M, {columns_of(box_format)}], {box_format}"


def _numbers(given: InputBoxes, options: Targets) -> Float64Array:
    name = given.name
    box_format = options.box_format
    if given.own_format is not None and given.own_format.name.lower() != box_format:
        own = given.own_format.name
        same = "the same, as vg.Targets(box_format=) says"
        accepted = same if own.lower() in BOX_FORMATS else f"formats {', '.join(BOX_FORMATS).upper()}"
        raise ValueError(
            f"{name}: got BoundingBoxes with format={own}, and box_format={box_format!r}; accepted: {accepted}"
        )
    columns = columns_of(box_format)
    accepted = _accepted(box_format)
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
