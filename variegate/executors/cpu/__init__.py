"""The Numba executor: fused passes, one thread per core, no GIL."""

from variegate.executors.cpu.executor import allocate, run, run_into
from variegate.executors.cpu.single import run_one

__all__ = ["allocate", "run", "run_into", "run_one"]
