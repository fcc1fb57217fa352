"""Docstrings of public names: one sentence first, no turn that ``tests.words`` refuses, every argument explained."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import variegate as vg
from tests.words import odd_turns
from variegate import policies
from variegate import transforms as T
from variegate.transforms import functional as F

LONGEST = 120
# Questions in the place of what it does.
ASKING = ("What", "Which", "Where", "Who", "Whose", "How", "It", "So", "Whether")
# Enumerations and results, which users do not make.
UNSAID = {"T.InterpolationMode", "T.AutoAugmentPolicy"}
# Where families describe the arguments that all of them have.
SHARED = {"F": F, "T": T.Transform, "policies": T.Transform}
METHODS = {
    vg.Augmenter: ("__call__", "decode_and_run", "explain", "program", "run"),
    vg.Engine: ("map", "map_image", "run"),
    vg.Loader: (
        "__iter__",
        "__len__",
        "batch",
        "load_state_dict",
        "partners",
        "set_epoch",
        "state_dict",
        "stats",
    ),
    vg.RaggedBatch: ("pack",),
    policies.Schedule: ("is_idle_at", "scaled", "segment_at", "to_dict"),
    T.Transform: ("__call__", "to_dict"),
}
MODULES = {"vg": vg, "T": T, "F": F, "policies": policies}
# What of Ray's and Keras' calls is ours; the latter brings TensorFlow, and is read as text elsewhere.
OTHERS = (
    ("variegate.interop.ray", "MapBatches"),
    ("variegate.interop.convert.report", "ConversionReport"),
)


def public() -> Iterator[tuple[str, Any]]:
    """(name, object) of every public class, function and listed method."""
    found: dict[str, Any] = {}
    for space, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value):
                found[f"{space}.{name}"] = value
    found |= {name: getattr(import_module(module), name) for module, name in OTHERS}
    for cls, names in METHODS.items():
        found |= {f"{cls.__name__}.{name}": getattr(cls, name) for name in names}
    yield from found.items()


def own_text(value: Any) -> str:
    """The docstring, without those that dataclasses write and that built-in bases bring."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""
    is_written = inspect.isclass(value) and text.startswith(f"{value.__name__}(")
    return "" if is_written else inspect.cleandoc(text)


def told(name: str, value: Any) -> str:
    """All that is said about the arguments: by the object, its bases and its family."""
    bases = (
        [base for base in value.__mro__ if base.__module__.startswith("variegate.")] if inspect.isclass(value) else []
    )
    family = SHARED.get(name.partition(".")[0])
    return "\n".join(own_text(each) for each in [*(bases or [value]), *([family] if family else [])])


def arguments(value: Any) -> list[str]:
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):  # a built-in constructor
        return []
    return [each for each in parameters if each != "self" and not each.startswith("_")]


def wrong_first_line(value: Any) -> str:
    """What is wrong with it, or nothing."""
    first = own_text(value).partition("\n")[0]
    if not first:
        return "no docstring"
    if len(first) > LONGEST:
        return f"over {LONGEST} characters: {first}"
    if not first.endswith((".", "...")) or first.split()[0] in ASKING:
        return f"no sentence: {first}"
    return ""


def test_the_first_line_is_a_sentence() -> None:
    assert {name: wrong for name, value in public() if (wrong := wrong_first_line(value))} == {}


def test_no_refused_turn() -> None:
    turns: dict[str, list[str]] = {}
    for name, value in public():
        # Code, and values of arguments, keep their names.
        text = re.sub(r"``.+?``|\"\w+\"|^ *(?:>>>|\w+ =|def ).*$", "CODE", own_text(value), flags=re.S | re.M)
        if found := odd_turns(" ".join(text.split())):
            turns[name] = found
    assert turns == {}


def test_every_argument_is_explained() -> None:
    unexplained: dict[str, list[str]] = {}
    for name, value in public():
        text = told(name, value)
        if name in UNSAID or "or the other arguments see" in text:
            continue
        missing = [
            each
            for each in arguments(value)
            if not re.search(rf"``[^`]*\b{each}\b[^`]*``|^\s*(?:\w+, )*{each}(?:, \w+)*: ", text, re.M)
        ]
        if missing:
            unexplained[name] = missing
    assert unexplained == {}
