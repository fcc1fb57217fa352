"""Vector blocks at every level that this processor can run, and compiled for processors that it is not."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from variegate.compiling.levels import LEVELS, Level, host_features

ROOT = Path(__file__).parents[3]
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
PLAIN = Level("plain", "x86-64" if IS_X86 else "generic", (), frozenset())
RUNNABLE = [PLAIN, *(level for level in LEVELS if level.features <= host_features())]
TARGETS = [
    ("aarch64-unknown-linux-gnu", "generic", PLAIN),
    ("x86_64-unknown-linux-gnu", "x86-64", PLAIN),
    *(("x86_64-unknown-linux-gnu", level.cpu_name, level) for level in LEVELS),
]


def _python(script: str, level: Level, *args: str) -> subprocess.CompletedProcess[str]:
    """A script of this folder, in a process whose blocks are those of a level."""
    features = _features(level)
    env = {**os.environ, "NUMBA_CPU_NAME": level.cpu_name, "NUMBA_CPU_FEATURES": features, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).parent / script), *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


def _features(level: Level) -> str:
    return ",".join(f"+{name}" for name in level.extra)


@pytest.mark.parametrize("level", RUNNABLE, ids=lambda level: level.name)
def test_blocks_equal_their_plain_twins(level: Level) -> None:
    done = _python("twins.py", level, level.cpu_name, _features(level))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "simd.split_rgb" in done.stdout
    assert ("simd_lookup.lookup_by_16" in done.stdout) == ("ssse3" in level.features)
    assert ("simd_lookup.lookup_by_words" in done.stdout) == ("avx512bw" in level.features)


def _has_target(triple: str) -> bool:
    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize(("triple", "cpu", "level"), TARGETS, ids=lambda value: getattr(value, "name", value))
def test_blocks_compile_for_other_processors(triple: str, cpu: str, level: Level) -> None:
    if not _has_target(triple):
        pytest.skip(f"this llvmlite has no {triple}")
    done = _python("blocks.py", level, triple, cpu, _features(level))
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def test_an_instruction_that_a_target_lacks_ends_the_process() -> None:
    """So that the test above can fail."""
    if not _has_target(TARGETS[0][0]):
        pytest.skip(f"this llvmlite has no {TARGETS[0][0]}")
    done = _python("blocks.py", PLAIN, TARGETS[0][0], "generic", "", "--broken")
    assert done.returncode != 0
