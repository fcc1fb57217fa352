"""A stream's shuffle buffer counts what belongs to an image as well: a mask is larger than the file of its image."""

from __future__ import annotations

import numpy as np

from variegate.errors import DecodeError
from variegate.formats.base import Item, SampleName, StreamItem
from variegate.loader.stream import _size_of


def size(item: Item | DecodeError) -> int:
    return _size_of(StreamItem(0, SampleName("a.tar"), item))


def test_arrays_of_targets_count() -> None:
    targets = {"mask": np.zeros((40, 60), np.int32), "boxes": np.zeros((3, 4), np.float32), "names": ["a"]}
    assert size(Item(b"12345", 1)) == 5
    assert size(Item(b"12345", 1, targets)) == 5 + 9600 + 48
    assert size(Item(np.zeros((4, 5, 3), np.uint8), 1, targets)) == 60 + 9600 + 48
    assert size(DecodeError("a.tar", "broken")) == 0
