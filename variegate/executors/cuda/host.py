"""The CUDA executor from the host: an executor per device, images brought over and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.cuda.images import DeviceImages, place_packed
from variegate.executors.images import check_fits, layout, shapes_of, write_images
from variegate.program.lowering import lower
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]


@lru_cache(maxsize=64)
def executor_of(device: str) -> CudaExecutor:
    """The process's executor of "cuda:N": its kernels and workspace serve every caller."""
    return CudaExecutor(torch.device(device))


def upload_images(executor: CudaExecutor, images: Sequence[Image] | Image) -> DeviceImages:
    """Contiguous arrays [H, W, C], laid into one pinned buffer and sent by one copy that nobody waits for."""
    shapes = np.array([image.shape for image in images], np.int32).reshape(-1, 3)
    offsets, total = layout(shapes)
    staging = executor.memory.staging(total)
    write_images(staging.numpy(), images, offsets)
    return place_packed(executor.memory.upload(staging, total), offsets, shapes)


def lower_for_cuda(program: Program, geometry: str = "composed") -> Program:
    """As this executor takes programs: it measures all statistics of a pass at once."""
    return lower(program, geometry, measured_once=True)


def run_on_host_arrays(program: Program, images: Sequence[Image], device: str) -> list[npt.NDArray[Any]]:
    """A sampled program and its images -> one array per output, when they are done."""
    check_fits(program, shapes_of(images))
    fused = program if program.stage == "fused" else lower_for_cuda(program)
    executor = executor_of(device)
    whole = [np.ascontiguousarray(image if image.ndim == 3 else image[:, :, None]) for image in images]
    stacked, results = executor.run(fused, upload_images(executor, whole))
    return [result.cpu().numpy() for result in (results if stacked is None else stacked)]
