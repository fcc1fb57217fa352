"""What an ``Augmenter`` does with a batch on each kind of device: take images in, run programs, give tensors out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from variegate.data.decode.gpu import check_decode
from variegate.decoding import EncodedBatch
from variegate.executors.devices import resolve
from variegate.program.program import Program

Tensors = torch.Tensor | list[torch.Tensor]


class Batch(Protocol):
    """Images that a runner took in."""

    @property
    def shapes(self) -> npt.NDArray[np.int32]:
        """Height, width and channels of every image, int32[N, 3]."""
        ...


class Runner(Protocol):
    """One device."""

    @property
    def lower(self) -> Callable[[Program], Program]:
        """Sampled programs to the fused ones of this device."""
        ...

    def take(self, images: Any) -> Batch:
        """Check a batch as a user gives it, and bring it where it is needed.

        Raises TypeError or ValueError naming the image and what is accepted.
        """
        ...

    def shapes(self, images: Any) -> npt.NDArray[np.int32]:
        """What ``take`` would give as shapes, without bringing anything anywhere."""
        ...

    def run(self, program: Program, batch: Any) -> Tensors:
        """A sampled program on the images that ``take`` gave -> one tensor, or one per output where shapes differ."""
        ...

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Tensors:
        """A program sampled for encoded images. Raises DecodeError naming the image."""
        ...


def make_runner(
    device: object, dtype: torch.dtype, num_threads: int | None, geometry: str, decode: str
) -> tuple[str, Runner]:
    """-> (the device's full name, its runner). Raises ValueError for a device or decoder that is not there."""
    name = resolve(device)
    check_decode(decode, name)
    # Imported on demand: only CUDA devices need Triton.
    if name == "reference":
        from variegate.running.reference import ReferenceRunner

        return name, ReferenceRunner(dtype)
    if name == "cpu":
        from variegate.running.cpu import CpuRunner

        return name, CpuRunner(dtype, num_threads, geometry)
    from variegate.running.cuda import CudaRunner

    return name, CudaRunner(name, num_threads, geometry, decode)


def check_shapes(program: Program, batch: Batch) -> None:
    """ValueError unless ``batch`` holds the images that the program was sampled for: kernels trust its sizes."""
    for row, source in enumerate(program.source.tolist()):
        accepted = f"sampled for uint8{program.in_shape[row].tolist()}"
        if source >= len(batch.shapes):
            raise ValueError(f"row {row}: image {source} of {len(batch.shapes)} is missing; {accepted}")
        if (batch.shapes[source] != program.in_shape[row]).any():
            raise ValueError(f"row {row}: image {source} is uint8{batch.shapes[source].tolist()}; {accepted}")
