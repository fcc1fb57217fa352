"""Variegate itself, by its public names."""

from __future__ import annotations

from functools import partial
from typing import Any

import variegate as vg
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.loader.wire_bytes import WireBytes
from benchmarks.peers.ours import PEER as ON_ONE_CORE
from benchmarks.peers.ours import transform
from variegate import transforms as T

# Here, as names are loaded when they are first asked for: an import, which the first batch must not pay for.
Loader: Any = vg.Loader
# Per kind of workers: arguments of the loader, and how many workers where that is not one per core.
WORKERS: dict[str, tuple[dict[str, Any], int | None]] = {
    "threads": ({}, None),
    "process": ({"workers": "process"}, None),
    "ray": ({"workers": "ray"}, None),
    "ray same": ({"workers": "ray", "wire": "same"}, None),
    "1 process": ({"workers": "process"}, 1),
    "4 processes": ({"workers": "process"}, 4),
}


def make_loader(given: Given, kind: str = "", drop_last: bool = True) -> Any:
    chosen = transform("w1")
    if given.is_heavy:
        chance = T.RandomHorizontalFlip(), T.RandAugment(num_ops=4, magnitude=15)
        chosen = T.Compose([T.RandomResizedCrop(224), *chance, T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)])
    where: dict[str, Any] = {"device": "cpu", "num_threads": given.cores}
    if kind:
        more, count = WORKERS[kind]
        where = {"devices": [f"cpu:{place}" for place in range(count or given.cores)], "num_threads": 1, **more}
    return Loader(given.folder, chosen, batch_size=given.batch, seed=0, shuffle=True, drop_last=drop_last, **where)


class Variegate(LoaderPeer):
    def __init__(self, kind: str = "") -> None:
        self.name = f"Variegate, {kind}" if kind else "Variegate"
        self._kind = kind
        self._bytes = WireBytes() if kind else None

    def versions(self) -> dict[str, str]:
        return ON_ONE_CORE.versions()

    def variants(self, given: Given) -> dict[str, Opener]:
        more, count = WORKERS.get(self._kind, ({}, None))
        devices = f"{count or given.cores} devices of 1 thread" if self._kind else f"num_threads={given.cores}"
        how = ", ".join([devices, *(f"{name}={value!r}" for name, value in more.items())])
        return {how: partial(make_loader, given, self._kind)}

    def counts(self) -> dict[str, int]:
        return {} if self._bytes is None else vars(self._bytes).copy()


PEER, of_kind = Variegate(), Variegate
