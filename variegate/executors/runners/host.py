"""The CPU runner: batches in the host's memory, run by the native executor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from variegate.arrays import ImageArray, Int32Array
from variegate.executors import cpu
from variegate.executors.batches import depth_of_batch, shapes_of
from variegate.executors.runners.channels import allocate_result, run_groups_of_rows, to_layout
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.images import NAMES, RaggedBatch, check_images
from variegate.program.depth import Depth
from variegate.program.draws.record import Record
from variegate.program.lowering import lower
from variegate.program.plan import LoweringOptions
from variegate.program.program import Output, Program
from variegate.program.scalar_draw import ScalarDraw
from variegate.threads import by_openmp


def widened(batch: Any, program: Program) -> Any:
    """Return ``batch`` with its gray images as three channels where the program was sampled for three.

    ``batch``: a runner's batch, or an ``EncodedBatch``.
    """
    if program.stage == "fused":  # batches of fused programs are widened already: see ``Planner.lowered``
        return batch
    shapes = batch.shapes
    is_known = program.source < len(shapes)
    source = program.source[is_known]
    is_wide = (shapes[source, 2] == 1) & (program.in_shape[is_known, 2] == 3)
    if not is_wide.any():
        return batch
    shapes = shapes.copy()
    shapes[source[is_wide], 2] = 3
    return batch.widened(shapes)


Image = ImageArray


@dataclass(frozen=True)
class HostBatch:
    """Contiguous arrays [H, W, C] of one depth, or one [N, H, W, C]."""

    images: list[Image] | Image
    shapes: Int32Array
    depth: Depth = Depth.UINT8

    def widened(self, shapes: Int32Array) -> HostBatch:
        """Repeat gray images to three channels where ``shapes`` has three."""
        each = zip(self.images, shapes.tolist(), strict=True)
        return HostBatch(
            [np.ascontiguousarray(np.broadcast_to(image, shape)) for image, shape in each], shapes, self.depth
        )


def take_host_batch(images: Any, names: str = NAMES) -> HostBatch:
    """Check a batch. ``names``: see ``check_images``. Raises TypeError or ValueError naming the image."""
    if isinstance(images, HostBatch):
        return images
    if isinstance(images, RaggedBatch):
        images = [images[i] for i in range(len(images))]
    arrays = check_images(images, names)
    return HostBatch(arrays, shapes_of(arrays), depth_of_batch(arrays, names))


def decoded(batch: EncodedBatch) -> HostBatch:
    """Decode all images of a batch in full."""
    with batch.decoding():
        return HostBatch([batch.whole(i) for i in range(len(batch.files))], batch.shapes, batch.depth)


class HostRunner:
    """Base class of runners that take images in the host's memory."""

    rewriting: LoweringOptions | None = None
    mask_runner = None
    take = staticmethod(take_host_batch)


class CpuRunner(HostRunner):
    """Runs fused programs on the CPU."""

    def __init__(self, dtype: torch.dtype, num_threads: int | None, geometry: str) -> None:
        self.lower = partial(lower, geometry=geometry)
        self._dtype = dtype
        self._num_threads = num_threads
        self._is_composed = geometry == "composed"
        self.rewriting = LoweringOptions(self._is_composed)

    def run(self, program: Program, batch: HostBatch) -> Any:
        if program.has_many_channels:
            fused = self.lower(program)
            made = run_groups_of_rows(fused, batch.images, self._num_threads)
            return to_layout(each_tensor(made, fused.output, self._dtype), fused)
        return self._run(program, widened(batch, program).images, None)

    def fits_one(self, record: Record) -> bool:
        """True if ``draw_one`` can run the record."""
        return cpu.fits_workspace(record)

    def draw_one(self, record: Record, pixels: Image, sample_id: int, key: tuple[int, int]) -> torch.Tensor:
        """Draw and run one image -> its tensor [C, H, W] or [H, W, C]."""
        made = cpu.draw_one(record, pixels, sample_id, key, self._is_composed)
        return each_tensor(made, record.output, self._dtype)

    def run_one(self, image: ScalarDraw, pixels: Image) -> torch.Tensor:
        """Run the instructions of one image -> its tensor [C, H, W] or [H, W, C]."""
        made = cpu.run_one(image, pixels, image.output, self._is_composed)
        return each_tensor(made, image.output, self._dtype)

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        if program.has_many_channels:
            return self.run(program, decoded(batch))
        return self._run(program, None, widened(batch, program))

    def _run(self, program: Program, images: list[Image] | Image | None, encoded: EncodedBatch | None) -> Any:
        fused = program if program.stage == "fused" else self.lower(program)
        loader, together = (None, 1) if encoded is None else (encoded.loader, encoded.together(fused))
        room, targets = allocate_result(fused)
        cpu.run_into(fused, images, targets, self._num_threads, loader, together)
        return each_tensor(room, fused.output, self._dtype)


def each_tensor(room: Any, output: Output, dtype: torch.dtype) -> Any:
    """Convert an array, or nested lists and tuples of arrays, to tensors; normalized arrays to ``dtype``."""
    if isinstance(room, (tuple, list)):
        return type(room)(each_tensor(part, output, dtype) for part in room)
    tensor = torch.from_numpy(room)
    if output.mean is None or dtype == torch.float32:
        return tensor
    return by_openmp(lambda: tensor.to(dtype))
