"""What a command's options and arguments are, read off the function: for help and for messages about wrong input.

Typer's own words for types differ from version to version (``INTEGER RANGE``, ``<int range>``), and its messages quote
the library that checks them, so neither is shown.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

_METAVARS: dict[type, str] = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", Path: "a path", str: "text"}


@dataclass(frozen=True)
class Parameter:
    """An option ("--copies") or an argument ("SRC"). ``negation`` is the flag that turns a switch off."""

    name: str
    metavar: str
    help: str
    kind: type = bool
    short: str = ""
    negation: str = ""
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    default: str = ""
    required: bool = False
    panel: str | None = None

    def accepted(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + " or " + self.choices[-1]
        return " ".join(part for part in (_KINDS.get(self.kind, self.metavar), self._range()) if part)

    def remark(self) -> str:
        """What help adds in brackets: choices, bounds and the default; "" where there is nothing to add."""
        # That a count is one or more goes without saying.
        limits = ", ".join(self.choices) if self.choices else "" if self._is_count() else self._range()
        parts = [limits, f"default: {self.default}" if self.default else ""]
        return "; ".join(part for part in parts if part)

    def _is_count(self) -> bool:
        return self.low in (0, 1) and (self.high is None or self.high >= 2**31)

    def _range(self) -> str:
        if self.low is None and self.high is None:
            return ""
        if self.high is None:
            return f"of at least {_number(self.low)}"
        return (
            f"up to {_number(self.high)}" if self.low is None else f"from {_number(self.low)} to {_number(self.high)}"
        )


def parameters_of(command: Any, context: Any) -> list[Parameter]:
    """Those of a command of Typer, in its order, ``--help`` included."""
    function = inspect.unwrap(command.callback) if command.callback is not None else None
    hints = {} if function is None else get_type_hints(function, include_extras=True)
    defaults = {} if function is None else inspect.signature(function).parameters
    return [
        _parameter(param, hints.get(param.name), defaults[param.name].default if param.name in defaults else None)
        for param in command.get_params(context)
        if not getattr(param, "hidden", False)
    ]


def _parameter(param: Any, hint: Any, default: Any) -> Parameter:
    long = [flag for flag in param.opts if flag.startswith("--")]
    is_option = bool(long)
    if hint is None:  # --help, which Typer adds
        short = next((flag for flag in param.opts if not flag.startswith("--")), "")
        return Parameter(
            long[0], "", "Show this message and exit." if param.name == "help" else param.help, short=short
        )
    declared, info = get_args(hint)[:2]
    kind = next((part for part in get_args(declared) if part is not type(None)), declared)
    if not isinstance(kind, type):  # of a Literal
        kind, choices = str, tuple(str(one) for one in get_args(declared))
    else:
        choices = tuple(str(one.value) for one in kind) if issubclass(kind, Enum) else ()
    metavar = info.metavar or ("NAME" if choices else _METAVARS.get(kind, ""))
    return Parameter(
        name=long[0] if is_option else metavar,
        metavar=metavar if is_option and kind is not bool else "",
        help=info.help or "",
        kind=kind,
        negation=next(iter(param.secondary_opts), ""),
        choices=choices,
        low=info.min,
        high=info.max,
        default=_shown(default, param, kind),
        required=bool(param.required),
        panel=info.rich_help_panel if isinstance(info.rich_help_panel, str) else None,
    )


def _number(value: float | None) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _shown(default: Any, param: Any, kind: type) -> str:
    """A default in the words of the command line."""
    if default is None or default is inspect.Parameter.empty:
        return ""
    if kind is bool:
        negations = param.secondary_opts
        return "" if not negations else str(param.opts[0] if default else negations[0])
    if isinstance(default, Enum):
        return str(default.value)
    return f"{default:g}" if isinstance(default, float) else str(default)
