"""What every executor must do, as checks over a device. A new executor joins by one line in DEVICES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests import oracle
from tests.images import Image
from tests.programs import SEMANTIC, UINT8, Step, program_of
from variegate.executors.cpu import executor as cpu
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Output, Program

Result = npt.NDArray[Any]
Run = Callable[..., list[Result]]


@dataclass(frozen=True)
class Device:
    """``run(program, images, geometry=, threads=, poison=)``: ``poison``, a byte that fills the results beforehand.

    ``ops``: the instructions that it runs.
    """

    name: str
    run: Run
    marks: tuple[pytest.MarkDecorator, ...] = ()
    ops: tuple[Op, ...] = SEMANTIC


def _run_cpu(
    program: Program,
    images: Sequence[Image],
    geometry: str = "composed",
    threads: int | None = 1,
    poison: int | None = None,
) -> list[Result]:
    fused = lower(program, geometry)
    results = cpu.allocate(fused)
    if poison is not None:
        for result in results:
            result.reshape(-1).view(np.uint8)[:] = poison
    cpu.run_into(fused, images, cpu.addresses(results), num_threads=threads)
    # Copies: the memory of results is used again.
    return [result.copy() for result in results]


def _run_cuda(
    program: Program,
    images: Sequence[Image],
    geometry: str = "composed",
    threads: int | None = 1,
    poison: int | None = None,
) -> list[Result]:
    from tests.executors.poison import POISON, run_poisoned

    return run_poisoned(_gpu(), program, images, geometry, POISON if poison is None else poison)


@cache
def _gpu() -> Any:
    from tests.executors.poison import poisoned_executor

    return poisoned_executor("cuda:0")


CPU = Device("cpu", _run_cpu, ops=(*SEMANTIC, Op.JPEG))
DEVICES = (CPU, Device("cuda", _run_cuda, marks=(pytest.mark.gpu,)))

every_device = pytest.mark.parametrize("device", [pytest.param(d, id=d.name, marks=d.marks) for d in DEVICES])


def check(
    device: Device, program: Program, images: Sequence[Image], chains: Sequence[Sequence[Step]], **options: Any
) -> None:
    """Run and compare with the reference, bit for bit."""
    results = device.run(program, images, **options)
    expected = oracle.run(program, images)
    assert len(results) == len(expected)
    for row, (chain, out, wanted) in enumerate(zip(chains, results, expected, strict=True)):
        what = f"row {row}, image {images[row].shape}: " + ", ".join(f"{s.op.name}{s.args} {s.flags}" for s in chain)
        assert out.shape == wanted.shape, what
        assert out.dtype == wanted.dtype, what
        np.testing.assert_array_equal(out, wanted, err_msg=what)


def check_chains(
    device: Device, chains: Sequence[Sequence[Step]], images: Sequence[Image], output: Output = UINT8, **options: Any
) -> None:
    """``check`` of a chain of steps for each image; or of each chain, if there is one image."""
    images = images if len(images) == len(chains) else [images[0]] * len(chains)
    check(device, program_of(chains, images, output), images, chains, **options)


def assert_equal(results: Sequence[Any], expected: Sequence[Any]) -> None:
    for out, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(out, wanted)
