"""Batches of one image size each, by aspect ratio: ``Loader(buckets=vg.AspectBuckets(...))``.

The method of NovelAI (2022) and SDXL (Podell et al. 2023, arXiv:2307.01952, section 2.3). Not all images are cropped to
a square: each batch has one of several sizes of about the same area, whose aspect ratio is near that of its images.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from variegate.arrays import Int32Array, Int64Array
from variegate.checks import integer, number, one_of
from variegate.data.base import SourceError, digest_of
from variegate.data.samples import Samples
from variegate.data.stamps import stamps_of
from variegate.io.durable import WriteError, write_atomically
from variegate.io.location import cache_folder
from variegate.loader.mixture import Mixture
from variegate.loader.shuffle import Order, OrderPurpose, Permutation
from variegate.program.program import MAX_SIDE
from variegate.threads import Threads, computed_once
from variegate.transforms import Compose, Cond, Fit, MultiView, Transform

# Name of the condition of ``Cond`` that holds a row's bucket.
CONDITION = "aspect_bucket"
_POSITIONS = ("random", "center")
# Index of a sample -> upright height and width, (0, 0) if it cannot be read.
SizeOf = Callable[[int], tuple[int, int]]
# Samples whose headers a thread reads at a time.
_CHUNK = 64
_HEADER_OF_NPY = 128


@dataclass(frozen=True)
class AspectBuckets:
    """Sizes of batches by aspect ratio, for ``vg.Loader(buckets=...)``.

    Sizes have sides that are multiples of ``step``, up to ``area`` pixels, and a longer side of at most ``max_ratio``
    times the shorter one. Each image belongs to the size whose aspect ratio is nearest. It is cropped to that ratio and
    resized, before the Loader's transform (``T.Fit``).

    Args:
        area: most pixels of an image, such as ``512 * 512``.
        step: pixels; a model needs a multiple of its patches or strides.
        max_ratio: of the longer side to the shorter one, at least 1.
        position: place of the crop: "random" or "center".
        sizes: upright height and width of each sample, int [N, 2], if they are known. None reads the header of every
            image when the Loader is made, and keeps the sizes in the user's cache folder for later runs.

    Raises:
        ValueError, TypeError: naming the argument, its value and accepted values.
    """

    area: int
    step: int = 64
    max_ratio: float = 2.0
    position: Literal["random", "center"] = "random"
    sizes: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        step = integer("step", self.step, 1, MAX_SIDE)
        accepted = f"a number of pixels from {step * step:,}, one step squared, to {MAX_SIDE * MAX_SIDE:,}"
        area = integer("area", self.area, step * step, MAX_SIDE * MAX_SIDE, accepted=accepted)
        object.__setattr__(self, "area", area)
        object.__setattr__(self, "max_ratio", number("max_ratio", self.max_ratio, 1))
        one_of("position", self.position, _POSITIONS)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Height and width of all buckets, from the flattest to the tallest."""
        return list(self._shapes)

    @computed_once
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        side = math.isqrt(self.area) // self.step * self.step
        shapes = {(side, side)}
        for short in range(self.step, side + 1, self.step):
            long = self.area // short // self.step * self.step
            if long <= min(short * self.max_ratio, MAX_SIDE):
                shapes |= {(short, long), (long, short)}
        return tuple(sorted(shapes, key=lambda shape: shape[0] / shape[1]))

    def transform_with(self, transform: Transform) -> Transform:
        """The Loader's transform, after the crop to the bucket. Raises ValueError for several views."""
        if isinstance(transform, MultiView):
            raise ValueError("buckets: got them with several views; accepted: a transform of one image")
        cases = {_name(shape): Fit(shape, self.position) for shape in self._shapes}
        return Compose([Cond(CONDITION, cases), transform])

    def condition(self, bucket: int, rows: int) -> np.ndarray[Any, Any]:
        """Values of ``CONDITION`` for the rows of a batch."""
        return np.full(rows, _name(self._shapes[bucket]))

    def bucket_of(self, source: Samples, size_of: SizeOf, num_threads: int) -> Int64Array:
        """Number of the bucket of each sample, int64 [N]. Raises ValueError for ``sizes`` of other data."""
        sizes = _image_sizes(source, size_of, num_threads) if self.sizes is None else self._given_sizes(len(source))
        # Images that cannot be read are squares here; their error comes when they are loaded.
        known = np.where(sizes > 0, sizes, 1).astype(np.float64)
        aspects = np.log(known[:, 0] / known[:, 1])
        shapes = np.array(self._shapes)
        centers = np.log(shapes[:, 0] / shapes[:, 1])
        edges = (centers[1:] + centers[:-1]) / 2
        return np.searchsorted(edges, aspects).astype(np.int64)

    def _given_sizes(self, samples: int) -> Int64Array:
        accepted = f"heights and widths from 1 on, an integer array [{samples}, 2]"
        try:
            sizes = np.asarray(self.sizes)
        except ValueError as error:  # rows of different lengths
            raise ValueError(f"sizes: got {type(self.sizes).__name__} ({error}); accepted: {accepted}") from None
        if sizes.dtype.kind not in "iu" or sizes.shape != (samples, 2):
            raise ValueError(f"sizes: got {sizes.dtype} {list(sizes.shape)}; accepted: {accepted}")
        for extreme in (sizes.min(initial=1), sizes.max(initial=1)):
            if not 1 <= extreme < 1 << 31:
                raise ValueError(f"sizes: got {extreme}; accepted: {accepted}")
        return sizes.astype(np.int64)


def _name(shape: tuple[int, int]) -> str:
    return f"{shape[0]}x{shape[1]}"


class BatchedOrder(Order):
    """The samples of another order in batches of their own.

    ``batches``: positions in ``order`` of each batch. ``buckets``: bucket of each batch, or None.
    """

    def __init__(self, order: Order, batches: Sequence[Int64Array], buckets: Sequence[int] | None = None) -> None:
        self.inner = order
        self.purpose = order.purpose
        self._bounds = self.bounds = np.cumsum([0, *map(len, batches)])
        self.length = int(self._bounds[-1])
        self._positions = np.concatenate(batches)
        self._buckets = buckets

    def at(self, positions: Int64Array) -> tuple[Int64Array, Any]:
        return self.inner.at(self._positions[positions])

    def bucket_at(self, position: int) -> int | None:
        """Bucket of the batch that has a position."""
        batch = int(np.searchsorted(self._bounds, position, "right")) - 1
        return None if self._buckets is None else self._buckets[batch]

    def replacements(self, indices: Int64Array) -> tuple[Order, Any, Any]:
        return self.inner.replacements(indices)

    def digest(self) -> str | None:
        inner = self.inner.digest()
        return None if inner is None else digest_of(inner, self._bounds.tobytes())


def bucketed(
    order: Order, bucket_of: Int64Array, batch_size: int, drop_last: bool, shuffle: tuple[int, int] | None
) -> BatchedOrder:
    """Group an order into batches of one bucket each; samples keep their order.

    ``bucket_of``: bucket of each sample of the source. ``drop_last``: drop incomplete batches. ``shuffle``:
    (seed, epoch) to shuffle the batches by; None sorts them by their first sample.
    """
    assert order.length is not None
    indices, _ = order.at(np.arange(order.length))
    buckets = bucket_of[indices]
    positions = np.argsort(buckets, kind="stable")
    starts_of_buckets = np.flatnonzero(np.diff(buckets[positions], prepend=-1))
    batches: list[Int64Array] = []
    for members in np.split(positions, starts_of_buckets[1:]):
        full = len(members) // batch_size * batch_size
        end = full if drop_last else len(members)
        batches += [members[start : start + batch_size] for start in range(0, end, batch_size)]
    if not batches:
        got = f"no bucket has the {batch_size} samples of a batch"
        raise ValueError(f"drop_last: {got}; accepted: a smaller batch_size, or drop_last=False")
    batches.sort(key=lambda batch: int(batch[0]))
    if shuffle is not None:
        permutation = Permutation(len(batches), *shuffle, OrderPurpose.BATCHES)
        batches = [batches[number] for number in permutation(np.arange(len(batches)))]
    return BatchedOrder(order, batches, [int(buckets[batch[0]]) for batch in batches])


def _image_sizes(source: Samples, size_of: SizeOf, num_threads: int) -> Int32Array:
    """Upright height and width of each image, int32 [N, 2], from the cache or by ``size_of``; 0 if unreadable."""
    path = _cache_path(source)
    sizes = None if path is None else _cached(path, len(source))
    if sizes is None:
        chunks = [range(start, min(start + _CHUNK, len(source))) for start in range(0, len(source), _CHUNK)]
        with Threads(num_threads, "variegate-sizes") as pool:
            found = pool.map(lambda indices: [size_of(index) for index in indices], chunks)
            sizes = np.array([size for chunk in found for size in chunk], np.int32).reshape(-1, 2)
        # A later run may read further images: with another limit, or with a package for their format.
        if path is not None and sizes.all():
            _write_cache(path, sizes)
    return sizes


def _cache_path(source: Samples) -> Path | None:
    """Path for the sizes of these very files, by their sizes and times of change; None if these are not known."""
    parts: list[bytes | str] = []
    for each in source.sources if isinstance(source, Mixture) else (source,):
        try:
            stamps = stamps_of(each)
        except SourceError:
            return None
        if stamps is None or (stamps.sizes < 0).any():
            return None
        parts += [each.fingerprint, stamps.sizes.tobytes(), stamps.times.tobytes(), "\0".join(stamps.marks)]
    return cache_folder() / "image-sizes" / f"{digest_of(*parts)}.npy"


def _cached(path: Path, samples: int) -> Int32Array | None:
    """Sizes from an earlier run; None if the file is missing or invalid."""
    try:
        if path.stat().st_size != _HEADER_OF_NPY + 8 * samples:
            return None
        sizes = np.load(path, allow_pickle=False)
    except Exception:  # NumPy's parser raises nearly anything for a damaged header
        return None
    is_valid = sizes.dtype == np.int32 and sizes.shape == (samples, 2) and sizes.min(initial=0) >= 0
    return sizes if is_valid else None


def _write_cache(path: Path, sizes: Int32Array) -> None:
    """A cache folder that cannot be written costs time in the next run, and nothing else."""
    content = io.BytesIO()
    np.save(content, sizes)
    with suppress(WriteError):
        write_atomically(path, content.getvalue(), several_writers=True)
