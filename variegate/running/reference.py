"""Batches on the plain executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.decoding import EncodedBatch
from variegate.executors import reference
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.running.host import HostBatch, take_host_batch, to_tensors


class ReferenceRunner:
    """It runs sampled programs; lowering serves explanations only."""

    lower = staticmethod(lower)

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def take(self, images: Any) -> HostBatch:
        return take_host_batch(images)

    def shapes(self, images: Any) -> npt.NDArray[np.int32]:
        return take_host_batch(images).shapes

    def run(self, program: Program, batch: HostBatch) -> Any:
        results = reference.run(program, list(batch.images))
        same = len({result.shape for result in results}) == 1
        return to_tensors(np.stack(results) if same else None, results, self._dtype)

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        images = [batch.whole(i) for i in range(len(batch.files))]
        return self.run(program, HostBatch(images, batch.shapes))
