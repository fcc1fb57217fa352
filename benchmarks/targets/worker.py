"""One library in one process, on one core: makes the samples of a row, checks what it makes of them, times it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.levels import OURS, check_limited
from benchmarks.worker import limit_loaded_libraries, pin, serve, timed

WARM_UP = 2


class TargetsWorker:
    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks.inputs import load

        self.is_ours = config["peer"] == OURS
        if self.is_ours:
            check_limited(config["level"])
        self.library = importlib.import_module(f"benchmarks.targets.{config['peer']}").LIBRARY
        self.jpegs = load(Path(config["inputs"])).jpegs
        limit_loaded_libraries()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request["command"]
        if command == "load":
            return {"name": self.library.name, "versions": self.library.versions()}
        if command == "prepare":
            return self.prepare(request["row"])
        if command == "run":
            return dict(timed(self.calls[request["call"]], self.row.batch, float(request["seconds"])))
        raise ValueError(f"unknown command {command!r}")

    def prepare(self, name: str) -> dict[str, Any]:
        """-> the names of calls, and of ours the checks; calls are warm then."""
        from benchmarks.targets.catalogue import BY_NAME
        from benchmarks.targets.samples import make_samples

        self.row = BY_NAME[name]
        samples = make_samples(self.jpegs, self.row)
        self.calls: dict[str, Callable[[], Any]] = self.library.calls(self.row, samples)
        found = []
        if self.is_ours:
            from benchmarks.targets.ours import checks

            found = [check.to_dict() for check in checks(self.row, samples)]
        for call in self.calls.values():
            for _ in range(WARM_UP):
                call()
        self._check_kind(samples[0], self.calls["whole"]()[0])
        limit_loaded_libraries()
        return {"calls": list(self.calls), "checks": found}

    def _check_kind(self, given: dict[str, Any], made: Any) -> None:
        """Raise unless a sample came out as every library must give it."""
        side = self.row.out
        boxes = made["boxes"] if "boxes" in made else made["bboxes"]
        if tuple(made["image"].shape) != (side, side, 3) or len(made["labels"]) != len(boxes):
            raise ValueError(f"image {tuple(made['image'].shape)}, {len(boxes)} boxes, {len(made['labels'])} labels")
        if "masks" in given and tuple(made["masks"].shape[1:]) != (side, side):
            raise ValueError(f"masks {tuple(made['masks'].shape)}")
        names = list(given["mask"]) if isinstance(given.get("mask"), dict) else []
        found = made.get("mask")
        masks = [found[key] if isinstance(found, dict) else made[key] for key in names]
        for mask in [*masks, *([found] if "mask" in given and not names else [])]:
            if tuple(mask.shape) != (side, side):
                raise ValueError(f"mask {tuple(mask.shape)}")


def main() -> None:
    config = json.loads(sys.argv[1])
    pin(config["core"])
    serve(lambda: TargetsWorker(config))


if __name__ == "__main__":
    main()
