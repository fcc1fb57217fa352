"""``from_albumentations``: a pipeline of Albumentations, as an object, its ``to_dict()``, or that in a JSON file."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from variegate.errors import PolicyError
from variegate.interop.convert.albumentations_arguments import Arguments
from variegate.interop.convert.albumentations_table import REFUSED, RULES
from variegate.interop.convert.albumentations_targets import kinds_of_targets, targets_of
from variegate.interop.convert.report import (
    UNREADABLE,
    ConversionError,
    ConversionReport,
    Notes,
    Place,
    as_refusal,
    parameters,
    plain,
)
from variegate.io.files import TooLargeError, read_regular
from variegate.ops.arguments import PROBABILITY
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf, RandomApply, RandomOrder, SomeOf
from variegate.ops.description import check_tree
from variegate.ops.output import Identity, Normalize, ToDtype
from variegate.targets.settings import Targets

_ROWS = ("Compose", "ReplayCompose", "Sequential")
_WITH_CHANCE = ("OneOrOther", "SomeOf", "RandomOrder")
COMPOSITIONS = (*_ROWS, "OneOf", *_WITH_CHANCE)
_TO_TENSOR = ("ToTensorV2", "ToRGB")  # all outputs are tensors here
_FORMATS = ("Normalize", "ToFloat")
_MAX_BYTES = 16 << 20
_CERTAIN_NAMES = (
    "Compose ReplayCompose SomeOf RandomOrder Normalize ToFloat FromFloat ToRGB ToTensorV2 Resize LongestMaxSize "
    "SmallestMaxSize LetterBox Pad PadIfNeeded CropAndPad Crop CenterCrop RandomCrop RandomResizedCrop RandomSizedCrop "
    "RandomCropFromBorders AtLeastOneBBoxRandomCrop BBoxSafeRandomCrop BBoxSubsetSafeRandomCrop "
    "RandomSizedBBoxSafeCrop CropNonEmptyMaskIfExists RandomCropNearBBox D4 SquareSymmetry RandomRotate90 "
    "GridElasticDeform"
)
# Transforms that are certain if a description has no probability; that of others is 0.5 then.
_CERTAIN = frozenset(_CERTAIN_NAMES.split())


@overload
def from_albumentations(compose: Any, report: Literal[False] = False) -> Transform: ...


@overload
def from_albumentations(compose: Any, report: Literal[True]) -> tuple[Transform, ConversionReport]: ...


def from_albumentations(compose: Any, report: bool = False) -> Transform | tuple[Transform, ConversionReport]:
    """Convert an Albumentations pipeline to Variegate's transforms.

    Args:
        compose: an ``albumentations.Compose`` (or one of its transforms), the dict of its ``to_dict()``, or the path of
            a JSON file with that, of AlbumentationsX 2.5 or Albumentations 2.0.
        report: also return the ``ConversionReport``: transforms that are identical, approximate (and by how much), and
            unsupported. Unsupported ones are then skipped.

    Approximate conversions give one ConversionWarning that lists the differences. ``bbox_params`` and
    ``keypoint_params`` are not part of a transform: see ``targets_from_albumentations``. docs/converting.md lists the
    classes.

    Raises:
        ConversionError: (a ValueError) for an unsupported transform, with its place, its value and what is accepted.
        FileNotFoundError: if the file does not exist.
    """
    notes = Notes()
    described = _checked(compose)
    notes.targets = kinds_of_targets(described)
    steps: list[Transform] = []
    _append(described, "", notes, steps)
    if not report:
        notes.raise_refused()
    notes.warn()
    if len(steps) > 1:
        converted: Transform = Place("Compose", notes).build(Compose, transforms=steps)
    else:
        converted = steps[0] if steps else Identity()
    return (converted, notes.made()) if report else converted


def targets_from_albumentations(compose: Any) -> Targets:
    """Convert ``bbox_params`` and ``keypoint_params`` of an Albumentations pipeline to ``vg.Targets``.

    Use the result in ``vg.Augmenter(t)(samples, targets=...)`` and ``vg.Loader(targets=...)``. ``compose`` is that of
    ``from_albumentations``. ``label_fields`` other than "labels" become ``per_box``, and the ``fill_mask`` of
    transforms becomes ``mask_fill``. Albumentations counts key points from the center of the first pixel.

    Raises ConversionError for unsupported options, and gives a ConversionWarning for differences.
    """
    notes = Notes()
    described = _checked(compose)
    place = _place(described, "", notes)[0]
    options = targets_of(place, described) or Targets()
    notes.warn()
    return dataclasses.replace(options, mask_fill=_mask_fill(place, described))


def _mask_fill(place: Place, described: Mapping[str, Any]) -> int:
    """The one value with which all transforms of a pipeline fill masks."""
    notes = Notes()
    _append(described, "", notes, [])
    fills = set(notes.mask_fills.values()) or {0}
    if len(fills) > 1:
        place.refuse("fill_mask", tuple(sorted(fills)), "one value for all transforms, as vg.Targets(mask_fill=) is")
    return fills.pop()


def _checked(compose: Any) -> Mapping[str, Any]:
    described = _described(compose)
    described = described.get("transform", described)
    try:
        check_tree(described, "compose")
    except PolicyError as error:
        raise ConversionError(error.where, error.got, error.accepted) from error
    return described


def _described(compose: Any) -> Mapping[str, Any]:
    if isinstance(compose, Mapping):
        return compose
    if isinstance(compose, (str, os.PathLike)):
        where = str(Path(compose))
        written = "as albumentations.save(compose, path) writes it"
        try:
            described = json.loads(read_regular(Path(compose), _MAX_BYTES))
        except (ValueError, RecursionError, TooLargeError) as error:
            raise ConversionError(where, str(error), f"JSON, {written}") from error
        if not isinstance(described, Mapping):
            raise ConversionError(where, described, f"an object, {written}")
        return described
    to_dict = getattr(compose, "to_dict", None)
    if to_dict is None or isinstance(compose, Transform):
        accepted = "an albumentations.Compose, its to_dict(), or the path of a JSON file with that"
        raise ConversionError("compose", compose, accepted)
    try:
        return to_dict()
    except Exception as error:  # whatever a transform of the user's own says
        raise ConversionError("compose", compose, f"what describes itself by to_dict(), which said: {error}") from error


def _append(described: Mapping[str, Any], path: str, notes: Notes, steps: list[Transform]) -> None:
    """Append a transform to the pipeline; compositions that always run are unrolled."""
    place, name = _place(described, path, notes)
    if name in _ROWS and _probability(place, name, described) == 1:
        _check_targets(place, described)
        for child, where in _children(place, described, path):
            _append(child, where, notes, steps)
        return
    if name not in _FORMATS:
        step = _converted(described, path, notes)
        if step is not None:
            steps.append(step)
        return
    try:
        if _probability(place, name, described) != 1:
            place.refuse("p", described["p"], "1, because all images leave in one format")
        steps.append(_format(Arguments(place, described), name))
        notes.convert(place.path)
    except UNREADABLE as error:
        notes.refuse(place.path, as_refusal(error, place, described))


def _converted(described: Mapping[str, Any], path: str, notes: Notes, forced: bool = False) -> Transform | None:
    """One transform, or None for what does nothing or was refused. ``forced``: a OneOf has chosen it, so that it is
    certain, but for compositions that keep their chance."""
    place, name = _place(described, path, notes)
    try:
        p = 1.0 if forced and name not in _WITH_CHANCE else _probability(place, name, described)
        if name in COMPOSITIONS:
            return _composition(place, name, described, path, p)
        converted = None if name in _TO_TENSOR else _by_rule(place, name, described)
    except UNREADABLE as error:
        notes.refuse(place.path, as_refusal(error, place, described))
        return None
    notes.convert(place.path)
    notes.pair(place.path, described, converted)
    return None if converted is None else _with_probability(converted, p)


def _by_rule(place: Place, name: str, described: Mapping[str, Any]) -> Transform | None:
    if name in _FORMATS:
        place.refuse("", name, "it in the main line of the pipeline, where it applies to every image")
    rule = RULES.get(name)
    if rule is None:
        known = "one of " + ", ".join(sorted([*RULES, *COMPOSITIONS, *_FORMATS, *_TO_TENSOR]))
        place.refuse("", name, REFUSED.get(name, known))
    arguments = Arguments(place, described)
    converted = rule(arguments)
    arguments.finish()
    return converted


def _with_probability(converted: Transform, p: float) -> Transform:
    if p == 1:
        return converted
    if "p" in parameters(type(converted)):
        return dataclasses.replace(converted, p=p * converted.p)  # type: ignore[type-var,attr-defined]
    return RandomApply([converted], p=p)


def _composition(place: Place, name: str, described: Mapping[str, Any], path: str, p: float) -> Transform:
    _check_targets(place, described)
    children = _children(place, described, path)
    is_choice = name in ("OneOf", "OneOrOther")
    inner = [_converted(child, where, place.report, forced=is_choice) or Identity() for child, where in children]
    if not inner:
        return Identity()
    if name in _ROWS:
        return _with_probability(Compose(inner), p)
    if name == "OneOrOther":
        return place.build(OneOf, transforms=[inner[0], inner[-1]], weights=(p, 1 - p))
    if name == "OneOf":
        weights = tuple(_probability(*_place(child, where, place.report), child) for child, where in children)
        return place.build(OneOf, transforms=inner, p=p, weights=weights)
    if described.get("replace", False):
        place.refuse("replace", True, "False: different ones of the transforms")
    n = described.get("n", 1)
    if name == "SomeOf":
        n = tuple(n) if isinstance(n, (list, tuple)) else min(n, len(inner))
    elif n != 1:
        if n < len(inner):
            place.refuse("n", n, f"1, or {len(inner)}: all of the transforms in random order")
        return _with_probability(place.build(RandomOrder, transforms=inner), p)
    return _with_probability(place.build(SomeOf, transforms=inner, n=n), p)


def _format(given: Arguments, name: str) -> Transform:
    """Normalize divides by ``max_pixel_value`` first; ToFloat by 255."""
    if name == "ToFloat":
        given.require("max_value", None, 255, why="images are uint8")
        given.finish()
        return ToDtype("float32", scale=True)
    given.require("normalization", "standard", why="the others measure each image")
    given.require("clip_range", None)
    white = given.take("max_pixel_value", 255.0) / 255.0
    mean = _scaled(given.take("mean", (0.485, 0.456, 0.406)), white)
    std = _scaled(given.take("std", (0.229, 0.224, 0.225)), white)
    given.finish()
    return given.build(Normalize, mean=mean, std=std)


def _scaled(value: Any, factor: float) -> Any:
    return tuple(each * factor for each in value) if isinstance(value, tuple) else value * factor


# -- reading descriptions ----------------------------------------------------------------------------------------


def _place(described: Any, path: str, notes: Notes) -> tuple[Place, str]:
    name = described.get("__class_fullname__") if isinstance(described, Mapping) else None
    if not isinstance(name, str):
        Place(path or "compose", notes).refuse("", described, 'an object with a "__class_fullname__"')
    home, _, short = name.rpartition(".")
    place = Place(f"{path} {short}".strip(), notes)
    if home and not home.startswith("albumentations"):
        place.refuse("", name, "transforms of Albumentations; see CustomOp for operations of yours")
    return place, short


def _probability(place: Place, name: str, described: Mapping[str, Any]) -> float:
    def refused(argument: str, got: object, accepted: str) -> Exception:
        return ConversionError(place.argument(argument), got, accepted)

    p: float = PROBABILITY.check("p", plain(described.get("p", 1.0 if name in _CERTAIN else 0.5)), error=refused)
    return p


def _children(place: Place, described: Mapping[str, Any], path: str) -> list[tuple[Any, str]]:
    children = described.get("transforms")
    if not isinstance(children, (list, tuple)):
        place.refuse("transforms", children, "a list of described transforms")
    prefix = f"{path}." if path else ""
    return [(child, f"{prefix}transforms[{i}]") for i, child in enumerate(children)]


def _check_targets(place: Place, described: Mapping[str, Any]) -> None:
    """Boxes, key points and masks go along by what samples hold; ``vg.Targets`` says how they are read."""
    if (options := targets_of(place, described)) is not None:
        how = f"how samples are read is no part of a transform: give targets={options!r}, which "
        how += "vg.targets_from_albumentations makes; boxes are under 'boxes' here, not 'bboxes'"
        place.differs("", None, how)
