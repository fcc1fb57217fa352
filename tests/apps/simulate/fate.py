"""Chance that leaves nothing to it: speeds, tasks and failures as a test wants them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from variegate.apps.scenario import TICKS, RandomInputs
from variegate.options.measurement import Scenario


class Fate(RandomInputs):
    """``uptimes[device][life]`` in seconds; later workers live forever."""

    def __init__(self, scenario: Scenario, uptimes: Sequence[Sequence[float]] = ()) -> None:
        super().__init__(scenario)
        self.work = array("q", [round(scenario.task_seconds * TICKS)] * scenario.tasks)
        self._given = uptimes

    def uptime(self, device: int, life: int) -> int:
        lives = self._given[device] if device < len(self._given) else ()
        return round((lives[life] if life < len(lives) else 1e9) * TICKS)
