"""The parts of ``run_rows``: kernels that it calls by their addresses, which it finds in ``Scratch.parts``."""

from __future__ import annotations

from functools import cache
from typing import Any

from variegate.executors.cpu import layout
from variegate.executors.cpu.interpolate import prepare_maps, real_nearest_row
from variegate.executors.cpu.kernel import PART
from variegate.executors.cpu.neighbourhood import filtered_row
from variegate.executors.cpu.position import add_noise, erase_normalized
from variegate.executors.cpu.resample import prepare_resize
from variegate.executors.cpu.statistics import build_tables

PART_KERNELS = {
    layout.STATISTICS: build_tables,
    layout.MAPS: prepare_maps,
    layout.NEAREST: real_nearest_row,
    layout.FILTER: filtered_row,
    layout.RESIZE: prepare_resize,
    layout.NOISE: add_noise,
    layout.ERASED: erase_normalized,
}


@cache
def part_addresses() -> tuple[int, ...]:
    """In the order of ``layout``; compiled, or loaded, where that was not done yet."""
    return tuple(_address(PART_KERNELS[number]) for number in range(layout.PARTS))


def _address(part: Any) -> int:
    part.compile(PART)
    result = part.overloads[PART]
    address: int = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    return address
