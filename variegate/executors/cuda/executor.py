"""The Triton executor: packs a program, copies it to the device, and launches it pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any, cast

import numpy as np
import torch

from variegate.arrays import AnyArray, ImageArray, Int64Array, UInt8Array
from variegate.executors.batches import check_fits, depth_of_batch, packed_offsets, shapes_of, write_images
from variegate.executors.cuda.images import DeviceImages, Memory, place_packed
from variegate.executors.cuda.launch import BLOCK, KernelSettings, Launch, launches
from variegate.executors.cuda.layout import FEATURES
from variegate.executors.cuda.pack import NO_REGION, NO_TABLES, Packer
from variegate.executors.cuda.pixel_functions import triton_functions
from variegate.program.lowering import lower
from variegate.program.program import Program

# Alignment of the outputs of a ragged batch, in elements: enough for aligned stores.
_APART = 16


@dataclass(frozen=True)
class PreparedLaunches:
    """Launches in order, and the owners of memory that they use by address: alive until all are queued."""

    launches: list[Launch]
    owners: list[Any]


class CudaExecutor:
    """Runs programs on one device. Calls are asynchronous on the caller's current stream, as torch operations are.

    ``device``: a CUDA device. For tests, a CPU device runs the kernels in Triton's interpreter
    (``TRITON_INTERPRET=1``).
    """

    def __init__(self, device: torch.device, block: tuple[int, int] = BLOCK) -> None:
        self.device = device
        self.memory = Memory(device)
        self.block = block
        # Features that the kernels of first and of later passes have needed so far, per settings. Features are only
        # added, so that a long run compiles a few kernels in its first batches and none later.
        self._features: dict[KernelSettings, list[int]] = {}
        # Several threads may run batches, each on its own stream.
        self._one_at_a_time = Lock()

    def run(
        self,
        program: Program,
        images: DeviceImages,
        targets: Int64Array | None = None,
        region: tuple[int, int, int, int] = NO_REGION,
        tables: UInt8Array = NO_TABLES,
    ) -> Any:
        """Run a fused program (lowered with ``measured_once``) -> one tensor, or a list of outputs if shapes differ.

        ``targets``: the address of each output, if the caller allocated it; then the result is None. ``region``: column
        and line at which outputs begin in a larger image, and its height and width. ``tables``: uint8[statistics,
        TABLE], if all statistics were measured before. Raises DeviceMemoryError if the device's memory is too small,
        and ValueError for a JPEG operation.
        """
        with self._one_at_a_time, self.current():
            results = None
            if targets is None:
                results = self.allocate(program)
                targets = addresses(results)
            if program.num_outputs:
                prepared = self.prepare(program, images, targets, region, tables)
                for launch in prepared.launches:
                    launch.run()
        return results

    def queue(self, launch: Launch) -> None:
        """Run one launch of other kernels on the current stream; locked, as launches of passes are."""
        with self._one_at_a_time:
            launch.run()

    def prepare(
        self,
        program: Program,
        images: DeviceImages,
        targets: Int64Array,
        region: tuple[int, int, int, int] = NO_REGION,
        tables: UInt8Array = NO_TABLES,
    ) -> PreparedLaunches:
        """Upload the program and return its launches. ``targets``: addresses of the outputs."""
        settings = settings_of(program, images, self.block)
        packer = Packer(program)
        canvases = self.memory.empty(packer.canvases)
        staging = self.memory.staging(packer.uploaded + tables.size)
        memory = staging.numpy()
        # The section of statistics follows the uploaded sections.
        memory[packer.uploaded :] = tables.reshape(-1)
        counts = packer.fill(memory, images, targets, canvases.data_ptr(), self.block, region)
        buffer = self.memory.upload(staging, packer.buffer)
        workspace = self.memory.workspace(program.num_rows)
        features = self._learn(settings, counts[1:-1, FEATURES])
        prepared = launches(packer, counts, settings, buffer, workspace, features)
        return PreparedLaunches(prepared, [canvases, *images.owners])

    def _learn(self, settings: KernelSettings, needed: Int64Array) -> list[int]:
        """Return the features to compile for every pass: ``needed``, and all features needed earlier."""
        known = self._features.setdefault(settings, [0, 0])
        for p, features in enumerate(needed.tolist()):
            known[min(p, 1)] |= features
        return [known[min(p, 1)] for p in range(len(needed))]

    def take_results(self, program: Program, shape: tuple[int, ...]) -> torch.Tensor:
        """Allocate a tensor of the program's result dtype."""
        return self.memory.empty(shape, _result_dtype(program))

    def allocate(self, program: Program) -> torch.Tensor | list[torch.Tensor]:
        """Allocate all outputs: one tensor if their shapes agree, else a list."""
        dtype = _result_dtype(program)
        if (shape := program.common_shape()) is not None:
            return self.memory.empty((program.num_outputs, *shape), dtype)
        shapes = program.result_shapes()
        sizes = shapes.prod(axis=1, dtype=np.int64)
        starts = np.cumsum([0, *(-(-sizes // _APART) * _APART)]).tolist()
        whole = self.memory.empty((starts[-1],), dtype)
        return [whole[a : a + s].view(*w) for a, s, w in zip(starts, sizes.tolist(), shapes.tolist())]  # noqa: B905

    def current(self) -> AbstractContextManager[Any]:
        """Return a context in which this is the current device, as Triton's launches require."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()


def settings_of(program: Program, images: DeviceImages, block: tuple[int, int]) -> KernelSettings:
    """Return the settings that a program's launches share.

    Raises ValueError for a pixel function that is compiled for CPUs.
    """
    # Output steps run after all kernels; without them, more programs share a cached KernelSettings.
    output = replace(program.output, steps=()) if program.output.steps else program.output
    return _settings(output, triton_functions(program.tables.pixel_functions), images.format, block, program.depth)


# Cached, because each KernelSettings caches its kernels' compile-time arguments.
_settings = lru_cache(maxsize=64)(KernelSettings)


def _result_dtype(program: Program) -> torch.dtype:
    dtype = program.output.dtype if program.output.is_float else str(program.depth)
    return cast(torch.dtype, getattr(torch, dtype))


def addresses(results: torch.Tensor | list[torch.Tensor]) -> Int64Array:
    if isinstance(results, torch.Tensor):
        step = results.stride(0) * results.element_size()
        return results.data_ptr() + step * np.arange(len(results), dtype=np.int64)
    return np.array([result.data_ptr() for result in results], np.int64)


@lru_cache(maxsize=64)
def executor_of(device: str) -> CudaExecutor:
    """Return the process's executor of "cuda:N"; all callers share its compiled kernels and workspace."""
    return CudaExecutor(torch.device(device))


def upload_images(executor: CudaExecutor, images: Sequence[ImageArray] | ImageArray) -> DeviceImages:
    """Upload contiguous arrays [H, W, C] of one dtype by one asynchronous copy of a pinned buffer."""
    shapes = np.array([image.shape for image in images], np.int32).reshape(-1, 3)
    depth = depth_of_batch(images)
    offsets, total = packed_offsets(shapes, depth)
    staging = executor.memory.staging(total)
    write_images(staging.numpy(), images, offsets)
    return place_packed(executor.memory.upload(staging, total), offsets, shapes, depth)


def lower_for_cuda(program: Program, geometry: str = "composed") -> Program:
    """Lower a program for this executor, which measures all statistics of a pass at once."""
    return lower(program, geometry, measured_once=True)


def run_on_host_arrays(program: Program, images: Sequence[ImageArray], device: str) -> list[AnyArray]:
    """Run a sampled or fused program on arrays -> one array per output; waits for the device.

    CPU counterpart: ``cpu.run``; definition: ``tests/oracle/executor.py``.
    """
    check_fits(program, shapes_of(images), depth_of_batch(images))
    fused = program if program.stage == "fused" else lower_for_cuda(program)
    executor = executor_of(device)
    whole = [np.ascontiguousarray(image if image.ndim == 3 else image[:, :, None]) for image in images]
    return [result.cpu().numpy() for result in executor.run(fused, upload_images(executor, whole))]
