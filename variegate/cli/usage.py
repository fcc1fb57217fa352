"""One line for what was typed wrongly: the option, the value that it got, and what would be accepted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer

from variegate.cli.parameters import Parameter, parameters_of

# What Typer raises for a bad option or argument: UsageError of click, which newer versions bring along.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_NEGATIVE = re.compile(r"-\d+(\.\d*)?")


def usage_message(error: Any, arguments: Sequence[str]) -> str:
    """``arguments`` are those of the whole command line."""
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    number = getattr(error, "option_name", None)
    if number is not None and _NEGATIVE.fullmatch(number):
        return f"{number}: no argument of this command may be negative{hint}"
    found = None if context is None else _refused(error, context)
    if found is None:
        return error.format_message().strip().rstrip(".") + hint
    value = _given(error.param, context, arguments)
    got = "" if value is None else f"got {value if _NEGATIVE.fullmatch(value) or value.isdecimal() else repr(value)}; "
    return f"{found.name}: {got}accepted: {found.accepted()}{hint}"


def _refused(error: Any, context: Any) -> Parameter | None:
    """The parameter whose value was refused; None where it is missing, or where the line is wrong in another way."""
    param = getattr(error, "param", None)
    if param is None or type(error).__name__ == "MissingParameter":
        return None
    of_click = [one for one in context.command.get_params(context) if not getattr(one, "hidden", False)]
    described = parameters_of(context.command, context)
    return next((one for one, theirs in zip(described, of_click, strict=True) if theirs is param), None)


def _given(param: Any, context: Any, arguments: Sequence[str]) -> str | None:
    """As it was typed. The error does not have it, so the line is taken apart once more."""
    own = list(arguments)
    if context.parent is not None and context.info_name in own:
        own = own[own.index(context.info_name) + 1 :]
    values, _, _ = context.command.make_parser(context).parse_args(own)
    value = values.get(param.name)
    return value if isinstance(value, str) else None
