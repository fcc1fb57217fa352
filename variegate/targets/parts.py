"""What an output shows of which row: all of one, or boxes of several that are mixed.

Of several rows of one image in the same place (AugMix) the one of the greatest weight stands for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.program.program import Program
from variegate.targets.samples import OfImage


class Part(NamedTuple):
    """``boxes``: int64[Q, 4], left, top, right, bottom within the output, which do not overlap."""

    row: int
    source: int  # which image of the batch
    weight: float
    boxes: npt.NDArray[np.int64]
    is_whole: bool  # it is all of the output


class Joined(NamedTuple):
    """What one part brings to an output."""

    part: Part
    of: OfImage
    kept: npt.NDArray[np.intp]  # which of its boxes
    boxes: npt.NDArray[Any]
    points: npt.NDArray[Any] | None

    @property
    def kept_instances(self) -> npt.NDArray[np.intp]:
        """Which of its instance masks, of which it has some."""
        assert self.of.instances is not None
        return self.kept if self.of.corners is not None else np.arange(len(self.of.instances))


def parts_of(program: Program) -> list[list[Part]]:
    """The parts of every output, those of its own image first."""
    sizes = program.final_sizes()
    if program.blend is None:
        whole = np.concatenate([np.zeros_like(sizes), sizes[:, ::-1]], axis=1).astype(np.int64)
        return [[Part(n, of, 1.0, whole[n : n + 1], True)] for n, of in enumerate(program.source.tolist())]
    entries = program.blend.entries()
    outputs = []
    for begin, end in zip(entries.begins[:-1].tolist(), entries.begins[1:].tolist(), strict=True):
        height, width = sizes[entries.row[begin]].tolist()
        best: dict[tuple[int, ...], int] = {}
        for e in range(begin, end):
            top, left, bottom, right = entries.box[e].tolist()
            box = (left, top, min(right, width), min(bottom, height))
            place: tuple[int, ...] = (int(program.source[entries.row[e]]), *box)
            if entries.weight[e] > 0.0 and (place not in best or entries.weight[e] > entries.weight[best[place]]):
                best[place] = e
        rows: dict[int, list[tuple[int, ...]]] = {}
        weights: dict[int, float] = {}
        for place, e in best.items():
            row = int(entries.row[e])
            rows.setdefault(row, []).append(place[1:])
            weights[row] = max(weights.get(row, 0.0), float(entries.weight[e]))
        outputs.append(
            [
                Part(row, int(program.source[row]), weights[row], np.array(boxes), boxes == [(0, 0, width, height)])
                for row, boxes in rows.items()
            ]
        )
    return outputs
