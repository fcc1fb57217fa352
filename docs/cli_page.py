"""The page of all commands, docs/cli.md, written from the commands: ``python -m docs.cli_page``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_type_hints

from variegate.cli.commands import app
from variegate.cli.options import METAVARS, MOST_EPOCH, flags_of, order, type_of
from variegate.options import Option, choices_of, option_of

PAGE = Path(__file__).resolve().parent / "cli.md"
OPENING = """# Command-line reference

Every command with all of its options. For examples, exit codes and `--json`, see
[Use the command line](command-line.md). `variegate COMMAND --help` prints the same texts.
"""
# The page with examples of each command.
GUIDES = {
    **{"check": "check.md", "clean": "check.md", "pack": "pack.md", "index": "loader.md", "augment": "engine.md"},
    **{"train": "training.md", "search": "search.md", "evaluate": "search.md"},
}


def page() -> str:
    """The whole page, which says nothing of this machine."""
    commands: list[tuple[Any, str]] = [(one.callback, str(one.rich_help_panel)) for one in app.registered_commands]
    rows = ["| | |", "|---|---|"]
    for group in dict.fromkeys(panel for _, panel in commands):
        names = [run.__name__ for run, panel in commands if panel == group]
        rows.append(f"| **{group}** | {', '.join(f'[{name}](#variegate-{name})' for name in names)} |")
    parts = [OPENING, "\n".join(rows) + "\n"]
    for run, _ in commands:
        parts += [f"## variegate {run.__name__}\n", *_described(run)]
    return "\n".join(parts)


def _described(run: Any) -> Iterator[str]:
    hints = get_type_hints(run.options)
    declared = sorted(fields(run.options), key=order)
    summary, *more = inspect.cleandoc(run.__doc__).split("\n\n")
    arguments = [str(option_of(one).metavar) for one in declared if option_of(one).panel == "Arguments"]
    yield summary + "\n"
    yield f"```console\n$ {' '.join(['variegate', run.__name__, *arguments, '[OPTIONS]'])}\n```\n"
    yield from (_prose(paragraph) + "\n" for paragraph in more)
    guide = GUIDES.get(run.__name__, "command-line.md")

    yield f"Guide: [{guide}]({guide})\n"
    for panel in dict.fromkeys(option_of(one).panel for one in declared):
        rows = (
            ["| | |", "|---|---|"] if panel == "Arguments" else ["| option | values | default | |", "|---|---|---|---|"]
        )
        rows += [_row(one, hints[one.name]) for one in declared if option_of(one).panel == panel]
        yield "\n".join([f"**{panel}**\n", *rows]) + "\n"


def _row(declared: Field[Any], hint: Any) -> str:
    described = option_of(declared)
    if described.panel == "Arguments":
        return f"| `{described.metavar}` | {_prose(described.help)} |"
    flags = ", ".join(f"`{flag}`" for flag in flags_of(declared).split("/"))
    return f"| {flags} | {_values(described, hint)} | {_default(declared, hint)} | {_prose(described.help)} |"


def _values(described: Option, hint: Any) -> str:
    """What may be given, without a pipe, which would end the cell."""
    if hint is bool:
        return ""
    metavar = described.metavar or METAVARS[type_of(hint)]
    choices = choices_of(hint) or str(metavar).split("|")
    low, high = described.low, described.high
    bounds = "" if low is None else f", {low:,g} or more" if high is None else f", {low:,g} to {high:,g}"
    return ", ".join(f"`{one}`" for one in choices) + (bounds if high != MOST_EPOCH else "")


def _default(declared: Field[Any], hint: Any) -> str:
    default, flags = declared.default, flags_of(declared).split("/")
    if hint is bool:
        return f"`{flags[0]}`" if default else f"`{flags[1]}`" if len(flags) > 1 else ""
    return f"`{default}`" if default not in (None, "") else ""


def _prose(text: str) -> str:
    """Options, and what else is code, in backticks."""
    text = re.sub(r"(?<![\w`-])(--[a-z][\w-]*|vg\.\w+\([^)]*\)|\w+\(\w+=['\"]\w+['\"]\))", r"`\1`", text)
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
