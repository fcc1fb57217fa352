"""Benchmarks of Variegate and its peers, one work at a time: ``python -m benchmarks.run w1 w2``, ``benchmarks.run_gpu
w3``."""
