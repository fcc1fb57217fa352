"""Runs one work: a process per library, all started and warm, then timed in turn, A B C A B C, one at a time."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import inputs as _inputs
from benchmarks import levels as _levels
from benchmarks.levels import OURS
from benchmarks.peers_env import peers_python
from benchmarks.process import ONE_THREAD, PREPARE_TIMEOUT, RUN_TIMEOUT, Process
from benchmarks.works.base import Check, Replay, Work


@dataclass(frozen=True)
class Options:
    batch: int = 64
    seconds: float = 2.0
    repeats: int = 7
    core: int | None = None
    only: tuple[str, ...] = ()
    images: Path | None = None
    levels: tuple[str, ...] = ()


@dataclass
class Row:
    """What one library did: its runs, or why there are none."""

    module: str
    name: str
    chosen: str = ""
    variants: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, float]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    clock: str = "cpu"

    def speeds(self) -> list[float]:
        return [run["images"] / run["wall"] for run in self.runs]

    @property
    def median(self) -> float:
        return statistics.median(self.speeds())

    @property
    def on_core(self) -> float:
        """Share of the time that the process had its core; well under 1 says that something else was running."""
        return sum(run["cpu"] for run in self.runs) / sum(run["wall"] for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"library": self.name, "versions": self.versions}
        if self.error:
            return described | {"error": self.error}
        speeds = self.speeds()
        return described | {
            "images_per_second": self.median,
            "lowest": min(speeds),
            "highest": max(speeds),
            "on_core": self.on_core,
            "variant": self.chosen,
            f"variants_images_per_{self.clock}_second": self.variants,
            "variants_failed": self.failed,
            "runs": self.runs,
            **self.extra,
        }


def run_work(work: Work, options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """Inputs, check, timing -> a JSON-able record. A failed check leaves ``failed`` and no speed."""
    peers = [module for module in options.only or work.peers if module != OURS]
    limited, left_out = _levels.chosen(list(options.levels)) if not options.only or OURS in options.only else ([], [])
    if work.is_indexed:
        limited = [each for one in limited for each in (one.indexed(), one)]
    given, origin = work.make_inputs(options.images)
    record: dict[str, Any] = {"work": work.name, "title": work.title, "target": work.target, "batch": options.batch}
    record |= {"level_targets": dict(work.level_targets), "left_out": left_out}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "inputs": f"{len(given)} images: {origin}"}
    with tempfile.TemporaryDirectory() as folder:
        _inputs.save(given, Path(folder))
        config = {"work": work.name, "inputs": folder, "batch": options.batch, "core": options.core}
        processes = start(limited, peers, config)
        try:
            if limited:
                golden = processes.get("torchvision_pil")
                record["checks"] = run_checks(lambda replay: work.check(given, replay), golden, Path(folder))
                record["checks"] += _level_checks(work.name, limited, processes, given, Path(folder))
                if not all(check["passed"] for check in record["checks"]):
                    return record | {"failed": True}
            rows = [Row(module, module) for module in processes]
            time_in_turn(rows, processes, options.seconds, options.repeats, log)
        finally:
            for process in processes.values():
                process.close()
    titles = {one.key: one.title for one in limited}
    return record | {"libraries": {row.module: row.to_dict() | _titled(titles, row.module) for row in rows}}


def start(
    limited: Iterable[_levels.Limited],
    peers: Iterable[str],
    config: dict[str, Any],
    worker: str = "benchmarks.worker",
) -> dict[str, Process]:
    """A process of ours for each level, one for each peer in the peers' own environment."""
    processes = {
        one.key: Process(
            sys.executable,
            config | {"peer": OURS, "level": one.level, "is_indexed": one.is_indexed},
            worker,
            ONE_THREAD | one.environment,
        )
        for one in limited
    }
    python = peers_python() if peers else None
    return processes | {module: Process(str(python), config | {"peer": module}, worker) for module in peers}


def _titled(titles: dict[str, str], module: str) -> dict[str, str]:
    return {"library": titles[module]} if module in titles else {}


def _level_checks(
    work: str, limited: list[_levels.Limited], processes: dict[str, Process], given: Any, folder: Path
) -> list[dict[str, Any]]:
    """What a limited process makes of the images that were just checked, against this process, to the bit."""
    levels = [one for one in limited if one.level]
    if not levels:
        return []
    import numpy as np

    from benchmarks.works.compare import equal, sampled

    here = sampled(work, given)
    checks = []
    for one in levels:
        path = str(folder / "level.npy")
        name = f"{one.title}: equals the pixels that were checked"
        try:
            processes[one.key].ask({"command": "outputs", "out": path}, PREPARE_TIMEOUT)
            checks.append(equal(name, np.load(path), here))
        except RuntimeError as error:
            checks.append(Check(name, False, str(error)))
    return [check.to_dict() for check in checks]


def time_in_turn(
    rows: list[Row],
    processes: dict[str, Process],
    seconds: float,
    repeats: int,
    log: Any,
    prepare_timeout: float = PREPARE_TIMEOUT,
    run_timeout: float = RUN_TIMEOUT,
) -> None:
    """Fill in ``rows``; one that has an error already, or meets one, is left out from there on."""
    for row in rows:
        if row.error:
            continue
        print(f"  preparing {row.module}", file=log)
        try:
            ready = processes[row.module].ask({"command": "prepare"}, prepare_timeout)
            row.name, row.chosen = ready["name"], ready["chosen"]
            row.variants, row.failed, row.versions = ready["variants"], ready["failed"], ready["versions"]
            row.extra = ready.get("extra", {})
        except RuntimeError as error:
            row.error = str(error)
    for repeat in range(repeats):
        print(f"  round {repeat + 1} of {repeats}", file=log)
        for row in rows:
            if row.error:
                continue
            try:
                run = processes[row.module].ask({"command": "run", "seconds": seconds}, run_timeout)
                row.runs.append(run)
            except RuntimeError as error:
                row.error = str(error)


def run_checks(
    check: Callable[[Replay], Iterable[Check]], golden: Process | None, folder: Path
) -> list[dict[str, Any]]:
    """A work's own checks. The golden library replays programs where it takes part in the run."""
    import numpy as np

    def replay(programs: list[dict[str, Any]]) -> list[Any] | None:
        if golden is None:
            return None
        paths = {"programs": str(folder / "programs.json"), "out": str(folder / "replayed.npz")}
        Path(paths["programs"]).write_text(json.dumps(programs))
        golden.ask({"command": "replay", **paths}, PREPARE_TIMEOUT)
        with np.load(paths["out"]) as arrays:
            return [arrays[f"arr_{i}"] for i in range(len(programs))]

    checks = []
    try:
        checks += [found.to_dict() for found in check(replay)]
    except Exception as error:  # a check that cannot run has not passed, whatever stopped it
        checks.append(Check("every check ran", False, f"{type(error).__name__}: {error}").to_dict())
    return checks
