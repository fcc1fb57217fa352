"""``variegate studio`` and ``vg.studio``: with the package installed and without it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import typer

import variegate as vg
from variegate.cli import main, studio
from variegate_studio.command import studio as command
from variegate_studio.opening import studio as open_studio


class WithoutTheStudio:
    """As where the package is not installed."""

    def find_spec(self, name: str, *found: Any) -> None:
        if name == "variegate_studio":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def app_with(found: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """An app that has ``studio`` and another command, where these entry points are installed."""
    find: Callable[..., Any] = lambda **wanted: found  # noqa: E731
    monkeypatch.setattr(studio, "entry_points", find)
    app = typer.Typer()
    app.command("other")(lambda: None)
    studio.add_studio(app)
    return app


def run(app: typer.Typer, arguments: list[str]) -> int:
    """Run a command -> its exit code."""
    return int(typer.main.get_command(app).main(arguments, standalone_mode=False) or 0)


def test_the_package_declares_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    [declared] = importlib.metadata.entry_points(group=studio.COMMANDS, name="studio")
    assert declared.load() is command
    assert vg.studio is open_studio
    assert main(["studio", "--help"]) == 0
    assert "--findings" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["PHOTOS", "--port", "1", "-5"], []])
def test_without_the_package_the_command_says_what_to_install(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_with([], monkeypatch)
    assert run(app, ["studio", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("variegate: error: the studio is not installed: pip install 'variegate[studio]', or from a ")
    assert run(app, ["--help"]) == 0
    assert "Tune a policy in the browser" in capsys.readouterr().out


def test_a_package_of_another_version_leaves_other_commands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_with([EntryPoint("studio", "variegate.errors:no_such_name", studio.COMMANDS)], monkeypatch)
    assert run(app, ["other"]) == 0
    app = app_with([EntryPoint("studio", "variegate.no_such_module:studio", studio.COMMANDS)], monkeypatch)
    assert run(app, ["other"]) == 0
    assert run(app, ["studio"]) == 2
    assert "the studio cannot be loaded: No module named 'variegate.no_such_module'; acc" in capsys.readouterr().err


def test_without_the_package_the_function_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("variegate_studio", "variegate_studio.opening", "variegate.apps.studio"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [WithoutTheStudio(), *sys.meta_path])
    module = importlib.import_module("variegate.apps.studio")
    with pytest.raises(ImportError, match=r"the studio is not installed: pip install 'variegate\[studio\]', or from a"):
        module.studio("PHOTOS")
