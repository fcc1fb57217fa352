"""What ``bench`` and ``doctor`` share: options, the run with its progress, and the table of rates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from variegate.cli.console import say, stderr, stdout, table_of, warnings_as_notes
from variegate.cli.options import PolicyOptions
from variegate.cli.progress import StageProgress
from variegate.data.sources.file_kinds import IMAGES_HELP
from variegate.options import option, same_option
from variegate.options.measurement import MeasurementOptions

if TYPE_CHECKING:
    from variegate.diagnose import Measurements


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions(MeasurementOptions, PolicyOptions):
    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")
    size: str = same_option(PolicyOptions, "size", default="224")

    def __post_init__(self) -> None:
        if not 0.01 <= self.seconds <= 3600:  # older versions of Typer let NaN through
            raise ValueError(f"--seconds: got {self.seconds}; accepted: a number from 0.01 to 3,600")
        super().__post_init__()


def run_measurements(options: MeasuringOptions, alternatives: bool = False) -> Measurements:
    """Measure with progress; notes go to standard error."""
    from variegate.diagnose import measure, training_transform

    transform = training_transform(options.policy, options.size)
    chosen = {one.name: getattr(options, one.name) for one in fields(MeasurementOptions)}
    with StageProgress(options.as_json, stderr()) as progress, warnings_as_notes(stderr()):
        measured = measure(options.src, transform, alternatives=alternatives, on_progress=progress, **chosen)
    if not options.as_json:
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
    table = table_of(("", "images/s", "MB/s", "threads", "spread"))
    for stage, cells in rate_rows(measured):
        table.add_row(*cells, style="bold" if stage == bottleneck else None)
    stdout().print(table)
