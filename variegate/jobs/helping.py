"""Main function of processes that help another to compile: see ``variegate/compiling/team.py``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np


def main() -> None:
    """Serve the process that has started this one."""
    from variegate.program import compiled

    compiled.help_another(_tasks)


def _tasks() -> dict[str, Callable[[], object]]:
    # Imported already where all helpers wait for each other at first: the kernel that takes longest.
    import variegate.executors.cpu.executor  # noqa: F401
    from variegate.executors.cpu.kernel import PART
    from variegate.executors.cpu.memory import PART_KERNELS

    parts = {part.py_func.__name__: partial(part.compile, PART) for part in PART_KERNELS.values()}
    return {"rows": _rows, "everything": _everything, **parts}


def _rows() -> None:
    """The kernel that takes longest, on no rows: those that write down a batch are not there yet."""
    from variegate.executors.cpu.batch import BATCH, SCRATCH
    from variegate.executors.cpu.passes import run_rows
    from variegate.program.held import words_of

    batch, scratch = (np.zeros(words_of(kind), np.int64) for kind in (BATCH, SCRATCH))
    run_rows(0, 0, batch.ctypes.data, scratch.ctypes.data, 0, False)


def _everything() -> None:
    from variegate.jobs import warm

    warm._run_everything()
