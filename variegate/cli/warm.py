"""``variegate warm``."""

from __future__ import annotations

import time

from variegate.cli.console import StageProgress, emit_json, say, stderr
from variegate.cli.options import CommandOptions

# Between lines where nobody watches a bar.
_SAY_EVERY = 10.0


def warm(options: CommandOptions) -> None:
    """Compile every kernel ahead, so that no later start waits for it.

    Kernels are kept beside the installed package, or in NUMBA_CACHE_DIR. If all are there already, nothing is done.
    """
    from variegate.warm import warm as compile_ahead

    console = stderr()
    said = time.monotonic()
    with StageProgress(options.as_json, "compiling") as bar:

        def show(done: int, total: int, seconds: float) -> None:
            nonlocal said
            if options.as_json or console.is_terminal:
                bar("kernels", done, total)
            elif time.monotonic() - said >= _SAY_EVERY:
                said = time.monotonic()
                say(f"{done} of about {total} kernels, {seconds:.0f} s", console)

        done = compile_ahead(show)
    if options.as_json:
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
