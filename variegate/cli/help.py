"""``--help``, and one line for what was typed wrongly.

Both are read off the declared options: Typer's own words for types differ from version to version (``INTEGER RANGE``,
``<int range>``), and its messages quote the library that checks them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from variegate import options
from variegate.checks import meant
from variegate.cli.options import default_of, type_of

# Longer lines are hard to read; a longer flag takes two lines instead of squeezing every help text.
_WIDEST, _LONGEST_FLAG = 110, 27
_PANELS = get_args(options.Panel)
_COMMANDS = {
    **dict.fromkeys(("demo", "preview", "warm"), "Try it"),
    **dict.fromkeys(("index", "augment", "verify", "replay"), "Data sets on disk"),
    **dict.fromkeys(("search", "evaluate"), "Find a policy"),
    **dict.fromkeys(("train",), "Train a model"),
    **dict.fromkeys(("bench", "doctor", "simulate"), "Find the bottleneck"),
}
_METAVARS: dict[type, str] = {int: "N", float: "X", Path: "PATH", str: "TEXT", bool: ""}
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", Path: "a path", str: "text"}
_NEGATIVE = re.compile(r"-\d+(\.\d*)?")

# What Typer raises for a bad option or argument: UsageError of click, which newer versions bring along.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@dataclass(frozen=True)
class Parameter:
    """An option ("--copies") or an argument ("SRC"), as people read it. ``negation``: the flag that turns it off."""

    name: str
    help: str
    panel: str = "Output"
    short: str = ""
    negation: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    kind: type = bool
    low: float | None = None
    high: float | None = None
    default: str = ""
    required: bool = False

    def accepted(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return ", ".join(self.choices[:-1]) + " or " + self.choices[-1]
        return " ".join(part for part in (_KINDS.get(self.kind, self.metavar), self._range()) if part)

    def remark(self) -> str:
        """What help adds in brackets: choices, bounds and the default; "" where there is nothing to add."""
        # That a count is one or more goes without saying.
        is_count = self.low in (0, 1) and (self.high is None or self.high >= 2**31)
        limits = "" if is_count else self._range()
        if self.choices and self.metavar != "|".join(self.choices):
            limits = ", ".join(self.choices)
        return "; ".join(part for part in (limits, f"default: {self.default}" if self.default else "") if part)

    def _range(self) -> str:
        low, high = (f"{bound:,}" if isinstance(bound, int) else f"{bound or 0:,g}" for bound in (self.low, self.high))
        if self.high is not None:
            return f"from {low} to {high}"
        return "" if self.low is None else f"of at least {low}"


def parameters_of(command: Any, context: Any) -> list[Parameter]:
    """Those of a command of Typer, in its order, ``--help`` included."""
    owner = getattr(inspect.unwrap(command.callback), "options", None)
    hints = {} if owner is None else get_type_hints(owner)
    declared = {} if owner is None else {one.name: one for one in fields(owner)}
    shown = _shown(command, context)
    return [_parameter(param, declared.get(param.name), hints.get(param.name)) for param in shown]


def _shown(command: Any, context: Any) -> list[Any]:
    return [param for param in command.get_params(context) if not getattr(param, "hidden", False)]


def _parameter(param: Any, declared: Any, hint: Any) -> Parameter:
    flags = sorted(param.opts, key=len)
    if declared is None:  # --help, which Typer adds, and --version
        said = "Show this message and exit." if param.name == "help" else param.help
        return Parameter(flags[-1], said, short=flags[0] if len(flags) > 1 else "")
    described, default, choices = options.option_of(declared), default_of(declared), options.choices_of(hint)
    kind = str if described.parse is not None else type_of(hint)
    metavar = described.metavar or ("NAME" if choices else _METAVARS[kind])
    negation = next(iter(param.secondary_opts), "")
    if default in (None, ...) or kind is bool:
        default = "" if not negation else flags[-1] if default else negation
    return Parameter(
        name=metavar if described.panel == "Arguments" else flags[-1],
        help=described.help,
        panel=described.panel,
        negation=negation,
        metavar="" if described.panel == "Arguments" else metavar,
        choices=choices,
        kind=kind,
        low=described.low,
        high=described.high,
        default=f"{default:g}" if isinstance(default, float) else str(default),
        required=bool(param.required),
    )


class CommandWithHelp(typer.core.TyperCommand):
    """A command whose help is as wide as the terminal, but at most 110 columns, and shows the options in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parameters = parameters_of(self, ctx)
        arguments = [one for one in parameters if one.panel == "Arguments"]
        named = [one.name if one.required else f"[{one.name.strip('[]')}]" for one in arguments]
        panels: dict[str, list[tuple[Text, Text]]] = {}
        for parameter in sorted(parameters, key=lambda one: _PANELS.index(one.panel)):
            panels.setdefault(parameter.panel, []).append(_row(parameter))
        _print_help(" ".join([ctx.command_path, *named, "[OPTIONS]"]), self.help, panels, _LONGEST_FLAG)


class GroupWithHelp(typer.core.TyperGroup):
    """``variegate`` itself, whose help lists the commands in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[Text, Text]]] = {panel: [] for panel in _COMMANDS.values()}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                row = (Text(name, "bold cyan"), Text(_paragraphs(command.help)[0]))
                panels.setdefault(_COMMANDS.get(name, "More"), []).append(row)
        panels["Options"] = [_row(parameter) for parameter in parameters_of(self, ctx)]
        console = _print_help(f"{ctx.command_path} COMMAND [OPTIONS]", self.help, panels)
        console.print(f"{ctx.command_path} COMMAND --help explains the options of a command.", highlight=False)


def _print_help(
    usage: str, text: str | None, panels: dict[str, list[tuple[Text, Text]]], widest: int = _WIDEST
) -> Console:
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    console.print()
    console.print(Text.assemble((" Usage: ", "bold"), usage))
    for paragraph in _paragraphs(text):
        console.print(Padding(Text(paragraph), (1, 1, 0, 1)))
    console.print()
    width = min(widest, max(len(left) for rows in panels.values() for left, _ in rows))
    for title, rows in panels.items():
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=width, overflow="fold")
        table.add_column(ratio=1, overflow="fold")
        for left, right in rows:
            table.add_row(left, right)
        console.print(Panel(table, title=title, title_align="left", border_style="dim"))
    return console


def _paragraphs(text: str | None) -> list[str]:
    """Of a docstring, each on one line, without the marks of code."""
    return [" ".join(part.replace("`", "").split()) for part in (text or "").split("\n\n")]


def _row(parameter: Parameter) -> tuple[Text, Text]:
    left = Text(", ".join(flag for flag in (parameter.short, parameter.name) if flag), "bold cyan")
    if parameter.negation:
        left.append(" / ", "none").append(parameter.negation, "bold magenta")
    if parameter.metavar:
        left.append(f" {parameter.metavar}", "not bold yellow")
    right = Text(parameter.help.replace("`", ""))
    if remark := parameter.remark():
        right.append(f" [{remark}]", "dim")
    return left, right


def usage_message(error: Any, arguments: Sequence[str]) -> str:
    """What was typed wrongly: the option, the value that it got, and what would be accepted. ``arguments``: the whole
    command line."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    number = getattr(error, "option_name", None)
    if number is not None and _NEGATIVE.fullmatch(number):
        return f"{number}: no argument of this command may be negative{hint}"
    if context is None or param is None or type(error).__name__ == "MissingParameter":
        return error.format_message().strip().rstrip(".") + hint
    names = [one.name for one in _shown(context.command, context)]
    refused = parameters_of(context.command, context)[names.index(param.name)]
    value = _typed(param, context, arguments)
    got = "" if value is None else f"got {value if _NEGATIVE.fullmatch(value) or value.isdecimal() else repr(value)}; "
    return f"{refused.name}: {got}accepted: {refused.accepted()}{meant(value, refused.choices)}{hint}"


def _typed(param: Any, context: Any, arguments: Sequence[str]) -> str | None:
    """The error does not have it, so the line is taken apart once more."""
    own = list(arguments)
    if context.parent is not None and context.info_name in own:
        own = own[own.index(context.info_name) + 1 :]
    values, _, _ = context.command.make_parser(context).parse_args(own)
    value = values.get(param.name)
    return value if isinstance(value, str) else None
