"""The end of a blend: what the store and the erasing after Normalize do for rows that are not blended."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.position import erase_normalized
from variegate.program.ops import Op
from variegate.program.program import Program


def finish_blend(program: Program, row: int, mixed: npt.NDArray[np.uint8], result: npt.NDArray[Any]) -> None:
    """``mixed``: the blended image in the output's layout; ``row``: the sample's first row, whose erasing counts."""
    if not program.output.is_float:
        result[...] = mixed
        return
    is_planar = program.output.layout == "NCHW"
    channels = mixed.shape[0] if is_planar else mixed.shape[-1]
    scale, bias = (table[:channels] for table in program.output.scale_and_bias(channels))
    if is_planar:
        scale, bias = scale[:, None, None], bias[:, None, None]
    result[...] = mixed.astype(np.float32) * scale + bias
    height, width = program.final_size(row)
    for k in range(int(program.length[row])):
        if program.opcode[row, k] == Op.ERASE and program.args[row, k, 7] != 0.0:
            erase_normalized(
                program.args[row, k],
                program.tables.rectangles,
                height,
                width,
                channels,
                is_planar,
                program.ids[row],
                program.key,
                result.reshape(-1),
            )
