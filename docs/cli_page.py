"""The commands and options of docs/reference/commands.md, from their declarations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from variegate.cli.commands import app
from variegate.cli.options import METAVARS, flags_of, sorted_by_panel, type_of
from variegate.options import Option
from variegate.options.shared import MAX_EPOCH

# The page with examples of each command.
GUIDES = {
    **{
        "check": "check.md",
        "clean": "check.md",
        "pack": "pack.md",
        "index": "faster-loading.md",
        "augment": "engine.md",
    },
    **{"train": "training.md", "search": "policy-search.md", "evaluate": "policy-search.md"},
}


def page() -> str:
    """A section per command, in Markdown. It says nothing of this machine."""
    commands: list[tuple[Any, str]] = [(one.callback, str(one.rich_help_panel)) for one in app.registered_commands]
    rows = ["| | |", "|---|---|"]
    for group in dict.fromkeys(panel for _, panel in commands):
        names = [run.__name__ for run, panel in commands if panel == group]
        rows.append(f"| **{group}** | {', '.join(f'[{name}](#variegate-{name})' for name in names)} |")
    parts = ["\n".join(rows) + "\n"]
    for run, _ in commands:
        parts += [f"## variegate {run.__name__}\n", *_described(run)]
    return "\n".join(parts)


def _described(run: Any) -> Iterator[str]:
    declared = sorted_by_panel(run.options)
    text, _, examples = inspect.cleandoc(run.__doc__).partition("\n\nExamples:\n")
    summary, *more = text.split("\n\n")
    arguments = [str(option.opt.metavar) for option in declared if option.is_argument]
    yield summary + "\n"
    lines = [f"$ {' '.join(['variegate', run.__name__, *arguments, '[OPTIONS]'])}"]
    lines += [f"$ {line.strip()}" for line in examples.splitlines()]
    yield "\n".join(["```console", *lines, "```\n"])
    yield from (_prose(paragraph) + "\n" for paragraph in more)
    guide = GUIDES.get(run.__name__, "command-line.md")

    yield f"Guide: [{guide}](../{guide})\n"
    for panel in dict.fromkeys(option.opt.panel for option in declared):
        rows = (
            ["| | |", "|---|---|"] if panel == "Arguments" else ["| option | values | default | |", "|---|---|---|---|"]
        )
        rows += [_row(option) for option in declared if option.opt.panel == panel]
        yield "\n".join([f"**{panel}**\n", *rows]) + "\n"


def _row(option: Option) -> str:
    if option.is_argument:
        return f"| `{option.opt.metavar}` | {_prose(option.opt.help)} |"
    flags = ", ".join(f"`{flag}`" for flag in flags_of(option).split("/"))
    return f"| {flags} | {_values(option)} | {_default(option)} | {_prose(option.opt.help)} |"


def _values(option: Option) -> str:
    """What may be given, without a pipe, which would end the cell."""
    if bool in option.types:
        return ""
    metavar = option.opt.metavar or METAVARS[type_of(option)]
    choices = option.choices or str(metavar).split("|")
    low, high = option.opt.ge, option.opt.le
    bounds = "" if low is None else f", {low:,g} or more" if high is None else f", {low:,g} to {high:,g}"
    return ", ".join(f"`{one}`" for one in choices) + (bounds if high != MAX_EPOCH else "")


def _default(option: Option) -> str:
    default, flags = option.default, flags_of(option).split("/")
    if bool in option.types:
        return f"`{flags[0]}`" if default else f"`{flags[1]}`" if len(flags) > 1 else ""
    return f"`{default}`" if default not in (None, "") else ""


def _prose(text: str) -> str:
    """Options, and what else is code, in backticks."""
    text = re.sub(r"(?<![\w`-])(--[a-z][\w-]*|vg\.\w+\([^)]*\)|\w+\(\w+=['\"]\w+['\"]\))", r"`\1`", text)
    return " ".join(text.split()).replace("|", "\\|")
