"""Overlays of what belongs to images: as a source has it, and as programs have moved it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.apps.preview.overlay import Overlay, Points, ShownMask
from variegate.program.program import Program
from variegate.targets.following import Follower
from variegate.targets.pasting import parts_of
from variegate.targets.samples import of_images
from variegate.targets.settings import Targets

_DRAWN = ("boxes", "labels", "keypoints", "mask", "masks")


@dataclass(frozen=True)
class Naming:
    """What numbers in targets stand for.

    ``classes``: the names of labels. ``mask``: of what the numbers in a mask are: "instances" (object k has k + 1),
    "classes" (label k has k + 1), or None: the mask is a file, and 0 of it the background. ``bones``: for each label
    the pairs of key points that are joined.
    """

    classes: tuple[str, ...] = ()
    mask: str | None = None
    bones: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any) -> Naming:
        """Of a source with annotations, or a part of one."""
        whole = getattr(source, "whole", source)
        categories = getattr(whole, "about", {}).get("categories", ())
        bones = {label: _bones(entry) for label, entry in enumerate(categories)}
        return cls(tuple(whole.classes), getattr(whole, "mask", None), bones)

    def label(self, label: Any) -> str:
        if not isinstance(label, int):
            return str(label)
        return self.classes[label] if 0 <= label < len(self.classes) else f"class {label}"

    def numbers(self, mask_HW: npt.NDArray[Any], labels: Sequence[Any] | None) -> dict[int, str | None]:
        """The names of what is in a mask. ``labels``: of the objects by which masks of instances are numbered; None
        where these are of several images."""
        values = [int(value) for value in np.unique(mask_HW) if value != 0]
        if self.mask == "instances":
            known = [] if labels is None else labels
            return {value: self.label(known[value - 1]) if 0 < value <= len(known) else None for value in values}
        if self.mask == "classes":
            return {value: self.label(value - 1) for value in values}
        return {value: self.classes[value] if value < len(self.classes) else f"value {value}" for value in values}


def overlay_of(targets: Mapping[str, Any], naming: Naming, labels: Sequence[Any] | None) -> Overlay:
    """Of one image. ``labels``: as ``Naming.numbers`` has it."""
    own = _values(targets.get("labels", ()))
    names = [naming.label(label) for label in own]
    boxes = None if "boxes" not in targets else np.asarray(targets["boxes"], np.float64).reshape(-1, 4)
    if boxes is not None and len(names) < len(boxes):
        names = ["object"] * len(boxes)
    areas = []
    for key in ("mask", "masks"):
        if isinstance(found := targets.get(key), Mapping):
            areas += [_named(name, np.asarray(mask)) for name, mask in found.items()]
        elif found is not None and key == "mask":
            mask = np.asarray(found)
            areas.append(ShownMask(mask, naming.numbers(mask, labels)))
        elif found is not None:
            masks = np.asarray(found).astype(np.bool_)
            order = np.argsort(-masks.sum(axis=(1, 2)), kind="stable").tolist()
            areas += [ShownMask(masks[n], {1: names[n] if n < len(names) else None}) for n in order]
    points = []
    if (found := targets.get("keypoints")) is not None:
        places = _with_visibility(np.asarray(found, np.float64))
        if places.ndim == 2:
            points.append(Points(places))
        else:
            of_box = zip(places, own if len(own) == len(places) else [None] * len(places), strict=True)
            points += [
                Points(place, None if label is None else naming.label(label), naming.bones.get(label, ()))
                for place, label in of_box
            ]
    return Overlay(boxes, names, areas, points)


def original_overlay(targets: Mapping[str, Any], naming: Naming) -> Overlay:
    return overlay_of(targets, naming, _values(targets.get("labels", ())))


def overlays_after(
    program: Program,
    images: Sequence[npt.NDArray[np.uint8]],
    targets: Sequence[Mapping[str, Any]],
    naming: Naming,
    options: Targets,
) -> list[Overlay]:
    """Of the outputs of a sampled program. ``targets``: of each image of its batch. Raises ValueError for programs that
    make several views of an image."""
    if program.grouping is not None:
        raise ValueError("annotations: got a policy that makes views; accepted: policies that keep one image")
    samples = [{key: value for key, value in one.items() if key in _DRAWN} for one in targets]
    belonging = of_images(samples, np.array([image.shape for image in images]), options)
    results = Follower(program, belonging, options, None).results()
    is_own = [{part.source for part in parts} == {n} for n, parts in enumerate(parts_of(program))]
    labels = [_values(one.get("labels", ())) for one in targets]
    return [overlay_of(result, naming, labels[n] if is_own[n] else None) for n, result in enumerate(results)]


def _values(labels: Any) -> list[Any]:
    return labels.tolist() if isinstance(labels, (np.ndarray, torch.Tensor)) else list(labels)


def _named(name: str, mask_HW: npt.NDArray[Any]) -> ShownMask:
    return ShownMask(mask_HW, {int(value): f"{name} {int(value)}" for value in np.unique(mask_HW) if value != 0})


def _with_visibility(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if points.shape[-1] == 3:
        return points
    return np.concatenate([points, np.full((*points.shape[:-1], 1), 2.0)], axis=-1)


def _bones(category: Mapping[str, Any]) -> list[tuple[int, int]]:
    """COCO counts points from 1."""
    count = len(category.get("keypoints") or ())
    pairs = category.get("skeleton") or ()
    whole = [pair for pair in pairs if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return [
        (pair[0] - 1, pair[1] - 1)
        for pair in whole
        if all(isinstance(point, int) and 1 <= point <= count for point in pair)
    ]
