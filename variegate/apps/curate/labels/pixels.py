"""The images whose labels are looked at, small enough for a short training, all of them in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter.augmenter import Augmenter
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.base import Item, Source, SourceError, StreamSource
from variegate.loader import Loader
from variegate.ops.resize import Resize

Ints = npt.NDArray[np.int64]
_BATCH, _SIDE, _LARGEST_KEPT, _LEAST = 256, 32, 64, 16


def size_for(heights: Ints, widths: Ints) -> tuple[int, int]:
    """(height, width) that all are resized to: their own where it is one, of 16 to 64 pixels a side; 16x16 where all
    are smaller; else 32x32."""
    if max(int(heights.max()), int(widths.max())) < _LEAST:
        return _LEAST, _LEAST
    height, width = int(heights[0]), int(widths[0])
    is_one = bool((heights == height).all() and (widths == width).all())
    is_kept = is_one and min(height, width) >= _LEAST and max(height, width) <= _LARGEST_KEPT
    return (height, width) if is_kept else (_SIDE, _SIDE)


def small_pixels(source: Source | StreamSource, indices: Ints, size: tuple[int, int]) -> tuple[torch.Tensor, Ints]:
    """-> uint8 [N, height, width, 3], and int64[N]: which of ``indices`` they are; all that can still be read.

    ``indices``: in the source, ascending; of a stream, in its order. Raises SourceError where none can be read.
    """
    # Asked of the class: isinstance() of a protocol would compute the fingerprint.
    if hasattr(type(source), "read_shard"):
        parts = list(_of_stream(cast(StreamSource, source), set(indices.tolist()), size))
    else:
        parts = list(_of_source(cast(Source, source), indices, size))
    if not parts:
        raise SourceError("labels: none of the images can be read any more")
    pixels, found = zip(*parts, strict=True)
    return torch.cat(pixels), np.concatenate(found)


def _of_source(source: Source, indices: Ints, size: tuple[int, int]) -> Iterator[tuple[torch.Tensor, Ints]]:
    options: dict[str, Any] = {"shuffle": False, "on_error": "skip", "layout": "NHWC", "prefetch": 1, "targets": False}
    ids = source.ids(indices)
    order = np.argsort(ids)
    for batch in Loader(source, Resize(size), _BATCH, "cpu", sampler=indices, **options):
        good = np.flatnonzero(~batch.padding)
        if len(good):
            kept = torch.stack([_in_colour(batch[0][row]) for row in good.tolist()])
            yield kept, indices[order[np.searchsorted(ids, batch.ids[good], sorter=order)]]


def _of_stream(source: StreamSource, wanted: set[int], size: tuple[int, int]) -> Iterator[tuple[torch.Tensor, Ints]]:
    augment = Augmenter(Resize(size), "cpu", layout="NHWC")
    samples = enumerate(chain.from_iterable(map(source.read_shard, range(source.num_shards))))
    readable = ((index, sample.item) for index, sample in samples if index in wanted and isinstance(sample.item, Item))
    while some := list(islice(readable, _BATCH)):
        kept = []
        for index, item in some:
            with suppress(DecodeError):  # it has become another since it was checked
                kept.append((index, read_image(item.data) if isinstance(item.data, bytes) else item.data))
        if kept:
            images = augment([image for _, image in kept])
            yield torch.stack([_in_colour(one) for one in images]), np.array([index for index, _ in kept], np.int64)


def _in_colour(image: torch.Tensor) -> torch.Tensor:
    return image.expand(-1, -1, 3) if image.shape[2] == 1 else image
