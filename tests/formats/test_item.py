"""A sample is a pair, which may have targets."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from variegate.formats.base import Item


def test_targets_are_kept_beside_the_pair() -> None:
    boxes = np.zeros((2, 4), np.float32)
    item = Item(b"data", 3, {"boxes": boxes})
    data, label = item
    assert (data, label) == (b"data", 3)
    assert tuple(item) == (b"data", 3)
    for other in (pickle.loads(pickle.dumps(item)), copy.copy(item), item._replace(data=b"other")):
        assert type(other) is Item
        assert other.label == 3
        assert other.targets is not None
        np.testing.assert_array_equal(other.targets["boxes"], boxes)
    assert item._replace(data=b"other").data == b"other"
    assert Item(b"data", 3).targets is None
    assert Item(b"data", 3)._replace(targets={}).targets == {}
