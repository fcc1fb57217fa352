"""How worker processes are started: always anew (spawn), so that each gets a CUDA context and threads of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

SPAWN = multiprocessing.get_context("spawn")

# The exit code of a worker that found itself starting workers: it was importing the main script.
UNGUARDED = 97
UNGUARDED_REASON = (
    "the main script starts worker processes as soon as it is imported, and each of these imports it first. Put what "
    "it does under\n\n    if __name__ == '__main__':\n        ...\n\nor use workers=\"thread\""
)

# Read by OpenMP (torch), BLAS libraries (NumPy) and Numba when they are loaded, and never again.
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_lock = threading.Lock()


def check_guard() -> None:
    """End this process where it is a worker that is still importing the main script."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(UNGUARDED)


@contextmanager
def surroundings(num_threads: int) -> Iterator[None]:
    """What a process inherits that is started inside: counts of threads, no Ctrl-C, a main module that can be found."""
    # The main module of a program read from standard input has the name of a file that there is not.
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    is_file = file is None or getattr(main, "__spec__", None) is not None or Path(file).exists()
    with _lock:
        kept = {name: os.environ.get(name) for name in _THREAD_COUNTS}
        # Started by the first process otherwise, which would unblock the signal.
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            os.environ.update(dict.fromkeys(_THREAD_COUNTS, str(num_threads)))
            if not is_file:
                main.__file__ = None
            yield
        finally:
            if not is_file:
                main.__file__ = file
            for name, value in kept.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def how_it_ended(exitcode: int | None) -> str:
    """A process's exit code in words."""
    if exitcode is None:
        return "does not end"
    if exitcode >= 0:
        return f"ended with exit code {exitcode}"
    try:
        return f"killed by signal {-exitcode} ({signal.Signals(-exitcode).name})"
    except ValueError:
        return f"killed by signal {-exitcode}"
