"""The CPU executor: fused passes in C++ (``native/kernels``), one thread per core, without the GIL."""

from variegate.executors.cpu.executor import addresses, allocate, prepare_run, run, run_into, run_together, take_results
from variegate.executors.cpu.moves import move
from variegate.executors.cpu.single import draw_one, fits_workspace, run_one

__all__ = [
    "addresses",
    "allocate",
    "draw_one",
    "fits_workspace",
    "move",
    "prepare_run",
    "run",
    "run_into",
    "run_one",
    "run_together",
    "take_results",
]
