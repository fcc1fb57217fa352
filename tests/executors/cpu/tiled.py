"""An image in tiles, in this process alone: what tests of tiles share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import variegate as vg
from tests.images import Image
from variegate.executors.cpu.tiled.areas import Area
from variegate.executors.cpu.tiled.chain import TiledImage
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.program.program import Program


class Pixels:
    """A source that remembers which rectangles were read."""

    def __init__(self, array: Image) -> None:
        self._array = array
        self.height, self.width, self.channels = array.shape
        self.read: list[Area] = []

    def make(self, area: Area) -> Image:
        assert 0 <= area.top < area.bottom <= self.height
        assert 0 <= area.left < area.right <= self.width
        self.read.append(area)
        return np.ascontiguousarray(self._array[area.top : area.bottom, area.left : area.right])


def in_tiles(program: Program, source: Pixels, tile: int, on: HostPixels | None = None) -> npt.NDArray[Any]:
    """A fused program's result, [H, W, C]; its tiles in no good order."""
    on = HostPixels() if on is None else on
    image = TiledImage(program, source, on)
    tables: list[Any] = []
    for number, statistic in enumerate(image.statistics):
        total = statistic.zero()
        for area in [] if statistic.seen.is_empty else reversed(statistic.seen.blocks(tile)):
            total += image.gather(number, area)
        tables.append(statistic.resolve(total))
        image.set_tables(tables)
    whole = Area(0, 0, image.height, image.width)
    tiles = [(area, on.fetched(image.make(area))) for area in whole.blocks(tile)[::-1]]
    made = np.empty((image.height, image.width, image.channels), tiles[0][1].dtype)
    for area, levels in tiles:
        made[area.within(whole)] = levels
    return made


def check_tiled(transform: vg.transforms.Transform, image: Image, tile: int, id: int = 0, **options: Any) -> None:
    """Tiles make the pixels of the whole image's run."""
    augmenter = vg.Augmenter(transform, device="cpu", seed=1, layout="NHWC", num_threads=1, **options)
    expected = augmenter([image], ids=[id])[0].numpy()
    made = in_tiles(augmenter.plan_one(image.shape, id)[1], Pixels(image), tile)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected, f"{transform}, {image.shape} in tiles of {tile}, id {id}")
