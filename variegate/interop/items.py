"""Items of torch's data sets, with their ids: taken apart, stacked, made a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from operator import index
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, default_collate

from variegate.arrays import UInt8Array, UInt64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.samples import follow
from variegate.checks import as_integer
from variegate.data.objects.samples import check_entries, check_no_targets, other_targets, own_label, split_sample
from variegate.errors import short_repr
from variegate.interop.one_sample import form_of, to_array
from variegate.targets.settings import Targets

_ACCEPTED = (
    '(image, label), (image, label, id), or a dict with "image", "label" and, if there is one, "id"; '
    "targets=vg.Targets() for boxes and masks"
)
Ids = UInt64Array


class WithIds(Dataset[Any]):
    """A map-style data set whose items include their index, which ``vg.Collate`` takes as the sample's id.

    Items of ``dataset``, (image, label), become (image, label, index); dicts get an "id". Other attributes
    (``classes``) are forwarded to ``dataset``. Wrap before ``Subset`` or ``random_split``, so that a sample keeps its
    id in every part.

    Raises TypeError for data sets that cannot be indexed, and for items of another form.
    """

    def __init__(self, dataset: Any) -> None:
        is_indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if isinstance(dataset, IterableDataset) or not is_indexed:
            accepted = "a map-style data set, with __getitem__ and __len__"
            raise TypeError(f"dataset: got {type(dataset).__name__}; accepted: {accepted}")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        place = self._place(i)
        return self._with_id(self.dataset[place], place)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Fetch a batch at once: the DataLoader calls it where a data set has it."""
        places = [self._place(i) for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(places) if callable(fetch) else [self.dataset[place] for place in places]
        return [self._with_id(item, place) for item, place in zip(items, places, strict=True)]

    def _place(self, i: int) -> int:
        place = index(i)
        length = len(self)
        if not -length <= place < length:
            raise IndexError(f"index: got {place}; accepted: {-length} to {length - 1}")
        return place % length

    def _with_id(self, item: Any, place: int) -> Any:
        if isinstance(item, Mapping):
            return {**item, "id": place}
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return (*item, place)
        raise TypeError(f"dataset[{place}]: got {form_of(item)}; accepted: (image, label), or a dict")

    def __getattr__(self, name: str) -> Any:
        # Names with underscores are asked for by copying and pickling, before there is a data set to ask.
        if name == "dataset" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self.dataset, name)


def split_item(items: Sequence[Any]) -> tuple[list[UInt8Array], list[Any], list[int] | None]:
    """Images as arrays [H, W, C], labels, and ids unless no item has one; refuses masks and boxes."""
    names = _names(items)
    parts = [_parts(item, name) for item, name in zip(items, names, strict=True)]
    images = [to_array(part[0], f"the image of {name}") for part, name in zip(parts, names, strict=True)]
    for item, image, name in zip(items, images, names, strict=True):
        size = (image.shape[0], image.shape[1])
        if isinstance(item, Mapping):
            check_entries(item, "image", name, size)
        else:
            for n, value in enumerate(item[1:], 1):
                check_no_targets(value, f"{name}[{n}]", size)
    labels = [part[1] for part in parts]
    if all(len(part) == 2 for part in parts):
        return images, labels, None
    _all_or_none([part[2:] or None for part in parts], "id")
    return images, labels, [check_item_id(part[2], name) for part, name in zip(parts, names, strict=True)]


def _names(items: Sequence[Any]) -> list[str]:
    if len(items) == 0:
        raise ValueError("items: got none; accepted: at least one")
    return [f"items[{i}]" for i in range(len(items))]


def _parts(item: Any, where: str) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        if "image" in item and "label" in item:
            return tuple(item[name] for name in ("image", "label", "id") if name in item)
        raise TypeError(f"{where}: got a dict with {', '.join(map(repr, item)) or 'nothing'}; accepted: {_ACCEPTED}")
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        return tuple(item)
    raise TypeError(f"{where}: got {form_of(item)}; accepted: {_ACCEPTED}")


def check_item_id(value: Any, where: str) -> int:
    """Raises ValueError naming the item."""
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << 64:
        raise ValueError(f"{where}: got the id {short_repr(value)}; accepted: an integer from 0 to 2**64 - 1")
    return number


def stack_labels(labels: Sequence[Any]) -> Any:
    """Integers as int64[N], other numbers as float32[N], arrays and tensors stacked, the rest as a list."""
    first = labels[0]
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return torch.tensor([bool(label) for label in labels])
    if all(isinstance(label, Integral) for label in labels):
        numbers = [int(label) for label in labels]
        large = next((i for i, number in enumerate(numbers) if not -(1 << 63) <= number < 1 << 63), None)
        if large is not None:
            raise ValueError(
                f"the label of items[{large}]: got {short_repr(numbers[large])}; accepted: integers of 64 bits"
            )
        return torch.tensor(numbers, dtype=torch.int64)
    if all(isinstance(label, Real) for label in labels):
        return torch.tensor([float(label) for label in labels], dtype=torch.float32)
    if isinstance(first, (np.ndarray, torch.Tensor)):
        shapes = [tuple(label.shape) if hasattr(label, "shape") else type(label).__name__ for label in labels]
        different = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if different is not None:
            got = f"the label of items[{different}]: got {shapes[different]} where items[0] has {shapes[0]}"
            raise ValueError(f"{got}; accepted: labels of one shape")
        return torch.stack([torch.as_tensor(label) for label in labels])
    return default_collate(list(labels)) if isinstance(first, (Mapping, tuple, list)) else list(labels)


def collate_samples(
    augmenter: Augmenter, items: Sequence[Any], options: Targets, epoch: int, count: Callable[[int], Ids]
) -> Any:
    """A batch of dicts with an image and its targets, of (image, dict) or (image, dict, id); ``count`` makes ids."""
    from variegate.loader.targets import BatchTargets, TargetBatch  # most batches have no targets

    names = _names(items)
    parted = [_without_id(item, name, options) for item, name in zip(items, names, strict=True)]
    samples = [sample for sample, _ in parted]
    given = [id for _, id in parted]
    images = [
        to_array(split_sample(sample, name)[0], f"the image of {name}")
        for sample, name in zip(samples, names, strict=True)
    ]
    targets = [
        other_targets(sample, (image.shape[0], image.shape[1]), name, (), options.box_format, options.normalized)
        for sample, image, name in zip(samples, images, names, strict=True)
    ]
    found = [own_label(sample) for sample in samples]
    labels = stack_labels(_all_or_none(found, "label")) if _has_any(found) else None
    ids = np.array(_all_or_none(given, "id"), np.uint64) if _has_any(given) else count(len(items))
    joined = BatchTargets(options, labels is not None)
    check = partial(joined.check, targets, names=names)
    partners = "batch" if augmenter.transform._mixers else None
    request: dict[str, Any] = {"ids": ids, "epoch": epoch, "partners": partners}
    made, mixed, belonging, _ = follow(augmenter, images, check, options, labels, **request)
    kept = [{key: of_image[key] for key in targets[0]} for of_image in belonging]
    return TargetBatch(joined.join(made, kept, labels if mixed is None else mixed), ids)


def _without_id(item: Any, name: str, options: Targets) -> tuple[Any, int | None]:
    if isinstance(item, Mapping):
        if "id" not in item or "id" in options.passed:
            return item, None
        return {key: value for key, value in item.items() if key != "id"}, check_item_id(item["id"], name)
    if isinstance(item, (tuple, list)) and len(item) == 3:
        return (item[0], item[1]), check_item_id(item[2], name)
    return item, None


def _has_any(values: list[Any]) -> bool:
    return any(value is not None for value in values)


def _all_or_none(values: list[Any], what: str) -> list[Any]:
    place = next((i for i, value in enumerate(values) if value is None), None)
    if place is not None:
        raise ValueError(f"items[{place}]: got no {what} where others have one; accepted: all or none")
    return values
