"""``variegate bench SRC``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from variegate.cli.console import drawn, emit_json, one_line_errors, say
from variegate.cli.measuring import (
    AsJson,
    BatchSize,
    Cache,
    CacheSide,
    Device,
    Limit,
    Policy,
    Seconds,
    Size,
    Src,
    Threads,
    print_rates,
    run_measurements,
)


def bench(
    src: Src,
    policy: Policy = "randaugment",
    size: Size = "224",
    batch_size: BatchSize = 64,
    device: Device = "auto",
    threads: Threads = None,
    cache: Cache = None,
    cache_side: CacheSide = None,
    seconds: Seconds = 3.0,
    limit: Limit = 1000,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the plot, a PNG.")] = Path("bench.png"),
    as_json: AsJson = False,
) -> None:
    """Measure how fast your own images are read, decoded, augmented and sent to the device.

    Each stage is measured alone, with its neighbours, and as a whole. A rate is the median of five spans after a
    warm-up, and its MB/s count what goes into the stage. Images that cannot be read are counted and left out. The plot
    needs matplotlib (pip install 'variegate[plot]').
    """
    with one_line_errors(as_json):
        from variegate.diagnose import advise, draw_plot
        from variegate.plotting import check_path

        check_path(out)
        measured = run_measurements(
            src,
            policy,
            size,
            batch_size,
            device,
            threads,
            cache,
            cache_side,
            seconds,
            limit,
            as_json=as_json,
        )
        found = advise(measured)
        plot = drawn(lambda: draw_plot(measured, found.bottleneck, out), out)
    if as_json:
        emit_json("done", bottleneck=found.bottleneck, plot=plot, measurements=measured.to_dict())
        return
    print_rates(measured, found.bottleneck)
    say(found.summary)
    if plot is not None:
        say(f"plot: {plot}")
