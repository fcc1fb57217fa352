"""Runs W2o: a process per library for all rows, timed in turn row by row, on one core, by processor time."""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import levels as _levels
from benchmarks.harness import Options, start
from benchmarks.levels import OURS, is_ours
from benchmarks.process import PREPARE_TIMEOUT, RUN_TIMEOUT, Process
from benchmarks.rows import inputs as _inputs
from benchmarks.rows.catalogue import FLOOR, Case

NAME = "w2o"
TITLE = "operations and pipelines, uint8 photos in memory -> float32 NCHW, normalized, one core"
PEERS = ("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali")
# A peer this many times slower than the best is not it: two runs tell.
FAR, FEWEST = 1.5, 2
# Levels by which a row without chance may differ between libraries: they round, interpolate and blend their own ways.
APART = 3.0


@dataclass
class Cell:
    """One library's part of a row: its runs, or why there are none."""

    ready: dict[str, Any]
    runs: list[dict[str, float]]
    absent: str = ""
    error: str = ""

    def speeds(self) -> list[float]:
        """Images per second of processor time."""
        return [run["images"] / run["cpu"] for run in self.runs]

    def to_dict(self) -> dict[str, Any]:
        if self.absent or self.error:
            return {key: value for key, value in (("absent", self.absent), ("error", self.error)) if value}
        speeds = self.speeds()
        found: dict[str, Any] = {
            "images_per_second": statistics.median(speeds),
            "lowest": min(speeds),
            "highest": max(speeds),
        }
        found |= {"microseconds": 1e6 / found["images_per_second"], "runs": self.runs}
        return found | {key: value for key, value in self.ready.items() if value}


def run(cases: tuple[Case, ...], options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """-> a JSON-able record. A row whose check failed has ``failed`` and no speed, and so has the record."""
    peers = [module for module in options.only or PEERS if module != OURS]
    limited, left_out = _levels.chosen(list(options.levels)) if not options.only or OURS in options.only else ([], [])
    record: dict[str, Any] = {"work": NAME, "title": TITLE, "batch": options.batch, "left_out": left_out}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "floor": FLOOR, "rows": {}}
    with tempfile.TemporaryDirectory() as folder:
        record["inputs"] = _inputs.lay_down({case.size for case in cases}, options.images, Path(folder))
        config = {"inputs": folder, "batch": options.batch, "core": options.core}
        processes = start(limited, peers, config, worker="benchmarks.rows.worker")
        try:
            record["libraries"] = _load(processes, {one.key: one.title for one in limited})
            for number, case in enumerate(cases):
                print(f"  {number + 1} of {len(cases)}: {case.name}", file=log, flush=True)
                record["rows"][case.name] = _row(case, processes, options, Path(folder))
        finally:
            for process in processes.values():
                process.close()
    record["failed"] = any(row.get("failed") for row in record["rows"].values())
    return record


def _load(processes: dict[str, Process], titles: dict[str, str]) -> dict[str, Any]:
    """Imports at the same time; what cannot be loaded leaves ``processes``."""
    found: dict[str, Any] = {}
    for process in processes.values():
        process.send({"command": "load"})
    for module, process in list(processes.items()):
        try:
            ready = process.receive(PREPARE_TIMEOUT)
            found[module] = {"library": titles.get(module, ready["name"]), "versions": ready["versions"]}
        except RuntimeError as error:
            found[module] = {"library": titles.get(module, module), "error": str(error)}
            process.close()
            del processes[module]
    return found


def _row(case: Case, processes: dict[str, Process], options: Options, folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"title": case.title, "kind": case.kind, "target": case.target, "checks": {}}
    row |= {"size": case.size, "dtype": case.dtype, "batch": case.batch(options.batch)}
    for module, process in processes.items():
        if is_ours(module):
            row["checks"][module] = _check(case, process)
    if not all(check["passed"] for checks in row["checks"].values() for check in checks):
        return row | {"failed": True}
    cells = {module: _prepare(case, module, process, folder) for module, process in processes.items()}
    if case.fixed:
        row["levels_apart"] = _apart(case, list(processes), folder)
    _time(cells, processes, options)
    row["libraries"] = {module: cell.to_dict() for module, cell in cells.items()}
    return row


def _check(case: Case, process: Process) -> list[dict[str, Any]]:
    try:
        checks: list[dict[str, Any]] = process.ask({"command": "check", "row": case.name}, PREPARE_TIMEOUT)["checks"]
        return checks
    except RuntimeError as error:  # a check that cannot run has not passed, whatever stopped it
        return [{"name": "every check ran", "passed": False, "found": str(error)}]


def _prepare(case: Case, module: str, process: Process, folder: Path) -> Cell:
    out = str(_shown(folder, case, module)) if case.fixed else None
    try:
        ready = process.ask({"command": "prepare", "row": case.name, "out": out}, PREPARE_TIMEOUT)
    except RuntimeError as error:
        return Cell({}, [], error=str(error))
    return Cell(ready, [], absent=ready.pop("absent", ""))


def _time(cells: dict[str, Cell], processes: dict[str, Process], options: Options) -> None:
    """In turn, A B C A B C. A peer that is far behind the best stops after a few runs."""
    for repeat in range(options.repeats):
        peers = [cell for module, cell in cells.items() if not is_ours(module) and cell.runs]
        best = max((max(cell.speeds()) for cell in peers), default=0.0)
        for module, cell in cells.items():
            if cell.absent or cell.error:
                continue
            if repeat >= FEWEST and not is_ours(module) and FAR * max(cell.speeds()) < best:
                continue
            try:
                run = processes[module].ask({"command": "run", "seconds": options.seconds}, RUN_TIMEOUT)
                cell.runs.append(run)
            except RuntimeError as error:
                cell.error = str(error)


def _shown(folder: Path, case: Case, module: str) -> Path:
    return folder / f"{case.name}-{module.replace(':', '-')}.npy"


def _apart(case: Case, modules: list[str], folder: Path) -> dict[str, float]:
    """Mean difference in levels of each peer's first images to ours: that the row means the same to both."""
    import numpy as np

    from benchmarks.inputs import STD

    shown = {module: _shown(folder, case, module) for module in modules}
    ours = next((path for module, path in shown.items() if is_ours(module) and path.exists()), None)
    if ours is None:
        return {}
    scale = np.float32(255) * np.array(STD, np.float32).reshape(1, 3, 1, 1) if case.dtype == "float32" else 1
    pixels = np.load(ours)
    peers = {module: path for module, path in shown.items() if not is_ours(module) and path.exists()}
    return {module: float(np.abs((np.load(path) - pixels) * scale).mean()) for module, path in peers.items()}
