"""The words of ``--help``: commands in groups, and texts that are read once."""

from __future__ import annotations

import inspect
import re
from functools import cache

import pytest
import typer
from typer.testing import CliRunner

from tests.words import MOST_IN_HELP, OPENINGS, long_sentences, odd_turns
from variegate.cli.commands import app

GROUPS = {
    "Prepare": ["check", "clean", "pack", "index"],
    "Augment": ["augment", "preview", "verify", "replay", "demo", "studio"],
    "Learn": ["train", "search", "evaluate"],
    "Measure": ["doctor"],
}


@cache
def commands() -> dict[str, typer.core.TyperCommand]:
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_commands_are_grouped_by_what_people_do() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    found: dict[str, list[str]] = {}
    for line in shown.splitlines():
        if heading := re.match(r"╭─ (\w+) ─", line):
            names = found.setdefault(heading[1], [])
        elif entry := re.match(r"│ (\w+) +\w", line):
            names.append(entry[1])
    assert {name: names for name, names in found.items() if name != "Options"} == GROUPS
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(commands()))
def test_a_command_is_explained_in_plain_words(name: str) -> None:
    text = inspect.cleandoc(commands()[name].help or "")
    summary, *more = text.split("\n\n")
    assert re.fullmatch(r"[A-Z][a-z]+ [^\n]*\.", summary)
    assert len(summary) <= 66  # a line of `variegate --help`
    for paragraph in (summary, *more):
        assert odd_turns(paragraph) == []
        assert long_sentences(paragraph) == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_options_are_explained_in_plain_words(name: str) -> None:
    for param in commands()[name].params:
        text = getattr(param, "help", None) or ""
        assert re.fullmatch(r"[A-Z0-9].*\.", text), param.name
        assert odd_turns(text) == [], param.name
        assert not OPENINGS.match(text), param.name
        assert long_sentences(text) == [], param.name
        assert len(text.split()) <= MOST_IN_HELP, param.name


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_ends_with_two_examples(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).output
    *_, first, second = shown.rstrip().splitlines()
    for example in (first, second):
        assert re.match(rf" +(torchrun .* -m )?variegate {name}\b", example)


def test_a_long_command_shows_ten_options_and_names_the_groups_of_the_others() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "80"}).output
    assert re.findall(r"╭─ ([\w ]+?) ─", shown) == ["Arguments", "Options", "Main options"]
    main = {
        "--validation",
        "--size",
        "--policy",
        "--model",
        "--epochs",
        "--batch-size",
        "--recipe",
        "--lr",
        "--devices",
    }
    assert set(re.findall(r"│ (--[\w-]+)", shown)) == main | {"--out", "--json", "--help", "--help-all"}
    groups = re.search(r"--help-all shows more options: ([\w, \n]+)\.", shown)
    assert groups is not None
    everything = CliRunner().invoke(app, ["train", "--help-all"], env={"COLUMNS": "80"}).output
    assert {" ".join(group.split()) for group in groups[1].split(",")} <= set(re.findall(r"╭─ ([\w ]+?) ─", everything))
    assert "--mixup" in everything


@pytest.mark.parametrize(
    "text",
    [
        "Each image comes so often in an epoch.",
        "How many checkpoints stay, the latest ones.",
        "The same command goes on.",
        "Write events, too.",
        "The colour of borders.",
    ],
)
def test_odd_turns_are_found(text: str) -> None:
    assert odd_turns(text)


def test_long_sentences_are_found() -> None:
    assert long_sentences("It is short. " + "word " * 25 + "end.") == ["word " * 25 + "end."]
    assert long_sentences("It is short. " + "word " * 24 + "end.") == []
