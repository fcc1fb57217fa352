"""The operations that people choose cards from: groups, arguments, and the ends of their sliders."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from variegate import IMAGENET_MEAN, IMAGENET_STD
from variegate.ops.base import Transform
from variegate.ops.schema import Around, OneOf, OrNone, Range
from variegate.policies.schedule import PUBLISHED_SCHEDULES
from variegate.policies.spaces import SPACES

# The modules of each group's operations, in the order of the catalog.
_MODULES = {
    "Flips and crops": ["crop", "resize", "sizes", "finish"],
    "Geometry": ["geometry", "deform"],
    "Around objects": ["box_crops", "copy_paste"],
    "Color": ["color", "tone", "output"],
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
# Operations without a picture of their own, and operations with arguments that a card cannot hold.
_EXCLUDED = {
    *(FORMATS - {"Normalize"}),
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
# Arguments that a new card has, because they have no default or do nothing by default: the value, where the slider
# begins and ends, and its steps.
_STARTS: dict[str, dict[str, Any]] = {
    "Brightness": {"factor": (1.4, 0.0, 3.0)},
    "CenterCrop": {"size": (128, 16, 512)},
    "Fit": {"size": (128, 16, 512)},
    "ColorJitter": {
        "brightness": (0.4, 0.0, 2.0),
        "contrast": (0.4, 0.0, 2.0),
        "saturation": (0.4, 0.0, 2.0),
        "hue": (0.1, -0.5, 0.5),
    },
    "Color": {"factor": (1.5, 0.0, 3.0)},
    "Contrast": {"factor": (1.5, 0.0, 3.0)},
    "Convolve": {"kernel": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]},
    "Cutout": {"size": (64, 1, 256)},
    "GaussianBlur": {"kernel_size": (9, 1, 31, 2)},
    "Hue": {"factor": (0.1, -0.5, 0.5)},
    "JPEG": {"quality": (30, 1, 100)},
    "Gamma": {"gamma": (1.5, 0.2, 5.0)},
    "Normalize": {"mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)},
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


# Start values of arguments that are None by default, and the bounds of their sliders.
_SUGGESTED: Mapping[str, tuple[Any, float, float]] = {
    "scale": ((0.8, 1.2), 0.1, 3.0),
    "shear": (10.0, -60.0, 60.0),
    "translate": ((0.1, 0.1), 0.0, 1.0),
    "max_size": (224, 16, 1024),
    "padding": (16, 0, 128),
    "fill": (128, 0, 255),
    "color": (128, 0, 255),
    "drop_length": (20, 1, 100),
}
_REGIONS = {"anywhere": (0.0, 0.0, 1.0, 1.0), "upper half": (0.0, 0.0, 1.0, 0.5), "lower half": (0.0, 0.5, 1.0, 1.0)}
_KERNELS = {
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "smooth": [[0.11, 0.11, 0.11], [0.11, 0.12, 0.11], [0.11, 0.11, 0.11]],
    "edges": [[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]],
    "emboss": [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]],
}
_POLICIES = {name: name for name in ("imagenet", "cifar10", "svhn")}
# Choices of arguments by their names on the page; whatever else a policy has is added to them.
_NAMED_CHOICES: Mapping[str, Mapping[str, Any]] = {
    "shadow_roi": _REGIONS,
    "flare_roi": _REGIONS,
    "gravel_roi": _REGIONS,
    "kernel": _KERNELS,
    "order": {"".join("RGB"[n] for n in order): list(order) for order in permutations(range(3))},
    "policy": _POLICIES,
    "schedule": {name: name for name in PUBLISHED_SCHEDULES},
    "space": {"default": None, **{name: name for name in SPACES}},
    "num_output_channels": {"1": 1, "3": 3},
}


@functools.cache
def catalogue() -> list[dict[str, Any]]:
    """List the operations that a card may hold, with their groups, summaries and arguments, as JSON."""
    entries = [
        _entry(name, cls)
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
    """Set required arguments; probability 1, so that the preview shows the operation."""
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
    """Start values for an operation of the user: the middle of its range."""
    if cls.__name__ in _STARTS or cls._typical_range is None:
        return _STARTS.get(cls.__name__, {})
    required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]  # type: ignore[arg-type]
    low, high = cls._typical_range.low, cls._typical_range.high
    return dict.fromkeys(required, ((low + high) / 2, low, high))


class Bounds(NamedTuple):
    """Ends of a slider; None where there is no slider."""

    low: float | None = None
    high: float | None = None


def _field(cls: type[Transform], field: dataclasses.Field[Any], hints: dict[str, Any]) -> dict[str, Any]:
    """Describe an argument: its kind, its default, and its choices or the ends of its slider."""
    default = None if field.default is dataclasses.MISSING else field.default
    start = _starts(cls).get(field.name, default)
    step = None
    declared = _declared(cls, field.name)
    if isinstance(start, tuple) and field.name in _starts(cls):
        start, *ends = start
        bounds = Bounds(*ends[:2])
        step = ends[2] if len(ends) > 2 else None
    elif start is None and field.name in _SUGGESTED:
        start, *ends = _SUGGESTED[field.name]
        bounds = Bounds(*ends)
    else:
        bounds = _slider_bounds(declared, start)
    choices = {} if isinstance(start, bool) else _choices(declared, field.name, hints.get(field.name))
    kind = "choice" if choices else _kind(field.name, start, hints.get(field.name))
    if kind == "integer" or (kind == "pair" and all(type(end) is int for end in start or ())):
        step = step or getattr(declared, "step", 1)
    return {
        "name": field.name,
        "kind": kind,
        "default": plain(start if field.default is dataclasses.MISSING else default),
        "start": plain(start),
        "low": plain(bounds.low),
        "high": plain(bounds.high),
        "step": step,
        "choices": [[name, plain(value)] for name, value in choices.items()],
        # Two numbers are the ends of a range, and not a height and a width.
        "is_range": isinstance(declared, (Range, Around)),
        "optional": default is None and field.default is None,
        "required": field.default is dataclasses.MISSING,
    }


def _declared(cls: type[Transform], name: str) -> Any:
    argument = cls._arguments.get(name)
    return argument.argument if isinstance(argument, OrNone) else argument


def _choices(declared: Any, name: str, hint: Any) -> Mapping[str, Any]:
    if isinstance(declared, OneOf):
        return {str(choice): choice for choice in declared.choices}
    if name in _NAMED_CHOICES:
        return _NAMED_CHOICES[name]
    hints = [hint, *get_args(hint)]
    return {str(value): value for each in hints if get_origin(each) is Literal for value in get_args(each)}


def _slider_bounds(declared: Any, start: Any) -> Bounds:
    """The values that the operation accepts, or multiples of the usual one where those only guard against nonsense."""
    numbers = start if isinstance(start, Sequence) and not isinstance(start, str) else [start]
    if not numbers or not all(isinstance(number, (int, float)) for number in numbers) or isinstance(start, bool):
        return Bounds()
    usual = float(np.ceil(4 * np.max(np.abs(numbers)))) or 4.0
    low, high = -usual if min(numbers) < 0 else 0.0, usual
    if isinstance(declared, (Range, Around)):
        if declared.low >= -_WIDEST * usual:
            low = declared.low
        if declared.high <= _WIDEST * usual:
            high = declared.high
    return Bounds(low, high)


def _kind(name: str, start: Any, hint: Any) -> str:
    """Kind of input that the page shows for an argument without choices; "fixed" for one that it only shows."""
    if isinstance(start, bool) or hint is bool:
        return "flag"
    if isinstance(start, (int, float)):
        return "integer" if isinstance(start, int) and hint is not float and float not in get_args(hint) else "number"
    if name in ("weights", "p"):
        return "weights"
    if isinstance(start, Sequence) and all(isinstance(end, (int, float)) for end in start):
        if len(start) == 3 and name.endswith(("fill", "color")):
            return "color"
        return {2: "pair", 3: "triple"}.get(len(start), "fixed")
    return "transforms" if name == "transforms" else "fixed"


def plain(value: Any) -> Any:
    """Convert to JSON; None for values that JSON cannot hold."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return None


def _hints(cls: type[Transform]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):  # of a user's class, whose names are not there
        return {}
