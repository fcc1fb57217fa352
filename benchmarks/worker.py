"""One library in one process pinned to one core: takes commands as JSON lines on stdin, answers on stdout."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:  # what a worker imports must wait until its threads are limited
    from benchmarks.peers.base import Library

CALIBRATION_SECONDS = 0.6
WARM_UP_BATCHES = 2
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def pin(core: int | None) -> None:
    """One core, one thread per library. Must run before any of them is imported."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"


def limit_loaded_libraries() -> None:
    """The thread counts that only a call can set, for libraries that this process has loaded."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    if "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(0)


def check_batch(batch: Any, expected: int, side: int = 224) -> None:
    """Raise unless ``batch`` is what every library must deliver: contiguous, finite, normalised float32 NCHW."""
    import numpy as np

    contiguous = batch.is_contiguous() if hasattr(batch, "is_contiguous") else batch.flags["C_CONTIGUOUS"]
    array = np.asarray(batch)
    if array.shape != (expected, 3, side, side) or array.dtype != np.float32 or not contiguous:
        raise ValueError(f"batch is {array.dtype}{array.shape}, contiguous={contiguous}; float32 NCHW is asked for")
    if not np.isfinite(array).all() or array.min() < -2.2 or array.max() > 2.7 or array.std() < 0.5:
        raise ValueError(
            f"batch is not normalized: values {array.min():.3f}..{array.max():.3f}, deviation {array.std():.3f}"
        )


def in_a_line(error: Exception) -> str:
    """What happened: an error from a process of the library's own comes with a traceback, and ends in its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"


def timed(next_batch: Callable[[], Any], batch: int, seconds: float) -> dict[str, float]:
    """Batches for at least ``seconds``. The first is not counted: a library may have made it while nobody looked."""
    next_batch()
    return timed_from_first(next_batch, batch, seconds)


def timed_from_first(next_batch: Callable[[], Any], batch: int, seconds: float) -> dict[str, float]:
    """Batches for at least ``seconds``, from the first on."""
    count = 0
    cpu, wall = time.process_time(), time.perf_counter()
    while True:
        next_batch()
        count += batch
        elapsed = time.perf_counter() - wall
        if elapsed >= seconds:
            return {"images": count, "wall": elapsed, "cpu": time.process_time() - cpu}


class Worker:
    """A library's way through a benchmark: its variants, of which the fastest is kept, then run after run of it."""

    # By processor time on a pinned core, where a disturbance costs none of it; by the wall on a device.
    clock: ClassVar[str] = "cpu"
    # A variant below this share of the best is not calibrated again.
    hopeless: ClassVar[float] = 0.0
    calibration_rounds: ClassVar[int] = 3

    library: Library
    batch: int
    next_batch: Callable[[], Any]

    def variants(self) -> dict[str, Callable[[], Any]]:
        raise NotImplementedError

    def warm_up(self, name: str, next_batch: Callable[[], Any]) -> None:
        """Check a first batch, and run until nothing is left to be compiled."""
        raise NotImplementedError

    def timed(self, next_batch: Callable[[], Any], seconds: float) -> dict[str, float]:
        return timed(next_batch, self.batch, seconds)

    def prepare(self) -> dict[str, Any]:
        """Check and warm every variant, keep the fastest."""
        speeds: dict[str, float] = {}
        failed: dict[str, str] = {}
        variants = self.variants()
        # In turn, and the best of a few: one disturbed moment must not choose a slower way for the whole run.
        for calibration in range(self.calibration_rounds):
            for name, next_batch in variants.items():
                if name in failed or speeds.get(name, math.inf) < self.hopeless * max(speeds.values(), default=0.0):
                    continue
                try:
                    if calibration == 0:
                        self.warm_up(name, next_batch)
                    run = self.timed(next_batch, CALIBRATION_SECONDS)
                    speeds[name] = max(speeds.get(name, 0.0), run["images"] / run[self.clock])
                except Exception as error:  # a variant that cannot run here must not stop the others
                    failed[name] = in_a_line(error)
        if not speeds:
            raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
        chosen = max(speeds, key=lambda name: speeds[name])
        self.next_batch = variants[chosen]
        answer = {"name": self.library.name, "versions": self.library.versions(), "chosen": chosen}
        return answer | {"variants": speeds, "failed": failed}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["command"] == "load":  # the worker is made before it is asked anything
            return {}
        if request["command"] == "prepare":
            return self.prepare()
        if request["command"] == "run":
            return dict(self.timed(self.next_batch, float(request["seconds"])))
        raise ValueError(f"unknown command {request['command']!r}")


class CoreWorker(Worker):
    """On one core: W1 and W2."""

    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks import inputs as _inputs
        from benchmarks.levels import OURS, check_limited
        from benchmarks.peers.base import load_peer

        self.batch = int(config["batch"])
        self.work = str(config["work"])
        self.library = self.peer = load_peer(config["peer"])
        if config["peer"] == OURS:
            check_limited(config["level"])
        self.inputs = _inputs.load(Path(config["inputs"]))
        if config.get("is_indexed"):
            from benchmarks.indexing import entropy_index

            self.inputs.index = entropy_index(self.inputs.jpegs)
        limit_loaded_libraries()

    def variants(self) -> dict[str, Callable[[], Any]]:
        return self.peer.variants(self.work, self.inputs, self.batch)

    def warm_up(self, name: str, next_batch: Callable[[], Any]) -> None:
        from benchmarks.inputs import side_of

        check_batch(next_batch(), self.batch, side_of(self.work))
        limit_loaded_libraries()
        for _ in range(WARM_UP_BATCHES):
            next_batch()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["command"] == "replay":
            import numpy as np

            images = self.peer.replay(self.work, self.inputs, json.loads(Path(request["programs"]).read_text()))
            np.savez(request["out"], *images)
            return {"images": len(images)}
        if request["command"] == "outputs":
            import numpy as np

            from benchmarks.works.compare import sampled

            np.save(request["out"], sampled(self.work, self.inputs))
            return {}
        return super().answer(request)


class Answering(Protocol):
    def answer(self, request: dict[str, Any]) -> dict[str, Any]: ...


def serve(make_worker: Callable[[], Answering]) -> None:
    """One answer for each line of stdin; the worker is made for the first, so that it can say what failed."""
    # Libraries print what they like to stdout; the answers go to a copy of it that they cannot reach.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker: Answering | None = None
    for line in sys.stdin:
        try:
            worker = worker or make_worker()
            answer = worker.answer(json.loads(line))
        except Exception as error:
            answer = {"error": in_a_line(error)}
        print(json.dumps(answer), file=answers)


def main() -> None:
    config = json.loads(sys.argv[1])
    pin(config["core"])
    serve(lambda: CoreWorker(config))


if __name__ == "__main__":
    main()
