"""All commands, and exit codes of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import variegate
from variegate.cli import augment, datasets, doctor, evaluate, manifest, preview, search, train
from variegate.cli.console import BAD_INPUT, INTERRUPTED, fail, print_line
from variegate.cli.options import UsageError, add_command, usage_message
from variegate.cli.studio import add_studio
from variegate.removed import removed_command

app = typer.Typer(
    name="variegate",
    help="Fast random image augmentation: prepare and augment data sets, train classifiers, search policies, and find "
    "the bottleneck of a loader.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"variegate {variegate.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


_PANELS = {
    "Prepare": (datasets.check, datasets.clean, datasets.pack, manifest.index),
    "Augment": (augment.augment, preview.preview, manifest.verify, manifest.replay, preview.demo),
    "Learn": (train.train, search.search, evaluate.evaluate),
    "Measure": (doctor.doctor,),
}
for _panel, _commands in _PANELS.items():
    for _run in _commands:
        add_command(app, _panel, _run)
add_studio(app)


def run(arguments: Sequence[str]) -> int:
    """A command -> its exit code."""
    command = typer.main.get_command(app)
    try:
        result = command.main(list(arguments) or ["--help"], prog_name="variegate", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return int(fail("interrupted", INTERRUPTED).exit_code)
    except UsageError as error:
        message = removed_command(arguments) or usage_message(error)
        return int(fail(message, BAD_INPUT, "--json" in arguments).exit_code)
    return result if isinstance(result, int) else 0
