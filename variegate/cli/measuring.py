"""What ``bench`` and ``doctor`` share: options, the run with its progress, and the table of rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from variegate.cli.augment import JSON_HELP, POLICY_HELP, SIZE_HELP
from variegate.cli.console import say, stderr, stdout, warnings_as_notes
from variegate.cli.progress import StageProgress
from variegate.data.sources.file_kinds import IMAGES_HELP

if TYPE_CHECKING:
    from variegate.diagnose import Measurements

Src = Annotated[str, typer.Argument(metavar="SRC", help=IMAGES_HELP)]
Policy = Annotated[str, typer.Option(metavar="POLICY", help=POLICY_HELP)]
Size = Annotated[
    str,
    typer.Option(metavar="SIDE|HxW|none", help=SIZE_HELP),
]
BatchSize = Annotated[
    int, typer.Option(min=1, help="How many images the loader puts in a batch.", rich_help_panel="Loader")
]
Device = Annotated[
    str,
    typer.Option(metavar="DEVICE", help="The loader's device: cpu, cuda, cuda:N, or auto for a GPU if there is one."),
]
Threads = Annotated[int | None, typer.Option(min=1, help="The loader's threads. Without it, all cores.")]
Cache = Annotated[
    str | None, typer.Option(metavar="host|device|DIR", help="Keep decoded pixels there, as the loader's cache does.")
]
CacheSide = Annotated[int | None, typer.Option(min=1, help="Reduce images in the cache to this shorter side.")]
Seconds = Annotated[float, typer.Option(min=0.01, max=3600, help="How long each rate is measured.")]
Limit = Annotated[
    int,
    typer.Option(
        min=1, help="How many samples to measure at most, drawn at random. Fewer are used where they are large."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help=JSON_HELP)]


def run_measurements(
    src: str,
    policy: str,
    size: str,
    batch_size: int,
    device: str,
    threads: int | None,
    cache: str | None,
    cache_side: int | None,
    seconds: float,
    limit: int,
    as_json: bool,
    prefetch: int = 2,
    alternatives: bool = False,
) -> Measurements:
    """Measure with progress; notes go to standard error."""
    from variegate.diagnose import measure, training_transform

    if not 0.01 <= seconds <= 3600:  # older versions of Typer let NaN through
        raise ValueError(f"--seconds: got {seconds}; accepted: a number from 0.01 to 3,600")
    transform = training_transform(policy, size)
    with StageProgress(as_json, stderr()) as progress, warnings_as_notes(stderr()):
        measured = measure(
            src,
            transform,
            batch_size=batch_size,
            device=device,
            threads=threads,
            cache=cache,
            cache_side=cache_side,
            prefetch=prefetch,
            seconds=seconds,
            limit=limit,
            alternatives=alternatives,
            on_progress=progress,
        )
    if not as_json:
        for line in measured.notes:
            say(f"note: {line}", stderr())
        for name in measured.bad:
            say(f"note: passed over {name}", stderr())
    return measured


def print_rates(measured: Measurements, bottleneck: str) -> None:
    """Two lines about the data, then a row for every rate, the bottleneck's marked."""
    from variegate.diagnose.report import data_lines, rate_rows

    for line in data_lines(measured):
        say(line)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "images/s", "MB/s", "threads", "spread"):
        table.add_column(heading, justify="right" if heading else "left", header_style="dim", no_wrap=True)
    for stage, cells in rate_rows(measured):
        table.add_row(*cells, style="bold" if stage == bottleneck else None)
    stdout().print(table)
