"""``Augmenter.capture``: one batch on a GPU, augmented again and again with next to no work for the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.backends.cuda import CudaRunner
from variegate.backends.inputs import as_tensor
from variegate.backends.outputs import first_channel, wants_one_channel
from variegate.backends.ragged_batch import RaggedBatch

if TYPE_CHECKING:
    from variegate.executors.cuda.captured import CapturedRun
    from variegate.program.program import Program

# Programs drawn to see how much room they take.
_SAMPLES = 32


class CapturedAugmenter:
    """Augments one fixed batch of memory by CUDA graphs. Made by ``Augmenter.capture``.

    Copy new images into the tensor that was captured, then call this. The result is always the same tensor, written
    over by the next call: clone it to keep it.

    Attributes:
        output: the result's tensor.
        replays, launched: calls that the graph ran, and calls whose program was too large for it and was launched
            kernel by kernel.
    """

    def __init__(self, runner: CudaRunner, images: Any, sample: Any) -> None:
        whole = images.data if isinstance(images, RaggedBatch) else as_tensor(images)
        if whole is None or not whole.is_cuda:
            got = type(images).__name__
            raise ValueError(
                f"images: got {got} on the CPU; accepted: a CUDA tensor or RaggedBatch, read by every call"
            )
        batch = runner.take(images)
        ids = np.arange(len(batch.shapes))
        programs = [runner.lower(sample(batch.shapes, ids, epoch)) for epoch in range(_SAMPLES)]
        self._runner, self._sample, self._shapes = runner, sample, batch.shapes
        self._run: CapturedRun = runner.captured(programs, batch)
        result, output = self._run.output, programs[0].output
        self._output = first_channel(result, output.layout) if wants_one_channel(output) else result
        self.replays = self.launched = 0

    @property
    def output(self) -> torch.Tensor:
        return self._output

    def __call__(self, ids: Sequence[int] | npt.ArrayLike | None = None, epoch: int = 0, copy: int = 0) -> torch.Tensor:
        """Augment what is in the captured images now. Arguments as for ``Augmenter``."""
        program: Program = self._runner.lower(self._sample(self._shapes, ids, epoch, copy))
        if self._run.run(program):
            self.replays += 1
        else:
            self.launched += 1
        return self._output
