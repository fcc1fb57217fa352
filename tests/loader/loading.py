"""Loaders over small sources, and what an epoch of one gives: ids, keys (id, copy), pixels by either."""

from __future__ import annotations

from typing import Any

import variegate as vg
from variegate import transforms as T

CROPPED = T.Compose([T.RandomResizedCrop(24), T.RandAugment(2, 9)])
NORMALIZED = T.Compose([CROPPED, T.Normalize(0.5, 0.25)])

Pixels = dict[int, bytes]


def load(source: Any, transform: Any = CROPPED, **options: Any) -> vg.Loader:
    return vg.Loader(source, transform, **({"batch_size": 4, "device": "cpu", "num_threads": 2} | options))


def pixels(loader: vg.Loader) -> Pixels:
    """The bytes of every sample of an epoch by id, padding left out."""
    found: Pixels = {}
    for batch in loader:
        for sample_id, image, is_padding in zip(batch.ids.tolist(), batch.images, batch.padding, strict=True):
            if not is_padding:
                assert sample_id not in found
                found[sample_id] = image.numpy().tobytes()
    return found


def ids(loader: vg.Loader) -> list[int]:
    return [sample_id for batch in loader for sample_id in batch.ids.tolist()]


def keys(loader: vg.Loader) -> list[tuple[int, int]]:
    """(id, copy) of an epoch, padding left out."""
    return [
        key
        for batch in loader
        for key, is_padding in zip(
            zip(batch.ids.tolist(), batch.copies.tolist(), strict=True), batch.padding, strict=True
        )
        if not is_padding
    ]


def pixels_of(batch: vg.Batch) -> dict[tuple[int, int], bytes]:
    rows = zip(batch.ids.tolist(), batch.copies.tolist(), batch.images, batch.padding, strict=True)
    return {(i, copy): image.numpy().tobytes() for i, copy, image, is_padding in rows if not is_padding}


def by_key(loader: vg.Loader) -> dict[tuple[int, int], bytes]:
    found: dict[tuple[int, int], bytes] = {}
    for batch in loader:
        part = pixels_of(batch)
        assert not part.keys() & found.keys()
        found |= part
    return found
