"""Items of a torch data set with boxes, masks or key points, made a batch as ``vg.Loader`` gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.samples import follow
from variegate.formats.objects.samples import label_beside, split_sample, targets_beside
from variegate.integrations.items import check_item_id, stack_labels
from variegate.integrations.one_sample import to_array
from variegate.loader.targets import BatchTargets, TargetBatch
from variegate.targets.settings import Targets

Ids = npt.NDArray[np.uint64]


def collate_samples(
    augmenter: Augmenter, items: Sequence[Any], options: Targets, epoch: int, count: Callable[[int], Ids]
) -> TargetBatch:
    """
    Args:
        items: dicts with an image and what belongs to it, perhaps with an "id"; or (image, dict) or (image, dict, id).
            Objects as COCO's API and Hugging Face's data sets write them are taken as ``vg.Loader`` does.
        count: number -> ids, of items that have none.

    Raises TypeError or ValueError naming the item and what is accepted.
    """
    if len(items) == 0:
        raise ValueError("items: got none; accepted: at least one")
    names = [f"items[{i}]" for i in range(len(items))]
    parted = [_without_id(item, name, options) for item, name in zip(items, names, strict=True)]
    samples, given = [sample for sample, _ in parted], [id for _, id in parted]
    images = [
        to_array(split_sample(sample, name)[0], f"the image of {name}")
        for sample, name in zip(samples, names, strict=True)
    ]
    targets = [
        targets_beside(sample, (image.shape[0], image.shape[1]), name, (), options.box_format, options.normalized)
        for sample, image, name in zip(samples, images, names, strict=True)
    ]
    found = [label_beside(sample) for sample in samples]
    labels = stack_labels(_all_or_none(found, "label")) if _has_any(found) else None
    ids = np.array(_all_or_none(given, "id"), np.uint64) if _has_any(given) else count(len(items))
    joined = BatchTargets(options, labels is not None)
    check = partial(joined.check, targets, names=names)
    request = {"ids": ids, "epoch": epoch, "partners": "batch" if augmenter.transform._mixers else None}
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
