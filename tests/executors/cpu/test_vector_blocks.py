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

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
PLAIN = Level("plain", "x86-64" if IS_X86 else "generic", (), frozenset())
RUNNABLE = [PLAIN, *(level for level in LEVELS if level.features <= host_features())]
AARCH64, X86 = "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"


def has_target(triple: str) -> bool:
    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError:
        return False
    return True


def at_level(level: Level, tasks: list[str]) -> dict[str, list[str]]:
    """What was said of each task by a process whose blocks are those of a level. One for all of them, as it takes
    longer to start than to do them."""
    features = ",".join(f"+{name}" for name in level.extra)
    env = {**os.environ, "NUMBA_CPU_NAME": level.cpu_name, "NUMBA_CPU_FEATURES": features}
    command = [sys.executable, "-m", "tests.executors.cpu.at_level", level.cpu_name, features, *tasks]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)
    said = {task: words for task, *words in map(str.split, done.stdout.splitlines())}
    assert (done.returncode, list(said)) == (0, tasks), done.stderr[-2000:]
    return said


@pytest.mark.parametrize("level", [PLAIN, *LEVELS], ids=lambda level: level.name)
def test_blocks_equal_their_plain_twins_and_compile_for_other_processors(level: Level) -> None:
    targets = {X86: "x86-64" if level is PLAIN else level.cpu_name} | ({AARCH64: "generic"} if level is PLAIN else {})
    tasks = [f"{triple}={cpu}" for triple, cpu in targets.items() if has_target(triple)]
    if level in RUNNABLE:
        blocks = at_level(level, ["run", *tasks])["run"]
        assert "simd_pixels.split_rgb" in blocks
        assert ("simd_values.lookup_by_16" in blocks) == ("ssse3" in level.features)
        assert ("simd_values.lookup_by_words" in blocks) == ("avx512bw" in level.features)
    elif tasks:
        at_level(level, tasks)
    else:
        pytest.skip(f"this processor cannot run them, and this llvmlite has no {X86}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.skipif(not has_target(AARCH64), reason=f"this llvmlite has no {AARCH64}")
def test_an_instruction_that_a_target_lacks_ends_the_process() -> None:
    """So that the test above can fail."""
    assert at_level(PLAIN, ["broken"])["broken"] != ["0"]
