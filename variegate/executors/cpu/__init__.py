"""The CPU executor: fused passes in C++ (``native/kernels``), one thread per core, without the GIL."""

from variegate.executors.cpu.executor import allocate, run, run_into, take_results
from variegate.executors.cpu.single import draw_one, fits_workspace, run_one

__all__ = ["allocate", "draw_one", "fits_workspace", "run", "run_into", "run_one", "take_results"]
