"""The first batch of a fresh process: with nothing compiled yet, and with compiled kernels installed by wheels."""

from __future__ import annotations

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
from contextlib import suppress
from pathlib import Path
from typing import Any

COLD_LIMIT_SECONDS, WHEELS_LIMIT_SECONDS = 25.0, 2.0
TIMEOUT = 600.0
NO_HOME = "no-home"

# Numba runs compiler passes over exactly the functions that it could not take from its cache, whatever decorator
# they have; passes nest, so time counts from the outermost.
COMPILE_PROBE = """
import json, sys, time
import numba
from numba.core import event

class Counter(event.Listener):
    def __init__(self):
        self.names, self.seconds, self.depth = set(), 0.0, 0
    def on_start(self, event):
        self.names.add(f"{event.data['module']}.{event.data['qualname']}")
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began

counter = Counter()
began = time.perf_counter()
with event.install_listener("numba:run_pass", counter):
    exec(sys.argv[1])
whole = time.perf_counter() - began
print(json.dumps({"compiled": sorted(counter.names), "seconds": counter.seconds, "whole": whole}))
"""

# Says when its first batch is there, whatever goes on behind it, and then whether it is right.
BATCH_PROBE = """
import json, time
began = time.perf_counter()
import torch
imported = time.perf_counter()
exec(BATCH)
print(json.dumps({"torch": imported - began, "after_torch": time.perf_counter() - imported}), flush=True)
exec(CHECK)
"""

# W2's policy on W2's sizes.
BATCH = """
import numpy as np
import variegate as vg
from variegate import transforms as T
normalize = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
t = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9), normalize])
images = np.random.default_rng(0).integers(0, 256, (64, 224, 224, 3), dtype=np.uint8)
batch = vg.Augmenter(t, seed=0)(images, ids=list(range(64)))
"""

CHECK = """
assert tuple(batch.shape) == (64, 3, 224, 224) and bool(batch.isfinite().all())
few = vg.Augmenter(t, seed=0, device="reference")(images[:4], ids=list(range(4)))
assert bool((few == batch[:4]).all()), "the first batch is wrong"
print("right", flush=True)
"""


def from_nothing(repeats: int) -> dict[str, Any]:
    """Seconds from the start of Python to the first batch, with an empty cache and home."""
    runs = [_cold_start() for _ in range(repeats)]
    seconds = [run["whole"] for run in runs]
    return {
        "seconds": statistics.median(seconds),
        "lowest": min(seconds),
        "highest": max(seconds),
        "after_torch_seconds": statistics.median(run["after_torch"] for run in runs),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "limit_seconds": COLD_LIMIT_SECONDS,
        "said": runs[0]["said"],
    }


def _cold_start() -> dict[str, Any]:
    from benchmarks.peers_env import ROOT

    with tempfile.TemporaryDirectory() as folder:
        places = {name: str(Path(folder) / name) for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
        for place in places.values():
            Path(place).mkdir()
        log = Path(folder) / "stderr"
        began = time.perf_counter()
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", f"BATCH = {BATCH!r}\nCHECK = {CHECK!r}{BATCH_PROBE}"],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=ROOT,
                env=os.environ | places,
                start_new_session=True,
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        whole = time.perf_counter() - began
        is_right = process.stdout.readline().strip() == "right"
        # What else it may be compiling by now has nowhere to go.
        _end(process)
        said = log.read_text().strip().splitlines()
    if not is_right:
        raise RuntimeError(f"the first start failed: {said[-1] if said else ''}")
    return json.loads(line) | {"whole": whole, "said": said}


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and those that it started, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def with_wheels(folder: Path, repeats: int) -> dict[str, Any]:
    """The first batch of a fresh environment that ``folder``'s wheels are installed into, with nothing to write to.

    What the wheels require comes from this Python's own packages; this repository is out of sight.
    """
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise FileNotFoundError(f"--wheels {folder}: no wheel in it; `make wheel` builds them")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "environment"
        venv.create(home, with_pip=False)
        python = home / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--disable-pip-version-check", *map(str, wheels)], check=True)
        packages = next((home / "lib").glob("python*")) / "site-packages"
        (packages / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
        _make_read_only(home)
        before = _files(home)
        runs = [_installed_start(python, Path(place)) for _ in range(repeats + 1)][1:]  # the first reads from the disk
        written = sorted(str(path.relative_to(place)) for path in _files(home) ^ before)
        written += [NO_HOME] if (Path(place) / NO_HOME).exists() else []
        _make_writable(home)
    seconds = [run["whole"] for run in runs]
    return {
        "wheels": [wheel.name for wheel in wheels],
        "seconds": statistics.median(seconds),
        "lowest": min(seconds),
        "highest": max(seconds),
        "compiled": runs[0]["compiled"],
        "written": written,
        "limit_seconds": WHEELS_LIMIT_SECONDS,
    }


def _installed_start(python: Path, place: Path) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON", "XDG_"))}
    # Isolated: neither this folder nor the user's own packages are looked at.
    run = subprocess.run(
        [str(python), "-I", "-B", "-c", f"import torch\n{COMPILE_PROBE}\nexec({CHECK!r})", BATCH],
        capture_output=True,
        text=True,
        cwd=place,
        env=kept | {"HOME": str(place / NO_HOME)},
        timeout=TIMEOUT,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"the first batch failed: {run.stderr.strip().splitlines()[-1] if run.stderr else ''}")
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-2])
    return found


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def _make_read_only(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def _make_writable(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)
