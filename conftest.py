"""What every test shares: the ``gpu`` marker, one thread for torch, and Triton's interpreter where there is no GPU."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

# Before torch is imported, here and in the processes that tests begin: as many of them run as there are cores, and
# OpenMP's threads spin while they wait for each other. Kernels do not ask OpenMP: they run on all cores as ever.
os.environ["OMP_NUM_THREADS"] = "1"

# Ray's processes are nice to others (15) by default: beside other tests they would hardly ever have a turn.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112

import pytest
from hypothesis import settings

# An example that imports something, or a machine that is busy, is no failure.
settings.register_profile("variegate", deadline=None)
settings.load_profile("variegate")

if TYPE_CHECKING:
    from variegate.program.program import Program

pytest_plugins = ["tests.times"]
REQUIRE_GPU = os.environ.get("VARIEGATE_REQUIRE_GPU") == "1"

# What runs in the background of a shell ignores Ctrl-C, and so do all its children; some tests send it to theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        return  # this process hands tests to others and needs nothing of what they import
    import torch

    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger) and logger.name.startswith("torch"):
            logger.propagate = True  # pytest attaches its handlers 12 times a test to each logger that does not

    # Before Triton is imported: its decorator decides for good whether a kernel is compiled or interpreted.
    if not torch.cuda.is_available() and not REQUIRE_GPU:
        os.environ["TRITON_INTERPRET"] = "1"

    # NumPy 1 starts a process when it is first imported.
    import numpy.testing  # noqa: F401

    from tests.oracle.device import install

    install()
    # Tests that put the table of transforms back as it was would forget policies that came with the test.
    import variegate.policies  # noqa: F401


@pytest.fixture(scope="module")
def validated() -> Iterator[None]:
    """Validate programs before and after lowering. For contract suites and random programs."""
    from tests.validating import validate
    from variegate.program import lowering
    from variegate.program.lowering.rewrites import rewrite_program

    def rewrite_validated(program: Program, *options: bool) -> Program:
        return validate(rewrite_program(validate(program), *options))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lowering, "rewrite_program", rewrite_validated)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device, unless the run says that there must be one.

    A machine meant to run them sets VARIEGATE_REQUIRE_GPU=1, so that a lost driver fails instead of passing quietly.
    """
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked or REQUIRE_GPU:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(
                pytest.mark.skip(reason="needs a CUDA device (VARIEGATE_REQUIRE_GPU=1 makes this an error)")
            )
