"""What a JPEG keeps of an image, by rectangles of whole blocks."""

from __future__ import annotations

import numpy as np

from variegate.executors.cpu.jpeg import through_jpeg
from variegate.executors.cpu.tiled.areas import Area, CutStage, Image, Stage

# Chroma blocks of 4:2:0 cover so many pixels. Upsampling looks at the chroma beside a pixel's own, which lies in the
# block beside; what blocks are made of begins and ends with them.
_BLOCK = 16


class CodedStage(CutStage):
    def __init__(self, before: Stage, quality: int) -> None:
        self.before, self._quality = before, quality
        self.height, self.width, self.channels = before.height, before.width, before.channels

    def reads(self, area: Area) -> Area:
        top, left = area.top // _BLOCK * _BLOCK - _BLOCK, area.left // _BLOCK * _BLOCK - _BLOCK
        bottom, right = -(-area.bottom // _BLOCK) * _BLOCK + _BLOCK, -(-area.right // _BLOCK) * _BLOCK + _BLOCK
        return Area(top, left, bottom, right).meet(self.whole)

    def make_from(self, area: Area, read: Area | None) -> Image:
        assert read is not None
        coded = through_jpeg(np.ascontiguousarray(self.before.make(read)), self._quality)
        return np.ascontiguousarray(coded[area.within(read)])
