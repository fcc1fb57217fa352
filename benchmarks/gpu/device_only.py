"""The time that the device alone needs for a batch, with the host's part (sampling, launching) out of the way.

The queue of the stream is first filled with copies that keep the device busy for longer than the host needs to queue a
few batches behind them. CUDA events before and after those batches then measure the device without a gap that the host
caused: its kernels, its copies of the programs, and the gaps between launches that no host could close. The figure
counts only if the first event had not passed when the last batch was queued; else the host had been waited for.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

BATCHES, ROUNDS, ATTEMPTS = 8, 10, 4
FILLER_BYTES, MOST_COPIES = 1 << 30, 512


def seconds_per_batch(next_batch: Callable[[], Any]) -> float | None:
    """Median over ``ROUNDS`` rounds of ``BATCHES`` batches, or None where the batches wait for the device."""
    source = torch.empty(FILLER_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copies = 2 * round(_queueing_seconds(next_batch) / _elapsed(lambda: target.copy_(source))) + 8
    for _ in range(ATTEMPTS):
        rounds = [_one_round(next_batch, source, target, min(copies, MOST_COPIES)) for _ in range(ROUNDS)]
        valid = [seconds for seconds in rounds if seconds is not None]
        if len(valid) == ROUNDS:
            return statistics.median(valid)
        copies *= 2
    return None


def _one_round(next_batch: Callable[[], Any], source: torch.Tensor, target: torch.Tensor, copies: int) -> float | None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    for _ in range(copies):
        target.copy_(source)
    start.record()
    outputs = [next_batch() for _ in range(BATCHES)]
    end.record()
    in_time = not start.query()
    end.synchronize()
    outputs.clear()
    return start.elapsed_time(end) / 1e3 / BATCHES if in_time else None


def _queueing_seconds(next_batch: Callable[[], Any]) -> float:
    """How long the host takes to queue ``BATCHES`` batches."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    outputs = [next_batch() for _ in range(BATCHES)]
    seconds = time.perf_counter() - began
    torch.cuda.synchronize()
    outputs.clear()
    return seconds


def _elapsed(work: Callable[[], Any]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    work()
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3
