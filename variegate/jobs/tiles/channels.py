"""Images of other than one or three channels in tiles: programs over three channels each (``program/planes.py``)."""

from __future__ import annotations

import numpy as np

from variegate.executors.cpu.tiled.areas import Area, Image, Stage
from variegate.executors.cpu.tiled.chain import TiledImage
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.executors.cpu.tiled.statistics import Counts, Statistic, Tables
from variegate.program.planes import Planes, parts_of
from variegate.program.program import Program


def tiled(program: Program, source: Stage, on: HostPixels | None = None) -> TiledImage | TiledParts:
    """The result of a fused program of one image, made ``on`` a device (None: a CPU)."""
    return TiledImage(program, source, on) if program.planes is None else TiledParts(program, source)


class TiledParts:
    """As ``TiledImage``, which see."""

    def __init__(self, program: Program, source: Stage) -> None:
        assert program.planes is not None
        self._parts: list[tuple[Planes, TiledImage]] = []
        for part in parts_of(program):
            assert part.planes is not None
            self._parts.append((part.planes, TiledImage(part, _Picked(source, part.planes.read))))
        first = self._parts[0][1]
        self.height, self.width, self.channels = first.height, first.width, program.planes.channels
        # One statistic of all parts after another, so that what comes before it is known of each.
        self._of = [(part, number) for number in range(len(first.statistics)) for part in range(len(self._parts))]
        self.statistics: list[Statistic] = [self._parts[part][1].statistics[number] for part, number in self._of]

    def make(self, area: Area) -> Image:
        """uint8 or float32 [H, W, C]."""
        made = [tiles.make(area)[..., planes.begin : planes.end] for planes, tiles in self._parts]
        return np.concatenate(made, axis=2)

    def gather(self, number: int, area: Area) -> Counts:
        part, own = self._of[number]
        return self._parts[part][1].gather(own, area)

    def set_tables(self, tables: list[Tables]) -> None:
        for statistic, table in zip(self.statistics, tables, strict=False):
            statistic.set(table)


class _Picked:
    """Three channels of an image."""

    def __init__(self, before: Stage, read: list[int]) -> None:
        self.height, self.width, self.channels = before.height, before.width, len(read)
        self._before, self._read = before, read

    def make(self, area: Area) -> Image:
        return np.ascontiguousarray(self._before.make(area)[..., self._read])
