"""Options declared once: fields of dataclasses with defaults, bounds and help, for functions and for commands.

Nothing heavy is imported here, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from variegate.checks import as_integer, as_number, meant

T = TypeVar("T")
# Groups of options, in the order of --help.
PANELS = (
    "Arguments",
    "Main options",
    "Images",
    "Augmentation",
    "Crop and flip",
    "Search",
    "Comparison",
    "Model",
    "Training",
    "Optimizer",
    "Sheet",
    "Loader",
    "Measurement",
    "Work",
    "Thresholds",
    "Devices",
    "Running",
    "Machine",
    "Output",
)


@dataclass(frozen=True)
class Option:
    """Declaration of a field besides its name, type and default; one of the panel "Arguments" has no flag.

    ``low``, ``high``: bounds, both accepted. ``metavar``: stands for the value in help. ``flag``: if it does not follow
    from the field's name.
    """

    help: str
    panel: str
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    flag: str | None = None


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


def check_options(options: Any) -> None:
    """Raises ValueError naming the first field that is none of its choices, no finite number or out of bounds."""
    hints = get_type_hints(type(options))
    for declared in fields(options):
        name = declared.name
        value = getattr(options, declared.name)
        hint = hints[declared.name]
        types = get_args(hint) or (hint,)
        choices = choices_of(hint)
        described = option_of(declared)
        if value is None and type(None) in types:
            continue
        if choices and value not in choices:
            accepted = ", ".join(map(repr, choices)) + meant(value, choices)
            raise ValueError(f"{name}: got {value!r}; accepted: {accepted}")
        if int in types or float in types:
            suffix = ", or nothing" if float in types and type(None) in types else ""
            _check_number(name, value, described, int in types, suffix)


def _check_number(name: str, value: Any, described: Option, is_integer: bool, suffix: str) -> None:
    """Raises ValueError unless ``value`` is a finite number, or an integer, within the bounds that there are."""
    plain = as_integer(value) if is_integer else as_number(value)
    low = -math.inf if described.low is None else described.low
    high = math.inf if described.high is None else described.high
    if plain is None or not low <= plain <= high:
        kind = "an integer" if is_integer else "a finite number"
        bounds = range_of(described, is_integer)
        raise ValueError(f"{name}: got {value!r}; accepted: {kind}{bounds}{suffix}")


def range_of(described: Option, is_integer: bool = True) -> str:
    """Bounds in words, such as " from 1 to 100" and " from 1 on"; empty without bounds."""
    if described.low is None:
        return ""
    low = _text(described.low)
    if described.high is not None:
        return f" from {low} to {_text(described.high)}"
    return f" from {low} on" if is_integer else f" of {low} or more"


def _text(bound: float) -> str:
    return f"{bound:,g}" if isinstance(bound, float) else f"{bound:,}"


def part_of(owner: type[T], options: Any) -> T:
    """The fields of ``options`` that ``owner`` has too, as an ``owner``."""
    names = [one.name for one in fields(owner) if hasattr(options, one.name)]  # type: ignore[arg-type]
    return owner(**{name: getattr(options, name) for name in names})
