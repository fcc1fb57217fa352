"""What a library's loader offers the worker: named ways to open it, of which the fastest is timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.base import Library

# Iterated once per epoch, as in a training script: (float32[batch, 3, 224, 224], labels[batch]) on the host.
Epochs = Iterable[tuple[Any, Any]]
Opener = Callable[[], Epochs]


@dataclass(frozen=True)
class Given:
    """A folder of class folders or of shards, and the cores that may be used. ``is_heavy``: more augmentation."""

    folder: Path
    batch: int
    cores: int
    is_heavy: bool = False


class LoaderPeer(Library):
    def variants(self, given: Given) -> dict[str, Opener]:
        """The ways its users would write it. What one has started must end when the loader is no longer referred to."""
        raise NotImplementedError(f"{type(self).__name__} does not define variants()")

    def counts(self) -> dict[str, int]:
        """What it has counted so far in this process."""
        return {}


def load_peer(key: str) -> LoaderPeer:
    """The ``PEER`` of ``benchmarks.loader.peers.<module>``, or what its ``of_kind`` makes of ``<module>:<kind>``."""
    name, _, kind = key.partition(":")
    module = importlib.import_module(f"benchmarks.loader.peers.{name}")
    peer = module.of_kind(kind) if kind else module.PEER
    assert isinstance(peer, LoaderPeer)
    return peer
