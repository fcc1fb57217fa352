"""Several processes that compile at a time: they compile everything once, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.compiling.tiny import end, run, start
from variegate.compiling import team
from variegate.jobs.warm import _entries
from variegate.program import compiled as kernel_cache

pytestmark = pytest.mark.process

# Kernels that return nothing are put off, and compiled by whoever is free.
KERNELS = """
from variegate.program.compiled import inner_kernel, kernel, pixel_kernel

@inner_kernel()
def twice(x, out) -> None:
    out[0] += 2 * x

@inner_kernel()
def one(out) -> None:
    out[0] += 1

@inner_kernel()
def leaf(x, out) -> None:
    twice(x, out)
    one(out)

@inner_kernel()
def ten():
    return 10

@pixel_kernel
def left(x, out) -> None:
    leaf(x, out)
    out[0] += ten()

@pixel_kernel
def right(x, out) -> None:
    leaf(x, out)
    left(x, out)
"""
STEPS = """
import numpy as np
from variegate.compiling.team import compile_together
from variegate.program import compiled as kernel_cache
def call(name):
    out = np.zeros(1, np.int64)
    getattr(tiny, name)(1, out)
    return int(out[0])
main = '''BEFORE
import numpy as np
from variegate.program import compiled
import tiny
out = np.zeros(1, np.int64)
compiled.help_another(lambda: {name: lambda name=name: getattr(tiny, name)(1, out) for name in ("right", "left")})
'''
done = []
results.append(compile_together(main, kernel_cache.what_is_made(), {}, done.append))
results.append(done == sorted(done))
results += [call("right"), call("left")]
"""
NAMES = ["leaf", "left", "one", "right", "ten", "twice"]


@pytest.fixture
def two_cores() -> None:
    if team.num_helpers() < 2:
        pytest.skip("helpers need two cores")


def steps(before: str = "") -> str:
    return STEPS.replace("BEFORE", before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.py").write_text(KERNELS)
    return tmp_path


@pytest.mark.usefixtures("two_cores")
def test_helpers_compile_everything(folder: Path) -> None:
    done, said = run(folder, steps())
    assert done == {"compiled": [], "results": [True, True, 16, 13]}
    assert said == []
    kept = {path.name.split(".")[1].rsplit("-")[0] for path in folder.rglob("*.nbi")}
    assert kept == set(NAMES)
    assert {path.name.split(".")[-2] for path in folder.rglob("tiny*.nbc")} == {"1"}
    assert run(folder, "import numpy as np; out = np.zeros(1, np.int64); tiny.right(1, out)")[0]["compiled"] == []


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize(
    "before",
    [
        "import os; os._exit(3)",
        "raise ValueError",
        # One that is set up otherwise would write code that is not wanted.
        "import numba.core.config as config; config.CPU_NAME = 'x86-64'",
        # A full disk.
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
        # A kernel that is said to return nothing, and does.
        "import tiny; tiny.ten.py_func.__annotations__['return'] = None",
    ],
)
def test_without_helpers_it_is_compiled_all_the_same(folder: Path, before: str) -> None:
    done, _ = run(folder, steps(before))
    assert done["results"] == [False, True, 16, 13]
    assert "right" in done["compiled"]
    assert run(folder, steps())[0]["results"] == [True, True, 16, 13]


# Kernels of the package: it takes helpers half a minute to compile them, and longer.
EVERYTHING = """
import numpy as np
from variegate.executors.cpu import executor
from variegate.program import rng
rng.stream_keys(0, 0, np.zeros(1, np.uint32))
"""


@pytest.mark.usefixtures("two_cores")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_takes_its_helpers_along(tmp_path: Path, how: int) -> None:
    process = start(tmp_path, EVERYTHING)
    helpers = until(lambda: children(process.pid) if len(children(process.pid)) >= 2 else None)
    time.sleep(1.0 if how == signal.SIGINT else 3.0)  # before and after they are ready
    process.send_signal(how)
    process.communicate(timeout=60)
    until(lambda: not any(is_alive(helper) for helper in helpers))
    # What they had made by then is whole, and the next one goes on from there.
    done, _ = run(tmp_path)
    assert done["results"] == [16, 13, 3]


def test_nobody_starts_helpers_on_one_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert team.num_helpers() == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(team, "_QUOTA", str(tmp_path / "cpu.max"))
    assert team.num_helpers() == team.MOST_HELPERS
    for quota, cores in (("max 100000", 64), ("150000 100000", 1), ("300000 100000", 3), ("nonsense", 64)):
        (tmp_path / "cpu.max").write_text(quota + "\n")
        assert team.num_cores() == cores
    monkeypatch.setattr("sys.executable", "")
    assert team.num_helpers() == 0


def test_a_lone_process_compiles_alone(folder: Path) -> None:
    """Where no helper may be started."""
    before = "import subprocess\ndef refuse(*_, **__):\n    raise OSError(11, 'no')\nsubprocess.Popen = refuse\n"
    done, _ = end(start(folder, before + steps()))
    assert done["results"][2:] == [16, 13]
    assert sorted(done["compiled"]) == NAMES


def children(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(look: Callable[[], Any]) -> Any:
    """What ``look`` finds, when it finds something."""
    began = time.monotonic()
    while not (found := look()):
        assert time.monotonic() - began < 60
        time.sleep(0.05)
    return found


def test_helpers_are_for_who_needs_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compile everything, which somebody would wait for who needs little."""
    asked: list[bool] = []
    monkeypatch.setattr(kernel_cache, "compile_together", lambda *_: not asked.append(True))
    monkeypatch.setattr(kernel_cache, "_has_had_helpers", False)
    monkeypatch.setattr(kernel_cache.KernelCache, "found_in", lambda *_: None)
    entries = {entry._cache.name: entry for entry in _entries()}
    context = entries["executors.cpu.passes.run_rows"].targetctx
    for few in (["program.rng", "transforms"], ["program", "transforms", "data"]):
        some = [entry for name, entry in entries.items() if name.startswith(tuple(few))]
        monkeypatch.setattr(kernel_cache, "KERNELS", some)
        assert not kernel_cache._compile_with_helpers(context)
    monkeypatch.setattr(kernel_cache, "KERNELS", list(entries.values()))
    assert kernel_cache._compile_with_helpers(context)
    assert not kernel_cache._compile_with_helpers(context)  # once in a process
    assert asked == [True]
