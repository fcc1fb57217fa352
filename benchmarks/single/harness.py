"""Runs W8: ours at each level, Pillow and torchvision, a process each, in turn, on one core, by processor time."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import levels as _levels
from benchmarks.harness import Options, start
from benchmarks.inputs import make_images, read_jpegs
from benchmarks.levels import is_ours
from benchmarks.process import ONE_THREAD, PREPARE_TIMEOUT, RUN_TIMEOUT, Process
from benchmarks.single.base import BEYOND, PIPELINES, TARGETS, WAYS, Way

NAME = "w8"
TITLE = "one image at a time: F.* against Pillow, as_transform against torchvision on Pillow images, t(image)"
SIZES = ("same", "mixed")
WORKER = "benchmarks.single.worker"
PEERS: dict[Way, str] = {"function": "pillow", "as_transform": "torchvision_pil"}


def row_names() -> list[tuple[Way, str]]:
    from benchmarks.single.functions import FUNCTIONS

    functions: list[tuple[Way, str]] = [("function", name) for name in FUNCTIONS]
    return [*functions, *((way, name) for way in WAYS[1:] for name in PIPELINES)]


def select(names: str) -> list[tuple[Way, str]]:
    """Rows whose name or way is among ``names``, with semicolons (names have commas); all for none."""
    wanted = {name.strip() for name in names.split(";") if name.strip()}
    rows = row_names()
    unknown = wanted - {word for row in rows for word in row}
    if unknown:
        accepted = ", ".join(dict.fromkeys(word for row in rows for word in row))
        raise ValueError(f"--rows {min(unknown)}: accepted, with semicolons: {accepted}")
    return [row for row in rows if not wanted or wanted & set(row)]


def make_sizes(images: npt.NDArray[np.uint8], seed: int = 0) -> dict[str, list[npt.NDArray[np.uint8]]]:
    """The images as they are, and resized to sides of 144 to 304 pixels, no two alike."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    mixed = []
    for image in images:
        width, height = rng.integers(144, 305, 2).tolist()
        mixed.append(np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)))
    return {"same": list(images), "mixed": mixed}


def run(rows: list[tuple[Way, str]], options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """-> a JSON-able record. A row whose check failed has ``failed`` and no time, and so has the record."""
    limited, left_out = _levels.chosen(list(options.levels))
    jpegs, origin = read_jpegs(options.images)
    record: dict[str, Any] = {"work": NAME, "title": TITLE, "batch": options.batch, "left_out": left_out}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "beyond_limit": BEYOND, "rows": []}
    record["inputs"] = f"{options.batch} crops of {origin}, of 224 px and of sides from 144 to 304"
    with tempfile.TemporaryDirectory() as folder:
        for sizes, images in make_sizes(make_images(jpegs, options.batch)).items():
            np.savez(Path(folder) / f"{sizes}.npz", *images)
        config = {"inputs": folder, "core": options.core, "sizes": SIZES}
        processes = start(limited, ["torchvision_pil"], config, WORKER)
        # In our own environment, which has Pillow too.
        processes["pillow"] = Process(sys.executable, config | {"peer": "pillow"}, WORKER, ONE_THREAD)
        try:
            titles = {one.key: one.title for one in limited}
            record["libraries"] = _load(processes, titles)
            for number, (way, name) in enumerate(rows):
                print(f"  {number + 1} of {len(rows)}: {way}, {name}", file=log, flush=True)
                record["rows"] += [_row(way, name, sizes, processes, options) for sizes in SIZES]
        finally:
            for process in processes.values():
                process.close()
    record["failed"] = any(row.get("failed") for row in record["rows"])
    return record


def _load(processes: dict[str, Process], titles: dict[str, str]) -> dict[str, Any]:
    for process in processes.values():
        process.send({"command": "load"})
    ready = {module: process.receive(PREPARE_TIMEOUT) for module, process in processes.items()}
    return {m: {"library": titles.get(m, r["name"]), "versions": r["versions"]} for m, r in ready.items()}


def _row(way: Way, name: str, sizes: str, processes: dict[str, Process], options: Options) -> dict[str, Any]:
    row: dict[str, Any] = {"row": name, "way": way, "sizes": sizes, "target": TARGETS[way], "checks": {}}
    request: dict[str, Any] = {"way": way, "row": name, "sizes": sizes}
    taking_part = {m: p for m, p in processes.items() if is_ours(m) or m == PEERS.get(way)}
    runs: dict[str, list[dict[str, float]]] = {}
    batches: dict[str, list[dict[str, float]]] = {}
    for module, process in taking_part.items():
        if is_ours(module):
            row["checks"][module] = _check(process, request)
            if not all(check["passed"] for check in row["checks"][module]):
                return row | {"failed": True}
        ready = process.ask({"command": "prepare", **request}, PREPARE_TIMEOUT)
        if not ready.get("absent"):
            runs[module] = []
        if ready.get("by_batch"):
            batches[module] = []
    for _ in range(options.repeats):
        for found, command in ((runs, "run"), (batches, "run_batch")):
            for module in found:
                asked = {"command": command, "seconds": options.seconds}
                found[module].append(processes[module].ask(asked, RUN_TIMEOUT))
    row["libraries"] = {module: _times(found) for module, found in runs.items()}
    for module, whole in batches.items():
        cell = row["libraries"][module]
        cell["batch_microseconds"] = _times(whole)["microseconds"]
        cell["beyond_milliseconds"] = (cell["microseconds"] - cell["batch_microseconds"]) / 1e3
    return row


def _check(process: Process, request: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        checks: list[dict[str, Any]] = process.ask({"command": "check", **request}, PREPARE_TIMEOUT)["checks"]
        return checks
    except RuntimeError as error:  # a check that cannot run has not passed, whatever stopped it
        return [{"name": "every check ran", "passed": False, "found": str(error)}]


def _times(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Microseconds of processor time an image."""
    times = [1e6 * run["cpu"] / run["images"] for run in runs]
    return {"microseconds": statistics.median(times), "lowest": min(times), "highest": max(times), "runs": runs}
