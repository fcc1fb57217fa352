"""Choose and read the images of a sheet, with their overlays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.apps.preview.overlay import Points, ShownMask, TargetOverlay
from variegate.arrays import AnyArray, ImageArray
from variegate.data.base import SourceError
from variegate.data.filtered import SourceWithExclusions, without
from variegate.data.kinds import file_kind
from variegate.data.opening import open_source
from variegate.decode import read_image
from variegate.decode.depth import as_read
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.io.location import Location
from variegate.program.program import Program
from variegate.targets.following import Follower
from variegate.targets.pasting import parts_of
from variegate.targets.samples import of_images
from variegate.targets.settings import Targets

DRAWN = ("boxes", "labels", "keypoints", "mask", "masks")


@dataclass(frozen=True)
class Naming:
    """Names of the numbers in targets.

    ``classes``: the names of labels. ``mask``: meaning of a mask's numbers: "instances" (object k has k + 1), "classes"
    (label k has k + 1), or None: the mask is a file, and its 0 the background. ``bones``: for each label the pairs of
    key points that are joined.
    """

    classes: tuple[str, ...] = ()
    mask: str | None = None
    bones: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any) -> Naming:
        """The naming of a source with annotations, or a part of one."""
        metadata = source.whole.metadata or {}
        categories = metadata.get("categories", ())
        bones = {label: _bones(entry) for label, entry in enumerate(categories)}
        return cls(tuple(source.classes), source.mask, bones)

    def label(self, label: Any) -> str:
        if not isinstance(label, int):
            return str(label)
        return self.classes[label] if 0 <= label < len(self.classes) else f"class {label}"

    def numbers(self, mask_HW: AnyArray, labels: Sequence[Any] | None) -> dict[int, str | None]:
        """Names of the numbers in a mask. ``labels``: of the objects by which masks of instances are numbered; None
        where these are of several images."""
        values = [int(value) for value in np.unique(mask_HW) if value != 0]
        if self.mask == "instances":
            known = [] if labels is None else labels
            return {value: self.label(known[value - 1]) if 0 < value <= len(known) else None for value in values}
        if self.mask == "classes":
            return {value: self.label(value - 1) for value in values}
        return {value: self.classes[value] if value < len(self.classes) else f"value {value}" for value in values}


def overlay_of(targets: Mapping[str, Any], naming: Naming) -> TargetOverlay:
    """The overlay of an unchanged image."""
    return _overlay(targets, naming, _values(targets.get("labels", ())))


def _overlay(targets: Mapping[str, Any], naming: Naming, labels: Sequence[Any] | None) -> TargetOverlay:
    """``labels``: as ``Naming.numbers`` has it."""
    own = _values(targets.get("labels", ()))
    names = [naming.label(label) for label in own]
    boxes = None if "boxes" not in targets else np.asarray(targets["boxes"], np.float64).reshape(-1, 4)
    if boxes is not None and len(names) < len(boxes):
        names = ["object"] * len(boxes)
    areas = []
    for key in ("mask", "masks"):
        if isinstance(found := targets.get(key), Mapping):
            for name, mask in found.items():
                values = [int(value) for value in np.unique(mask) if value != 0]
                areas.append(ShownMask(np.asarray(mask), {value: f"{name} {value}" for value in values}))
        elif found is not None and key == "mask":
            mask = np.asarray(found)
            areas.append(ShownMask(mask, naming.numbers(mask, labels)))
        elif found is not None:
            masks = np.asarray(found).astype(np.bool_)
            order = np.argsort(-masks.sum(axis=(1, 2)), kind="stable").tolist()
            areas += [ShownMask(masks[n], {1: names[n] if n < len(names) else None}) for n in order]
    points = []
    if (found := targets.get("keypoints")) is not None:
        places = np.asarray(found, np.float64)
        if places.shape[-1] == 2:  # every target is visible
            places = np.concatenate([places, np.full((*places.shape[:-1], 1), 2.0)], axis=-1)
        if places.ndim == 2:
            points.append(Points(places))
        else:
            of_box = zip(places, own if len(own) == len(places) else [None] * len(places), strict=True)
            points += [
                Points(place, None if label is None else naming.label(label), naming.bones.get(label, ()))
                for place, label in of_box
            ]
    return TargetOverlay(boxes, names, areas, points)


def moved_overlays(program: Program, images: Sequence[Chosen], choice: Choice) -> Sequence[TargetOverlay | None]:
    """Overlays of the outputs of a sampled program of these images. Raises ValueError for programs that make several
    views of an image."""
    targets = [image.targets for image in images if image.targets is not None]
    if not targets:
        return [None] * len(images)
    if program.grouping is not None:
        raise ValueError("annotations: got a policy that makes views; accepted: policies that keep one image")
    samples = [{key: value for key, value in one.items() if key in DRAWN} for one in targets]
    belonging = of_images(samples, np.array([image.img_HWC.shape for image in images]), choice.targets)
    follower = Follower(program, belonging, choice.targets, None)
    follower.paste_objects()
    results = follower.results()
    is_custom = [{part.source for part in parts} == {n} for n, parts in enumerate(parts_of(program))]
    labels = [_values(one.get("labels", ())) for one in targets]
    return [_overlay(one, choice.naming, labels[n] if is_custom[n] else None) for n, one in enumerate(results)]


def _values(labels: Any) -> list[Any]:
    return labels.tolist() if isinstance(labels, (np.ndarray, torch.Tensor)) else list(labels)


def _bones(category: Mapping[str, Any]) -> list[tuple[int, int]]:
    """COCO counts points from 1."""
    count = len(category.get("keypoints") or ())
    pairs = category.get("skeleton") or ()
    whole = [pair for pair in pairs if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return [(a - 1, b - 1) for a, b in whole if all(isinstance(one, int) and 1 <= one <= count for one in (a, b))]


@dataclass(frozen=True)
class Chosen:
    """An image of the sheet, with its id in ``augment``, its ``Item.targets``, its label and its position in the
    source."""

    name: str
    sample_id: int
    img_HWC: ImageArray
    targets: Mapping[str, Any] | None = None
    label: Any = None
    index: int = 0


class Annotations(NamedTuple):
    """``given``: as ``open_source(annotations=...)`` takes it. ``targets``: the targets to keep; None for the
    default."""

    given: Any = None
    targets: Targets | None = None


class Choice(NamedTuple):
    """``bad``: skipped files. ``naming``: meaning of the numbers in targets. ``notes``: on annotations that are wrong.
    ``targets``: the targets kept in copies. ``source``: where other images are; None for an image alone. ``read``:
    reads an image, unless it is stored directly."""

    images: list[Chosen]
    bad: list[DecodeError]
    naming: Naming = Naming()
    notes: tuple[str, ...] = ()
    targets: Targets = Targets()
    source: Any = None
    read: Callable[[int], Chosen] | None = None


def choose_images(source: str | Path | SourceWithExclusions, count: int, annotations: Any = None) -> Choice:
    """``count`` images spread evenly over a folder or shards, or the one image that ``source`` is.

    ``annotations``: see ``open_source``, or ``Annotations``; invalid objects are skipped with a note. A file that does
    not decode is replaced by the next one. Raises SourceError or DecodeError where there is nothing to show.
    """
    annotations, targets = annotations if isinstance(annotations, Annotations) else Annotations(annotations)
    location = Location.parse(source, chain=True)
    given = source
    if location.is_url:
        raise SourceError(f"{location}: is an address; accepted: a folder of images, or an image, of this machine")
    source = Path(location.address())
    if source.is_file() and file_kind(location) is None:
        if isinstance(given, SourceWithExclusions):
            raise SourceError(f"--exclude: got {given.exclude}, and {source} is one image; leave it out")
        if annotations is not None:
            raise SourceError(f"--annotations: got {annotations}, and {source} is one image; give its folder")
        return Choice([Chosen(source.name, 0, read_image(source))], [])
    opened: Any = open_source(source, annotations=annotations, on_error="skip", stream=False)
    if isinstance(given, SourceWithExclusions):
        opened = without(opened, given.exclude)
    chosen, bad = _spread(opened, count)
    if not chosen:
        raise SourceError(f"{source}: none of {pluralize(len(opened), 'image')} can be read; {bad[0]}")
    naming = Naming.of(opened)
    if chosen[0].targets is None:
        if targets is not None:
            accepted = "min_area, min_visibility and mask_fill for a source with annotations"
            raise SourceError(f"{source}: has no boxes or masks to be left out or filled; accepted: {accepted}")
        return Choice(chosen, bad, naming, source=opened)
    return Choice(chosen, bad, naming, tuple(opened.notes()), targets or Targets(), opened)


def _spread(source: Any, count: int) -> tuple[list[Chosen], list[DecodeError]]:
    """``count`` readable samples, in their order, and the unreadable ones."""
    total = len(source)
    chosen: dict[int, Chosen] = {}
    bad: dict[int, DecodeError] = {}
    for wanted in range(min(count, total)):
        start = wanted * total // count if count < total else wanted
        for index in (*range(start, total), *range(start)):
            if index in chosen or index in bad:
                continue
            try:
                chosen[index] = read_chosen(source, index)
                break
            except DecodeError as error:
                bad[index] = error
    return [chosen[index] for index in sorted(chosen)], list(bad.values())


def read_chosen(source: Any, index: int) -> Chosen:
    """Raises DecodeError for an image that cannot be read."""
    item = source.read(index)
    own_name = str(source.name(index))
    is_decoded = isinstance(item.data, np.ndarray)
    image = as_read(item.data, own_name) if is_decoded else read_image(item.data, own_name)
    name = source.relative_path(index)
    if name is None:  # of a shard the file's own name, without its folder
        own = source.name(index)
        name = str(own._replace(file=os.path.basename(own.file)))
    return Chosen(name, int(source.ids(np.array([index]))[0]), image, item.targets, item.label, index)
