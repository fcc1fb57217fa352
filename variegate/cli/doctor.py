"""``variegate doctor SRC``."""

from __future__ import annotations

from typing import Annotated

import typer

from variegate.cli.console import emit_json, one_line_errors, say
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


def doctor(
    src: Src,
    policy: Policy = "randaugment",
    size: Size = "224",
    batch_size: BatchSize = 64,
    device: Device = "auto",
    threads: Threads = None,
    cache: Cache = None,
    cache_side: CacheSide = None,
    prefetch: Annotated[int, typer.Option(min=0, help="How many batches the loader makes ahead.")] = 2,
    consume: Annotated[
        float | None, typer.Option(metavar="RATE", help="How many images a second your model takes.")
    ] = None,
    model_ms: Annotated[
        float | None, typer.Option(metavar="MS", help="Or: how many milliseconds your model takes for a batch.")
    ] = None,
    seconds: Seconds = 1.0,
    limit: Limit = 1000,
    as_json: AsJson = False,
) -> None:
    """Find out what slows a loader down on your images, and what to change.

    The gain to expect of each change alone is computed from rates measured on your data. With --consume or --model-ms,
    it also says whether the loader keeps up with your model.
    """
    with one_line_errors(as_json):
        from variegate.diagnose import advise
        from variegate.diagnose.advise import consumed
        from variegate.diagnose.report import finding_lines

        wanted = consumed(consume, model_ms, batch_size)
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
            prefetch=prefetch,
            alternatives=True,
        )
        found = advise(measured, wanted)
    if as_json:
        emit_json("done", **found.to_dict(), measurements=measured.to_dict())
        return
    print_rates(measured, found.bottleneck)
    for line in finding_lines(found):
        say(line)
