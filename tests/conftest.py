"""What every test shares: the ``gpu`` marker, one thread for torch, and Triton's interpreter where there is no GPU."""

from __future__ import annotations

import os
import signal

# Before torch is imported, here and in the processes that tests begin: as many of them run as there are cores, and
# OpenMP's threads spin while they wait for each other. Kernels do not ask OpenMP: they run on all cores as ever.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch

REQUIRE_GPU = os.environ.get("VARIEGATE_REQUIRE_GPU") == "1"

# Before Triton is imported: its decorator decides for good whether a kernel is compiled or interpreted.
if not torch.cuda.is_available() and not REQUIRE_GPU:
    os.environ["TRITON_INTERPRET"] = "1"

# Programs are validated before they are lowered and after every rewrite.
os.environ["VARIEGATE_DEBUG"] = "1"

# The first test on a machine compiles kernels; what is said about it is not to appear among the output that tests read.
os.environ["VARIEGATE_QUIET"] = "1"

# Tests that put the table of transforms back as it was would forget policies that came with the test.
import variegate.policies  # noqa: E402, F401

# What runs in the background of a shell ignores Ctrl-C, and so do all its children; some tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device, unless the run says that there must be one.

    A machine meant to run them sets VARIEGATE_REQUIRE_GPU=1, so that a lost driver fails instead of passing quietly.
    """
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked or REQUIRE_GPU:
        return
    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(
                pytest.mark.skip(reason="needs a CUDA device (VARIEGATE_REQUIRE_GPU=1 makes this an error)")
            )
