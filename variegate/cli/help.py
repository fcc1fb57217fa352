"""``--help``: what a command does, its arguments, and its options in panels."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from variegate.cli.panels import in_order, panel_of_command, panel_of_option
from variegate.cli.parameters import Parameter, parameters_of

# Longer lines are hard to read; a longer flag takes two lines instead of squeezing every help text.
_WIDEST, _LONGEST_FLAG = 110, 27


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help is ``print_help``."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_help(self, ctx)


class HelpfulGroup(typer.core.TyperGroup):
    """``variegate`` itself, whose help lists the commands in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        console = _console()
        _print_usage(console, f"{ctx.command_path} COMMAND [OPTIONS]", self.help)
        rows: dict[str, list[tuple[Text, Text]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                said = _paragraphs(command.help)[0]
                rows.setdefault(panel_of_command(name), []).append((Text(name, "bold cyan"), Text(said)))
        rows["Options"] = [_row(parameter) for parameter in parameters_of(self, ctx)]
        width = max(len(left) for group in rows.values() for left, _ in group)
        for panel in in_order(set(rows)):
            console.print(_panel(panel, rows[panel], width))
        console.print(f"{ctx.command_path} COMMAND --help explains the options of a command.", highlight=False)


class HelpfulTyper(typer.Typer):
    """Every command registered with it is a ``HelpfulCommand``."""

    def command(self, *arguments: Any, **keywords: Any) -> Any:
        keywords.setdefault("cls", HelpfulCommand)
        return super().command(*arguments, **keywords)


def print_help(command: Any, context: Any) -> None:
    """On standard output, as wide as the terminal, but at most 110 columns."""
    console = _console()
    parameters = parameters_of(command, context)
    arguments = [parameter for parameter in parameters if not parameter.name.startswith("-")]
    named = " ".join(one.name if one.required else f"[{one.name.strip('[]')}]" for one in arguments)
    _print_usage(console, " ".join(f"{context.command_path} {named} [OPTIONS]".split()), command.help)
    groups: dict[str, list[tuple[Text, Text]]] = {}
    for parameter in parameters:
        is_argument = parameter in arguments
        panel = "Arguments" if is_argument else parameter.panel or panel_of_option(parameter.name)
        groups.setdefault(panel, []).append(_row(parameter))
    width = min(_LONGEST_FLAG, max(len(left) for group in groups.values() for left, _ in group))
    for panel in sorted(groups, key=lambda name: (name != "Arguments", in_order(set(groups)).index(name))):
        console.print(_panel(panel, groups[panel], width))


def _console() -> Console:
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    return console


def _print_usage(console: Console, usage: str, text: str | None) -> None:
    console.print()
    console.print(Text.assemble((" Usage: ", "bold"), usage))
    for paragraph in _paragraphs(text):
        console.print(Padding(Text(paragraph), (1, 1, 0, 1)))
    console.print()


def _paragraphs(text: str | None) -> list[str]:
    """Of a docstring, each on one line, without the marks of code."""
    return [" ".join(part.replace("`", "").split()) for part in (text or "").split("\n\n")]


def _row(parameter: Parameter) -> tuple[Text, Text]:
    flags = ", ".join(flag for flag in (parameter.short, parameter.name) if flag)
    left = Text(flags, "bold cyan")
    if parameter.negation:
        left.append(" / ", "none").append(parameter.negation, "bold magenta")
    if parameter.metavar:
        left.append(f" {parameter.metavar}", "not bold yellow")
    right = Text(parameter.help.replace("`", ""))
    remark = parameter.remark()
    if remark:
        right.append(f" [{remark}]", "dim")
    return left, right


def _panel(title: str, rows: list[tuple[Text, Text]], width: int) -> Panel:
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=width, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    for left, right in rows:
        table.add_row(left, right)
    return Panel(table, title=title, title_align="left", border_style="dim")
