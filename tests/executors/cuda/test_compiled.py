"""Every kernel compiles for the GPUs that are out there, with no GPU here, and keeps to its registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("capability", [80, 90], ids=["sm_80", "sm_90"])
def test_kernels_compile_without_spilling(capability: int) -> None:
    """A kernel that ran out of registers would keep pixels in (thread-local) memory, many times slower."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.executors.cuda.compile_ahead", str(capability)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    kernels = [json.loads(line) for line in run.stdout.splitlines()]
    names = {kernel["kernel"].split(", ")[2] for kernel in kernels}
    assert names == {"prepare", "run_pass", "blend_rows", "read_masks"}
    assert len(kernels) >= 10
    for kernel in kernels:
        assert kernel["stack"] == 0, kernel
        assert kernel["local"] == 0, kernel
        # At least half of what a multiprocessor's 65,536 registers could be shared among.
        assert kernel["registers"] * kernel["warps"] * 32 <= 65_536 // 2, kernel
        assert kernel["shared"] <= 48 << 10, kernel
        if kernel["kernel"].endswith("read_masks"):
            # A product and a sum rounded at once would be other places than the CPU's.
            assert kernel["fused"] == 0, kernel
