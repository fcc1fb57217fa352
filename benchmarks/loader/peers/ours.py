"""Variegate itself, by its public names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import variegate as vg
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.peers.ours import PEER as ON_ONE_CORE
from benchmarks.peers.ours import transform

# Here, as names are loaded when they are first asked for: an import, which the first batch must not pay for.
Loader: Any = vg.Loader


def make_loader(folder: Path, batch: int, cores: int, drop_last: bool = True) -> Any:
    return Loader(
        folder,
        transform("w1"),
        batch_size=batch,
        device="cpu",
        seed=0,
        shuffle=True,
        drop_last=drop_last,
        num_threads=cores,
    )


class Variegate(LoaderPeer):
    name = "Variegate"

    def versions(self) -> dict[str, str]:
        return ON_ONE_CORE.versions()

    def variants(self, given: Given) -> dict[str, Opener]:
        return {f"num_threads={given.cores}, full decode": lambda: make_loader(given.folder, given.batch, given.cores)}


PEER = Variegate()
