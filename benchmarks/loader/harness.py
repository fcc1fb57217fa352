"""Runs the work `loader`: checks, speed in turn, then each library alone for its memory and its first batch."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import inputs as _inputs
from benchmarks.harness import Row, time_in_turn
from benchmarks.inputs import Inputs
from benchmarks.levels import OURS, is_ours
from benchmarks.loader import photos
from benchmarks.loader.process_tree import PeakMemory
from benchmarks.peers_env import peers_python
from benchmarks.process import Process

TITLE = "JPEG files -> RandomResizedCrop(224), flip, RandAugment(2, 9), normalize -> float32 NCHW and labels, all cores"
PEERS = ("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali")
WORKERS = tuple(f"{OURS}:{kind}" for kind in ("threads", "process", "ray"))
ALONE = f"{OURS}:1 process"
HEAVY = "workers_raw"
# Of each work: its title, and the modules of its rows.
WORKS = {
    "loader": (TITLE, (OURS, *PEERS)),
    "workers": (
        TITLE,
        (OURS, *WORKERS, f"{OURS}:ray same", ALONE, f"{OURS}:4 processes", *PEERS[1:], "ray_data", "tf_data"),
    ),
    HEAVY: (TITLE.replace("JPEG files", "raw shards").replace("(2, 9)", "(4, 15)"), (OURS, *WORKERS)),
}
# Peers that need what is installed beside Variegate.
BESIDE = ("ray_data", "tf_data")
# The check may compile every kernel; preparing runs many variants for whole epochs, which may be long.
CHECK_TIMEOUT, PREPARE_TIMEOUT, RUN_TIMEOUT = 1800.0, 3600.0, 600.0


@dataclass(frozen=True)
class Options:
    """``on_cores``: numbers of the cores that every library may use, all of them. ``copies``: of each photo.
    ``first_batches``: runs of each library alone."""

    work: str
    batch: int
    seconds: float
    repeats: int
    on_cores: tuple[int, ...]
    first_batches: int
    copies: int = 1
    only: tuple[str, ...] = ()
    images: Path | None = None


def run_work(options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """A JSON-able record. A failed check leaves ``failed`` and no speed."""
    title, modules = WORKS[options.work]
    modules = options.only or modules
    jpegs, origin = _inputs.read_jpegs(options.images)
    files = len(jpegs) * options.copies
    if files < options.batch:
        raise ValueError(f"--batch {options.batch}: there are {files} files; take a smaller batch or more --copies")
    record: dict[str, Any] = {"work": options.work, "title": title, "target": 2.0, "batch": options.batch}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "cores": len(options.on_cores)}
    copied = f", {options.copies} times each" if options.copies > 1 else ""
    record |= {"files": files, "inputs": f"{files} files in {photos.CLASSES} class folders: {origin}{copied}"}
    with tempfile.TemporaryDirectory() as temporary:
        folder, laid = Path(temporary) / "photos", Path(temporary) / "inputs"
        laid.mkdir()
        photos.lay_down(jpegs, folder, options.copies)
        _inputs.save(Inputs(jpegs=jpegs), laid)
        config = {"folder": str(folder), "inputs": str(laid), "batch": options.batch, "source": str(folder)}
        config |= {"on_cores": options.on_cores, "is_heavy": options.work == HEAVY}
        config["kinds"] = [module.partition(":")[2] for module in modules if module.startswith(f"{OURS}:")]
        if options.work == HEAVY:
            config["source"] = packed = str(Path(temporary) / "raw")
            pack = [sys.executable, "-m", "variegate", "pack", str(folder), packed]
            subprocess.run([*pack, "--format", "raw", "--size", "256", "--no-measure"], check=True, capture_output=True)
        if OURS in modules:
            record["checks"] = _checks(config, log)
            if not all(check["passed"] for check in record["checks"]):
                return record | {"failed": True}
        rows = [Row(module, module, clock="wall") for module in modules]
        with _processes({module: config | {"peer": module} for module in modules}) as processes:
            _time(rows, processes, options, log)
        _time_first_batches(rows, config, options, log)
        ours = next((row for row in rows if row.module == OURS and not row.error), None)
        if ours is not None and len(options.on_cores) > 1 and options.work == "loader":
            record["scaling"] = _scaling(config, options, log)
    record["libraries"] = {row.module: row.to_dict() for row in rows}
    if ALONE in record["libraries"]:
        # Variegate is loaded here only now: memory that is shared counts for less.
        from benchmarks.loader.parts import part_costs
        from benchmarks.loader.prediction import predict

        print("  parts of batches", file=log)
        record["parts"] = part_costs()
        record["prediction"] = predict(record)
    return record


def _time(rows: list[Row], processes: dict[str, Process], options: Options, log: Any) -> None:
    time_in_turn(rows, processes, options.seconds, options.repeats, log, PREPARE_TIMEOUT, RUN_TIMEOUT)


@contextmanager
def _processes(configs: dict[str, dict[str, Any]]) -> Iterator[dict[str, Process]]:
    """A process for each, with as many threads as its library likes, loaded; closed after the block."""
    processes: dict[str, Process] = {}
    try:
        for key, config in configs.items():
            is_beside = is_ours(config["peer"]) or config["peer"] in BESIDE
            python = sys.executable if is_beside else peers_python()
            processes[key] = Process(python, config, worker="benchmarks.loader.worker", environment={})
        yield processes
    finally:
        for process in processes.values():
            process.close()


def _checks(config: dict[str, Any], log: Any) -> list[dict[str, Any]]:
    print("  checking", file=log)
    given = config | {"peers_python": str(peers_python())}
    process = Process(sys.executable, given, worker="benchmarks.loader.checker", environment={})
    try:
        found: list[dict[str, Any]] = process.ask({"command": "check"}, CHECK_TIMEOUT)["checks"]
        return found
    finally:
        process.close()


def _time_first_batches(rows: list[Row], config: dict[str, Any], options: Options, log: Any) -> None:
    """A fresh process each, in turn, and no other library's: a page shared with one would count by half.

    The runs before have warmed the caches. In the last process, memory is watched over a run.
    """
    seconds: dict[str, list[float]] = {row.module: [] for row in rows}
    for repeat in range(options.first_batches):
        print(f"  first batch {repeat + 1} of {options.first_batches}", file=log)
        for row in rows:
            if row.error:
                continue
            try:
                with _processes({row.module: config | {"peer": row.module}}) as processes:
                    process = processes[row.module]
                    process.ask({"command": "choose", "variant": row.chosen}, PREPARE_TIMEOUT)
                    took = process.ask({"command": "first"}, PREPARE_TIMEOUT)["seconds"]
                    seconds[row.module].append(took)
                    if repeat + 1 == options.first_batches:
                        with PeakMemory(process.pid) as peak:
                            process.ask({"command": "run", "seconds": options.seconds}, RUN_TIMEOUT)
                        row.extra |= {"peak_pss_bytes": peak.pss, "peak_rss_bytes": peak.rss}
            except RuntimeError as error:
                row.error = str(error)
    for row in rows:
        if not row.error:
            found = seconds[row.module]
            row.extra |= {"first_batch_seconds": statistics.median(found), "first_batch_runs": found}


def _scaling(config: dict[str, Any], options: Options, log: Any) -> dict[str, Any]:
    """Ours with one thread on one core beside all threads on all cores, in turn."""
    print("  one core beside all", file=log)
    last = max(options.on_cores)  # the first core is where interrupts tend to land
    configs = {
        "one core": config | {"peer": OURS, "on_cores": [last]},
        "all cores": config | {"peer": OURS},
    }
    rows = [Row(name, name, clock="wall") for name in configs]
    with _processes(configs) as processes:
        _time(rows, processes, options, log)
    scaling: dict[str, Any] = {row.module: row.to_dict() for row in rows}
    if not any(row.error for row in rows):
        scaling["ratio"] = rows[1].median / rows[0].median
    return scaling
