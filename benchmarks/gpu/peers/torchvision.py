"""torchvision v2 on uint8 CUDA tensors, one sample at a time (its RandAugment draws once per call)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.gpu.peers.base import Given, GpuPeer, chw
from benchmarks.peers.base import NextBatch
from benchmarks.peers.torchvision_pil import pipelines


class Torchvision(GpuPeer):
    name = "torchvision v2, per sample"
    packages = ("torchvision", "torch")

    def variants(self, given: Given) -> dict[str, NextBatch]:
        batches = chw(given)
        return {name: _variant(run, batches) for name, run in pipelines(given.work, []).items()}


def _variant(run: Callable[[list[Any]], torch.Tensor], batches: Iterator[list[torch.Tensor]]) -> NextBatch:
    return lambda: run(next(batches)).to(torch.bfloat16)


PEER = Torchvision()
