"""``variegate bench SRC``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from variegate.cli.console import emit_json, plot_or_note, say
from variegate.cli.measuring import MeasuringOptions, print_rates, run_measurements
from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class BenchOptions(MeasuringOptions):
    out: Path = option(Path("bench.png"), "Where to write the plot, a PNG.", "Output", metavar="FILE")


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
