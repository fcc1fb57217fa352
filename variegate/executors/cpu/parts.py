"""The parts of ``run_rows``: kernels that it calls by their addresses, which it finds in ``Scratch.parts``."""

from __future__ import annotations

from functools import cache
from typing import Any

from variegate.executors.cpu import part_calls as calls
from variegate.executors.cpu.displace import displaced_row
from variegate.executors.cpu.neighbourhood import filtered_row
from variegate.executors.cpu.part_calls import PART
from variegate.executors.cpu.position import add_noise, erase_normalized
from variegate.executors.cpu.real_maps import prepare_maps, real_nearest_row
from variegate.executors.cpu.resample import prepare_resize
from variegate.executors.cpu.statistics import build_tables

PART_KERNELS = {
    calls.STATISTICS: build_tables,
    calls.MAPS: prepare_maps,
    calls.NEAREST: real_nearest_row,
    calls.FILTER: filtered_row,
    calls.RESIZE: prepare_resize,
    calls.NOISE: add_noise,
    calls.ERASED: erase_normalized,
    calls.DISPLACED: displaced_row,
}


@cache
def part_addresses() -> tuple[int, ...]:
    """By number; compiled, or loaded, where that was not done yet."""
    return tuple(address_of_part(PART_KERNELS[number]) for number in range(calls.PARTS))


def address_of_part(part: Any) -> int:
    part.compile(PART)
    result = part.overloads[PART]
    address: int = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    return address
