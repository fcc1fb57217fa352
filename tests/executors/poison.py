"""A CUDA executor whose memory is never clean, so that what a kernel forgets to write shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tests.executors.interpreter import be_quick
from variegate.executors.cuda.executor import CudaExecutor, upload_images
from variegate.executors.cuda.images import Memory
from variegate.executors.cuda.launch import BLOCK
from variegate.executors.runners.cuda import CudaRunner
from variegate.program.lowering import lower
from variegate.program.program import Program

POISON = 0xAB


class PoisonedMemory(Memory):
    def empty(self, shape: int | tuple[int, ...], dtype: torch.dtype = torch.uint8) -> torch.Tensor:
        taken = super().empty(shape, dtype)
        taken.reshape(-1).view(torch.uint8).fill_(self.poison)
        return taken

    poison = POISON


def poisoned_executor(device: str, block: tuple[int, int] = BLOCK) -> CudaExecutor:
    """On "cuda:0", or on "cpu": the kernels in Triton's interpreter."""
    if device == "cpu":
        be_quick()
    executor = CudaExecutor(torch.device(device), block)
    executor.memory = PoisonedMemory(torch.device(device))
    return executor


def interpreted_runner(block: tuple[int, int] = BLOCK) -> CudaRunner:
    """A GPU's runner, in Triton's interpreter."""
    return CudaRunner("cpu", 1, "composed", executor=poisoned_executor("cpu", block))


def run_poisoned(
    executor: CudaExecutor,
    program: Program,
    images: Sequence[npt.NDArray[np.uint8]],
    geometry: str = "composed",
    poison: int = POISON,
) -> list[npt.NDArray[Any]]:
    """A sampled program and its images -> its outputs. The workspace must be clean again."""
    executor.memory.poison = poison  # type: ignore[attr-defined]
    fused = lower(program, geometry, measured_once=True)
    placed = upload_images(executor, [np.ascontiguousarray(image) for image in images])
    outputs = list(executor.run(fused, placed))
    assert not executor.memory.workspace(1).any(), "the workspace is not clean"
    # bfloat16 is no type of NumPy's.
    return [(out.float() if out.dtype == torch.bfloat16 else out).cpu().numpy() for out in outputs]
