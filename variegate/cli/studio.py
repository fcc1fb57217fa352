"""``variegate studio``: the command of the package variegate-studio, which is installed separately."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import typer

from variegate.cli.console import BAD_INPUT, fail
from variegate.cli.options import add_command
from variegate.errors import STUDIO_MISSING

COMMANDS = "variegate.commands"
PANEL = "Augment"
# Without the package every option, --help too, prints the install line.
_ANY_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_studio(app: typer.Typer) -> None:
    """Add the studio's command, or a command that prints the install line if the package is missing."""
    message = STUDIO_MISSING
    run: Callable[[Any], None] | None = None
    for entry_point in entry_points(group=COMMANDS, name="studio"):
        try:
            run = entry_point.load()
        except (ImportError, AttributeError) as error:
            message = f"the studio cannot be loaded: {error}; accepted: variegate and variegate-studio of one version"

    if run is not None:
        add_command(app, PANEL, run)
        return

    def studio(context: typer.Context) -> None:
        """Tune a policy in the browser; needs variegate[studio]."""
        raise fail(message, BAD_INPUT, as_json="--json" in context.args)

    app.command(rich_help_panel=PANEL, context_settings=_ANY_OPTIONS, add_help_option=False)(studio)
