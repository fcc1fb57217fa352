"""``variegate warm``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from variegate.cli.console import emit_json, one_line_errors, say, stderr
from variegate.cli.progress import StageProgress

# Between lines where nobody watches a bar.
_SAY_EVERY = 10.0


def warm(
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for every event.")] = False,
) -> None:
    """Compile every kernel ahead, so that no later start waits for it.

    Kernels are kept beside the installed package, or in NUMBA_CACHE_DIR. If all are there already, nothing is done.
    """
    with one_line_errors(as_json):
        from variegate.warm import warm as compile_ahead

        console = stderr()
        said = time.monotonic()
        with StageProgress(as_json, console, "compiling") as bar:

            def show(done: int, total: int, seconds: float) -> None:
                nonlocal said
                if as_json or console.is_terminal:
                    bar("kernels", done, total)
                elif time.monotonic() - said >= _SAY_EVERY:
                    said = time.monotonic()
                    say(f"{done} of about {total} kernels, {seconds:.0f} s", console)

            done = compile_ahead(show)
    if as_json:
        emit_json(
            "done",
            was_ready=done.was_ready,
            compiled=done.compiled,
            seconds=round(done.seconds, 3),
            folder=done.folder,
            bytes=done.num_bytes,
        )
        return
    where = f"{done.folder} ({done.num_bytes / 1e6:.1f} MB)"
    if done.was_ready:
        say(f"all kernels are there already: {where}")
    else:
        others = "" if done.compiled else ", by another process"
        say(f"kernels compiled in {done.seconds:.0f} s{others}: {where}")
