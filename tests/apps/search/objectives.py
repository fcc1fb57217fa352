"""Trainings whose scores are functions of their policies: quick, and the same in every process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch

NUMBERS = {"population": 4, "epochs": 7, "interval": 2, "operations": ["Rotate", "Invert"]}


def trained(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
    """More with each epoch, by the policy's strength and a little chance; all of the checkpoint decides."""
    before = checkpoint or {"weights": torch.zeros(2), "trace": np.zeros(3), "epochs": 0}
    strength = sum(probability * magnitude for _, probability, magnitude in policy.schedule.segments[0].policy)
    chance = (seed >> before["epochs"]) % 1009 / 1009
    weights = before["weights"] + epochs * torch.tensor([strength, chance])
    trace = before["trace"] * 0.5 + epochs
    after = {"weights": weights, "trace": trace, "epochs": before["epochs"] + epochs}
    return float(weights.sum()) + float(trace.sum()) / 100, after


class Noted:
    """``trained``, with a line in a file as each step begins and ends: which training, from which epoch.

    ``kill``: where this process ends itself: "begin" or "end" and the number of such a line.
    """

    def __init__(self, path: Path, kill: tuple[str, int] | None = None) -> None:
        self.path, self.kill, self._lock = path, kill, threading.Lock()
        self._seen = {"begin": 0, "end": 0}

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def step(self, policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        done = checkpoint["epochs"] if checkpoint else 0
        self._note("begin", f"{seed} {done}")
        got = trained(policy, epochs, checkpoint, seed)
        self._note("end", f"{seed} {done}")
        return got

    def _note(self, what: str, which: str) -> None:
        with self._lock, open(self.path, "a", encoding="ascii") as file:
            self._seen[what] += 1
            file.write(f"{what} {which}\n")
        if self.kill == (what, self._seen[what]):
            os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def lines(path: Path, what: str) -> list[str]:
        return [line for line in path.read_text(encoding="ascii").splitlines() if line.startswith(what)]


class Fresh:
    """Made without arguments, once in a process."""

    made = 0

    def __init__(self, scale: float = 1.0) -> None:
        type(self).made += 1
        self.scale = scale

    def step(self, policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        return self.scale * trained(policy, epochs, checkpoint, 5)[0], trained(policy, epochs, checkpoint, 5)[1]
