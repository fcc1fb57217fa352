"""``python -m benchmarks.run_check --cleanvision PYTHON``: what ``variegate check`` finds, and how fast, beside
CleanVision on the same files: photos of a tar, some of them damaged in known ways.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import variegate as vg
from benchmarks import machine
from benchmarks.checking import damage
from benchmarks.inputs import DEFAULT_TAR

WORKER = Path(__file__).with_name("checking") / "cleanvision_worker.py"
# What CleanVision calls them. It has no names for the others.
THEIRS = {
    "tiny": "odd_size",
    "huge": "odd_size",
    "extreme_aspect": "odd_aspect_ratio",
    "blank": "low_information",
    "dark": "dark",
    "bright": "light",
    "low_contrast": "low_information",
    "blurred": "blurry",
}
BROKEN = ("corrupt", "truncated", "empty")
Found = Mapping[str, Set[str]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_check", description=__doc__)
    parser.add_argument("--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR})")
    parser.add_argument("--cleanvision", type=Path, help="a Python that has CleanVision; without it, ours alone")
    parser.add_argument("--design", action="store_true", help="the photos and strengths that thresholds were made with")
    parser.add_argument("--each", type=int, default=20, help="photos that are damaged in each way (20)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each, in turn (3)")
    parser.add_argument("--threads", type=int, default=2, help="of ours, and processes of CleanVision (2)")
    parser.add_argument("--out", type=Path, help="a file for the record as JSON")
    given = parser.parse_args(arguments)
    with tarfile.open(given.images) as archive:
        names = sorted(one.name for one in archive if one.name.lower().endswith((".jpg", ".jpeg")))
        files = [archive.extractfile(name).read() for name in names[0 if given.design else 1 :: 2]]  # type: ignore[union-attr]
    strengths = damage.DESIGN if given.design else damage.HELD_APART
    with tempfile.TemporaryDirectory() as folder:
        everything, whole = Path(folder, "all", "photos"), Path(folder, "whole", "photos")
        truth = damage.write(files, everything, strengths, given.each, seed=int(given.design))
        ways = {way: finding for way, (finding, _) in damage.damages(strengths).items()}
        whole.mkdir(parents=True)
        # CleanVision ends at the first file that is no image: it gets those that are.
        for name, way in truth.items():
            if ways.get(way) not in BROKEN:
                (whole / name).hardlink_to(everything / name)
        undamaged = Path(folder, "undamaged", "photos")
        undamaged.mkdir(parents=True)
        for name in (name for name, way in truth.items() if not way):
            (undamaged / name).hardlink_to(everything / name)
        ours = _ours(everything.parent, given.threads)[1]
        record: dict[str, Any] = {"machine": machine.describe(), "files": len(truth), "photos": len(files)}
        found: dict[str, Found] = {"variegate": ours}
        seconds: dict[str, list[float]] = {"variegate": [], "CleanVision": []}
        if given.cleanvision:
            found["CleanVision"] = _theirs(given.cleanvision, whole, given.threads)[1]
        for _ in range(given.repeats):
            seconds["variegate"].append(_ours(undamaged.parent, given.threads)[0])
            if given.cleanvision:
                seconds["CleanVision"].append(_theirs(given.cleanvision, undamaged, given.threads)[0])
    record["images_per_second"] = {name: len(files) / statistics.median(took) for name, took in seconds.items() if took}
    record["seconds"] = seconds
    record["findings"] = {name: _table(truth, ways, one, name) for name, one in found.items()}
    record["ways"] = {name: _recall_by_way(truth, ways, one, name) for name, one in found.items()}
    record["wrong"] = _wrong(truth, ways, ours, names[0 if given.design else 1 :: 2])
    text = json.dumps(record, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return 0


def _ours(folder: Path, threads: int) -> tuple[float, Found]:
    started = time.perf_counter()
    result = vg.check(folder, threads=threads)
    seconds = time.perf_counter() - started
    found: dict[str, set[str]] = {}
    for one in result.findings:
        if one.file is not None:
            found.setdefault(Path(one.file).name, set()).add(one.finding)
    return seconds, found


def _theirs(python: Path, folder: Path, jobs: int) -> tuple[float, Found]:
    done = subprocess.run([python, WORKER, folder, str(jobs)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"CleanVision: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    return answer["seconds"], {name: set(issues) for name, issues in answer["found"].items()}


def _table(truth: Mapping[str, str], ways: Mapping[str, str], found: Found, whose: str) -> dict[str, Any]:
    """By finding: how many were damaged so, how many of those were found, and on how many others it was put."""
    table = {}
    for finding in dict.fromkeys(ways.values()):
        called = finding if whose == "variegate" else THEIRS.get(finding)
        if called is None:
            continue
        # A name of theirs stands for several of ours: a file is right that has any of these damages.
        same = {one for one in ways.values() if one == finding or (whose != "variegate" and THEIRS.get(one) == called)}
        meant = {name for name, way in truth.items() if ways.get(way) == finding}
        named = {name for name, some in found.items() if called in some}
        right = {name for name in named if ways.get(truth[name]) in same}
        table[finding] = {
            **{"damaged": len(meant), "found": len(meant & named), "recall": len(meant & named) / len(meant)},
            **{"wrongly": len(named - right), "precision": len(right) / len(named) if named else None},
        }
    return table


def _recall_by_way(truth: Mapping[str, str], ways: Mapping[str, str], found: Found, whose: str) -> dict[str, float]:
    recall = {}
    for way, finding in ways.items():
        called = finding if whose == "variegate" else THEIRS.get(finding)
        files = [name for name, one in truth.items() if one == way]
        if called is not None:
            recall[way] = sum(called in found.get(name, ()) for name in files) / len(files)
    return recall


def _wrong(truth: Mapping[str, str], ways: Mapping[str, str], found: Found, names: list[str]) -> list[list[str]]:
    """[file, how it was damaged, finding that it should not have], to be looked at."""
    asked = set(ways.values())
    return [
        [names[int(file[6:10])] if file.startswith("photo") else file, way, finding]
        for file, way in truth.items()
        for finding in sorted(found.get(file, set()) & asked)
        if finding != ways.get(way)
    ]


if __name__ == "__main__":
    sys.exit(main())
