"""What a process does that helps another to compile: see ``variegate/compiling/team.py``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np


def main() -> None:
    """Serve the process that has started this one."""
    from variegate.program import compiled

    compiled.help_another(_tasks)


def _tasks() -> dict[str, Callable[[], object]]:
    # Imported already where all helpers wait for each other at first: the kernel that takes longest.
    import variegate.executors.cpu.executor  # noqa: F401

    return {"rows": _rows, "everything": _everything}


def _rows() -> None:
    """The kernel that contains most others, and takes longest: on a batch of nothing, since the kernels that make a
    batch are not there yet. If this is not how it is called, time is lost, and nothing else."""
    from variegate.executors.cpu.executor import run
    from variegate.program.passes import PASS_FIELDS
    from variegate.program.program import Output, Program, Tables, empty_instructions

    none = np.empty(0, np.int32)
    program = Program(
        **empty_instructions(0, 1),  # type: ignore[arg-type]
        length=none,
        source=none,
        in_shape=np.empty((0, 3), np.int32),
        ids=np.empty(0, np.uint64),
        key=np.empty((0, 2), np.uint32),
        output=Output(),
        tables=Tables(),
        stage="fused",
        window=np.empty((0, 1, 4), np.int32),
        pass_of=np.empty((0, 1), np.int16),
        num_passes=none,
        passes=np.empty((0, 1, PASS_FIELDS), np.int32),
    )
    with suppress(TypeError, ValueError, AttributeError):
        run(program, [], num_threads=1)


def _everything() -> None:
    from variegate import warm

    warm._run_everything()
