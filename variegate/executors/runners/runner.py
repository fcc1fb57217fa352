"""Runners, one per kind of device: check and transfer a batch, run programs on it, return tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import torch

from variegate.decode.gpu import check_decode
from variegate.executors.runners.devices import resolve
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.images import NAMES, Tensors
from variegate.program.plan import LoweringOptions
from variegate.program.program import Program

if TYPE_CHECKING:
    from variegate.executors.runners.cuda import CudaRunner

Dtype = Literal["float32", "float16", "bfloat16"]
Layout = Literal["NCHW", "NHWC"]
Geometry = Literal["composed", "exact"]
Decode = Literal["auto", "cpu", "gpu"]


class Runner(Protocol):
    """Runs programs on one device."""

    @property
    def lower(self) -> Callable[[Program], Program]:
        """The function that lowers sampled programs to fused ones for this device."""
        ...

    @property
    def rewriting(self) -> LoweringOptions | None:
        """Options of ``lower``; None if the device runs sampled programs without lowering."""
        ...

    @property
    def mask_runner(self) -> CudaRunner | None:
        """The runner that transforms masks on the device; None if the CPU does."""
        ...

    def take(self, images: Any, names: str = NAMES) -> Any:
        """Check a batch and transfer it to the device. ``names``: format of an image's name in errors."""
        ...

    def run(self, program: Program, batch: Any) -> Tensors:
        """Run a program on a batch from ``take`` -> one tensor, or a list of one per output if shapes differ."""
        ...

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Tensors:
        """Decode images and run a program on them. Raises DecodeError naming the image."""
        ...


def make_runner(
    device: object, dtype: torch.dtype, num_threads: int | None, geometry: str, decode: str
) -> tuple[str, Runner]:
    """Return the device's full name and its runner. Raises ValueError for an unavailable device or decoder."""
    name = resolve(device)
    check_decode(decode, name)
    # Imported on demand: only CUDA devices need Triton.
    if name == "cpu":
        from variegate.executors.runners.host import CpuRunner

        return name, CpuRunner(dtype, num_threads, geometry)
    from variegate.executors.runners.cuda import CudaRunner

    return name, CudaRunner(name, num_threads, geometry, decode)


class ForkedRunner:
    """Replaces a GPU's runner in a forked child: lowers programs, and raises RuntimeError for everything else."""

    rewriting = mask_runner = None

    def __init__(self, device: str, lower: Callable[[Program], Program]) -> None:
        self._device = device
        self.lower = lower

    def _refuse(self, *args: Any) -> NoReturn:
        raise RuntimeError(
            f"device: {self._device!r} belongs to the process that was forked, and a GPU cannot be used across a fork; "
            "start processes by 'spawn' or 'forkserver', or use device='cpu' in them"
        )

    take = run = decode_and_run = _refuse
