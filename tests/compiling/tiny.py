"""A package of tiny kernels in a folder of its own, and processes that start with nothing compiled."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.children import NumbaChild

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
from variegate.program.compiled import kernel, pixel_kernel

@kernel
def leaf(x):
    return x * 2 + 1

@kernel
def left(x):
    return leaf(x) + 10

@kernel
def right(x):
    return leaf(x) + left(x)
"""

# What a process compiled itself, by Numba's own count; the steps stand in the place of STEPS.
PROBE = """
import json, os, sys, time
from contextlib import suppress
from numba.core import config, event

sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
config.reload_config()
with suppress(ImportError):
    import patched_numba

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        name = event.data["dispatcher"].py_func.__name__
        if event.data["dispatcher"].py_func.__module__ == "tiny":
            self.names.append(name)
            print("compiling", name, flush=True)
            if PAUSE:
                time.sleep(PAUSE)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
import tiny
from variegate.program.compiled import KERNELS, TURN
print("ready", flush=True)
if WAITS:
    sys.stdin.readline()
results = []
STEPS
TURN.finish()
print(json.dumps({"compiled": Compiled.names, "results": results}))
"""
STEPS = "results += [tiny.right(1), tiny.left(1), tiny.leaf(1)]"
RESULTS = [16, 13, 3]


def start(
    folder: Path,
    steps: str = STEPS,
    pause: float = 0.0,
    waits: bool = False,
    env: Mapping[str, str | None] | None = None,
) -> subprocess.Popen[str]:
    """A process with ``tiny``; its cache is ``folder``/cache, if ``env`` says nothing else (None: unset).

    ``pause``: seconds that compiling a kernel takes longer; ``waits``: for a line before the steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tiny.py").exists():
        (folder / "tiny.py").write_text(KERNELS)
    settings: dict[str, str | None] = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, folder, folder / "site"))),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "VARIEGATE_QUIET": None,
        **(env or {}),
    }
    code = PROBE.replace("STEPS", steps).replace("PAUSE", str(pause)).replace("WAITS", str(waits))
    return NumbaChild(
        [code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in settings.items() if value is not None},
    )


def end(process: subprocess.Popen[str]) -> tuple[dict[str, Any], list[str]]:
    """(what it compiled and computed, the lines on standard error)."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1]), err.splitlines()


def run(folder: Path, *arguments: Any, **options: Any) -> tuple[dict[str, Any], list[str]]:
    return end(start(folder, *arguments, **options))


def read_until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"{line!r} was not said")


def go(*processes: subprocess.Popen[str]) -> None:
    """Let processes that wait begin, all at once when all are ready."""
    for process in processes:
        read_until(process, "ready")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
