"""Parse and check samples that are dicts: each error names the sample, the key, the value and accepted values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from variegate.arrays import AnyArray, Float64Array, Int32Array
from variegate.errors import short_repr
from variegate.targets.settings import (
    KEYS,
    InputBoxes,
    Targets,
    as_array,
    as_numbers,
    check_canvas,
    has_tv_tensors,
    is_tv_tensor,
    not_finite,
    read_boxes,
    refuse_line,
    wrapped_as,
)


def unlike_most(images: Sequence[ImageTargets]) -> dict[int, str]:
    """Errors of images written unlike most others; lists without key points take the form of others, in place."""
    errors = {}
    points = Counter(_of_points(of) for of in images if of.points is not None and of.points.size).most_common(1)
    masks = Counter(_of_masks(of) for of in images).most_common(1)
    for n, of in enumerate(images):
        if (written := _of_masks(of)) != masks[0][0]:
            errors[n] = f"got {written}, and most of its batch {masks[0][0]}; accepted: the same in all"
        elif points and of.points is not None and _of_points(of) != points[0][0]:
            if len(of.points):
                got, others = (f"[{', '.join(map(str, ('M', *form)))}]" for form in (_of_points(of), points[0][0]))
                errors[n] = f"got 'keypoints' {got}, and most of its batch {others}; accepted: the same in all"
            else:
                of.points = np.empty((0, *points[0][0]))
    return errors


def _of_points(of: ImageTargets) -> tuple[int, ...]:
    return () if of.points is None else of.points.shape[1:]


def _of_masks(of: ImageTargets) -> str:
    if of.has_mask_names:
        return f"{of.mask_key!r} with the names {sorted(map(str, of.masks))}"
    return "'mask' without names" if of.masks else "'masks' [M, H, W]" if of.instances is not None else "no masks"


# What errors call the samples of a batch.
NAMES = "samples[{}]"
# Other libraries' names of these keys.
_CALLED = {
    **{"bbox": "boxes", "bboxes": "boxes", "class_labels": "labels", "bbox_labels": "labels", "category_id": "labels"},
    **{"segmentation": "mask", "segmentation_mask": "mask", "key_points": "keypoints", "landmarks": "keypoints"},
}
# On the host, or where it is on a GPU.
Mask = AnyArray | torch.Tensor
NUMPY_TYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.uint8: np.dtype(np.uint8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.bool: np.dtype(np.bool_),
}
MASK_TYPES = tuple(NUMPY_TYPES.values())
# Of tensors on a GPU; torch computes little with them.
_WIDENED_ON_DEVICE = (torch.int8, torch.uint16)


def dtype_of(mask: Mask) -> np.dtype[Any]:
    return NUMPY_TYPES[mask.dtype] if isinstance(mask, torch.Tensor) else mask.dtype


@dataclass
class ImageTargets:
    """Targets of one image of ``size`` (height, width), checked, places in pixels from its top left corner.

    ``corners`` float64[M, 4, 2], None without boxes; ``points`` float64[P, 2 or 3] or [M, P, 2 or 3]; ``masks`` by
    name, [H, W]; ``instances`` [M, H, W]; ``lists``: targets with an entry per box. ``kinds``: types of tensors of
    another library, as they came.
    """

    name: str
    size: tuple[int, int]
    corners: Float64Array | None = None
    points: Float64Array | None = None
    masks: dict[str, Mask] = field(default_factory=dict)
    mask_key: str = "mask"
    has_mask_names: bool = False
    instances: Mask | None = None
    lists: dict[str, Any] = field(default_factory=dict)
    passed: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)


def check_batch(samples: Any, options: Any, names: str = NAMES) -> None:
    """Raises TypeError or ValueError for a sample that is no dict, or has other keys than it may, or than the first."""
    if not isinstance(options, Targets):
        raise TypeError(f"targets: got {short_repr(options)}; accepted: vg.Targets(...), or None")
    if not isinstance(samples, (list, tuple)):
        raise TypeError(f"samples: got {type(samples).__name__} with targets=; accepted: a list of dicts")
    known = {*KEYS, *options.per_box, *options.passed}
    for i, sample in enumerate(samples):
        name = names.format(i)
        if not isinstance(sample, Mapping):
            raise TypeError(f"{name}: got {type(sample).__name__} among dicts; accepted: dicts alone")
        for key in sample:
            if key not in known:
                if (meant := _CALLED.get(key)) is not None and meant not in sample:
                    raise ValueError(f"{name}: got the key {key!r}; accepted: {meant!r}, as it is called here")
                more = "; list it in vg.Targets(passed=) to have it back as it is, or in per_box= if it has an entry "
                raise ValueError(
                    f"{name}: got the key {short_repr(key)}; accepted: {options.accepts()}{more}for each box"
                )
        if "image" not in sample:
            raise ValueError(f"{name}: got {short_repr(list(sample))} without 'image'; accepted: dicts with an image")
        if missing := samples[0].keys() ^ sample.keys():
            raise ValueError(
                f"{name}: got {short_repr(list(sample))}, and samples[0] {short_repr(list(samples[0]))}, which differ "
                f"in {', '.join(sorted(map(repr, missing)))}; accepted: the same keys in all samples of a batch (boxes "
                "and masks may be empty)"
            )


def of_images(
    samples: Sequence[Mapping[str, Any]], shapes: Int32Array, options: Targets, names: str = NAMES
) -> list[ImageTargets]:
    """``shapes``: height, width and channels of each image. ``names``: as of ``check_batch``."""
    sizes: list[Any] = [tuple(size) for size in shapes[:, :2].tolist()]
    found = [ImageTargets(names.format(n), size) for n, size in enumerate(sizes)]
    if has_tv_tensors():
        for made, sample in zip(found, samples, strict=True):
            made.kinds = {key: value for key, value in sample.items() if is_tv_tensor(value)}
            check_canvas(made.name, made.kinds, made.size)
    with_boxes = [n for n, sample in enumerate(samples) if "boxes" in sample]
    if with_boxes:
        for n, corners in zip(with_boxes, _corners([found[n] for n in with_boxes], samples, options), strict=True):
            found[n].corners = corners
    for made, sample in zip(found, samples, strict=True):
        _read_others(made, sample, options)
    for n, error in unlike_most(found).items():
        raise ValueError(f"{names.format(n)}: {error}")
    return found


def image_like(image: torch.Tensor, given: Any, layout: str) -> torch.Tensor:
    """A finished image, as a ``tv_tensors.Image`` where one was given and channels come first, as in those."""
    if isinstance(given, torch.Tensor) and is_tv_tensor(given) and layout == "NCHW":
        return wrapped_as(image, given)
    return image


def _corners(
    found: Sequence[ImageTargets], samples: Sequence[Mapping[str, Any]], options: Targets
) -> list[Float64Array]:
    """The boxes of images that have some."""
    given = [
        InputBoxes(
            f"{made.name}['boxes']", sample["boxes"], made.size, getattr(made.kinds.get("boxes"), "format", None)
        )
        for made, sample in zip(found, (sample for sample in samples if "boxes" in sample), strict=True)
    ]
    return read_boxes(given, options)


def _read_others(made: ImageTargets, sample: Mapping[str, Any], options: Targets) -> None:
    """All but the boxes, which are there already."""
    if "keypoints" in sample:
        made.points = _points(made, sample["keypoints"], options)
    if "mask" in sample:
        _named_masks(made, "mask", sample["mask"])
    if "masks" in sample:
        if isinstance(sample["masks"], Mapping):
            _named_masks(made, "masks", sample["masks"])
        else:
            made.instances = _instances(made, sample["masks"])
    for key in ("labels", *options.per_box):
        if key in sample:
            made.lists[key] = _list(made, key, sample[key])
    if options.passed:
        made.passed = {key: sample[key] for key in options.passed if key in sample}


def _points(made: ImageTargets, value: Any, options: Targets) -> Float64Array:
    name = f"{made.name}['keypoints']"
    accepted = "finite numbers [P, 2] (x, y), [P, 3] (x, y, visibility), or either for each box, [M, P, 2 or 3]"
    points = as_numbers(name, value, accepted)
    points = points.reshape(0, 2) if points.ndim == 1 and points.size == 0 else points
    if points.ndim not in (2, 3) or points.shape[-1] not in (2, 3):
        raise ValueError(f"{name}: got shape {points.shape}; accepted: {accepted}")
    flat = points.reshape(-1, points.shape[-1])
    if (wrong := not_finite(flat)).any():
        refuse_line(name, flat, wrong, accepted)
    _check_number(made, "keypoints", len(points), points.ndim == 3)
    wanted = len(options.mirrored_points)
    if wanted and points.size and points.shape[-2] != wanted:
        raise ValueError(
            f"{name}: got shape {points.shape}, and vg.Targets(mirrored_points=) has {wanted} numbers; accepted: as "
            "many points"
        )
    points = points.copy()
    if options.normalized:
        points[..., :2] *= made.size[::-1]
    if options.point_origin == "center":
        points[..., :2] += 0.5
    return points


def _check_number(made: ImageTargets, key: str, number: int, is_per_box: bool = True) -> None:
    if is_per_box and made.corners is not None and number != len(made.corners):
        boxes = len(made.corners)
        raise ValueError(f"{made.name}[{key!r}]: got {number} for {boxes} boxes; accepted: one for each box")


def _mask(name: str, value: Any, size: tuple[int, int], ndim: int) -> Mask:
    accepted = f"{'[M, H, W]' if ndim == 3 else '[H, W]'} of the image's size, {size[0]}x{size[1]}, of uint8 or int32"
    if isinstance(value, torch.Tensor) and value.is_cuda:
        tensor = value.detach().as_subclass(torch.Tensor)
        tensor = tensor.to(torch.int32) if tensor.dtype in _WIDENED_ON_DEVICE else tensor
        mask: Mask = tensor
        dtype: Any = NUMPY_TYPES.get(tensor.dtype, tensor.dtype)
    else:
        mask = _widened(name, as_array(name, value, accepted))
        dtype = mask.dtype
    if dtype not in MASK_TYPES:
        raise TypeError(f"{name}: got {dtype}{list(mask.shape)}; accepted: {accepted} (other integers and bool, too)")
    mask = mask.reshape(0, *size) if ndim == 3 and mask.shape[:1] == (0,) else mask
    if mask.ndim != ndim or mask.shape[-2:] != size:
        raise ValueError(f"{name}: got shape {tuple(mask.shape)}; accepted: {accepted}")
    return mask.contiguous() if isinstance(mask, torch.Tensor) else np.ascontiguousarray(mask)


def _widened(name: str, mask: AnyArray) -> AnyArray:
    """Integers of types other than ``MASK_TYPES`` as int32 or int64; others unchanged. Raises ValueError for values
    beyond int64."""
    if mask.dtype.kind not in "iu" or mask.dtype in MASK_TYPES:
        return mask
    is_narrow = mask.dtype.itemsize < 4 or mask.dtype.kind + str(mask.dtype.itemsize) == "i4"
    most = int(mask.max()) if mask.size else 0
    if most > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: got {most:,}; accepted: values up to 2**63 - 1")
    return mask.astype(np.int32 if is_narrow else np.int64)


def _named_masks(made: ImageTargets, key: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        made.masks[""] = _mask(f"{made.name}[{key!r}]", value, made.size, 2)
        return
    if made.masks:
        raise ValueError(f"{made.name}: got both 'mask' and 'masks' by name; accepted: one of them")
    made.mask_key = key
    made.has_mask_names = True
    for name, mask in value.items():
        made.masks[name] = _mask(f"{made.name}[{key!r}][{name!r}]", mask, made.size, 2)


def _instances(made: ImageTargets, value: Any) -> Mask:
    name = f"{made.name}['masks']"
    if isinstance(value, (list, tuple)):
        masks = [_mask(f"{name}[{i}]", mask, made.size, 2) for i, mask in enumerate(value)]
        value = _stacked_masks(masks) if masks else np.empty((0, *made.size), np.uint8)
    masks_MHW = _mask(name, value, made.size, 3)
    _check_number(made, "masks", len(masks_MHW))
    return masks_MHW


def _stacked_masks(masks: Sequence[Mask]) -> Mask:
    if all(isinstance(mask, torch.Tensor) for mask in masks):
        return torch.stack([mask for mask in masks if isinstance(mask, torch.Tensor)])
    return np.stack([mask.cpu().numpy() if isinstance(mask, torch.Tensor) else mask for mask in masks])


def _list(made: ImageTargets, key: str, value: Any) -> Any:
    """A list stays one, and an array of names becomes one; anything else becomes an array."""
    if isinstance(value, (list, tuple)):
        listed: Any = list(value)
    else:
        name = f"{made.name}[{key!r}]"
        accepted = "a list, or an array of numbers or names, with an entry for each box"
        listed = as_array(name, value, accepted)
        if listed.ndim == 0:
            raise ValueError(f"{name}: got {short_repr(value)}; accepted: {accepted}")
        if listed.ndim == 1 and listed.dtype.kind in "OU":
            listed = listed.tolist()
        elif listed.dtype.kind not in "biuf" or listed.dtype.itemsize > 8:
            raise TypeError(f"{name}: got {listed.dtype}{list(listed.shape)}; accepted: {accepted}")
    _check_number(made, key, len(listed))
    return listed
