"""The steps of a batch as the kernel of masks reads them (``executors/cuda/mask_layout.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cuda import mask_layout as M
from variegate.targets.stages import (
    COLUMNS,
    ERASE,
    FIRST,
    GRID,
    LEFT,
    LINES,
    MAP,
    MODE,
    REPEAT,
    SCALE,
    STEP_X,
    STEP_Y,
    TOP,
    UNIT,
    Stages,
)
from variegate.targets.walk import NODES_PER_STEP

Words = npt.NDArray[np.int64]

_STEP_KINDS = {MAP: M.MAP, GRID: M.GRID, REPEAT: M.REPEAT, SCALE: M.SCALE}


def step_records(stages: Stages, nodes_at: int, places_at: int) -> tuple[Words, Words]:
    """-> int64[S', STEP], and where those of each row begin, int64[R + 1]. What is erased is left out: masks stay.

    ``nodes_at``, ``places_at``: offsets of ``stages.grids`` and of ``stages.tables``.
    """
    kept = stages.kind != ERASE
    begin = np.concatenate([[0], np.cumsum(kept)])[stages.begin]
    kind, numbers, back = stages.kind[kept], stages.numbers[kept], stages.back[kept]
    records = np.zeros((len(kind), M.STEP), np.int64)
    reals = records.view(np.float64)
    for own, told in _STEP_KINDS.items():
        records[kind == own, M.STEP_KIND] = told
    records[:, M.ROUNDS] = stages.rounds[kept]
    reals[:, [M.BEFORE_HEIGHT, M.BEFORE_WIDTH]] = stages.before[kept]
    maps, grids, pads, scales = (np.flatnonzero(kind == each) for each in (MAP, GRID, REPEAT, SCALE))
    reals[maps, M.NUMBERS : M.NUMBERS + 9] = back[maps]
    _put(records, grids, M.NODES, nodes_at + stages.grids.itemsize * numbers[grids, FIRST])
    _put(records, grids, M.NODE_LINES, numbers[grids, LINES])
    _put(records, grids, M.NODE_COLUMNS, numbers[grids, COLUMNS])
    _put(reals, grids, M.NODES_PER_LINE, numbers[grids, STEP_Y] * NODES_PER_STEP)
    _put(reals, grids, M.NODES_PER_COLUMN, numbers[grids, STEP_X] * NODES_PER_STEP)
    _put(reals, grids, M.UNIT, np.ldexp(1.0, numbers[grids, UNIT] - 6))
    _put(reals, pads, M.PAD_LEFT, numbers[pads, LEFT])
    _put(reals, pads, M.PAD_TOP, numbers[pads, TOP])
    _put(records, pads, M.PAD_MODE, numbers[pads, MODE])
    columns_at = places_at + stages.tables.itemsize * numbers[scales, FIRST]
    _put(records, scales, M.COLUMN_PLACES, columns_at)
    _put(records, scales, M.LINE_PLACES, columns_at + stages.tables.itemsize * stages.after[kept][scales, 1])
    return records, begin


def _put(records: npt.NDArray[Any], at: npt.NDArray[np.intp], number: int, values: npt.NDArray[Any]) -> None:
    records[at, M.NUMBERS + number] = values
