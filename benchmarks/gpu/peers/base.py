"""What a library offers the GPU worker: its inputs laid on the device, and named ways to make the next batch."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from benchmarks.gpu import device as _device
from benchmarks.gpu.pictures import Pictures
from benchmarks.peers.base import Library, NextBatch


@dataclass(frozen=True)
class Given:
    """``batches``: on the host, to be laid on ``device`` once, before any clock runs, and taken in turn for ever."""

    work: str
    device: str
    batch: int
    batches: tuple[Pictures, ...]
    compile_seconds: float

    @property
    def ragged(self) -> bool:
        return self.work == "w3r"


class GpuPeer(Library):
    """One library on a GPU. All its variants share one copy of the inputs."""

    # bfloat16 is asked for; a library that has none may give its other 16-bit float.
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.bfloat16,)
    # Outputs may be kept while the next ones are made, each in memory of its own.
    keeps_outputs: ClassVar[bool] = True
    memory: ClassVar[str] = "PyTorch's allocator"
    # Whether the time on the device alone is asked for.
    device_only: ClassVar[bool] = False

    def variants(self, given: Given) -> dict[str, NextBatch]:
        """Functions of no argument -> the next [batch, 3, 224, 224] on the device, contiguous, a torch tensor."""
        raise NotImplementedError(f"{type(self).__name__} does not define variants()")

    def warm_up_seconds(self, variant: str, given: Given) -> float:
        """How long a variant may run before its speed counts."""
        return 1.0

    def memory_now(self, device: str) -> int:
        """Bytes in use."""
        return int(torch.cuda.memory_allocated(device))

    def memory_peak(self, device: str) -> int:
        """The most bytes in use since the worker began to look."""
        return int(torch.cuda.max_memory_allocated(device))

    def release(self, device: str) -> None:
        """Give back what dropped variants held."""
        _device.release(device)


def nchw(given: Given) -> Iterator[torch.Tensor]:
    """uint8[batch, 3, 224, 224]; for libraries whose users hold images so. The conversion is not counted."""
    return itertools.cycle([torch.from_numpy(one.planar().stacked()).to(given.device) for one in given.batches])


def chw(given: Given) -> Iterator[list[torch.Tensor]]:
    """A list of uint8[3, H, W] per batch, contiguous views of one buffer."""
    made = []
    for one in given.batches:
        planar = one.planar()
        parts = torch.from_numpy(planar.data).to(given.device).split(planar.shapes.prod(axis=1).tolist())
        made.append([part.view(shape) for part, shape in zip(parts, planar.shapes.tolist(), strict=True)])
    return itertools.cycle(made)


def load_peer(module: str) -> GpuPeer:
    """The ``PEER`` of ``benchmarks.gpu.peers.<module>``."""
    peer: Any = importlib.import_module(f"benchmarks.gpu.peers.{module}").PEER
    assert isinstance(peer, GpuPeer)
    return peer
