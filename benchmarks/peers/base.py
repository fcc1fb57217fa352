"""What a library under test offers the worker: named ways to make the next batch, of which the fastest is timed."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from typing import Any, ClassVar

from benchmarks.inputs import Inputs

NextBatch = Callable[[], Any]


class Library:
    """What a table says about a library, wherever it runs."""

    name: str
    packages: ClassVar[tuple[str, ...]]

    def versions(self) -> dict[str, str]:
        return {package: importlib.metadata.version(package) for package in self.packages}


class Peer(Library):
    """One library. ``variants`` are the ways its users would do the work; the worker tries all, keeps the fastest."""

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        """Functions of no argument -> the next float32[batch, 3, 224, 224], contiguous, torch or NumPy."""
        raise NotImplementedError(f"{type(self).__name__} does not define variants()")

    def replay(self, work: str, inputs: Inputs, programs: list[dict[str, Any]]) -> list[Any]:
        """uint8[H, W, 3] of each program, run one operation after another; for checks, so most peers have none."""
        raise ValueError(f"{self.name} cannot replay programs")


def load_peer(module: str) -> Peer:
    """The ``PEER`` of ``benchmarks.peers.<module>``."""
    peer = importlib.import_module(f"benchmarks.peers.{module}").PEER
    assert isinstance(peer, Peer)
    return peer
