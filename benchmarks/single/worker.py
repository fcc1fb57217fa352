"""One library in one process, one image a call: prepares a row and size, times it, and ours also by the batch."""

from __future__ import annotations

import json
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.levels import OURS, check_limited
from benchmarks.worker import limit_loaded_libraries, pin, serve

WARM_UP = 8


def load_images(folder: Path, sizes: str) -> list[Any]:
    import numpy as np

    with np.load(folder / f"{sizes}.npz") as arrays:
        return [arrays[name] for name in arrays.files]


class SingleWorker:
    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks.single.base import load_library

        self.is_ours = config["peer"] == OURS
        if self.is_ours:
            check_limited(config["level"])
        self.library = load_library(config["peer"])
        self.images = {sizes: load_images(Path(config["inputs"]), sizes) for sizes in config["sizes"]}
        limit_loaded_libraries()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request["command"]
        if command == "load":
            return {"name": self.library.name, "versions": self.library.versions()}
        if command == "run":
            return self.run(float(request["seconds"]))
        if command == "run_batch":
            return self.run_batch(float(request["seconds"]))
        way, name, images = request["way"], request["row"], self.images[request["sizes"]]
        if command == "check":
            from benchmarks.single.ours import checks

            return {"checks": [check.to_dict() for check in checks(way, name, images)]}
        if command == "prepare":
            return self.prepare(way, name, images)
        raise ValueError(f"unknown command {command!r}")

    def prepare(self, way: Any, name: str, images: list[Any]) -> dict[str, Any]:
        one = self.library.one(way, name)
        if one is None:
            return {"absent": True}
        given = images
        if self.library.wants_pillow(way):
            from PIL import Image

            given = [Image.fromarray(image) for image in images]
        for image in given[:WARM_UP]:
            one(image)
        limit_loaded_libraries()
        self.one, self.given, self.next = one, given, cycle(given)
        self.batch: Any = None
        if self.is_ours:
            from benchmarks.single.ours import by_batch

            self.batch = by_batch(way, name, images)
            if self.batch is not None:
                self.batch()
        return {"by_batch": self.batch is not None}

    def run(self, seconds: float) -> dict[str, float]:
        """Single images for at least ``seconds``, after a few for the caches."""
        one, following = self.one, self.next
        for _ in range(2):
            one(next(following))
        count, cpu, wall = 0, time.process_time(), time.perf_counter()
        while time.perf_counter() - wall < seconds:
            for _ in range(4):
                one(next(following))
            count += 4
        return {"images": count, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    def run_batch(self, seconds: float) -> dict[str, float]:
        """Whole batches of the same images."""
        self.batch()
        count, cpu, wall = 0, time.process_time(), time.perf_counter()
        while time.perf_counter() - wall < seconds or not count:
            self.batch()
            count += len(self.given)
        return {"images": count, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main() -> None:
    config = json.loads(sys.argv[1])
    pin(config["core"])
    serve(lambda: SingleWorker(config))


if __name__ == "__main__":
    main()
