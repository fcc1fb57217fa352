"""Runs W3 or W3r: the check, the copy, then a process per library on the one GPU, in turn, A B C A B C."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import inputs as _inputs
from benchmarks.gpu import device as _device
from benchmarks.gpu import pictures as _pictures
from benchmarks.gpu import works
from benchmarks.gpu.pictures import Pictures
from benchmarks.gpu.works import GpuWork
from benchmarks.harness import Row, run_checks, time_in_turn
from benchmarks.levels import OURS
from benchmarks.peers_env import VARIABLE
from benchmarks.process import ONE_THREAD, PREPARE_TIMEOUT, Process
from benchmarks.works.compare import SAMPLE

PEERS = {"dali": "DALI GPU", "kornia": "Kornia", "torchvision": "torchvision v2, per sample"}
PLUMBING_PICTURES = 8


@dataclass(frozen=True)
class Options:
    batch: int
    seconds: float
    repeats: int
    device: str
    compile_seconds: float
    only: tuple[str, ...] = ()

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")


@dataclass(frozen=True)
class Source:
    """A work's pictures, made once for all its tables."""

    jpegs: list[bytes]
    pictures: Pictures
    origin: str


def read(work: GpuWork, tar: Path | None, on_gpu: bool) -> Source:
    """Without a GPU a handful, as nothing is measured."""
    if not on_gpu:
        jpegs, origin = _inputs.make_jpegs(PLUMBING_PICTURES), "made from scikit-image photos"
        made = work.make_pictures(jpegs)
        return Source(jpegs, _pictures.pack(made.images()[:PLUMBING_PICTURES]), origin)
    jpegs, origin = _inputs.read_jpegs(tar)
    made = work.make_pictures(jpegs)
    return Source(jpegs, made, f"{len(made)} pictures, {origin}")


def run_work(work: GpuWork, source: Source, options: Options, log: Any = sys.stderr) -> dict[str, Any]:
    """Check, copy, timing -> a JSON-able record. A failed check leaves ``failed`` and no speed."""
    described = _device.describe(options.device)
    batches = source.pictures.batches(options.batch, described["l2_bytes"])
    record: dict[str, Any] = {"work": work.name, "title": work.title, "batch": options.batch, "gpu": described}
    record |= {"target": work.target, "target_share": work.share, "inputs": source.origin}
    record |= {"batches_in_turn": len(batches), "batches_bytes": sum(one.data.nbytes for one in batches)}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "compile_seconds": options.compile_seconds}
    with tempfile.TemporaryDirectory() as folder:
        if not options.only or OURS in options.only:
            record["checks"] = _checks(work, source, batches[0], options.device, Path(folder))
            if not all(check["passed"] for check in record["checks"]):
                return record | {"failed": True}
        _device.release(options.device)
        record["bytes_per_image"] = {"read": works.read_bytes(work, source.pictures), "written": works.WRITTEN_BYTES}
        record["copy_bytes_per_second"] = _device.copy_speed(options.device)
        del batches
        _pictures.save(source.pictures, Path(folder))
        config = {"work": work.name, "inputs": folder, "batch": options.batch, "device": options.device}
        config |= {"compile_seconds": options.compile_seconds}
        rows = _time(config, options, log)
    return record | {"libraries": {row.module: row.to_dict() for row in rows}}


def _checks(work: GpuWork, source: Source, batch: Pictures, device: str, folder: Path) -> list[dict[str, Any]]:
    """The golden library reads the pictures that ``batch`` begins with, in a process of its own."""
    few = _pictures.pack(batch.images()[:SAMPLE])
    jpegs = [source.jpegs[i % len(source.jpegs)] for i in range(len(few))]
    _inputs.save(work.golden_inputs(jpegs, few), folder)
    config = {"work": work.name, "inputs": str(folder), "batch": 1, "core": None, "peer": "torchvision_pil"}
    golden = Process(_peers_python(), config)
    try:
        return run_checks(lambda replay: works.check(work, batch, device, replay), golden, folder)
    finally:
        golden.close()


def _time(config: dict[str, Any], options: Options, log: Any) -> list[Row]:
    modules = options.only or (OURS, *PEERS)
    rows = [Row(module, PEERS.get(module, module), clock="wall") for module in modules]
    # With a GPU the host's part counts as its users have it, with all its threads.
    environment = {} if options.on_gpu else ONE_THREAD
    processes = {
        module: Process(
            sys.executable if module == OURS else _peers_python(),
            config | {"peer": module},
            worker="benchmarks.gpu.worker",
            environment=environment,
        )
        for module in modules
    }
    try:
        print("  loading", file=log)
        for row in rows:
            processes[row.module].send({"command": "load"})
        for row in rows:
            try:
                processes[row.module].receive(PREPARE_TIMEOUT)
            except RuntimeError as error:
                row.error = f"not run: {error}"
        time_in_turn(rows, processes, options.seconds, options.repeats, log)
    finally:
        for process in processes.values():
            process.close()
    return rows


def _peers_python() -> str:
    """This interpreter, unless the peers have one of their own: a machine with a GPU may reach no package registry."""
    return os.environ.get(VARIABLE, sys.executable)
