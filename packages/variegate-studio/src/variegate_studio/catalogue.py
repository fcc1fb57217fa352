"""The operations that people choose cards from: groups, arguments, and the ends of their sliders."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from variegate.apps.preview import sweepable
from variegate.ops.base import Transform
from variegate.ops.schema import Range

# The modules of each group's operations, in the order of the catalogue.
_MODULES = {
    "Flips and crops": ["crop", "resize", "sizes", "finish"],
    "Geometry": ["geometry", "deform"],
    "Around objects": ["box_crops", "copy_paste"],
    "Color": ["colour", "tone", "output"],
    "Blur, noise and edges": ["filters"],
    "Lens and light": ["optics", "lighting"],
    "Weather": ["weather", "overlay"],
    "Erasing": ["erase"],
    "Mixing": ["mix"],
    "Policies": ["uniform", "autoaugment", "augmix", "timm", "pba"],
    "Choices": ["compose"],
}
_GROUPS = {module: group for group, modules in _MODULES.items() for module in modules}
_ORDER = [*_MODULES, "Your own"]
FORMATS = {"ConvertImageDtype", "Normalize", "PILToTensor", "ToDtype", "ToImage", "ToPureTensor", "ToTensor"}
# Operations without a picture of their own, and those with arguments that a card cannot hold.
_EXCLUDED = {
    *FORMATS,
    "AdaptiveRandAugment",
    "ClampBoundingBoxes",
    "Compose",
    "Cond",
    "FiveCrop",
    "Identity",
    "Overlay",
    "SanitizeBoundingBoxes",
    "TenCrop",
}
_CHILDREN: list[Any] = [{"type": "GaussianBlur", "kernel_size": 5}, {"type": "Invert"}]
_WIDEST = 25  # times the usual value: wider bounds only guard against nonsense
# Of arguments that have no default: what a new card has, where its slider begins and ends, and its steps.
_STARTS: dict[str, dict[str, Any]] = {
    "Brightness": {"factor": (1.4, 0.0, 3.0)},
    "CenterCrop": {"size": (128, 16, 512)},
    "Color": {"factor": (1.5, 0.0, 3.0)},
    "Contrast": {"factor": (1.5, 0.0, 3.0)},
    "Convolve": {"kernel": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]},
    "Cutout": {"size": (64, 1, 256)},
    "GaussianBlur": {"kernel_size": (9, 1, 31, 2)},
    "Hue": {"factor": (0.1, -0.5, 0.5)},
    "JPEG": {"quality": (30, 1, 100)},
    "Gamma": {"gamma": (1.5, 0.2, 5.0)},
    "LetterBox": {"size": (224, 16, 512)},
    "OneOf": {"transforms": _CHILDREN},
    "Pad": {"padding": (16, 0, 128)},
    "Posterize": {"bits": (3, 1, 8)},
    "RandAugment": {"num_ops": (2, 0, 8), "magnitude": (9, 0, 30)},
    "RandomAdjustSharpness": {"sharpness_factor": (3.0, 0.0, 6.0)},
    "RandomAffine": {"degrees": (30, 0, 180)},
    "RandomApply": {"transforms": _CHILDREN[:1]},
    "RandomAtLeastOneBoxCrop": {"size": (224, 16, 512)},
    "RandomChoice": {"transforms": _CHILDREN},
    "RandomCrop": {"size": (128, 16, 512)},
    "RandomOrder": {"transforms": _CHILDREN},
    "RandomPosterize": {"bits": (3, 1, 8)},
    "RandomResize": {"min_size": (160, 16, 512), "max_size": (256, 16, 512)},
    "RandomResizedBoxSafeCrop": {"size": (224, 16, 512)},
    "RandomResizedCrop": {"size": (224, 16, 512)},
    "RandomRotation": {"degrees": (30, 0, 180)},
    "RandomShortestSize": {"min_size": (192, 16, 512)},
    "RandomSolarize": {"threshold": (128, 0, 256)},
    "Resize": {"size": (224, 16, 512)},
    "Rotate": {"degrees": (30, -180, 180)},
    "ScaleJitter": {"target_size": [224, 224]},
    "Sharpness": {"factor": (3.0, 0.0, 6.0)},
    "ShearX": {"shear": (0.3, -1.0, 1.0)},
    "ShearY": {"shear": (0.3, -1.0, 1.0)},
    "Solarize": {"threshold": (128, 0, 256)},
    "SolarizeAdd": {"addition": (60, 0, 128)},
    "SomeOf": {"transforms": _CHILDREN, "n": (1, 1, 8)},
    "TranslateX": {"translate": (40, -150, 150)},
    "TranslateY": {"translate": (40, -150, 150)},
}


@functools.cache
def catalogue() -> list[dict[str, Any]]:
    """List the operations that a card may hold, with their groups, summaries and arguments, as JSON."""
    swept = set(sweepable())
    entries = [
        {**_entry(name, cls), "is_sweepable": name in swept}
        for name, cls in sorted(Transform.registry.items())
        if name not in _EXCLUDED and _group(cls) is not None and dataclasses.is_dataclass(cls)
    ]
    return sorted(entries, key=lambda entry: _ORDER.index(entry["group"]))


def _group(cls: type[Transform]) -> str | None:
    """Group of an operation; None for one of Variegate without a group."""
    if not cls.__module__.startswith("variegate."):
        return "Your own"
    return _GROUPS.get(cls.__module__.rpartition(".")[2])


def _entry(name: str, cls: type[Transform]) -> dict[str, Any]:
    hints = _hints(cls)
    helps = _argument_helps(cls)
    fields = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.init:
            fields.append({**_field(cls, field, hints), "help": helps.get(field.name, "")})
    return {
        "name": name,
        "group": _group(cls),
        "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "has_p": has_chance(cls),
        "card": new_card(name),
        "fields": fields,
    }


def new_card(name: str) -> dict[str, Any]:
    """With what has no default; certain to do something, where a chance of its own would leave images as they are."""
    cls = Transform.registry[name]
    arguments = {argument: start[0] if isinstance(start, tuple) else start for argument, start in _starts(cls).items()}
    if has_chance(cls):
        arguments["p"] = 1.0
    return {"op": name, "arguments": arguments, "on": True, "p": 1.0}


def _argument_helps(cls: type[Transform]) -> dict[str, str]:
    """Help of arguments from the docstring: the entry below Args, otherwise the sentences that name the argument."""
    text, _, listed = (inspect.getdoc(cls) or "").partition("\nArgs:\n")
    sentences = re.split(r"(?<=\.)\s+", " ".join(text.split()))
    helps = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        named = [sentence for sentence in sentences if f"``{field.name}``" in sentence]
        helps[field.name] = " ".join(named)
    for entry in re.finditer(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE):
        for name in entry[1].split(", "):
            helps[name] = " ".join(entry[2].split())
    return {name: text.replace("``", "") for name, text in helps.items()}


def has_chance(cls: type[Transform]) -> bool:
    return any(field.name == "p" and isinstance(field.default, float) for field in dataclasses.fields(cls))  # type: ignore[arg-type]


def _starts(cls: type[Transform]) -> dict[str, Any]:
    """Of an operation of a user's: the middle of its range."""
    if cls.__name__ in _STARTS or cls._useful is None:
        return _STARTS.get(cls.__name__, {})
    required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]  # type: ignore[arg-type]
    low, high = cls._useful.low, cls._useful.high
    return dict.fromkeys(required, ((low + high) / 2, low, high))


def _field(cls: type[Transform], field: dataclasses.Field[Any], hints: dict[str, Any]) -> dict[str, Any]:
    """Describe an argument: its kind, its default, and the ends of a slider if its values have bounds."""
    hint = hints.get(field.name)
    types = [each for each in get_args(hint) if each is not type(None)] or [hint]
    choices = [value for each in (hint, *types) if get_origin(each) is Literal for value in get_args(each)]

    start = _starts(cls).get(field.name, field.default)
    has_slider = field.name in _starts(cls) and isinstance(start, tuple)
    if has_slider:
        default, low, high = start[:3]
    else:
        default = start
        low, high = _checked_bounds(cls, field.name)

    kind = "choice" if choices else _kind(field.name, default, types, has_slider)
    step = None
    if kind == "integer":
        step = start[3] if has_slider and len(start) > 3 else 1
    if kind in ("number", "pair") and low is not None and default:
        usual = float(np.ceil(4 * np.max(default)))
        if high is None or high > _WIDEST * usual:
            high = usual
    return {
        "name": field.name,
        "kind": kind,
        "default": None if default is dataclasses.MISSING else plain(default),
        "low": plain(low),
        "high": plain(high),
        "step": step,
        "choices": choices,
        "optional": type(None) in get_args(hint),
        "required": field.default is dataclasses.MISSING,
    }


def _checked_bounds(cls: type[Transform], name: str) -> tuple[float | None, float | None]:
    """Lowest and highest value that the operation accepts for a number."""
    argument = cls._arguments.get(name)
    if isinstance(argument, Range) and not argument.takes_pair:
        return argument.low, argument.high
    return None, None


def _kind(name: str, default: Any, types: Sequence[Any], has_slider: bool) -> str:
    """Kind of input that the page shows for an argument without choices."""
    if isinstance(default, bool) or bool in types:
        return "flag"
    if isinstance(default, int) and (has_slider or float not in types):
        return "integer"
    if isinstance(default, (int, float)) or (default is None and {int, float} & set(types)):
        return "number"
    if isinstance(default, Sequence) and len(default) == 2 and all(isinstance(end, (int, float)) for end in default):
        return "pair"
    if isinstance(default, tuple) and len(default) == 3 and name.endswith(("fill", "color")):
        return "color"
    return "text"


def plain(value: Any) -> Any:
    """For JSON; None in place of what it cannot hold."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return None


def _hints(cls: type[Transform]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):  # of a user's class, whose names are not there
        return {}
