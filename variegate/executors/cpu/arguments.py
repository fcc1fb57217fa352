"""Fused programs as arguments of kernels."""

from __future__ import annotations

import numpy as np

from variegate.executors.cpu.layout import (
    BYTES_CHW,
    BYTES_HWC,
    FLOATS_CHW,
    FLOATS_HWC,
    Instructions,
    ResultFormat,
    SideTables,
)
from variegate.program.held import plain
from variegate.program.program import Output, Program, Tables


def form_of(output: Output) -> ResultFormat:
    """How results are stored, within the caches."""
    scale, bias = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    if output.is_float:
        scale[0], bias[0] = output.scale_and_bias(1)
        scale[1], bias[1] = output.scale_and_bias(3)
    is_planar = output.layout == "NCHW"
    kind = (FLOATS_CHW if is_planar else FLOATS_HWC) if output.is_float else (BYTES_CHW if is_planar else BYTES_HWC)
    return ResultFormat(kind, False, scale, bias)


def instructions_of(program: Program) -> Instructions:
    return Instructions(*(plain(getattr(program, name)) for name in Instructions._fields))


def side_tables(tables: Tables) -> SideTables:
    return SideTables(
        luts=plain(tables.luts),
        matrices=plain(tables.matrices),
        kernels=plain(tables.kernels),
        rectangles=plain(tables.rectangles),
        grids=plain(tables.grids),
        points=np.array([point.address for point in tables.points], np.int64),
    )
