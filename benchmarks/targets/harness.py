"""Runs rows of targets: ours at each level and AlbumentationsX, a process each, in turn, by processor time."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import levels as _levels
from benchmarks.harness import Options, start
from benchmarks.inputs import Inputs, read_jpegs, save
from benchmarks.levels import is_ours
from benchmarks.process import PREPARE_TIMEOUT, RUN_TIMEOUT, Process
from benchmarks.targets.catalogue import Row

PEER = "albumentationsx"
WORKER = "benchmarks.targets.worker"


def run(rows: list[Row], options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """-> a JSON-able record. A row whose check failed has ``failed`` and no time, and so has the record."""
    limited, left_out = _levels.chosen(list(options.levels))
    jpegs, origin = read_jpegs(options.images)
    record: dict[str, Any] = {"work": "targets", "left_out": left_out, "inputs": origin}
    record |= {"title": "images with masks and boxes", "seconds": options.seconds, "repeats": options.repeats}
    record["rows"] = []
    with tempfile.TemporaryDirectory() as folder:
        save(Inputs(jpegs), Path(folder))
        processes = start(limited, [PEER], {"inputs": folder, "core": options.core}, WORKER)
        try:
            ready = {module: process.ask({"command": "load"}, PREPARE_TIMEOUT) for module, process in processes.items()}
            titles = {one.key: one.title for one in limited}
            record["libraries"] = {
                m: {"library": titles.get(m, r["name"]), "versions": r["versions"]} for m, r in ready.items()
            }
            for number, row in enumerate(rows):
                print(f"  {number + 1} of {len(rows)}: {row.name}", file=log, flush=True)
                record["rows"].append(_row(row, processes, options))
        finally:
            for process in processes.values():
                process.close()
    record["failed"] = any(row.get("failed") for row in record["rows"])
    return record


def _row(row: Row, processes: dict[str, Process], options: Options) -> dict[str, Any]:
    found: dict[str, Any] = {"row": row.name, "title": row.title, "side": row.side, "out": row.out, "batch": row.batch}
    found |= {"boxes": row.boxes, "masks": row.masks, "has_instances": row.has_instances, "target": row.target}
    found |= {"checks": {}, "errors": {}}
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    for module, process in processes.items():
        try:
            ready = process.ask({"command": "prepare", "row": row.name}, PREPARE_TIMEOUT)
        except RuntimeError as error:
            found["errors"][module] = str(error)
            if is_ours(module):  # a check that cannot run has not passed
                found["checks"][module] = [{"name": "every check ran", "passed": False, "found": str(error)}]
            continue
        runs[module] = {call: [] for call in ready["calls"]}
        if is_ours(module):
            found["checks"][module] = ready["checks"]
    if not all(check["passed"] for checks in found["checks"].values() for check in checks):
        return found | {"failed": True}
    for _ in range(options.repeats):
        for call in dict.fromkeys(call for calls in runs.values() for call in calls):
            for module, calls in runs.items():
                if call in calls:
                    asked = {"command": "run", "call": call, "seconds": options.seconds}
                    calls[call].append(processes[module].ask(asked, RUN_TIMEOUT))
    found["libraries"] = {module: {c: _times(each) for c, each in calls.items()} for module, calls in runs.items()}
    return found


def _times(runs: list[dict[str, float]]) -> dict[str, float]:
    """Microseconds of processor time an image."""
    times = [1e6 * run["cpu"] / run["images"] for run in runs]
    return {"microseconds": statistics.median(times), "lowest": min(times), "highest": max(times)}
