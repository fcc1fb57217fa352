"""Options declared once: fields of dataclasses with defaults, bounds and help, for functions and for commands.

Nothing heavy is imported here, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from variegate.checks import meant

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
    """Raises ValueError naming the first field (of ``names``, if any) that is none of its choices or out of bounds."""
    hints = get_type_hints(type(options))
    for declared in fields(options):
        name, value, hint = declared.name, getattr(options, declared.name), hints[declared.name]
        types, high = get_args(hint) or (hint,), option_of(declared).high
        low: Any = option_of(declared).low
        is_optional, choices, most = type(None) in types, choices_of(hint), math.inf if high is None else high
        if (names and name not in names) or (value is None and is_optional) or (low is None and not choices):
            continue
        if choices:
            is_good, accepted = value in choices, ", ".join(map(repr, choices)) + meant(value, choices)
        elif int in types:
            is_good = type(value) is not bool and isinstance(value, numbers.Integral) and low <= int(value) <= most
            accepted = f"an integer from {low} " + ("on" if high is None else f"to {high}")
        else:
            is_good = low <= value <= most
            accepted = (f"{low:g} or more" if high is None else f"{low:g} to {high:g}") + ", or nothing" * is_optional
        if not is_good:
            raise ValueError(f"{name}: got {value!r}; accepted: {accepted}")


def part_of(owner: type[T], options: Any) -> T:
    """The fields of ``options`` that ``owner`` has too, as an ``owner``."""
    return owner(**{one.name: getattr(options, one.name) for one in fields(owner)})  # type: ignore[arg-type]
