"""Memory that decoding takes: how much, by a picture's header, and threads that wait for each other for it.

How much Pillow takes is as measured: peaks of a process's memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Condition
from typing import Any

from PIL import Image

from variegate.threads import at_fork

# Pictures that take less are decoded without asking, so that ordinary ones meet no lock.
LARGE = 32 << 20
# Twice what one picture may take by default.
TOTAL = 2_000_000_000

_SMALL: AbstractContextManager[None] = nullcontext()

# Bytes that Pillow keeps for a pixel, by mode; four for all others.
_KEPT = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_RESULT = 3
# libwebp's two canvases, and the picture it hands to Pillow.
_WEBP_CANVASES, _WEBP_COPY = 8, 4
_WHAT_A_STRIP_TAKES = 4 << 20
_ORIENTATION, _BITS, _ROWS_PER_STRIP, _TILE_WIDTH, _TILE_LENGTH = 274, 258, 278, 322, 323


class Budget:
    """``total`` bytes; whoever asks for more than is left waits, first come, first served.

    What is more than all of it is let through alone. A thread must not ask for more while it holds some.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        """As new: a forked process has none of the threads that held or awaited anything."""
        self._changed = Condition()
        self._waiting: deque[object] = deque()
        self._taken = 0

    def room_for(self, needed: int) -> AbstractContextManager[None]:
        """Holds ``needed`` bytes while it is entered."""
        return _SMALL if needed < LARGE else self._take(needed)

    @contextmanager
    def _take(self, needed: int) -> Iterator[None]:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self._has(needed))
                self._taken += needed
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= needed
                self._changed.notify_all()

    def _has(self, needed: int) -> bool:
        return self._taken == 0 or self._taken + needed <= self._total


_budget = Budget(TOTAL)
room_for = _budget.room_for


def bytes_needed(image: Image.Image, file_bytes: int, decoder_bytes: int = 0) -> int:
    """The peak of ``PillowFile.decode``, about, its result included and the file's own bytes not.

    ``decoder_bytes``: what a decoder holds while it works, where the caller knows. Files that are damaged in the fields
    it looks at may raise whatever Pillow's plug-ins raise.
    """
    pixels = image.height * image.width
    kept = _KEPT.get(image.mode, 4) * pixels
    while_decoding, after = decoder_bytes, 0
    if image.format == "WEBP":
        after = _WEBP_CANVASES * pixels + 2 * file_bytes
        while_decoding = after + _WEBP_COPY * pixels
    elif image.format == "TIFF":
        while_decoding = _of_tiff(image, kept, file_bytes)
    elif image.format == "GIF":
        while_decoding = pixels
    if any(tile[0] in Image.DECODERS for tile in image.tile[:1]):  # type: ignore[attr-defined]
        # Those written in Python collect all pixels and copy them: BMP's run lengths, PPM in 16 bits or as text.
        while_decoding += 2 * len(image.getbands()) * pixels
    return max(kept + while_decoding, kept + after + _RESULT * pixels) + _WHAT_A_STRIP_TAKES


def _of_tiff(image: Image.Image, kept: int, file_bytes: int) -> int:
    tags = image.tag_v2  # type: ignore[attr-defined]
    orientation = _number(tags, _ORIENTATION, 1)
    turned = kept if 2 <= orientation <= 8 else 0  # Pillow turns TIFFs itself, into another picture
    if image.tile[:1] and image.tile[0][0] != "libtiff":  # type: ignore[attr-defined]
        return turned
    # libtiff is given a copy of the file, and decodes a strip or a tile at a time, which may be all of the picture.
    height, width = (image.width, image.height) if 5 <= orientation <= 8 else (image.height, image.width)
    if _TILE_WIDTH in tags:
        unit = _number(tags, _TILE_WIDTH, width) * _number(tags, _TILE_LENGTH, height)
    else:
        unit = width * min(_number(tags, _ROWS_PER_STRIP, height), height)
    bits = tags.get(_BITS, 8)
    pixel = (sum(bits) if isinstance(bits, tuple) else int(bits)) // 8
    return max(turned, unit * max(4, pixel) + file_bytes)


def _number(tags: Any, tag: int, default: int) -> int:
    value = tags.get(tag, default)
    return int(value[0] if isinstance(value, tuple) and value else value)
