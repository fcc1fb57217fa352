"""``python -m benchmarks.run startup``: W7, what a start costs.

The import beyond torch; the first RandAugment batch if nothing is compiled yet; and with ``--wheels``, the first batch
of an environment with the compiled kernels installed and nothing to write to. A batch that is wrong has no time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.peers_env import ROOT

IMPORT_LIMIT, COLD_LIMIT, WHEELS_LIMIT = 1.0, 25.0, 2.0
TIMEOUT = 600.0

IMPORT_PROBE = """
import json, time
began = time.perf_counter()
import torch
imported = time.perf_counter()
import variegate
variegate.Augmenter, variegate.load_policy  # names that are loaded on demand count as well
print(json.dumps(time.perf_counter() - imported))
"""

# The first batch of W2's policy at W2's size; then whether it is right, and which functions Numba compiled for it:
# it runs compiler passes over exactly the functions that it could not take from its cache.
BATCH_PROBE = """
import json, time
import torch
import numba
from numba.core import event

class Compiled(event.Listener):
    names = set()
    def on_start(self, event):
        self.names.add(f"{event.data['module']}.{event.data['qualname']}")
    def on_end(self, event):
        pass

began = time.perf_counter()
with event.install_listener("numba:run_pass", Compiled()):
    import numpy as np
    import variegate as vg
    from variegate import transforms as T
    normalize = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
    t = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9), normalize])
    images = np.random.default_rng(0).integers(0, 256, (64, 224, 224, 3), dtype=np.uint8)
    batch = vg.Augmenter(t, seed=0)(images, ids=list(range(64)))
    print(json.dumps(time.perf_counter() - began), flush=True)
assert tuple(batch.shape) == (64, 3, 224, 224) and bool(batch.isfinite().all())
few = vg.Augmenter(t, seed=0, device="reference")(images[:4], ids=list(range(4)))
assert bool((few == batch[:4]).all()), "the first batch is wrong"
print(json.dumps(sorted(Compiled.names)), flush=True)
"""


def spread(seconds: list[float], limit: float) -> dict[str, Any]:
    return {
        "seconds": statistics.median(seconds),
        "lowest": min(seconds),
        "highest": max(seconds),
        "limit_seconds": limit,
    }


def start(python: str | Path, *arguments: str, **more: Any) -> list[Any]:
    """Run a probe -> what it printed. Raises RuntimeError with its last words."""
    done = subprocess.run(
        [str(python), *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False, **{"cwd": ROOT, **more}
    )
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise RuntimeError(f"the probe failed: {words[-1] if words else ''}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def import_seconds(repeats: int) -> dict[str, Any]:
    """Seconds of ``import variegate`` after torch, in fresh processes."""
    runs = [start(sys.executable, "-c", IMPORT_PROBE)[0] for _ in range(repeats + 1)]
    return spread(runs[1:], IMPORT_LIMIT)  # the first reads files from the disk and writes byte code


def cold_seconds(repeats: int) -> dict[str, Any]:
    """Seconds from the start of Python to the first batch, with an empty cache and home."""
    seconds = [_cold_start() for _ in range(repeats)]
    return spread(seconds, COLD_LIMIT) | {"cores": os.cpu_count()}


def _cold_start() -> float:
    with tempfile.TemporaryDirectory() as folder:
        empty = {name: str(Path(folder, name)) for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
        for place in empty.values():
            Path(place).mkdir()
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", BATCH_PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=os.environ | empty,
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - began
        is_right = bool(process.stdout.readline())
        with suppress(ProcessLookupError):  # it, and processes that still compile for it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not is_right:
        raise RuntimeError("the first start failed, or its batch is wrong")
    return seconds


def with_wheels(folder: Path, repeats: int) -> dict[str, Any]:
    """The first batch after torch, in a fresh environment that ``folder``'s wheels are installed into, read-only.

    What the wheels require comes from this Python's packages; this repository is out of sight.
    """
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise FileNotFoundError(f"--wheels {folder}: no wheel in it; `make wheel` builds them")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place, "environment")
        venv.create(home, with_pip=False)
        python = home / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--disable-pip-version-check", *map(str, wheels)], check=True)
        packages = next((home / "lib").glob("python*")) / "site-packages"
        (packages / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
        _change_modes(home, lambda mode: mode & ~0o222)
        before = set(Path(place).rglob("*"))
        hidden = ("NUMBA_", "PYTHON", "XDG_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        environment["HOME"] = str(Path(place, "no-home"))
        # Isolated: neither this folder nor the user's own packages are searched.
        arguments = ("-I", "-B", "-c", BATCH_PROBE)
        runs = [start(python, *arguments, cwd=place, env=environment) for _ in range(repeats + 1)][1:]
        written = sorted(str(path.relative_to(place)) for path in set(Path(place).rglob("*")) - before)
        _change_modes(home, lambda mode: mode | 0o200)
    found = spread([run[0] for run in runs], WHEELS_LIMIT)
    return found | {"wheels": [wheel.name for wheel in wheels], "compiled": runs[0][1], "written": written}


def _change_modes(folder: Path, change: Any) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(change(path.stat().st_mode))


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if a limit is exceeded, or if an environment with wheels compiles or writes."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="fresh processes (7)")
    parser.add_argument("--cold", type=int, default=3, help="starts with nothing compiled (3); 0: none")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels, such as `make wheel` fills")
    parser.add_argument("--out", type=Path, help="a folder for startup.json")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"machine": machine.describe(), "command": command}
    record["import"] = import_seconds(options.repeats)
    words = {"import": "import variegate beyond import torch"}
    if options.cold:
        record["cold"], words["cold"] = cold_seconds(options.cold), "from nothing to the first batch"
    if options.wheels is not None:
        record["wheels"] = with_wheels(options.wheels, options.repeats)
        words["wheels"] = "with wheels, first batch after import torch"
    print(f"{record['machine']['cpu']}, level {record['machine']['level']}")
    is_right = True
    for key, title in words.items():
        found = record[key]
        more = f"; compiled {found['compiled']}, written {found['written']}" if "compiled" in found else ""
        between = f"{found['lowest']:.2f} - {found['highest']:.2f}; limit {found['limit_seconds']:g} s"
        print(f"{title}: {found['seconds']:.2f} s ({between}){more}")
        is_right &= found["seconds"] <= found["limit_seconds"]
        is_right &= not found.get("compiled") and not found.get("written")
    if options.out is not None:
        report.write(record, options.out, "startup")
    return 0 if is_right else 1
