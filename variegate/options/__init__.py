"""Options declared once: fields of dataclasses, for functions of the API and for commands.

    @dataclass(frozen=True, kw_only=True)
    class PackingOptions(Options):
        format: Annotated[Literal["jpeg", "raw"], Opt("Output format.", "Output")] = "jpeg"
        quality: Annotated[int, Opt("JPEG quality.", "Output", ge=1, le=100, needs=("format", "jpeg"))] = 90

The check of a value, the command-line option and its row in the reference are derived from the declaration; so is the
error for an option of another mode. Declarations that several dataclasses share have a name, such as ``Threads``.
Nothing heavy is imported here, so that ``--help`` waits for nothing.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from variegate.checks import as_integer, as_number, did_you_mean
from variegate.io.addresses import redact_host

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
# A value that is chosen later: options that need another value of the same option are not refused yet.
AUTO = "auto"


@dataclass(frozen=True)
class Opt:
    """Declaration of an option, in the annotation of its field. The panel "Arguments" is for arguments of a command.

    ``ge``, ``le``: bounds, both accepted. ``metavar``: stands for the value in help. ``flag``: if it does not follow
    from the field's name. ``needs``: name of another option, and the values of it with which this one has an effect.
    ``is_main``: shown by --help of a command with many options, which names the panels of the others.
    """

    help: str
    panel: str
    ge: float | None = None
    le: float | None = None
    metavar: str | None = None
    flag: str | None = None
    needs: tuple[Any, ...] | None = None
    is_main: bool = False


@dataclass(frozen=True)
class Option:
    """A field with its declaration. ``types``: its type, or the types of a union."""

    name: str
    types: tuple[Any, ...]
    default: Any
    opt: Opt

    @property
    def is_argument(self) -> bool:
        return self.opt.panel == "Arguments"

    @property
    def is_required(self) -> bool:
        return self.default is MISSING

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.types[0]) if get_origin(self.types[0]) is Literal else ()

    @property
    def bounds(self) -> str:
        """Bounds in words, such as " from 1 to 100" and " from 1 on"; empty without bounds."""
        if self.opt.ge is None:
            return ""
        low = _bound_text(self.opt.ge)
        if self.opt.le is not None:
            return f" from {low} to {_bound_text(self.opt.le)}"
        return f" of {low} or more" if float in self.types else f" from {low} on"

    def check(self, value: Any) -> None:
        """Raises ValueError for a value that is not among the choices, not finite, or out of bounds."""
        if value is None and type(None) in self.types:
            return
        if self.choices and value not in self.choices:
            accepted = ", ".join(map(repr, self.choices)) + did_you_mean(value, self.choices)
            raise ValueError(f"{self.name}: got {value!r}; accepted: {accepted}")
        if int in self.types or float in self.types:
            self._check_number(value)

    def _check_number(self, value: Any) -> None:
        is_integer = int in self.types
        number = as_integer(value) if is_integer else as_number(value)
        low = -math.inf if self.opt.ge is None else self.opt.ge
        high = math.inf if self.opt.le is None else self.opt.le
        if number is None or not low <= number <= high:
            kind = "an integer" if is_integer else "a finite number"
            nothing = ", or nothing" if not is_integer and type(None) in self.types else ""
            raise ValueError(f"{self.name}: got {value!r}; accepted: {kind}{self.bounds}{nothing}")


class Options:
    """Base of dataclasses of options. Raises ValueError naming the first option with a wrong value."""

    def __post_init__(self) -> None:
        declared = options_of(type(self))  # type: ignore[arg-type]
        for option in declared:
            option.check(getattr(self, option.name))
        for option in declared:
            self._check_needs(option)

    def _check_needs(self, option: Option) -> None:
        value = getattr(self, option.name)
        if option.opt.needs is None or value == option.default:
            return
        name, *accepted = option.opt.needs
        if getattr(self, name, AUTO) not in (*accepted, AUTO):
            got = redact_host(str(value)) if isinstance(value, (str, Path)) else value
            raise ValueError(f"{option.name}: got {got!r}; accepted: with {name}={accepted[0]!r}")


@cache
def options_of(owner: type) -> tuple[Option, ...]:
    """The options of a dataclass, in the order of its fields. A field may repeat an inherited one with a new default:
    the declaration is that of the nearest class that has one."""
    declared: dict[str, Opt] = {}
    types: dict[str, tuple[Any, ...]] = {}
    for base in reversed(owner.__mro__):
        for name, hint in get_type_hints(base, include_extras=True).items() if base is not object else ():
            if get_origin(hint) is Annotated:
                hint, declared[name] = get_args(hint)
            if name in declared:
                types[name] = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
    return tuple(Option(field.name, types[field.name], field.default, declared[field.name]) for field in fields(owner))


def _bound_text(bound: float) -> str:
    return f"{bound:,g}" if isinstance(bound, float) else f"{bound:,}"


def project(owner: type[T], options: Any) -> T:
    """The fields of ``options`` that ``owner`` has too, as an ``owner``."""
    names = [field.name for field in fields(owner) if hasattr(options, field.name)]  # type: ignore[arg-type]
    return owner(**{name: getattr(options, name) for name in names})
