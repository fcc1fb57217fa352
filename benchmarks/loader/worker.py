"""One library's loader in one process, which may start more: takes commands as JSON lines, answers on stdout."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.loader import photos, process_tree
from benchmarks.loader.checks import check_epoch
from benchmarks.loader.peers.base import Given, load_peer
from benchmarks.worker import Worker, serve


class LoaderWorker(Worker):
    """Its ``next_batch`` is the function that opens the loader. One variant is open at a time."""

    clock = "wall"
    hopeless = 0.93
    calibration_rounds = 2

    def __init__(self, config: dict[str, Any]) -> None:
        self.batch = int(config["batch"])
        self.cores = len(config["on_cores"])
        self.given = Given(Path(config["source"]), self.batch, self.cores, config["is_heavy"])
        self.labels = photos.listing(Path(config["folder"]))[1]
        self.library = self.peer = load_peer(config["peer"])
        self._opened: tuple[Callable[[], Any], Any] | None = None
        self._checked = ""
        self._nothing_ahead = False

    def variants(self) -> dict[str, Callable[[], Any]]:
        return self.peer.variants(self.given)

    def warm_up(self, name: str, next_batch: Callable[[], Any]) -> None:
        self._checked = check_epoch(self._loader(next_batch), self.batch, self.labels)
        self._nothing_ahead = True

    def timed(self, next_batch: Callable[[], Any], seconds: float) -> dict[str, float]:
        """Whole epochs for at least ``seconds``, so that what their ends cost is in it as often as it is for users.

        One epoch is not counted, unless one has just ended: what was made ahead while nobody looked is used up in it.
        """
        loader = self._loader(next_batch)
        if not self._nothing_ahead:
            for _ in loader:
                pass
        self._nothing_ahead = False
        count, tree = 0, os.getpid()
        counts, own = self.peer.counts(), time.process_time()
        cpu, wall = process_tree.cpu_seconds(tree), time.perf_counter()
        while (elapsed := time.perf_counter() - wall) < seconds:
            for images, _ in loader:
                count += len(images)
        used = process_tree.cpu_seconds(tree) - cpu
        more: dict[str, float] = {name: after - counts[name] for name, after in self.peer.counts().items()}
        more["own_cpu_seconds"] = time.process_time() - own
        # The batches that it now makes ahead must not take the cores from the next library.
        process_tree.wait_until_idle(tree)
        return {"images": count, "wall": elapsed, "cpu": used / self.cores, "cpu_seconds": used, **more}

    def prepare(self) -> dict[str, Any]:
        return super().prepare() | {"extra": {"checked": self._checked}}

    def first_batch(self) -> dict[str, float]:
        began = time.perf_counter()
        loader = self._loader(self.next_batch)
        batches = iter(loader)
        next(batches)
        seconds = time.perf_counter() - began
        for _ in batches:
            pass
        return {"seconds": seconds}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["command"] == "choose":
            self.next_batch = self.variants()[request["variant"]]
            return {}
        if request["command"] == "first":
            return dict(self.first_batch())
        return super().answer(request)

    def _loader(self, opener: Callable[[], Any]) -> Any:
        if self._opened is None or self._opened[0] is not opener:
            self._opened = None
            gc.collect()  # the processes and threads of the one before end with it
            self._opened = opener, opener()
        return self._opened[1]


def main() -> None:
    config = json.loads(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, config["on_cores"])  # before anything counts them
    serve(lambda: LoaderWorker(config))


if __name__ == "__main__":
    main()
