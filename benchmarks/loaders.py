"""``python -m benchmarks.run loader | feeds``: loaders from files on disk to batches, on all cores.

``loader``: epochs of each library's own loader, of class folders of JPEG files. ``feeds``: the same batches feed the
step of a training; the ceiling is that step on one repeated batch. Each library runs in a process of its own, in turn,
after a check of an epoch; ours also with other kinds of workers (``ours:process``, ``ours:ray``).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.levels import OURS, is_ours
from benchmarks.process import Process
from benchmarks.worker import check_batch, in_a_line, serve

TITLE = "JPEG files -> RandomResizedCrop(224), flip, RandAugment(2, 9), normalize -> float32 NCHW and labels, all cores"
PEERS = ("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali")
CEILING = "ceiling"
CLASSES = 100
CALIBRATION_SECONDS, HOPELESS = 1.0, 0.93
CHECK_TIMEOUT, RUN_TIMEOUT = 3600.0, 600.0
PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


# -- files -------------------------------------------------------------------------------------------------------------


def write_photos(jpegs: Sequence[bytes], folder: Path, copies: int) -> None:
    """Class folders, with ``copies`` links to each file, so that an epoch can be longer than the sample of photos."""
    for number, data in enumerate(jpegs):
        home = folder / f"class-{number % CLASSES:03d}"
        home.mkdir(parents=True, exist_ok=True)
        first = home / f"{number:05d}-0.jpg"
        first.write_bytes(data)
        for copy in range(1, copies):
            os.link(first, home / f"{number:05d}-{copy}.jpg")


def list_photos(folder: Path) -> tuple[list[Path], list[int]]:
    """Files and labels in ImageFolder's order, which ids follow."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    labeled = [(file, label) for label, home in enumerate(classes) for file in sorted(home.iterdir())]
    return [file for file, _ in labeled], [label for _, label in labeled]


def check_epoch(batches: Iterable[Any], batch: int, labels: Sequence[int]) -> str:
    """Raise unless every batch of an epoch is as asked for -> the epoch in words.

    Libraries that shuffle by a buffer may show a file twice, so labels are compared by their mean and range.
    """
    import numpy as np

    from benchmarks.cases import W1

    seen: list[int] = []
    for images, given in batches:
        check_batch(images, W1, batch)
        seen += np.asarray(given).tolist()
    count = len(seen) // batch
    if not len(labels) // batch <= count <= -(-len(labels) // batch):
        raise ValueError(f"an epoch has {count} batches of {batch}; there are {len(labels)} files")
    expected, found = float(np.mean(labels)), float(np.mean(seen))
    if min(seen) < 0 or max(seen) > max(labels) or abs(found - expected) > 0.15 * (max(labels) + 1):
        raise ValueError(f"labels {min(seen)}..{max(seen)}, {found:.1f} on average; {expected:.1f} of 0..{max(labels)}")
    if seen == sorted(seen):
        raise ValueError("labels are in order; a shuffled epoch is asked for")
    return f"{count} batches, labels {min(seen)}..{max(seen)}, {found:.1f} on average"


# -- processes ---------------------------------------------------------------------------------------------------------


def process_tree(root: int) -> list[int]:
    """``root`` and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        fields = _stat(folder.name) if folder.name.isdigit() else None
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for process in found:  # grows while it is traversed
        found += children.get(process, [])
    return found


def cpu_seconds(root: int) -> float:
    """Processor time of the tree's living processes, and of those that ended and were waited for."""
    stats = [_stat(str(process)) for process in process_tree(root)]
    return sum(sum(map(int, fields[11:15])) for fields in stats if fields is not None) / TICKS


def wait_until_idle(root: int) -> None:
    """Until the tree uses next to no processor time: batches ahead must not take the cores from the next library."""
    end = time.perf_counter() + 15.0
    while time.perf_counter() < end:
        before = cpu_seconds(root)
        time.sleep(0.2)
        if cpu_seconds(root) - before <= 0.01:
            return


def _stat(process: str) -> list[str] | None:
    """The fields of /proc/N/stat after the name, which may have spaces; None if the process has ended."""
    try:
        return (PROC / process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


# -- the worker --------------------------------------------------------------------------------------------------------


class Step:
    """The step of a small training, on the CPU or on a GPU: a convolutional network of five layers."""

    def __init__(self, device: str) -> None:
        import torch
        from torch import nn

        self.device = device
        layers: list[nn.Module] = []
        for narrow, wide in ((3, 32), (32, 64), (64, 128), (128, 256)):
            layers += [nn.Conv2d(narrow, wide, 3, 2, 1), nn.ReLU(inplace=True)]
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, CLASSES))
        self.model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)

    def __call__(self, images: Any, labels: Any) -> None:
        import torch

        images = torch.as_tensor(images).to(self.device, memory_format=torch.channels_last, non_blocking=True)
        labels = torch.as_tensor(labels).to(self.device, torch.int64, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()


class Repeated:
    """Epochs of one batch of random numbers."""

    def __init__(self, batch: int, count: int, device: str) -> None:
        import torch

        images = torch.randn(batch, 3, 224, 224).to(device, memory_format=torch.channels_last)
        self.batch, self.count = (images, torch.arange(batch, device=device) % CLASSES), count

    def __iter__(self) -> Any:
        return iter([self.batch] * self.count)


class LoaderWorker:
    """One library's loader, which may start more processes. One way is open at a time."""

    def __init__(self, config: dict[str, Any]) -> None:
        from benchmarks import libraries

        folder, self.batch = Path(config["folder"]), int(config["batch"])
        self.given = libraries.LoaderInputs(folder, self.batch, len(config["cores"]))
        self.files, self.labels = list_photos(folder)
        self.key = config["library"]
        self.step = Step(config["device"]) if config["device"] else None
        self.openers: dict[str, Callable[[], Any]] = {}
        name, _, kind = self.key.partition(":")
        if self.key == CEILING:
            count = len(self.files) // self.batch
            self.openers = {"one batch": lambda: Repeated(self.batch, count, config["device"])}
            return
        if name == OURS:
            from benchmarks.libraries.ours import Variegate

            self.library: Any = Variegate(kind)
        else:
            self.library = libraries.load(name)
        self.openers = self.library.loaders(self.given)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request["command"]
        if command == "load":
            is_library = self.key != CEILING
            named = {"library": self.library.name, "versions": self.library.versions()} if is_library else {}
            return {"library": "one repeated batch", "versions": {}} | named
        if command == "check":
            from benchmarks.checks import check_loader

            kind = self.key.partition(":")[2]
            return {"checks": [one.to_dict() for one in check_loader(self.given, kind, self.files, self.labels)]}
        if command == "prepare":
            return self.prepare()
        return self.run(float(request["seconds"]))

    def prepare(self) -> dict[str, Any]:
        """Check an epoch of every way, and keep the fastest open."""
        speeds: dict[str, float] = {}
        failed: dict[str, str] = {}
        checked = ""
        for name in self.openers:
            try:
                self.open(name)
                if self.key != CEILING:
                    checked = check_epoch(self.loader, self.batch, self.labels)
                run = self.run(CALIBRATION_SECONDS)
                speeds[name] = run["images"] / run["wall"]
            except Exception as error:  # a way that cannot run here must not stop the others
                failed[name] = in_a_line(error)
        if not speeds:
            raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in failed.items()))
        chosen = max(speeds, key=lambda name: speeds[name])
        self.open(chosen)
        return {"variant": chosen, "variants": speeds, "failed": failed, "checked": checked}

    def open(self, name: str) -> None:
        self.loader: Any = None
        gc.collect()  # the processes and threads of the way before end with it
        self.loader = self.openers[name]()

    def run(self, seconds: float) -> dict[str, float]:
        """Whole epochs for at least ``seconds``, so that what their ends cost is part of it, as for users."""
        for _ in self.loader:  # what was made ahead while nobody looked does not count
            pass
        count, cpu, wall = 0, cpu_seconds(os.getpid()), time.perf_counter()
        while not count or time.perf_counter() - wall < seconds:
            for images, labels in self.loader:
                if self.step is not None:
                    self.step(images, labels)
                count += len(images)
        elapsed, used = time.perf_counter() - wall, cpu_seconds(os.getpid()) - cpu
        wait_until_idle(os.getpid())
        return {"images": count, "wall": elapsed, "cpu": used}


# -- the harness -------------------------------------------------------------------------------------------------------


def run(name: str, keys: Sequence[str], options: argparse.Namespace, cores: list[int]) -> dict[str, Any]:
    """Check, and measure in turn -> a JSON-able record."""
    from benchmarks.inputs import read_jpegs

    jpegs, origin = read_jpegs(options.images)
    files = len(jpegs) * options.copies
    if files < options.batch:
        raise ValueError(f"--batch {options.batch}: got {files} files; accepted: up to as many, or more --copies")
    title = TITLE if name == "loader" else f"{TITLE}, fed to a training step on {options.device}"
    record: dict[str, Any] = {"work": name, "title": title, "batch": options.batch, "asked": {"": 2.0}}
    record |= {"seconds": options.seconds, "repeats": options.repeats, "cores": len(cores), "files": files}
    record |= {"inputs": f"{files} files in {CLASSES} class folders: {origin}", "libraries": {}, "checks": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "photos")
        write_photos(jpegs, folder, options.copies)
        config = {"folder": str(folder), "batch": options.batch, "cores": cores}
        config |= {"device": options.device if name == "feeds" else ""}
        processes = {key: start(key, config) for key in keys}
        try:
            measure(processes, record, options)
        finally:
            for process in processes.values():
                process.close()
    ceiling = record["libraries"].pop(CEILING, None)
    if ceiling is not None and "images_per_second" in ceiling:
        record["ceiling"] = ceiling
        for cell in record["libraries"].values():
            cell["of_ceiling"] = cell.get("images_per_second", 0.0) / ceiling["images_per_second"]
        record["notes"] = [f"ceiling, one repeated batch: {ceiling['images_per_second']:,.0f} images/s"]
    return record


def start(key: str, config: dict[str, Any]) -> Process:
    """A process with as many threads as its library likes."""
    from benchmarks.peers_env import peers_python

    python = sys.executable if is_ours(key) or key == CEILING else peers_python()
    return Process(python, config | {"library": key}, worker="benchmarks.loaders", environment={})


def measure(processes: dict[str, Process], record: dict[str, Any], options: argparse.Namespace) -> None:
    cells = record["libraries"]
    runs: dict[str, list[dict[str, float]]] = {}
    for key, process in processes.items():
        print(f"  preparing {key}", file=sys.stderr)
        cells[key] = {"library": key}
        try:
            cells[key] |= process.ask({"command": "load"}, CHECK_TIMEOUT)
            if is_ours(key):
                record["checks"] += process.ask({"command": "check"}, CHECK_TIMEOUT)["checks"]
            cells[key] |= process.ask({"command": "prepare"}, CHECK_TIMEOUT)
            runs[key] = []
        except RuntimeError as error:
            cells[key]["error"] = str(error)
            if is_ours(key):  # a check that cannot run has not passed
                record["checks"].append({"name": "every check ran", "passed": False, "found": str(error)})
    record["failed"] = not all(check["passed"] for check in record["checks"])
    if record["failed"]:
        return
    for repeat in range(options.repeats):
        print(f"  round {repeat + 1} of {options.repeats}", file=sys.stderr)
        for key in list(runs):
            try:
                runs[key].append(processes[key].ask({"command": "run", "seconds": options.seconds}, RUN_TIMEOUT))
            except RuntimeError as error:
                cells[key]["error"] = str(error)
                del runs[key]
    for key, some in runs.items():
        speeds = [run["images"] / run["wall"] for run in some]
        cells[key] |= {"images_per_second": statistics.median(speeds), "lowest": min(speeds), "highest": max(speeds)}
        cells[key]["cpu_ms_per_image"] = 1e3 * sum(run["cpu"] for run in some) / sum(run["images"] for run in some)
        cells[key]["runs"] = some


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if a check failed, 2 if it cannot be run; speed itself never fails a run."""
    from benchmarks.run import add_images

    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0, help="least length of a run of whole epochs (10)")
    parser.add_argument("--repeats", type=int, default=5, help="measured runs of each library (5)")
    parser.add_argument("--cores", type=int, help="how many cores every library may use (all)")
    parser.add_argument("--copies", type=int, default=1, help="times that each photo is in an epoch (1)")
    parser.add_argument("--only", default=",".join((OURS, *PEERS)), help="keys of libraries, with commas (%(default)s)")
    parser.add_argument("--device", default="cpu", help="of the training step of feeds: cpu or cuda:0")
    add_images(parser)
    parser.add_argument("--out", type=Path, help="a folder for the record as JSON")
    options = parser.parse_args(arguments)
    if not (PROC / "self" / "stat").exists():
        print("processor time of process trees is measured by Linux's /proc only", file=sys.stderr)
        return 2
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= (options.cores or 1) <= len(allowed):
        print(f"--cores {options.cores}: accepted: 1 to {len(allowed)}, which this process may use", file=sys.stderr)
        return 2
    keys = [key for key in options.only.split(",") if key] + ([CEILING] if name == "feeds" else [])
    where = machine.describe()
    record = run(name, keys, options, allowed[-(options.cores or len(allowed)) :])
    record |= {"machine": where, "command": command}
    print(report.markdown(record), flush=True)
    if options.out is not None and not record["failed"]:
        report.write(record, options.out)
    return 1 if record["failed"] else 0


if __name__ == "__main__":
    worker_config = json.loads(sys.argv[1])
    os.sched_setaffinity(0, worker_config["cores"])  # before anything counts them
    serve(lambda: LoaderWorker(worker_config))
