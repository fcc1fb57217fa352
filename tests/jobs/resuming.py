"""For a process of its own: jobs over and over, which fail at each of their system calls in turn, and then run again.

Prints JSON, for each job: how many system calls there were to fail at, and what went wrong.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import variegate as vg
from tests.data.annotated.made import put_voc
from tests.images import noise
from tests.jobs.augment.samples import expansion, lay_photos, lay_scans, threads
from tests.jobs.augment.test_annotated import expansion as annotated_expansion
from tests.jobs.output import runs
from tests.jobs.pack.samples import lay_kinds, packed
from variegate import transforms as T
from variegate.apps.check import scan
from variegate.data.indexing import index_source
from variegate.program.depth import Depth
from variegate.workers.protocol import EngineError

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate")
KILLED = 9
# Calls of which both runs are killed: every third time.
_TWICE = 3
Job = Callable[[Path, Path, bool], object]


def _augment(**settings: Any) -> Job:
    def run(photos: Path, out: Path, resume: bool) -> object:
        return expansion(photos, out, threads(1), resume=resume, copies=3, size=(16, 16), **settings).run()

    return run


def _annotated(source: Path, out: Path, resume: bool) -> object:
    return annotated_expansion(source, "voc", out, threads(1), resume=resume, copies=7).run()


def _pack(format: str, depth: str = "uint8") -> Job:
    def run(photos: Path, out: Path, resume: bool) -> object:
        options: dict[str, Any] = {"size": 16, "format": format, "depth": depth, "shard_size": 3}
        return packed(photos, out, devices="cpu:0", resume=resume, **options)

    return run


def _check(photos: Path, out: Path, resume: bool) -> object:
    scan.SAMPLES_A_PART = 2
    out.mkdir(parents=True, exist_ok=True)
    return vg.check(photos, out=out / "found.parquet", threads=1)


def _index(photos: Path, out: Path, resume: bool) -> object:
    return index_source(photos, out / "photos.vgjpeg")


def _lay_array(root: Path) -> None:
    root.mkdir()
    np.save(root / "a.npy", noise(90, 70))


def _image(source: Path, out: Path, resume: bool) -> object:
    out.mkdir(parents=True, exist_ok=True)
    blurred = T.Compose([T.Equalize(), T.GaussianBlur(5)])
    return threads(1).map_image(source / "a.npy", blurred, out=out / "b.npy", tile=32, resume=resume)


def tree(root: Path) -> dict[str, bytes | None]:
    """All files. Those beside an index, which several may write, are left for the next of its writers."""
    return {name: data for name, data in runs.tree(root).items() if not name.startswith(".photos.vgjpeg")}


# Name: what makes the source, and the job.
JOBS: dict[str, tuple[Callable[[Path], object], Job]] = {
    "folder": (lay_photos, _augment()),
    "webdataset": (lay_photos, _augment(layout="webdataset", shard_size=10)),
    "parquet": (lay_photos, _augment(layout="parquet", shard_size=10)),
    "voc": (put_voc, _annotated),
    "pack": (lay_kinds, _pack("webdataset")),
    "pack raw": (lay_kinds, _pack("raw")),
    "pack deep": (lay_scans, _pack("raw", "uint16")),
    "check": (lay_photos, _check),
    "index": (lay_kinds, _index),
    "image": (_lay_array, _image),
    "deep": (lay_scans, _augment(depth=Depth.UINT16, format="tif", policy="none")),
}


def fail_at(step: int, is_kill: bool) -> None:
    """From its call number ``step`` on, let the process end, or calls fail as on a full disk. A write writes half."""
    count = 0
    real_open = os.open

    def counted(real: Callable[..., Any], is_write: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if not is_kill and real is real_open and not arguments[1] & (os.O_WRONLY | os.O_RDWR):
                return real(*arguments, **options)  # a full disk can be read
            count += 1
            if count < step:
                return real(*arguments, **options)
            if is_write:
                real(arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 2])
            if is_kill:
                os._exit(KILLED)
            raise OSError(errno.ENOSPC, "No space left on device")

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name), name == "write"))


def in_a_child(act: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            warnings.simplefilter("ignore")
            act()
        except (OSError, EngineError):
            os._exit(KILLED)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(root: Path, runs: str) -> None:
    """``runs``: in JSON, the arguments of ``fail_everywhere`` after its first."""
    pa.array(["imports pandas once, not in every child"])
    gc.freeze()  # so that children copy less memory
    print(json.dumps([fail_everywhere(root / str(number), *run) for number, run in enumerate(json.loads(runs))]))


def fail_everywhere(root: Path, name: str, state: str, every: int) -> dict[str, Any]:
    """``state``: "fresh"; "again", a complete run that is done again without resuming; "lost", a complete run that has
    lost outputs; "full", a disk that is full from some call on."""
    lay, job = JOBS[name]
    root.mkdir()
    source, whole_run, place = root / "source", root / "whole", root / "out"
    lay(source)
    assert in_a_child(lambda: job(source, whole_run, True)) == 0
    whole = tree(whole_run)
    lost = sorted(path for path in whole if path.endswith((".jpg", ".tar")))[1:3] if state == "lost" else []
    wrong = []

    def seen() -> list[str]:
        """What may never be on the disk, at any moment."""
        found = tree(place) if place.exists() else {}
        bad = [f"{path} is not whole" for path in found if path in whole and found[path] != whole[path]]
        if "manifest.parquet" in found:
            bad += [f"{path} is listed and missing" for path in whole if path not in (*found, *lost)]
        return [text for text in bad if not text.startswith(tuple(lost) or ("/",))]

    def failing(step: int, resume: bool) -> int:
        def act() -> None:
            fail_at(step, state != "full")
            job(source, place, resume)

        return in_a_child(act)

    step, code = 0, KILLED
    while code == KILLED:
        step += every
        shutil.rmtree(place, ignore_errors=True)
        if state in ("again", "lost"):
            shutil.copytree(whole_run, place)
        for number, path in enumerate(lost):
            (place / path).write_bytes(b"cut") if number else (place / path).unlink()
        code = failing(step, state != "again")
        wrong += [f"failed at {step}: {text}" for text in seen()]
        if step // every % _TWICE == 0:
            failing(1 + step * 7 % 41, True)
            wrong += [f"failed at {step} and then: {text}" for text in seen()]
        again = in_a_child(lambda: job(source, place, True))
        if again != 0 or tree(place) != whole:
            wrong.append(f"failed at {step}, the next run ended with {again} and {sorted(tree(place))}")
    if code != 0:
        wrong.append(f"without a failure, it ended with {code}")
    return {"steps": step - every, "wrong": wrong}
