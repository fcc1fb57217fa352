"""A policy as a list of cards, which people add, order, switch off and tune."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from variegate.checks import number
from variegate.interop.convert.albumentations import from_albumentations
from variegate.interop.convert.report import ConversionReport, ConversionWarning
from variegate.io.yaml_text import read_yaml
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply
from variegate.ops.description import from_dict, walk
from variegate.ops.output import Identity
from variegate.policies.load import load_policy, policy_by_name, policy_text
from variegate.policies.pba import PBA
from variegate_studio.catalogue import has_chance
from variegate_studio.pasted import from_python

MOST_CARDS = 64


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


class CardsOfText(NamedTuple):
    """Cards of a text; of a pipeline of another library, also what became of its transforms."""

    cards: list[dict[str, Any]]
    report: ConversionReport | None = None


def to_cards(text: str) -> CardsOfText:
    """Cards of a policy's name, a timm string, JSON or YAML of a description, or a pipeline of another library.

    Files are not read, and Python is parsed, not run. Raises CardError.
    """
    text, report = text.strip(), None
    try:
        if text in ("", "none"):
            return CardsOfText([])
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
        elif os.sep in text or text.endswith((".json", ".yaml", ".yml")):
            raise CardError("a file cannot be named here; accepted: its text, or --policy FILE of the command")
        else:
            transform = policy_by_name(text)
    except (ValueError, yaml.YAMLError, TypeError, RecursionError) as error:
        raise CardError(" ".join(str(error).split()) or "too deeply nested") from error
    if len(cards := cards_of(transform)) > MOST_CARDS:
        raise CardError(f"{len(cards)} operations; accepted: at most {MOST_CARDS}")
    return CardsOfText(cards, report)


def _described(text: str) -> Any:
    """A description that the text holds as JSON or YAML; None for other text. Raises CardError for broken JSON."""
    try:
        described = read_yaml(text)
    except yaml.YAMLError as error:
        if "(" in text or not text.startswith(("{", "[")):
            return None
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise CardError(f"{where}{getattr(error, 'problem', error)}; accepted: JSON or YAML") from None
    if isinstance(described, list) and "(" not in text:
        return {"type": "Compose", "transforms": described}
    return described


def cards_of(transform: Transform) -> list[dict[str, Any]]:
    """A card for each transform in a row."""
    if isinstance(transform, Compose):
        return [card for each in transform.transforms for card in cards_of(each)]
    if isinstance(transform, Identity):
        return []
    if isinstance(transform, RandomApply) and len(transform.transforms) == 1:
        cards = cards_of(transform.transforms[0])
        # Else they are applied together, or by two chances.
        if len(cards) == 1 and cards[0]["p"] == 1.0 and not has_chance(Transform.registry[cards[0]["op"]]):
            return [{**cards[0], "p": transform.p}]
    described = transform.to_dict()
    return [{"op": described.pop("type"), "arguments": described, "on": True, "p": 1.0}]


def schedule_of(transform: Transform) -> dict[str, Any] | None:
    """Epochs of the first schedule in the policy and, by operation, [epoch, probability times magnitude] from each
    change on: 0 to 1, the mean of its places in the policy. None without a schedule."""
    schedule = next((part.resolved for part in walk(transform) if isinstance(part, PBA)), None)
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


def written(tuned: Tuned) -> dict[str, str]:
    """The policy as JSON, YAML and Python. Raises CardError for one that holds a function."""
    try:
        as_json = policy_text(tuned.transform.to_dict(), ".json")
    except (TypeError, ValueError) as error:
        raise CardError(f"the policy holds what no file can hold: {error}") from error
    names = sorted({type(part).__name__ for part in walk(tuned.transform) if isinstance(part, Transform)})
    return {
        "json": as_json,
        "yaml": policy_text(json.loads(as_json), ".yaml"),
        "python": f"from variegate.transforms import {', '.join(names)}\n\ntransform = {tuned.transform!r}\n",
    }
