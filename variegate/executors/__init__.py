"""Programs + pixels -> pixels. Every executor runs the same programs; ``reference`` defines what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.executors.devices import resolve
from variegate.program.program import Program


class Executor(Protocol):
    """What runs programs."""

    def run(self, program: Program, images: Sequence[npt.NDArray[np.uint8]]) -> list[npt.NDArray[Any]]:
        """A sampled program and its uint8 images ([H, W, C], C = 1 or 3, or [H, W]) -> one array per output."""
        ...


class _Named:
    def __init__(self, run: Callable[[Program, Sequence[npt.NDArray[np.uint8]]], list[npt.NDArray[Any]]]) -> None:
        self.run = run


def get(device: str) -> Executor:
    """The executor of a device name, see ``devices.resolve``; results are arrays on the host, whichever it is.

    Raises:
        ValueError: for a device that is not there; it says what is accepted.
    """
    # Imported on demand: the compiled executors cost start-up time that the plain one does not need.
    name = resolve(device)
    if name == "reference":
        from variegate.executors.reference import run

        return _Named(run)
    if name == "cpu":
        from variegate.executors.cpu import run as run_compiled

        return _Named(run_compiled)
    from variegate.executors.cuda.host import run_on_host_arrays

    return _Named(lambda program, images: run_on_host_arrays(program, images, name))
