"""One library in one process: reads commands as JSON lines on stdin, answers on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processor import cpu_seconds, wait_until_idle

if TYPE_CHECKING:  # imports of a worker must wait until its threads are limited
    from benchmarks.cases import Case
    from benchmarks.libraries import NextBatch

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
CALIBRATION_SECONDS = 0.1
CALIBRATION_ROUNDS = 3
# A loader has batches in store, which do not count.
LOADER_SECONDS = 1.0
LOADER_AHEAD = 12
# A batch that takes longer is calibrated by a single run, and none is run for the caches before a measured run.
LONG_SECONDS = 0.3
GPU_WARM_UP_SECONDS = 5.0


def limit_loaded_libraries() -> None:
    """Set the thread counts that only a call can set, for libraries that this process has loaded."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    if "cv2" in sys.modules:
        import cv2

        cv2.setNumThreads(0)


def check_batch(batch: Any, case: Case, count: int) -> None:
    """Raise unless ``batch`` is what every library must deliver: contiguous, finite, normalized NCHW."""
    if case.kind == "targets":
        check_samples(batch, case, count)
    elif case.views:
        for names, side, group in zip(case.views, case.sides, batch, strict=True):
            check_images(group, (count, len(names), 3, side, side), case.dtype)
    elif case.kind == "deep operation":
        check_deep(batch, (count, 3, case.out, case.out), case)
    elif not case.is_single:
        check_images(batch, (count, 3, case.out, case.out), case.dtype)


def as_delivered(batch: Any, shape: tuple[int, ...], dtype: str, substitute: str) -> Any:
    """Return the batch as a tensor. Raises ValueError unless it is contiguous, of the shape, and of one of the two
    dtypes."""
    import torch

    tensor = torch.as_tensor(batch)
    accepted = getattr(torch, dtype), getattr(torch, substitute)
    if tensor.shape != shape or tensor.dtype not in accepted or not tensor.is_contiguous():
        found = f"{tensor.dtype} {tuple(tensor.shape)}, contiguous={tensor.is_contiguous()}"
        raise ValueError(f"batch is {found}; {dtype} {shape} is asked for")
    return tensor


def check_images(batch: Any, shape: tuple[int, ...], dtype: str) -> None:
    """``batch``: a tensor or an array. Libraries that lack bfloat16 may deliver float16."""
    tensor = as_delivered(batch, shape, dtype, "float16" if dtype == "bfloat16" else dtype)
    values = tensor.float()
    low, high, deviation = float(values.min()), float(values.max()), float(values.std())
    is_right = deviation >= 20 if dtype == "uint8" else deviation >= 0.2 and low >= -2.2 and high <= 2.7
    if not is_right:  # a value that is not a number fails every comparison
        raise ValueError(f"batch is not right: values {low:.3f}..{high:.3f}, deviation {deviation:.3f}")


def check_deep(batch: Any, shape: tuple[int, ...], case: Case) -> None:
    """``batch``: in the type of the inputs, or float32 of a library that has no other."""
    tensor = as_delivered(batch, shape, case.dtype, "float32")
    white = 1 if tensor.is_floating_point() else 65535
    deviation = float(tensor.float().std()) / white
    if not 0.05 <= deviation <= 2:
        raise ValueError(f"batch is not right: deviation {deviation:.3f} of white")


def check_samples(samples: list[Any], case: Case, count: int) -> None:
    """Raise unless the first sample has the size of the case, a label for each box, and masks of the image's size."""
    first = samples[0]
    boxes = first.get("boxes", first.get("bboxes"))
    sizes = {tuple(plane.shape[:2]) for plane in [first["image"], *first.get("masks", [])]}
    if (len(samples), sizes, len(first["labels"])) != (count, {(case.out, case.out)}, len(boxes)):
        found = f"{len(samples)} samples of {sizes}, {len(boxes)} boxes, {len(first['labels'])} labels"
        raise ValueError(f"{found}; {count} of {case.out} px are asked for")


def in_a_line(error: Exception) -> str:
    """The message of an error; one from a process of the library's own ends in it, after a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"


class Worker:
    """Prepares one case at a time, then measures its ways and parts."""

    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks import libraries
        from benchmarks.cases import WORKS
        from benchmarks.levels import OURS, check_limited

        self.device = str(config["device"])
        self.folder = Path(config["inputs"])
        self.batch_at_224 = int(config["batch"])
        self.cases = {case.name: case for case in WORKS[config["work"]].cases}
        if config["library"] == OURS:
            from benchmarks.libraries.ours import Variegate

            check_limited(config["level"])
            self.library: Any = Variegate(config["kind"], config["is_indexed"], self.device)
        else:
            self.library = libraries.load(config["library"])
        self.loaded: tuple[str, Any] = ("", None)
        self.measured: dict[str, tuple[NextBatch, int]] = {}
        self.is_on_cpu = not self.device.startswith("cuda")
        self.is_on_one_core = bool(config["is_on_one_core"])
        self.is_loader = False
        if self.is_on_one_core:
            limit_loaded_libraries()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request["command"]
        if command == "load":
            return {"name": self.library.name, "versions": self.library.versions()}
        if command == "run":
            next_batch, images = self.measured[request["part"]]
            return self.measure(next_batch, images, float(request["seconds"]))
        case = self.cases[request["case"]]
        if command == "check":
            from benchmarks.checks import check

            return {"checks": [one.to_dict() for one in check(case, self.inputs(case), self.device, self.library.kind)]}
        if command == "prepare":
            return self.prepare(case)
        raise ValueError(f"unknown command {command!r}")

    def inputs(self, case: Case) -> Any:
        from benchmarks.inputs import load

        if case.kind == "loader":
            from benchmarks.libraries import LoaderInputs

            return LoaderInputs(self.folder / "photos", self.batch_at_224, len(os.sched_getaffinity(0)))
        key = f"{case.kind} {case.size} {case.depth}" if case.kind != "targets" else case.name
        if self.loaded[0] != key:
            self.loaded = (key, load(self.folder, case))
        items = self.loaded[1]
        if case.kind == "gpu":
            from benchmarks.gpu import take_batches

            return take_batches(items, self.batch_at_224, self.device)
        return items

    def prepare(self, case: Case) -> dict[str, Any]:
        """Check a batch of every way, and keep the fastest."""
        from benchmarks.libraries import Absent

        self.measured = {}  # frees the memory of the case before
        self.is_loader = case.kind == "loader"
        batch = case.batch_of(self.batch_at_224)
        inputs = self.inputs(case)
        try:
            ways = self.feeds(case, inputs) if self.is_loader else self.library.ways(case, inputs, batch)
        except Absent as reason:
            return {"absent": str(reason)}
        speeds: dict[str, float] = {}
        failed: dict[str, str] = {}
        for name, next_batch in ways.items():
            try:
                speeds[name] = self.calibrate(next_batch, case, batch)
            except Exception as error:  # a way that cannot run here must not stop the others
                failed[name] = in_a_line(error)
            if self.is_loader:
                next_batch.close()
        if not speeds:
            raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
        chosen = max(speeds, key=lambda name: speeds[name])
        self.measured = {"": (ways[chosen], batch), **self.library.parts(case, inputs)}
        self.seconds_per_batch = batch / speeds[chosen]
        answer = {
            "variant": chosen,
            "variants": speeds,
            "failed": failed,
            "batch": batch,
            "differs": self.library.differs.get(case.key, ""),
            "parts": list(self.measured),
        }
        if not self.is_on_cpu:
            from benchmarks.gpu import measure_memory

            answer |= measure_memory(ways[chosen], self.device)
        return answer

    def feeds(self, case: Case, inputs: Any) -> dict[str, Any]:
        from benchmarks.feeding import Feed, Step

        step = Step() if case.name == "feeds" else None
        return {name: Feed(opener, step) for name, opener in self.library.loaders(inputs).items()}

    def calibrate(self, next_batch: Callable[[], Any], case: Case, batch: int) -> float:
        """Images per second, after a check of the first batch."""
        began = time.process_time()
        made = next_batch()
        first = time.process_time() - began
        check_batch(made, case, batch)
        self.seconds_per_batch = first
        if self.is_on_one_core:
            limit_loaded_libraries()
        if self.is_loader:
            return self.speed(self.measure(next_batch, batch, LOADER_SECONDS))
        if not self.is_on_cpu:
            self.measure(next_batch, batch, GPU_WARM_UP_SECONDS)
        rounds = 1 if first > LONG_SECONDS else CALIBRATION_ROUNDS
        runs = [self.measure(next_batch, batch, CALIBRATION_SECONDS) for _ in range(rounds)]
        # The best of a few: one disturbed moment must not choose a slower way.
        return max(self.speed(run) for run in runs)

    def speed(self, run: dict[str, float]) -> float:
        """Processor time for one core, which disturbances do not change; wall time elsewhere."""
        return run["images"] / max(run["cpu" if self.is_on_one_core else "wall"], 1e-9)

    def measure(self, next_batch: Callable[[], Any], images: int, seconds: float) -> dict[str, float]:
        """Batches for at least ``seconds``."""
        for _ in range(self.batches_in_store()):
            next_batch()
        # On a GPU, outputs are held until they no longer fit into its cache, as a consumer that reads them later would.
        held: deque[Any] = deque(maxlen=1 if self.is_on_cpu else 8)
        self.synchronize()
        count = 0
        cpu = self.cpu_seconds()
        wall = time.perf_counter()
        while not count or time.perf_counter() - wall < seconds:
            held.append(next_batch())
            count += images
        self.synchronize()
        measured = {
            "images": count,
            "wall": time.perf_counter() - wall,
            "cpu": self.cpu_seconds() - cpu,
        }
        if self.is_loader:
            wait_until_idle(os.getpid())
        return measured

    def batches_in_store(self) -> int:
        """Batches before a run that do not count: made ahead, or short and slowed by the caches of another library."""
        if self.is_loader:
            return LOADER_AHEAD
        return int(self.library.works_ahead or self.seconds_per_batch < LONG_SECONDS)

    def cpu_seconds(self) -> float:
        """Processor time of this process; for a loader, also of the processes that it started."""
        return cpu_seconds(os.getpid()) if self.is_loader else time.process_time()

    def synchronize(self) -> None:
        if not self.is_on_cpu:
            import torch

            torch.cuda.synchronize(self.device)


def main() -> None:
    """Answer each line of stdin. The worker is created by the first command, so that errors are reported."""
    config = json.loads(sys.argv[1])
    if config["is_on_one_core"] and config["core"] is not None:
        os.sched_setaffinity(0, {config["core"]})
    # Libraries print to stdout; the answers go to a copy of it that they cannot reach.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(config)
            answer = worker.answer(json.loads(line))
        except Exception as error:
            answer = {"error": in_a_line(error)}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
