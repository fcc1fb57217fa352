"""``variegate bench SRC`` and ``variegate doctor SRC``: rates of a loader, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.cli.console import (
    StageProgress,
    emit_json,
    note,
    plot_or_note,
    say,
    stderr,
    stdout,
    table_of,
    warnings_as_notes,
)
from variegate.cli.options import PolicyOptions
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


@dataclass(frozen=True, kw_only=True)
class BenchOptions(MeasuringOptions):
    out: Path = option(Path("bench.png"), "Where to write the plot, a PNG.", "Output", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(MeasuringOptions):
    consume: float | None = option(None, "How many images a second your model takes.", "Model", metavar="RATE")
    model_ms: float | None = option(
        None, "Or: how many milliseconds your model takes for a batch.", "Model", metavar="MS"
    )
    seconds: float = same_option(MeasuringOptions, "seconds", default=1.0)


def bench(options: BenchOptions) -> None:
    """Measure how fast your own images are read, decoded, augmented and sent to the device.

    Each stage is measured alone, with its neighbours, and as a whole. A rate is the median of five spans after a
    warm-up, and its MB/s count what goes into the stage. Images that cannot be read are counted and left out. The plot
    needs matplotlib (pip install 'variegate[plot]').
    """
    from variegate.diagnose import advise, draw_plot
    from variegate.plotting import check_path

    check_path(options.out)
    measured = run_measurements(options)
    diagnosis = advise(measured)
    plot = plot_or_note(lambda: draw_plot(measured, diagnosis.bottleneck, options.out), options.out)
    if options.as_json:
        emit_json("done", bottleneck=diagnosis.bottleneck, plot=plot, measurements=measured.to_dict())
        return
    print_rates(measured, diagnosis.bottleneck)
    say(diagnosis.summary)
    if plot is not None:
        say(f"plot: {plot}")


def doctor(options: DoctorOptions) -> None:
    """Find out what slows a loader down on your images, and what to change.

    The gain to expect of each change alone is computed from rates measured on your data. With --consume or --model-ms,
    it also says whether the loader keeps up with your model.
    """
    from variegate.diagnose import advise
    from variegate.diagnose.advise import consumed
    from variegate.diagnose.report import finding_lines

    wanted = consumed(options.consume, options.model_ms, options.batch_size)
    measured = run_measurements(options, alternatives=True)
    diagnosis = advise(measured, wanted)
    if options.as_json:
        emit_json("done", **diagnosis.to_dict(), measurements=measured.to_dict())
        return
    print_rates(measured, diagnosis.bottleneck)
    for line in finding_lines(diagnosis):
        say(line)


def run_measurements(options: MeasuringOptions, alternatives: bool = False) -> Measurements:
    """Measure with progress; notes go to standard error."""
    from variegate.diagnose import measure, training_transform

    transform = training_transform(options.policy, options.size)
    chosen = {one.name: getattr(options, one.name) for one in fields(MeasurementOptions)}
    with StageProgress(options.as_json) as progress, warnings_as_notes(stderr()):
        measured = measure(options.src, transform, alternatives=alternatives, on_progress=progress, **chosen)
    if not options.as_json:
        note(*measured.notes, *(f"passed over {name}" for name in measured.bad))
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
