"""Compilation of kernels around Numba: one process at a time, code kept unharmed on disk, progress for whoever waits.

Nothing in here reaches compiled code, so that a change of it compiles nothing again.
"""
