"""Options declared once: fields of dataclasses with defaults, bounds and help, for functions and for commands.

Nothing heavy is imported here, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from variegate.checks import as_integer, as_number, meant

T = TypeVar("T")
# Groups of options, in the order of --help.
PANELS = (
    *("Arguments", "Main options", "Images", "Augmentation", "Crop and flip", "Search", "Comparison"),
    *("Model", "Training", "Optimizer", "Sheet", "Loader", "Measurement", "Work", "Dispatcher", "Failures"),
    *("Thresholds", "Devices", "Running", "Machine", "Output"),
)


@dataclass(frozen=True)
class Option:
    """Declaration of a field besides its name, type and default; one of the panel "Arguments" has no flag.

    ``low``, ``high``: bounds, both accepted. ``metavar``: stands for the value in help. ``flag``: where it does not
    follow from the field's name. ``parse``: text from the command line -> the value, where the type does not say how.
    """

    help: str
    panel: str
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    flag: str | None = None
    parse: Callable[[str], Any] | None = None


def option(default: Any, help: str, panel: str, **more: Any) -> Any:
    """A field of a dataclass; ``more`` as ``Option`` has it. ``...``: there is no default."""
    metadata = {"option": Option(help, panel, **more)}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def same_option(owner: type, name: str, **changes: Any) -> Any:
    """A field declared as in another dataclass but for ``changes``, ``default`` among them."""
    declared = next(one for one in fields(owner) if one.name == name)
    default = changes.pop("default", declared.default)
    return field(default=default, metadata={"option": replace(option_of(declared), **changes)})


def option_of(declared: Field[Any]) -> Option:
    described: Option = declared.metadata["option"]
    return described


def choices_of(hint: Any) -> tuple[str, ...]:
    """The values of a ``Literal``; none of any other type."""
    return get_args(hint) if get_origin(hint) is Literal else ()


def check_options(options: Any, *names: str) -> None:
    """Raises ValueError naming the first field that is none of its choices, no finite number or out of bounds.

    ``names``: fields whose choices and bounds are checked; all of them without.
    """
    hints = get_type_hints(type(options))
    for declared in fields(options):
        name, value, hint = declared.name, getattr(options, declared.name), hints[declared.name]
        types, choices, described = get_args(hint) or (hint,), choices_of(hint), option_of(declared)
        is_optional, is_checked = type(None) in types, not names or name in names
        if (value is None and is_optional) or get_origin(hint) is tuple:
            continue
        if choices:
            if is_checked and value not in choices:
                accepted = ", ".join(map(repr, choices)) + meant(value, choices)
                raise ValueError(f"{name}: got {value!r}; accepted: {accepted}")
        elif int in types or float in types:
            low, high = (described.low, described.high) if is_checked else (None, None)
            check_number(
                name,
                value,
                low,
                high,
                is_integer=int in types,
                suffix=", or nothing" * (is_optional and float in types),
            )


def check_number(
    name: str, value: Any, low: float | None, high: float | None, *, is_integer: bool = False, suffix: str = ""
) -> None:
    """Raises ValueError unless ``value`` is a finite number, or an integer, within the bounds that there are."""
    plain = as_integer(value) if is_integer else as_number(value)
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if plain is not None and least <= plain <= most:
        return
    kind = "an integer" if is_integer else "a finite number"
    if low is not None and high is not None:
        kind += f" from {low} to {high}" if is_integer else f" from {low:g} to {high:g}"
    elif low is not None:
        kind += f" from {low} on" if is_integer else f" of {low:g} or more"
    raise ValueError(f"{name}: got {value!r}; accepted: {kind}{suffix}")


def part_of(owner: type[T], options: Any) -> T:
    """The fields of ``options`` that ``owner`` has too, as an ``owner``."""
    return owner(**{one.name: getattr(options, one.name) for one in fields(owner)})  # type: ignore[arg-type]
