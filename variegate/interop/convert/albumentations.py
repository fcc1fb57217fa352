"""``from_albumentations``: a pipeline of Albumentations, as an object, its ``to_dict()``, or that in a JSON file."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from variegate.errors import PolicyError
from variegate.interop.convert.albumentations_arguments import VERSIONS, Arguments, library_defaults
from variegate.interop.convert.albumentations_rules import FORMATS, REFUSED, RULES, Rule
from variegate.interop.convert.albumentations_targets import target_kinds, targets_of
from variegate.interop.convert.report import (
    ConversionError,
    ConversionReport,
    Node,
    ReportBuilder,
    parameters,
    plain,
)
from variegate.io.files import TooLargeError, read_regular
from variegate.ops.arguments import PROBABILITY
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf, RandomApply, RandomOrder, SomeOf
from variegate.ops.description import check_tree
from variegate.ops.output import Identity
from variegate.targets.settings import Targets

_ROWS = ("Compose", "ReplayCompose", "Sequential")
# Compositions that do nothing by a chance of their own where a OneOf has chosen them.
_WITH_CHANCE = ("OneOrOther", "SomeOf", "RandomOrder")
COMPOSITIONS = (*_ROWS, "OneOf", *_WITH_CHANCE)
CLASSES = frozenset({*RULES, *FORMATS, *REFUSED, *COMPOSITIONS})
_MAX_BYTES = 16 << 20

Description = Mapping[str, Any]


@overload
def from_albumentations(compose: Any, report: Literal[False] = False) -> Transform: ...


@overload
def from_albumentations(compose: Any, report: Literal[True]) -> tuple[Transform, ConversionReport]: ...


def from_albumentations(compose: Any, report: bool = False) -> Transform | tuple[Transform, ConversionReport]:
    """Convert an Albumentations pipeline to Variegate's transforms.

    Args:
        compose: of AlbumentationsX 2.5 or Albumentations 2.0: an ``albumentations.Compose`` (or one of its transforms),
            the dict of its ``to_dict()``, or the path of a JSON file with that dict.
        report: also return the ``ConversionReport``: transforms that are identical, approximate (and by how much), and
            unsupported. Unsupported ones are then skipped.

    Approximate conversions give one ConversionWarning that lists the differences. ``bbox_params`` and
    ``keypoint_params`` are not part of a transform: see ``targets_from_albumentations``.
    docs/migration/albumentations.md lists the classes.

    Raises:
        ConversionError: (a ValueError) for an unsupported transform, with its place, its value and accepted values.
        FileNotFoundError: if the file does not exist.
    """
    described = _read(compose)
    builder = ReportBuilder()
    builder.targets = target_kinds(described)
    steps: list[Transform] = []
    _append(described, "", builder, steps)
    result = builder.finish(skip_refused=report)
    if len(steps) > 1:
        converted: Transform = Node("Compose", builder).build(Compose, transforms=steps)
    else:
        converted = steps[0] if steps else Identity()
    return (converted, result) if report else converted


def targets_from_albumentations(compose: Any) -> Targets:
    """Convert ``bbox_params`` and ``keypoint_params`` of an Albumentations pipeline to ``vg.Targets``.

    Use the result in ``vg.Augmenter(t)(samples, targets=...)`` and ``vg.Loader(targets=...)``. ``compose`` is that of
    ``from_albumentations``. ``label_fields`` other than "labels" become ``per_box``, and the ``fill_mask`` of
    transforms becomes ``mask_fill``. Albumentations counts key points from the center of the first pixel.

    Raises ConversionError for unsupported options, and gives a ConversionWarning for differences.
    """
    described = _read(compose)
    builder = ReportBuilder()
    node = _node(described, "", builder)[0]
    options = targets_of(node, described) or Targets()
    builder.finish(skip_refused=False)
    of_transforms = ReportBuilder()
    _append(described, "", of_transforms, [])
    fills = set(of_transforms.mask_fills.values()) or {0}
    if len(fills) > 1:
        node.refuse("fill_mask", tuple(sorted(fills)), "one value for all transforms, as vg.Targets(mask_fill=) is")
    return dataclasses.replace(options, mask_fill=fills.pop())


# -- reading descriptions --------------------------------------------------------------------------------------------


def _read(compose: Any) -> Description:
    described = _describe(compose)
    described = described.get("transform", described)
    try:
        check_tree(described, "compose")
    except PolicyError as error:
        raise ConversionError(error.where, error.got, error.accepted) from error
    return described


def _describe(compose: Any) -> Description:
    if isinstance(compose, Mapping):
        return compose
    if isinstance(compose, (str, os.PathLike)):
        return _read_file(Path(compose))
    to_dict = getattr(compose, "to_dict", None)
    if to_dict is None or isinstance(compose, Transform):
        accepted = "an albumentations.Compose, its to_dict(), or the path of a JSON file with that"
        raise ConversionError("compose", compose, accepted)
    try:
        described: Description = to_dict()
    except Exception as error:  # a user's transform may raise anything
        raise ConversionError("compose", compose, f"what describes itself by to_dict(), which said: {error}") from error
    return described


def _read_file(path: Path) -> Description:
    written = "as albumentations.save(compose, path) writes it"
    try:
        described = json.loads(read_regular(path, _MAX_BYTES))
    except (ValueError, RecursionError, TooLargeError) as error:
        raise ConversionError(str(path), str(error), f"JSON, {written}") from error
    if not isinstance(described, Mapping):
        raise ConversionError(str(path), described, f"an object, {written}")
    return described


def _node(described: Any, path: str, builder: ReportBuilder) -> tuple[Node, str]:
    """The node of a description and the name of its class."""
    name = described.get("__class_fullname__") if isinstance(described, Mapping) else None
    if not isinstance(name, str):
        Node(path or "compose", builder).refuse("", described, 'an object with a "__class_fullname__"')
    module, _, short = name.rpartition(".")
    node = Node(f"{path} {short}".strip(), builder)
    if module and not module.startswith("albumentations"):
        node.refuse("", name, "transforms of Albumentations; see CustomOp for operations of yours")
    return node, short


def _children(node: Node, described: Description, path: str) -> list[tuple[Any, str]]:
    children = described.get("transforms")
    if not isinstance(children, (list, tuple)):
        node.refuse("transforms", children, "a list of described transforms")
    prefix = f"{path}." if path else ""
    return [(child, f"{prefix}transforms[{i}]") for i, child in enumerate(children)]


def _probability(node: Node, name: str, described: Description) -> float:
    """The probability of a transform; the library's default if it is not described."""
    defaults = next((found for version in VERSIONS if (found := library_defaults(version).get(name))), {})
    described_p = plain(described.get("p", defaults.get("p", 0.5)))
    p: float = PROBABILITY.check("p", described_p, error=node.error)
    return p


# -- converting ------------------------------------------------------------------------------------------------------


def _append(described: Description, path: str, builder: ReportBuilder, steps: list[Transform]) -> None:
    """Append a transform to the pipeline; compositions that always run are unrolled."""
    node, name = _node(described, path, builder)
    if name in _ROWS and _probability(node, name, described) == 1:
        _check_targets(node, described)
        for child, where in _children(node, described, path):
            _append(child, where, builder, steps)
    elif name in FORMATS:
        with node.converting(described):
            if _probability(node, name, described) != 1:
                node.refuse("p", described["p"], "1, because all images leave in one format")
            steps.append(_apply_rule(FORMATS[name], node, name, described))
    elif (step := _converted(described, path, builder)) is not None:
        steps.append(step)


def _apply_rule(rule: Rule, node: Node, name: str, described: Description) -> Any:
    newer, older = (library_defaults(version).get(name, {}) for version in VERSIONS)
    converted = rule.convert(Arguments(node, described, newer, older))
    node.add_converted(described, converted)
    return converted


def _converted(described: Description, path: str, builder: ReportBuilder, chosen: bool = False) -> Transform | None:
    """Convert one transform; None if it does nothing or was refused. ``chosen``: by a OneOf, so that it is certain to
    run, except for compositions that keep their chance."""
    node, name = _node(described, path, builder)
    converted = None
    with node.converting(described):
        p = 1.0 if chosen and name not in _WITH_CHANCE else _probability(node, name, described)
        if name in COMPOSITIONS:
            converted = _composition(node, name, described, path, p)
        elif (made := _apply_rule(_rule(node, name), node, name, described)) is not None:
            converted = _with_probability(made, p)
    return converted


def _rule(node: Node, name: str) -> Rule:
    if name in FORMATS:
        node.refuse("", name, "it in the main line of the pipeline, where it applies to every image")
    if name not in RULES:
        known = "one of " + ", ".join(sorted(CLASSES - set(REFUSED)))
        node.refuse("", name, REFUSED.get(name, known))
    return RULES[name]


def _with_probability(converted: Transform, p: float) -> Transform:
    if p == 1:
        return converted
    if "p" in parameters(type(converted)):
        return dataclasses.replace(converted, p=p * converted.p)  # type: ignore[type-var,attr-defined]
    return RandomApply([converted], p=p)


def _composition(node: Node, name: str, described: Description, path: str, p: float) -> Transform:
    _check_targets(node, described)
    children = _children(node, described, path)
    is_choice = name in ("OneOf", "OneOrOther")
    inner = [_converted(child, where, node.report, chosen=is_choice) or Identity() for child, where in children]
    if not inner:
        return Identity()
    if name in _ROWS:
        return _with_probability(Compose(inner), p)
    if name == "OneOrOther":
        return node.build(OneOf, transforms=[inner[0], inner[-1]], weights=(p, 1 - p))
    if name == "OneOf":
        weights = tuple(_probability(*_node(child, where, node.report), child) for child, where in children)
        return node.build(OneOf, transforms=inner, p=p, weights=weights)
    if described.get("replace", False):
        node.refuse("replace", True, "False: different ones of the transforms")
    n = described.get("n", 1)
    if name == "RandomOrder" and n != 1:
        if n < len(inner):
            node.refuse("n", n, f"1, or {len(inner)}: all of the transforms in random order")
        return _with_probability(node.build(RandomOrder, transforms=inner), p)
    count = tuple(n) if isinstance(n, (list, tuple)) else min(n, len(inner))
    return _with_probability(node.build(SomeOf, transforms=inner, n=count), p)


def _check_targets(node: Node, described: Description) -> None:
    """Boxes, key points and masks are described by samples, and how they are read by ``vg.Targets``."""
    if (options := targets_of(node, described)) is not None:
        how = f"how samples are read is no part of a transform: give targets={options!r}, which "
        node.add_difference(how + "vg.targets_from_albumentations makes; boxes are under 'boxes' here, not 'bboxes'")
