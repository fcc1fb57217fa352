"""A policy as a list of cards, which people add, order, switch off and tune; and the catalogue they choose from."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import yaml

from variegate.apps.preview import sweepable
from variegate.checks import integer, number
from variegate.integrations.converters.albumentations import from_albumentations
from variegate.integrations.converters.pasted import from_python
from variegate.integrations.converters.report import ConversionReport, ConversionWarning
from variegate.io.yaml_text import read_yaml
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply
from variegate.ops.description import from_dict
from variegate.ops.output import Identity
from variegate.policies.load import load_policy, policy_text
from variegate.policies.pba import PBA

MOST_CARDS = 64
# By the last part of a module's name, in the order of the catalogue.
_GROUPS = {
    **{"crop": "Flips and crops", "resize": "Flips and crops", "sizes": "Flips and crops", "finish": "Flips and crops"},
    **{"geometry": "Geometry", "deform": "Geometry", "box_crops": "Around objects", "copy_paste": "Around objects"},
    **{"colour": "Color", "tone": "Color", "domain": "Color", "output": "Color", "filters": "Blur, noise and edges"},
    **{"optics": "Lens and light", "lighting": "Lens and light", "weather": "Weather", "overlay": "Weather"},
    **{"erase": "Erasing", "mix": "Mixing", "uniform": "Policies", "autoaugment": "Policies", "augmix": "Policies"},
    **{"timm": "Policies", "pba": "Policies", "compose": "Choices"},
}
# Without pictures of their own, or made of what a card cannot hold.
_LEFT_OUT = {"AdaptiveRandAugment", "Compose", "ConvertImageDtype", "Cond", "FDA", "HistogramMatching", "Identity"}
_LEFT_OUT |= {"Normalize", "Overlay", "PILToTensor", "PixelDistributionAdaptation", "ToDtype", "ToImage"}
_LEFT_OUT |= {"ToPureTensor", "ToTensor", "ClampBoundingBoxes", "SanitizeBoundingBoxes", "FiveCrop", "TenCrop"}
_CHILDREN: list[Any] = [{"type": "GaussianBlur", "kernel_size": 5}, {"type": "Invert"}]
# Of arguments that have no default: what a new card has, and where its slider begins and ends.
_STARTS: dict[str, dict[str, Any]] = {
    "Brightness": {"factor": (1.4, 0.0, 3.0)},
    "CenterCrop": {"size": (128, 16, 512)},
    "Color": {"factor": (1.5, 0.0, 3.0)},
    "Contrast": {"factor": (1.5, 0.0, 3.0)},
    "Convolve": {"kernel": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]},
    "Cutout": {"size": (64, 1, 256)},
    "GaussianBlur": {"kernel_size": (9, 1, 31)},
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


class CardError(ValueError):
    """A card that stands for no transform; ``card`` is its number, None where it is the whole policy."""

    def __init__(self, message: str, card: int | None = None) -> None:
        super().__init__(message)
        self.card = card


class Tuned(NamedTuple):
    """A policy made of cards. ``numbers``: the card of each of its transforms."""

    transform: Transform
    numbers: tuple[int, ...]


def to_policy(cards: Any) -> Tuned:
    """The transform of the cards that are switched on. Raises CardError."""
    if not isinstance(cards, list) or len(cards) > MOST_CARDS:
        raise CardError(f"cards: accepted: a list of at most {MOST_CARDS}")
    made, numbers = [], []
    for at, card in enumerate(cards):
        if not isinstance(card, dict) or not isinstance(card.get("arguments", {}), dict):
            raise CardError(f'card {at + 1}: accepted: {{"op": name, "arguments": {{...}}, "on": true, "p": 1.0}}', at)
        if not card.get("on", True):
            continue
        try:
            transform = from_dict({"type": card.get("op"), **card.get("arguments", {})}, str(card.get("op")))
            chance = number("p", card.get("p", 1.0), 0.0, 1.0)
            made.append(transform if chance == 1.0 else RandomApply([transform], chance))
        except (ValueError, TypeError) as error:
            raise CardError(str(error), at) from error
        numbers.append(at)
    try:
        return Tuned(made[0] if len(made) == 1 else Compose(made) if made else Identity(), tuple(numbers))
    except ValueError as error:
        raise CardError(str(error)) from error


class FoundCards(NamedTuple):
    """Cards of a text; of a pipeline of another library, also what became of its transforms."""

    cards: list[dict[str, Any]]
    report: ConversionReport | None = None


def to_cards(text: str) -> FoundCards:
    """Cards of a policy's name, a timm string, JSON or YAML of a description, or a pipeline of another library.

    Files are not read, and Python is parsed, not run. Raises CardError.
    """
    text, report = text.strip(), None
    try:
        if text in ("", "none"):
            return FoundCards([])
        if isinstance(described := _described(text), Mapping):
            inner = described.get("transform", described)
            if isinstance(inner, Mapping) and "__class_fullname__" in inner:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConversionWarning)  # the report says it
                    transform, report = from_albumentations(described, report=True)
            else:
                transform = load_policy(described)
        elif "(" in text:
            transform, report = from_python(text)
        elif os.sep in text or os.path.exists(text) or text.endswith((".json", ".yaml", ".yml")):
            raise CardError("a file cannot be named here; accepted: its text, or --policy FILE of the command")
        else:
            transform = load_policy(text)
    except (ValueError, yaml.YAMLError, TypeError, RecursionError) as error:
        raise CardError(" ".join(str(error).split()) or "too deeply nested") from error
    return FoundCards(cards_of(transform), report)


def _described(text: str) -> Any:
    """A description that the text holds as JSON or YAML; None for other text. Raises YAMLError for broken JSON."""
    try:
        described = read_yaml(text)
    except yaml.YAMLError:
        if "(" in text or not text.startswith(("{", "[")):
            return None
        raise
    if isinstance(described, list) and all(isinstance(each, Mapping) for each in described):
        return {"type": "Compose", "transforms": described}
    return described


def cards_of(transform: Transform) -> list[dict[str, Any]]:
    """One for each transform in a row."""
    if isinstance(transform, Compose):
        return [card for each in transform.transforms for card in cards_of(each)]
    if isinstance(transform, Identity):
        return []
    if isinstance(transform, RandomApply) and len(transform.transforms) == 1:
        cards = cards_of(transform.transforms[0])
        if len(cards) == 1 and cards[0]["p"] == 1.0:  # else they are applied together, or by two chances
            return [{**cards[0], "p": transform.p}]
    described = transform.to_dict()
    return [{"op": described.pop("type"), "arguments": described, "on": True, "p": 1.0}]


def schedule_of(transform: Transform) -> dict[str, Any] | None:
    """Epochs of the first schedule in the policy and, by operation, [epoch, probability times magnitude] from each
    change on: 0 to 1, the mean of its places in the policy. None without a schedule."""
    schedule = next((part.resolved for part in _parts(transform) if isinstance(part, PBA)), None)
    if schedule is None:
        return None
    curves: dict[str, list[tuple[int, float]]] = {}
    first = 0
    for segment in schedule.segments:
        products: dict[str, list[float]] = {}
        for name, chance, magnitude in segment.policy:
            products.setdefault(name, []).append(chance * magnitude / 9)
        for name, some in products.items():
            curves.setdefault(name, []).append((first, round(sum(some) / len(some), 4)))
        first += segment.epochs
    return {"epochs": schedule.epochs, "curves": curves}


def _parts(transform: Transform) -> list[Transform]:
    children = getattr(transform, "transforms", ())
    return [transform, *(part for child in children if isinstance(child, Transform) for part in _parts(child))]


def written(tuned: Tuned) -> dict[str, str]:
    """The policy as JSON, YAML and Python. Raises CardError for one that holds a function."""
    try:
        as_json = policy_text(tuned.transform.to_dict(), ".json")
    except (TypeError, ValueError) as error:
        raise CardError(f"the policy holds what no file can hold: {error}") from error
    names = sorted({type(part).__name__ for part in _parts(tuned.transform)})
    return {
        "json": as_json,
        "yaml": policy_text(json.loads(as_json), ".yaml"),
        "python": f"from variegate.transforms import {', '.join(names)}\n\ntransform = {tuned.transform!r}\n",
    }


# -- the catalogue -------------------------------------------------------------------------------------------------


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
                "has_p": _has_chance(cls),
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
    if _has_chance(cls):
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


def _has_chance(cls: type[Transform]) -> bool:
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
    start = _starts(cls).get(field.name, field.default)
    default, low, high = start if isinstance(start, tuple) and field.name in _starts(cls) else (start, None, None)
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
    elif isinstance(default, int) and float not in kinds:
        kind = "integer"
    elif isinstance(default, (int, float)) or (default is None and {int, float} & set(kinds)):
        kind = "number"
    elif isinstance(default, Sequence) and len(default) == 2 and all(isinstance(one, (int, float)) for one in default):
        kind = "pair"
    else:
        kind = "text"
    if high is None and kind in ("number", "pair") and low is not None and default:
        high = float(np.ceil(4 * np.max(default)))
    return {
        **{"name": field.name, "kind": kind, "default": None if default is dataclasses.MISSING else plain(default)},
        **{"low": plain(low), "high": plain(high), "choices": choices},
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
