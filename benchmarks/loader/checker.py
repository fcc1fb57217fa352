"""Our pixels, checked in a process of its own: what the harness had loaded would be shared with the loaders, and
memory that is shared counts for less."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from operator import eq
from pathlib import Path
from typing import Any

from benchmarks import inputs as _inputs
from benchmarks.harness import run_checks
from benchmarks.inputs import Inputs
from benchmarks.loader import photos
from benchmarks.loader.checks import expected_epoch, shuffled_epoch
from benchmarks.loader.peers.base import Given
from benchmarks.process import Process
from benchmarks.worker import Worker, serve
from benchmarks.works import w1
from benchmarks.works.base import Check, Replay

EPOCHS = (0, 1)


class Checker(Worker):
    """Every check of W1 as it is, then those of the loader."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        inputs = _inputs.load(Path(self.config["inputs"]))
        golden_config = self.config | {"work": "w1", "core": None, "peer": "torchvision_pil"}
        golden = Process(self.config["peers_python"], golden_config)
        try:
            found = run_checks(lambda replay: check(inputs, self.config, replay), golden, Path(self.config["inputs"]))
        finally:
            golden.close()
        return {"checks": found}


def check(inputs: Inputs, config: dict[str, Any], replay: Replay) -> Iterable[Check]:
    from benchmarks.loader.peers.ours import make_loader

    given = Given(Path(config["source"]), int(config["batch"]), len(config["on_cores"]), config["is_heavy"])
    if not given.is_heavy:
        yield from w1.check(inputs, replay)
        yield from check_loader(given)
    local = shuffled_epoch(make_loader(given))
    for kind in config["kinds"]:
        found = shuffled_epoch(make_loader(given, kind))
        same = sum(map(eq, found, local))
        yield Check(f"an epoch of {kind} is the local loader's, row for row", found == local, f"{same} of {len(local)}")


def check_loader(given: Given) -> Iterable[Check]:
    import variegate as vg
    from benchmarks.loader.peers.ours import make_loader
    from benchmarks.peers.ours import transform

    folder, batch = given.folder, given.batch
    augmenter = vg.Augmenter(transform("w1"), device="cpu", seed=0, num_threads=given.cores)
    loader = make_loader(given, drop_last=False)
    labels = photos.listing(folder)[1]
    for epoch in EPOCHS:
        loader.set_epoch(epoch)
        found, expected = Counter(shuffled_epoch(loader)), expected_epoch(augmenter, folder, epoch, batch)
        each = sorted(label for (_, label), times in found.items() for _ in range(times))
        name = f"epoch {epoch} of the loader has the labels of the folder, each file once"
        yield Check(name, each == sorted(labels), f"{len(each)} labels, {len(labels)} files")
        same = (found & expected).total()
        name = f"epoch {epoch} of the loader equals decode_and_run of the same files and ids"
        yield Check(name, found == expected, f"{same} of {expected.total()} pictures bit-identical")


def main() -> None:
    config = json.loads(sys.argv[1])
    serve(lambda: Checker(config))


if __name__ == "__main__":
    main()
