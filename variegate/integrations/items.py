"""A list of a data set's items taken apart: images, labels, ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate

from variegate.checks import as_integer
from variegate.data.sources.objects.targets import check_beside, check_entries
from variegate.errors import shown
from variegate.integrations.one_image import to_array

_ACCEPTED = '(image, label), (image, label, id), or a dict with "image", "label" and, if there is one, "id"'


def take_apart(items: Sequence[Any]) -> tuple[list[npt.NDArray[np.uint8]], list[Any], list[int] | None]:
    """-> images as arrays [H, W, C], labels, and ids unless no item has one.

    Raises TypeError or ValueError naming the item: also for masks, boxes and the like, which augmenting the image alone
    would leave behind.
    """
    if len(items) == 0:
        raise ValueError("items: got none; accepted: at least one")
    parts = [_parts(item, f"items[{i}]") for i, item in enumerate(items)]
    images = [to_array(part[0], f"the image of items[{i}]") for i, part in enumerate(parts)]
    for i, (item, image) in enumerate(zip(items, images, strict=True)):
        _check_beside(item, image, f"items[{i}]")
    labels = [part[1] for part in parts]
    with_id = [len(part) == 3 for part in parts]
    if not any(with_id):
        return images, labels, None
    if not all(with_id):
        raise ValueError(f"items[{with_id.index(False)}]: got no id where others have one; accepted: all or none")
    return images, labels, [_id(part[2], f"items[{i}]") for i, part in enumerate(parts)]


def _check_beside(item: Any, image: npt.NDArray[np.uint8], where: str) -> None:
    size = (image.shape[0], image.shape[1])
    if isinstance(item, Mapping):
        check_entries(item, "image", where, size)
    else:
        for i, value in enumerate(item[1:], 1):
            check_beside(value, f"{where}[{i}]", size)


def _parts(item: Any, where: str) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        if "image" in item and "label" in item:
            return tuple(item[name] for name in ("image", "label", "id") if name in item)
        raise TypeError(f"{where}: got a dict with {', '.join(map(repr, item)) or 'nothing'}; accepted: {_ACCEPTED}")
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        return tuple(item)
    got = f"a {type(item).__name__}"
    if isinstance(item, (tuple, list)):
        got += f" of {len(item)}"
    raise TypeError(f"{where}: got {got}; accepted: {_ACCEPTED}")


def _id(value: Any, where: str) -> int:
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << 64:
        raise ValueError(f"{where}: got the id {shown(value)}; accepted: an integer from 0 to 2**64 - 1")
    return number


def stack_labels(labels: Sequence[Any]) -> Any:
    """Integers as int64[N], other numbers as float32[N], arrays and tensors stacked, the rest as a list.

    Raises ValueError for arrays of different shapes.
    """
    first = labels[0]
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return torch.tensor([bool(label) for label in labels])
    if all(isinstance(label, Integral) for label in labels):
        numbers = [int(label) for label in labels]
        large = next((i for i, number in enumerate(numbers) if not -(1 << 63) <= number < 1 << 63), None)
        if large is not None:
            raise ValueError(f"the label of items[{large}]: got {shown(numbers[large])}; accepted: integers of 64 bits")
        return torch.tensor(numbers, dtype=torch.int64)
    if all(isinstance(label, Real) for label in labels):
        return torch.tensor([float(label) for label in labels], dtype=torch.float32)
    if isinstance(first, (np.ndarray, torch.Tensor)):
        shapes = [tuple(label.shape) if hasattr(label, "shape") else type(label).__name__ for label in labels]
        different = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if different is not None:
            raise ValueError(
                f"the label of items[{different}]: got {shapes[different]} where items[0] has {shapes[0]}; accepted: "
                "labels of one shape"
            )
        return torch.stack([torch.as_tensor(label) for label in labels])
    if isinstance(first, (Mapping, tuple, list)):
        return default_collate(list(labels))
    return list(labels)
