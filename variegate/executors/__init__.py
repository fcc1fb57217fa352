"""Programs + pixels -> pixels. Every executor runs the same programs; ``reference`` defines what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.program.program import Program

ACCEPTED = "'reference' (plain NumPy) or 'cpu' (compiled)"


class Executor(Protocol):
    """What runs programs."""

    def run(self, program: Program, images: Sequence[npt.NDArray[np.uint8]]) -> list[npt.NDArray[Any]]:
        """A sampled program and its uint8 images ([H, W, C], C = 1 or 3, or [H, W]) -> one array per output."""
        ...


class _Named:
    def __init__(self, run: Callable[[Program, Sequence[npt.NDArray[np.uint8]]], list[npt.NDArray[Any]]]) -> None:
        self.run = run


def get(device: str) -> Executor:
    """The executor of a device name: "reference" or "cpu".

    Raises:
        ValueError: for any other name; it says what is accepted.
    """
    # Imported on demand: the compiled executor costs start-up time that the plain one does not need.
    if device == "reference":
        from variegate.executors.reference import run

        return _Named(run)
    if device == "cpu":
        from variegate.executors.cpu import run as run_compiled

        return _Named(run_compiled)
    if isinstance(device, str) and device.split(":")[0] == "cuda":
        raise ValueError(f"device={device!r}: CUDA is not available yet; accepted: {ACCEPTED}")
    raise ValueError(f"device={device!r}; accepted: {ACCEPTED}")
