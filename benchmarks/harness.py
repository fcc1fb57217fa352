"""Runs a work: a process per library, each case checked, then measured in turn, A B C A B C."""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import levels as _levels
from benchmarks.cases import ASKED, WORKS, Case
from benchmarks.inputs import read_jpegs, save
from benchmarks.levels import OURS, Limited, is_ours
from benchmarks.peers_env import peers_python
from benchmarks.process import ONE_THREAD, PREPARE_TIMEOUT, RUN_TIMEOUT, Process


@dataclass
class Cell:
    """One library's part of a case: its runs by part ("" is the case itself), or the reason for missing runs."""

    ready: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    absent: str = ""
    error: str = ""
    clock: str = "cpu"

    def speeds(self, part: str = "") -> list[float]:
        return [run["images"] / run[self.clock] for run in self.runs[part]]

    def to_dict(self) -> dict[str, Any]:
        """``microseconds`` per image, and of ``parts``; ``on_core``: the share of the time on the core."""
        if self.absent or self.error:
            return {"absent": self.absent} if self.absent else {"error": self.error}
        speeds = self.speeds()
        speed = statistics.median(speeds)
        found: dict[str, Any] = {key: value for key, value in self.ready.items() if value}
        found |= {
            "images_per_second": speed,
            "lowest": min(speeds),
            "highest": max(speeds),
            "microseconds": 1e6 / speed,
        }
        found["runs"] = self.runs[""]
        images, wall, cpu = (sum(run[key] for run in self.runs[""]) for key in ("images", "wall", "cpu"))
        if self.clock == "cpu":
            found["on_core"] = cpu / wall
        else:
            found["cpu_ms_per_image"] = 1e3 * cpu / images
        if parts := {part: 1e6 / statistics.median(self.speeds(part)) for part in self.runs if part}:
            found["parts"] = parts
        return found


def run(name: str, cases: list[Case], batch: int, options: Namespace) -> dict[str, Any]:
    """Check and measure -> a JSON-able record. A case whose check failed has ``failed`` and no speed, as the record.

    ``options``: see ``benchmarks.run``.
    """
    work = WORKS[name]
    has_ours = not options.only or OURS in options.only
    kinds = [key for key in options.only if key.startswith(f"{OURS}:")]
    peers = [key for key in options.only or work.peers if not is_ours(key)]
    limited, missing = _levels.chosen(options.level) if has_ours else ([], [])
    if work.is_indexed:
        limited = [each for one in limited for each in (one.indexed(), one)]
    limited = limited + [Limited(None, key, f"Variegate, {key}", {}) for key in kinds]
    record: dict[str, Any] = {
        "work": name,
        "title": work.title,
        "batch": batch,
        "left_out": missing,
        "seconds": options.seconds or work.seconds,
        "repeats": options.repeats or work.repeats,
        "asked": dict(work.asked),
        "rows": {},
    }
    jpegs, origin = read_jpegs(options.images)
    with tempfile.TemporaryDirectory() as folder:
        record["inputs"] = f"{save(jpegs, cases, Path(folder))}: {origin}"
        config = {
            "work": name,
            "inputs": folder,
            "batch": batch,
            "core": options.core,
            "device": options.device if work.is_on_gpu else "cpu",
            "is_on_one_core": not work.is_on_gpu and not work.is_on_all_cores,
        }
        processes = start(limited, peers, config)
        try:
            record["libraries"] = load(processes, {one.key: one.title for one in limited})
            for number, case in enumerate(cases):
                print(f"  {number + 1} of {len(cases)}: {case.name}", file=sys.stderr, flush=True)
                record["rows"][case.name] = run_case(case, processes, record, config["is_on_one_core"])
        finally:
            for process in processes.values():
                process.close()
    record["failed"] = any(row.get("failed") for row in record["rows"].values())
    return hoist(record) if len(work.cases) == 1 else record


def hoist(record: dict[str, Any]) -> dict[str, Any]:
    """A work of one case: its only row becomes the record's own libraries and checks."""
    rows = record.pop("rows")
    (row,) = rows.values()
    record["asked"] = record.get("asked") or {"": row["target"]}
    for key, cell in row.get("libraries", {}).items():
        record["libraries"][key] |= cell
    ours = record["libraries"].get(OURS, {})
    if "ceiling" in ours.get("parts", {}):
        for cell in record["libraries"].values():
            if "microseconds" in cell:
                cell["of_ceiling"] = ours["parts"]["ceiling"] / cell["microseconds"]
    record["checks"] = [check for checks in row["checks"].values() for check in checks]
    return record


def start(limited: list[Limited], peers: list[str], config: dict[str, Any]) -> dict[str, Process]:
    """A process of ours for each level, and one for each peer in the peers' own environment."""
    threads = ONE_THREAD if config["is_on_one_core"] else {}
    processes = {}
    for one in limited:
        given = config | {
            "library": OURS,
            "level": one.level,
            "is_indexed": one.is_indexed,
            "kind": "",
        }
        if one.level is None and not one.is_indexed:
            given["kind"] = one.key.partition(":")[2]
        processes[one.key] = Process(sys.executable, given, environment=threads | one.environment)
    # A machine with a GPU may reach no package registry: its peers may be installed in Variegate's environment.
    python = peers_python(or_this=config["device"] != "cpu") if peers else Path()
    for key in peers:
        processes[key] = Process(python, config | {"library": key}, environment=threads)
    return processes


def load(processes: dict[str, Process], titles: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Import in all processes at the same time. A library that cannot be loaded is removed from ``processes``."""
    found: dict[str, dict[str, Any]] = {}
    for process in processes.values():
        process.send({"command": "load"})
    for key, process in list(processes.items()):
        try:
            ready = process.receive(PREPARE_TIMEOUT)
            found[key] = {
                "library": titles.get(key, ready["name"]),
                "versions": ready["versions"],
            }
        except RuntimeError as error:
            found[key] = {"library": titles.get(key, key), "error": str(error)}
            process.close()
            del processes[key]
    return found


def run_case(case: Case, processes: dict[str, Process], record: dict[str, Any], is_on_one_core: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "title": case.title,
        "kind": case.kind,
        "target": case.asked or record["asked"].get("", ASKED[case.kind]),
        "size": case.size,
        "dtype": case.dtype,
        "batch": case.batch_of(record["batch"]),
    }
    row["checks"] = {key: check(case, process) for key, process in processes.items() if is_ours(key)}
    if not all(one["passed"] for checks in row["checks"].values() for one in checks):
        return row | {"failed": True}
    clock = "cpu" if is_on_one_core else "wall"
    cells = {key: prepare(case, process, clock) for key, process in processes.items()}
    for _ in range(record["repeats"]):
        for key, cell in cells.items():
            measure(cell, processes[key], record["seconds"])
    row["libraries"] = {key: cell.to_dict() for key, cell in cells.items()}
    return row


def check(case: Case, process: Process) -> list[dict[str, Any]]:
    try:
        checks: list[dict[str, Any]] = process.ask({"command": "check", "case": case.name}, PREPARE_TIMEOUT)["checks"]
        return checks
    except RuntimeError as error:  # a check that cannot run has not passed, whatever stopped it
        return [{"name": "every check ran", "passed": False, "found": str(error)}]


def prepare(case: Case, process: Process, clock: str) -> Cell:
    try:
        ready = process.ask({"command": "prepare", "case": case.name}, PREPARE_TIMEOUT)
    except RuntimeError as error:
        return Cell(error=str(error))
    if "absent" in ready:
        return Cell(absent=ready["absent"])
    return Cell(ready, {part: [] for part in ready.pop("parts")}, clock=clock)


def measure(cell: Cell, process: Process, seconds: float) -> None:
    """Run the case and its parts once."""
    for part, runs in cell.runs.items():
        if cell.error:
            return
        try:
            runs.append(process.ask({"command": "run", "part": part, "seconds": seconds}, RUN_TIMEOUT))
        except RuntimeError as error:
            cell.error = str(error)
