"""One library in one process for all rows: started and imported once, then told which row to prepare and to run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.inputs import load
from benchmarks.levels import OURS, check_limited
from benchmarks.worker import in_a_line, limit_loaded_libraries, pin, serve, timed, timed_from_first

if TYPE_CHECKING:  # what a worker imports must wait until its threads are limited
    from benchmarks.rows.catalogue import Case

CALIBRATION_SECONDS = 0.05
# A batch that takes longer is calibrated by the one that was checked, and none is run for the caches before a run.
LONG_SECONDS = 0.3
SHOWN = 8  # images of the first batch, for a look at what libraries make of the same pixels


def check_batch(batch: Any, case: Case, expected: int) -> None:
    """Raise unless ``batch`` is what every library must deliver for the row: contiguous, finite, normalised NCHW."""
    import numpy as np

    from benchmarks.rows.catalogue import BY_NAME

    if case.views:
        for names, side, group in zip(case.views, case.sides, batch, strict=True):
            shape = (expected, len(names), 3, side, side)
            if tuple(group.shape) != shape:
                raise ValueError(f"group is {tuple(group.shape)}; {shape} is asked for")
            one = replace(BY_NAME[names[-1]], out=side)
            check_batch(group.reshape(-1, 3, side, side), one, expected * len(names))
        return
    contiguous = batch.is_contiguous() if hasattr(batch, "is_contiguous") else batch.flags["C_CONTIGUOUS"]
    array = np.asarray(batch)
    if array.shape != (expected, 3, case.out, case.out) or str(array.dtype) != case.dtype or not contiguous:
        raise ValueError(
            f"batch is {array.dtype}{array.shape}, contiguous={contiguous}; {case.dtype} NCHW is asked for"
        )
    if case.dtype == "uint8":
        if array.std() < 20:
            raise ValueError(f"batch is almost even: deviation {array.std():.1f} of 255 levels")
    elif not np.isfinite(array).all() or array.min() < -2.2 or array.max() > 2.7 or array.std() < 0.3:
        spread = f"values {array.min():.3f}..{array.max():.3f}, deviation {array.std():.3f}"
        raise ValueError(f"batch is not normalized: {spread}")


class RowWorker:
    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks.rows.libraries.base import load_library

        if config["peer"] == OURS:
            check_limited(config["level"])
        self.library = load_library(config["peer"])
        self.folder, self.batch_at_224 = Path(config["inputs"]), int(config["batch"])
        self.images: dict[int, Any] = {}
        self.jpegs: list[bytes] = []
        limit_loaded_libraries()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        from benchmarks.rows.catalogue import BY_NAME

        command = request["command"]
        if command == "load":
            return {"name": self.library.name, "versions": self.library.versions()}
        if command == "run":
            return self.run(float(request["seconds"]))
        case = BY_NAME[request["row"]]
        if command == "check":
            return {"checks": self.check(case)}
        if command == "prepare":
            return self.prepare(case, request["out"])
        raise ValueError(f"unknown command {command!r}")

    def inputs(self, case: Case) -> Any:
        import numpy as np

        if case.views:
            self.jpegs = self.jpegs or load(self.folder).jpegs
            return self.jpegs
        if case.size not in self.images:
            self.images[case.size] = np.load(self.folder / f"{case.size}.npy")
        return self.images[case.size]

    def check(self, case: Case) -> list[dict[str, Any]]:
        """Of ours alone."""
        from benchmarks.rows.checks import checks

        return [check.to_dict() for check in checks(case, self.inputs(case))]

    def prepare(self, case: Case, out: str | None) -> dict[str, Any]:
        """Check every variant, keep the fastest. ``out``: a file for the first images of the checked batch."""
        from benchmarks.rows.libraries.base import Absent

        self.next_batch: Any = None  # frees what the row before had
        self.batch = case.batch(self.batch_at_224)
        try:
            variants = self.library.ways(case, self.inputs(case), self.batch)
        except Absent as reason:
            return {"absent": str(reason)}
        speeds: dict[str, float] = {}
        failed: dict[str, str] = {}
        for name, next_batch in variants.items():
            try:
                speeds[name] = self.calibrate(next_batch, case, out, max(speeds.values(), default=0.0))
            except Exception as error:  # a variant that cannot run here must not stop the others
                failed[name] = in_a_line(error)
        if not speeds:
            raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
        chosen = max(speeds, key=lambda name: speeds[name])
        self.next_batch, self.seconds_per_batch = variants[chosen], self.batch / speeds[chosen]
        differs = self.library.differs.get(case.name, "")
        return {"chosen": chosen, "variants": speeds, "failed": failed, "differs": differs, "batch": self.batch}

    def calibrate(self, next_batch: Callable[[], Any], case: Case, out: str | None, best: float) -> float:
        """Images per second of processor time, after a look at a batch; ``best``: of the variants so far."""
        import numpy as np

        began = time.process_time()
        batch = next_batch()
        first = time.process_time() - began
        check_batch(batch, case, self.batch)
        if out is not None and not Path(out).exists():
            np.save(out, np.asarray(batch)[:SHOWN])
        limit_loaded_libraries()
        if first > LONG_SECONDS and self.batch / first < 0.5 * best:
            return self.batch / first
        speed = 0.0
        for _ in range(1 if first > LONG_SECONDS else 3):
            run = timed_from_first(next_batch, self.batch, CALIBRATION_SECONDS)
            speed = max(speed, run["images"] / max(run["cpu"], 1e-9))
        return speed

    def run(self, seconds: float) -> dict[str, float]:
        # What works ahead has a batch in store; what is short starts with the caches that the last library left.
        if self.library.works_ahead or self.seconds_per_batch < LONG_SECONDS:
            return timed(self.next_batch, self.batch, seconds)
        return timed_from_first(self.next_batch, self.batch, seconds)


def main() -> None:
    config = json.loads(sys.argv[1])
    pin(config["core"])
    serve(lambda: RowWorker(config))


if __name__ == "__main__":
    main()
