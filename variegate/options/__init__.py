"""Options declared once: a field of a dataclass with its default, its bounds and its help, which functions take and
commands are made from. Nothing heavy is imported here, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from variegate.checks import meant

T = TypeVar("T")
# Of --help, in its order.
Panel = Literal[
    "Arguments",
    "Images",
    "Augmentation",
    "Around the policy",
    "Search",
    "Comparison",
    "Training",
    "Sheet",
    "Loader",
    "Model",
    "Measurement",
    "Work",
    "Dispatcher",
    "Failures",
    "Thresholds",
    "Devices",
    "Running",
    "Machine",
    "Output",
]


@dataclass(frozen=True)
class Option:
    """What is known of a field besides its name, type and default. Those of the panel "Arguments" are given without a
    flag. ``low``, ``high``: the bounds, both accepted. ``metavar``: stands for the value in help. ``flag``: where the
    field's name does not say it. ``parse``: what is typed -> the value, where its type does not say how.
    """

    help: str
    panel: Panel
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    flag: str | None = None
    parse: Callable[[str], Any] | None = None


def option(default: Any, help: str, panel: Panel, **more: Any) -> Any:
    """A field of a dataclass; ``more`` as ``Option`` has it. ``...``: there is no default."""
    metadata = {"option": Option(help, panel, **more)}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def same_option(owner: type, name: str, **changes: Any) -> Any:
    """A field declared as that of another dataclass is, but for ``changes``, ``default`` among them."""
    declared = next(one for one in fields(owner) if one.name == name)
    default = changes.pop("default", declared.default)
    return field(default=default, metadata={"option": replace(option_of(declared), **changes)})


def option_of(declared: Field[Any]) -> Option:
    described: Option = declared.metadata["option"]
    return described


def choices_of(hint: Any) -> tuple[str, ...]:
    """Of a ``Literal``; none of any other type."""
    return get_args(hint) if get_origin(hint) is Literal else ()


def check_options(options: Any, *names: str) -> None:
    """Raises ValueError naming the first of these fields whose value is none of its choices, or below its bound."""
    hints, declared = get_type_hints(type(options)), {one.name: one for one in fields(options)}
    for name in names:
        value: Any = getattr(options, name)
        hint, low = hints[name], option_of(declared[name]).low or 0
        types = get_args(hint) or (hint,)
        if value is None and type(None) in types:
            continue
        if choices := choices_of(hint):
            is_good, accepted = value in choices, ", ".join(map(repr, choices)) + meant(value, choices)
        elif int in types:
            is_good = isinstance(value, numbers.Integral) and value is not True and int(value) >= low
            accepted = f"an integer from {low} on"
        else:
            is_good, accepted = value >= low, f"{low:g} or more"
        if not is_good:
            raise ValueError(f"{name}: got {value!r}; accepted: {accepted}")


def part_of(owner: type[T], options: Any) -> T:
    """The fields of ``options`` that ``owner`` has too, as an ``owner``."""
    return owner(**{one.name: getattr(options, one.name) for one in fields(owner)})  # type: ignore[arg-type]
