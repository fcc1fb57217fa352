"""The oracle as a device of tests: ``Augmenter(t, device="oracle")``, ``F.invert(image, device="oracle")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests import oracle
from variegate.arrays import UInt8Array
from variegate.executors.runners import devices
from variegate.executors.runners import runner as runners
from variegate.executors.runners.channels import run_groups
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.grouping import allocate_outputs
from variegate.executors.runners.host import HostBatch, HostRunner, decoded, each_tensor, widened
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.transforms.functional import single

NAME = "oracle"


class OracleRunner(HostRunner):
    """It runs sampled programs; lowering serves explanations only."""

    lower = staticmethod(lower)

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def run(self, program: Program, batch: HostBatch) -> Any:
        images = list(widened(batch, program).images)
        if not program.has_many_channels:
            return self._run(program, images)
        return run_groups(program, lambda group, part: self._run(part, [image[..., group.read] for image in images]))

    def _run(self, program: Program, images: list[UInt8Array]) -> Any:
        results = oracle.run(program, images)
        if program.grouping is not None:
            room, blocks = allocate_outputs(
                program, program.grouping, lambda shape: np.empty(shape, results[0].dtype if results else np.uint8)
            )
            for memory, outputs in blocks:
                memory[...] = np.stack([results[n] for n in outputs]).reshape(memory.shape)
            return each_tensor(room, program.output, self._dtype)
        same = len({result.shape for result in results}) == 1
        return each_tensor(np.stack(results) if same else results, program.output, self._dtype)

    def decode_and_run(self, program: Program, batch: EncodedBatch) -> Any:
        return self.run(program, decoded(batch))


def install() -> None:
    """Make the name known to augmenters and functions of this process."""
    make_runner, get_executor = runners.make_runner, devices.get_executor

    def make(device: object, dtype: torch.dtype, *settings: Any) -> tuple[str, Any]:
        return (NAME, OracleRunner(dtype)) if device == NAME else make_runner(device, dtype, *settings)

    def find(device: str) -> Callable[..., Any]:
        return oracle.run if device == NAME else get_executor(device)

    setattr(runners, "make_runner", make)  # noqa: B010
    setattr(single, "get_executor", find)  # noqa: B010
