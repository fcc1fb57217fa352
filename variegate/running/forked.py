"""A GPU in a forked child: its context stayed with the parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from variegate.program.program import Program


class ForkedRunner:
    """Takes the place of a GPU's runner in a forked child: plans programs, and refuses to run any."""

    def __init__(self, device: str, lower: Callable[[Program], Program]) -> None:
        self._device, self.lower = device, lower

    def _refuse(self, *args: Any) -> NoReturn:
        raise RuntimeError(
            f"device: {self._device!r} belongs to the process that was forked, and a GPU cannot be used across a fork; "
            "start processes by 'spawn' or 'forkserver', or use device='cpu' in them"
        )

    take = shapes = run = decode_and_run = _refuse
