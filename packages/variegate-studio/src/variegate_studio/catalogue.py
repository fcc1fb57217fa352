"""The operations that people choose cards from: groups, arguments, and the ends of their sliders."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from variegate.apps.preview import sweepable
from variegate.checks import integer, number
from variegate.ops.base import Transform

# By the last part of a module's name, in the order of the catalogue.
_GROUPS = {
    **{"crop": "Flips and crops", "resize": "Flips and crops", "sizes": "Flips and crops", "finish": "Flips and crops"},
    **{"geometry": "Geometry", "deform": "Geometry", "box_crops": "Around objects", "copy_paste": "Around objects"},
    **{"colour": "Color", "tone": "Color", "output": "Color", "filters": "Blur, noise and edges"},
    **{"optics": "Lens and light", "lighting": "Lens and light", "weather": "Weather", "overlay": "Weather"},
    **{"erase": "Erasing", "mix": "Mixing", "uniform": "Policies", "autoaugment": "Policies", "augmix": "Policies"},
    **{"timm": "Policies", "pba": "Policies", "compose": "Choices"},
}
FORMATS = {"ConvertImageDtype", "Normalize", "PILToTensor", "ToDtype", "ToImage", "ToPureTensor", "ToTensor"}
# Without pictures of their own, or made of what a card cannot hold.
_LEFT_OUT = {*FORMATS, "AdaptiveRandAugment", "Compose", "Cond", "Identity", "Overlay"}
_LEFT_OUT |= {"ClampBoundingBoxes", "SanitizeBoundingBoxes", "FiveCrop", "TenCrop"}
_CHILDREN: list[Any] = [{"type": "GaussianBlur", "kernel_size": 5}, {"type": "Invert"}]
_WIDEST = 25  # times what is usual: wider ranges only guard against nonsense
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
    """Every operation that a card may hold: its group, what it does, and its arguments, as JSON."""
    order, swept = list(dict.fromkeys(_GROUPS.values())), set(sweepable())
    entries = []
    for name, cls in sorted(Transform.registry.items()):
        group = _GROUPS.get(cls.__module__.rpartition(".")[2])
        if name in _LEFT_OUT or (group is None and cls.__module__.startswith("variegate.")):
            continue
        hints, helps = _hints(cls), _helps(cls)
        fields = [
            {**_field(cls, field, hints), "help": helps(field.name)}
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
            if field.init
        ]
        entries.append(
            {
                "name": name,
                "group": group or "Your own",
                "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
                "has_p": has_chance(cls),
                "card": new_card(name),
                "is_sweepable": name in swept,
                "fields": fields,
            }
        )
    return sorted(entries, key=lambda entry: order.index(entry["group"]) if entry["group"] in order else len(order))


def new_card(name: str) -> dict[str, Any]:
    """With what has no default; certain to do something, where a chance of its own would leave images as they are."""
    cls = Transform.registry[name]
    arguments = {argument: start[0] if isinstance(start, tuple) else start for argument, start in _starts(cls).items()}
    if has_chance(cls):
        arguments["p"] = 1.0
    return {"op": name, "arguments": arguments, "on": True, "p": 1.0}


def _helps(cls: type[Transform]) -> Callable[[str], str]:
    """Words on an argument, of the docstring: its entry below Args, else the sentences that name it."""
    text, _, listed = (inspect.getdoc(cls) or "").partition("\nArgs:\n")
    entries = {
        name: " ".join(entry[2].split())
        for entry in re.finditer(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE)
        for name in entry[1].split(", ")
    }
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    sentences = re.split(r"(?<=\.)\s+", " ".join(text.split()))
    named = {name: " ".join(one for one in sentences if f"``{name}``" in one) for name in names}
    return lambda name: (entries.get(name) or named.get(name, "")).replace("``", "")


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
    """An argument: its kind, and the ends of a slider where its numbers have such."""
    start, step = _starts(cls).get(field.name, field.default), None
    has_ends = isinstance(start, tuple) and field.name in _starts(cls)
    default, low, high = start[:3] if has_ends else (start, None, None)
    hint = hints.get(field.name)
    kinds = [each for each in get_args(hint) if each is not type(None)] or [hint]
    choices = [value for each in (hint, *kinds) if get_origin(each) is Literal for value in get_args(each)]
    check = cls._checks.get(field.name)
    if isinstance(check, functools.partial) and check.func in (number, integer) and low is None:
        low, high = check.keywords.get("low"), check.keywords.get("high")
    if choices:
        kind = "choice"
    elif isinstance(default, bool) or bool in kinds:
        kind = "flag"
    elif isinstance(default, int) and (has_ends or float not in kinds):
        kind, step = "integer", start[3] if has_ends and len(start) > 3 else 1
    elif isinstance(default, (int, float)) or (default is None and {int, float} & set(kinds)):
        kind = "number"
    elif isinstance(default, Sequence) and len(default) == 2 and all(isinstance(one, (int, float)) for one in default):
        kind = "pair"
    elif isinstance(default, tuple) and len(default) == 3 and field.name.endswith(("fill", "color")):
        kind = "color"
    else:
        kind = "text"
    if kind in ("number", "pair") and low is not None and default:
        most = float(np.ceil(4 * np.max(default)))
        high = most if high is None or high > _WIDEST * most else high
    return {
        **{"name": field.name, "kind": kind, "default": None if default is dataclasses.MISSING else plain(default)},
        **{"low": plain(low), "high": plain(high), "step": step, "choices": choices},
        **{"optional": type(None) in get_args(hint), "required": field.default is dataclasses.MISSING},
    }


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
