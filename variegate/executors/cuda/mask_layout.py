"""Layout of the buffer that travels to the device for a batch of masks.

It begins with the byte offsets of its arrays, in this order: sizes of the results, int64[N, 2], and which regions are
theirs, int64[N + 1]; regions and layers (MASK_REGION and MASK_LAYER of ``native/structs.py``); and the geometry of the
rows, ``STAGE_ARRAYS`` (``program/stages.py``).
"""

from __future__ import annotations

import zlib

from variegate.executors.cuda.layout import ROWS_SIDE_BY_SIDE
from variegate.native.structs import MASK_LAYER, MASK_REGION
from variegate.program import stages as S
from variegate.program.ops import PadMode

STAGE_ARRAYS = ("begin", "kind", "back", "before", "after", "rounds", "numbers", "grids", "tables")
SIZES, FIRST_REGIONS, REGIONS, LAYERS, FIRST_STAGES, KIND, BACK, BEFORE, AFTER, ROUNDS, NUMBERS, GRIDS, TABLES = range(
    4 + len(STAGE_ARRAYS)
)

ROW, LEFT, TOP, RIGHT, BOTTOM, IMAGE_WIDTH, FIRST_LAYER, END_LAYER = range(len(MASK_REGION))
REGION = len(MASK_REGION)

SOURCE, RESULT, RESULT_WIDTH, BITS, FILL = range(len(MASK_LAYER))
LAYER = len(MASK_LAYER)

EDGE = int(PadMode.EDGE)
REFLECT = int(PadMode.REFLECT)
WRAP = int(PadMode.WRAP)

_READ = (*sorted(vars(S).items()), *sorted(globals().items()))
# As ``layout.VERSION``: what the kernel reads from here, and from there.
VERSION = zlib.crc32(
    repr([ROWS_SIDE_BY_SIDE, *((name, value) for name, value in _READ if isinstance(value, (int, float)))]).encode()
)
