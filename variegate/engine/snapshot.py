"""How a run stands, for those who watch it."""

from __future__ import annotations

from typing import NamedTuple


class DeviceSnapshot(NamedTuple):
    """``rate``: items per second as measured lately; ``queued`` and ``in_flight`` count tasks, ``done`` items."""

    name: str
    state: str
    rate: float
    queued: int
    in_flight: int
    done: int
    steals: int
    losses: int


class Snapshot(NamedTuple):
    """``outstanding``: items that were submitted and are not out yet; ``quarantined``: those given up."""

    devices: list[DeviceSnapshot]
    outstanding: int
    quarantined: int
