"""Every kernel compiles for the GPUs that are out there, with no GPU here, and keeps to its registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

# Bytes of a thread.
MOST_SPILLED = 160
KINDS = {"prepare", "search", "run_pass", "blend_rows"}


def compiled(*wanted: str) -> list[dict[str, Any]]:
    """What ``compile_ahead`` tells. By one process, in which the kernels are not interpreted ones."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.executors.cuda.compile_ahead", *wanted],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(kernels: list[dict[str, Any]], capability: int, at_least: int) -> None:
    """Few registers are spilled to (thread-local) memory, by light launches alone: see ``launch.py``."""
    kernels = [kernel for kernel in kernels if kernel["capability"] == capability]
    assert {kernel["kernel"].split(", ")[2] for kernel in kernels} == KINDS
    assert len(kernels) >= at_least
    for kernel in kernels:
        assert kernel["stack"] <= (MOST_SPILLED if kernel["warps"] == 4 else 0), kernel
        assert kernel["local"] == 0, kernel
        # At least half of what a multiprocessor's 65,536 registers could be shared among.
        assert kernel["registers"] * kernel["warps"] * 32 <= 65_536 // 2, kernel
        assert kernel["shared"] <= 48 << 10, kernel


@pytest.mark.process
def test_kernels_keep_to_their_registers() -> None:
    """One of every kind: each takes seconds where Triton has not compiled it before."""
    check(compiled("90:kinds"), 90, at_least=len(KINDS))


@pytest.mark.slow
def test_all_kernels_keep_to_their_registers() -> None:
    kernels = compiled("80", "90")
    check(kernels, 80, at_least=10)
    check(kernels, 90, at_least=10)
