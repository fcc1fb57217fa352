"""Variegate itself, by its public names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

import variegate as vg
from benchmarks.gpu.peers.base import Given, GpuPeer
from benchmarks.gpu.pictures import Pictures
from benchmarks.peers.base import NextBatch
from benchmarks.peers.ours import transform


def on_device(work: str, pictures: Pictures, device: str) -> Any:
    """A batch as a call of an augmenter on ``device`` takes it: packed or stacked on a GPU, arrays on a CPU."""
    if not device.startswith("cuda"):
        return pictures.images()
    data = torch.from_numpy(pictures.data).to(device)
    return vg.RaggedBatch(data, pictures.shapes) if work == "w3r" else data.view(len(pictures), *pictures.shapes[0])


class Variegate(GpuPeer):
    name = "Variegate"
    packages = ("numba", "numpy", "torch")
    device_only = True

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def variants(self, given: Given) -> dict[str, NextBatch]:
        augmenter = vg.Augmenter(transform(given.work), device=given.device, dtype="bfloat16", layout="NCHW", seed=0)
        inputs = itertools.cycle([on_device(given.work, one, given.device) for one in given.batches])
        starts = itertools.count(0, given.batch)  # every batch is a new one to the random numbers

        def next_batch() -> torch.Tensor:
            start = next(starts)
            batch = augmenter(next(inputs), ids=np.arange(start, start + given.batch))
            assert isinstance(batch, torch.Tensor)
            return batch

        return {"packed ragged batch" if given.ragged else "one NHWC tensor": next_batch}

    def warm_up_seconds(self, variant: str, given: Given) -> float:
        """Long enough to meet, and compile, every kernel that a batch of the work can ask for."""
        return 5.0


PEER = Variegate()
