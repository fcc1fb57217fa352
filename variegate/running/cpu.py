"""Batches on the compiled CPU executor."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.decoding import EncodedBatch
from variegate.executors.cpu import executor as cpu
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.running.host import HostBatch, take_host_batch, to_tensors


class CpuRunner:
    def __init__(self, dtype: torch.dtype, num_threads: int | None, geometry: str) -> None:
        self.lower = partial(lower, geometry=geometry)
        self._dtype = dtype
        self._num_threads = num_threads

    def take(self, images: Any) -> HostBatch:
        return take_host_batch(images)

    def shapes(self, images: Any) -> npt.NDArray[np.int32]:
        return take_host_batch(images).shapes

    def run(self, program: Program, batch: HostBatch) -> Any:
        fused = self.lower(program)
        stacked, results = cpu.allocate(fused)
        cpu.run_into(fused, batch.images, results, stacked, self._num_threads)
        return to_tensors(stacked, results, self._dtype)

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        fused = self.lower(program)
        stacked, results = cpu.allocate(fused)
        cpu.run_into(fused, None, results, stacked, self._num_threads, batch.loader(fused))
        return to_tensors(stacked, results, self._dtype)
