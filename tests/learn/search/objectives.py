"""Trainings whose scores are functions of their policies: quick, and the same in every process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from variegate.learn.members import member_seed

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


def count_late(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
    """Training without any: the epochs that its weights have trained.

    The first step of the second member takes longer than it takes until Tune's next snapshot.
    """
    if checkpoint is None and seed == member_seed(0, 1):
        time.sleep(3)
    total = epochs + (checkpoint or 0)
    return float(total), total


class Demanding:
    """Takes an argument, which nobody gives."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def step(self, policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        return trained(policy, epochs, checkpoint, seed)


class Fresh:
    """Made without arguments, once in a process."""

    made = 0

    def __init__(self, scale: float = 1.0) -> None:
        type(self).made += 1
        self.scale = scale

    def step(self, policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        return self.scale * trained(policy, epochs, checkpoint, 5)[0], trained(policy, epochs, checkpoint, 5)[1]
