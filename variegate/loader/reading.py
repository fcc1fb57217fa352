"""Read samples for batches, and decode images that must be decoded in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from PIL import Image

from variegate.arrays import BoolArray, Int32Array, Int64Array, UInt32Array, UInt64Array
from variegate.data.base import Item
from variegate.data.samples import Samples
from variegate.decode import (
    PillowFile,
    check_side,
    checked_header,
    decode_jpeg_scaled,
    image_size,
    is_jpeg,
    read_channels,
    read_image,
)
from variegate.decode.channels import in_channels
from variegate.decode.depth import in_depth, note_once
from variegate.errors import DecodeError
from variegate.executors.runners.images import check_image
from variegate.loader.cache import Picture, PixelCache
from variegate.loader.options import LoaderOptions
from variegate.loader.stats import Stage, StageTimes
from variegate.loader.targets import Annotated
from variegate.program.depth import Depth

if TYPE_CHECKING:
    from typing_extensions import Self

# Threads that wait for a network at the same time.
_REMOTE_READERS = 32
# Samples that a thread reads at a time from a local disk.
_CHUNK = 16


def reader_threads(is_remote: bool, num_threads: int) -> int:
    """Number of threads that read for ``num_threads`` that decode and augment."""
    return max(_REMOTE_READERS, num_threads) if is_remote else num_threads


@dataclass(kw_only=True)
class StepPlan:
    """The samples of one batch or a slice of it, and their partners; nothing is read yet.

    ``samples``: an index of the source for each, int64[M].
    """

    ids: UInt64Array
    padding: BoolArray
    done: int  # samples of the epoch that are done after this batch
    samples: Int64Array
    copies: UInt32Array | None = None  # which copy of its sample a row is; None for the first
    # int32[N, K]: rows that each of the batch is mixed with. Samples that are partners only come after the batch:
    # ``padding`` covers N rows, all other fields cover all samples.
    partners: Int32Array | None = None
    candidates: Int64Array | None = None  # of each row, samples that may replace it, for workers that know no order
    numbers: Int64Array | None = None  # of a part: its rows in the batch
    bucket: int | None = None  # the aspect bucket of all rows

    def read(self, data: Any, labels: Any, shown_ids: UInt64Array | None = None) -> Rows:
        known = {field.name: getattr(self, field.name) for field in fields(StepPlan)}
        return Rows(**known, data=data, labels=labels, shown_ids=shown_ids)

    def part(self, own: Sequence[int]) -> Self:
        """Rows ``own``, as a batch, with their partners."""
        whole = len(self.padding)
        mates = [self._partners_of(row) for row in own]
        rows = list(dict.fromkeys([*own, *(mate for of_row in mates for mate in of_row)]))
        place = {row: number for number, row in enumerate(rows)}
        partners = np.array([[place[mate] for mate in of_row] for of_row in mates], np.int32)
        of_rows = {name: _picked(getattr(self, name), rows) for name in self._BY_ROW}
        return replace(
            self,
            padding=np.array([row < whole and bool(self.padding[row]) for row in own], np.bool_),
            partners=None if self.partners is None else partners,
            numbers=np.array(rows) if self.numbers is None else self.numbers[rows],
            **of_rows,
        )

    _BY_ROW: ClassVar[tuple[str, ...]] = ("ids", "samples", "copies")

    def _partners_of(self, row: int) -> list[int]:
        if self.partners is None:
            return []
        # One that is there for the sake of others is mixed with itself.
        own: list[int] = self.partners[row].tolist() if row < len(self.padding) else [row] * self.partners.shape[1]
        return own

    def unmixed(self, rows: Iterable[int] = (), partners: Iterable[int] = ()) -> Self:
        """``rows``, and rows with any of ``partners``, are mixed with themselves, which leaves them unchanged."""
        if self.partners is None:
            return self
        own = np.arange(len(self.partners), dtype=np.int32)[:, None]
        alone = np.isin(own, list(rows)) | np.isin(self.partners, list(partners))
        return replace(self, partners=np.where(alone, own, self.partners))


def _picked(values: Any, rows: list[int]) -> Any:
    return values if values is None else values[rows] if isinstance(values, np.ndarray) else [values[r] for r in rows]


@dataclass(kw_only=True)
class Rows(StepPlan):
    """The samples of a plan, read.

    ``data``: for each row the bytes of a JPEG, pixels, or the error that came instead; or all as one array
    [N, H, W, C]. ``shown_ids``: ids of the samples whose pixels these are, if a replacement is among them.
    """

    data: Any
    labels: Any
    shown_ids: UInt64Array | None = None

    _BY_ROW: ClassVar[tuple[str, ...]] = (*StepPlan._BY_ROW, "data", "labels", "shown_ids")


# Waits until a step is read: its rows, or for workers, which read themselves, its plan.
PendingRead: TypeAlias = Callable[[], Any]
# An iterator of steps, each started by a ``next``, and a function that ends it.
Steps: TypeAlias = tuple[Iterator[PendingRead], Callable[[], None]]


class Reader:
    """Reads samples, and decodes images that must be decoded in full: with a cache all images, because pixels must not
    depend on whether the cache has room. ``has_targets``: labels are ``Annotated``."""

    def __init__(self, options: LoaderOptions, cache: PixelCache | None, has_targets: bool) -> None:
        self._source = options.source
        self._has_targets = has_targets
        self._channels = options.channels
        self._depth = None if options.depth is None else Depth.named(options.depth)
        self._cache = cache
        self._side = options.cache_side
        self._max_pixels = options.max_pixels
        self._noted: set[str] = set()
        in_memory = isinstance(options.source, Samples) and options.source.is_decoded
        # Arrays keep their dtype, files are read in 8 bits.
        self._reading = partial(note_once, self._noted, self._depth, in_memory, options.dicom)
        self._is_decoded = in_memory
        self._may_gather = in_memory and not has_targets and (cache is None or not cache.holds_device_memory)

    def read(
        self,
        samples: Iterable[tuple[int, int]],
        times: StageTimes | None = None,
        is_stopped: Callable[[], bool] | None = None,
    ) -> list[tuple[Any, Any]]:
        """(data, label) of samples by (id, index), or (DecodeError, None); fewer once it is stopped."""
        clock = _Clock()
        results = []
        with self._reading():
            for id, index in samples:
                if is_stopped is not None and is_stopped():
                    break
                results.append(self._read(id, index, clock))
        if times is not None:
            for stage, total in clock.stages.items():
                times.stage_done(stage, *total)
        return results

    def image_size(self, index: int) -> tuple[int, int]:
        """Upright height and width of a sample, by its header if it has one; (0, 0) if it cannot be read."""
        with self._reading():
            try:
                data = self._source.read(index).data
                if isinstance(data, np.ndarray):
                    return data.shape[0], data.shape[1]
                name = str(self._source.name(index))
                return image_size(bytes(data), name, self._max_pixels, self._channels)
            except Exception:  # reported when the sample is loaded
                return 0, 0

    def begin(
        self,
        plan: StepPlan,
        pool: Executor,
        times: StageTimes,
        is_stopped: Callable[[], bool] | None = None,
    ) -> Callable[[], Rows]:
        """Begin to read a plan, by all threads of the pool -> what waits for it; fewer rows once it is stopped."""
        source, samples, ids = self._source, plan.samples, plan.ids
        if self._may_gather and source.is_stacked:

            def gather() -> Rows:
                begin = time.perf_counter()
                with self._reading():
                    pixels = source.pixels(samples)
                    pixels = pixels if self._depth is None else in_depth(pixels, self._depth, "images")
                    labels = source.labels(samples)
                times.stage_done("read", time.perf_counter() - begin, len(ids), pixels.nbytes)
                return plan.read(pixels, labels)

            return gather
        # Copies of a sample stand one after another, and are read once.
        is_new = np.diff(samples, prepend=-1) != 0
        wanted = samples[is_new].tolist()
        known = ids[is_new].tolist()
        of_row = (np.cumsum(is_new) - 1).tolist()
        chunk = 1 if source.is_remote else _CHUNK

        def read_chunk(start: int) -> list[tuple[Any, Any]]:
            chosen = zip(known[start : start + chunk], wanted[start : start + chunk], strict=True)
            return self.read(chosen, times, is_stopped)

        parts = [pool.submit(read_chunk, start) for start in range(0, len(wanted), chunk)]

        def wait() -> Rows:
            read = [pair for part in parts for pair in part.result()]
            found = read if len(read) == len(of_row) else [read[place] for place in of_row if place < len(read)]
            return plan.read([data for data, _ in found], [label for _, label in found])

        return wait

    def _read(self, id: int, index: int, clock: _Clock) -> tuple[Any, Any]:
        cached = None if self._cache is None else self._cache.get(id)
        if cached is not None:
            clock.stop("read", cached[0].nbytes)
            return cached
        try:
            item: Item = self._source.read(index)
            if self._has_targets:
                item = item._replace(label=Annotated(item.label, item.targets))
            nbytes = item.data.nbytes if isinstance(item.data, np.ndarray) else len(item.data)
            clock.stop("read", nbytes)
            data = self._open(id, index, item)
            if not isinstance(item.data, np.ndarray) and data is not item.data:
                clock.stop("decode", nbytes)
            return data, item.label
        except DecodeError as error:
            return error, None
        except Exception as error:  # whatever a data set or a storage raises for this sample; the next may be good
            name = str(self._source.name(index))
            wrapped = DecodeError(name, f"cannot be read ({type(error).__name__}: {error})")
            wrapped.__cause__ = error
            return wrapped, None

    def _open(self, id: int, index: int, item: Item) -> Any:
        data = item.data
        if isinstance(data, np.ndarray) and self._channels is not None:
            data = in_channels(data, self._channels, str(self._source.name(index)))
        if self._may_gather and self._depth is None:
            return data
        if isinstance(data, np.ndarray):
            data = check_image(data, "its pixels")
            if self._channels is None and not self._is_decoded and data.shape[2] not in (1, 3):
                accepted = "1 or 3 channels; others with channels="
                raise ValueError(f"its pixels: got shape {data.shape}; accepted: {accepted}")
        name = str(self._source.name(index))
        # Images in memory are not kept twice.
        cache = None if self._may_gather else self._cache
        if cache is None and self._depth is None:
            # A JPEG's size is in its header, and the crop decides how much of it is decoded.
            if isinstance(data, np.ndarray):
                return data
            several = read_channels(bytes(data), name, self._max_pixels, self._channels)
            if several is not None or is_jpeg(data):
                return data if several is None else several
            with PillowFile(bytes(data), name, self._max_pixels) as file:
                image = file.decode()
            check_side(name, *image.shape[:2])
            return image
        side = None if cache is None else self._side
        picture = decode_picture(data, name, side, self._max_pixels, self._channels, self._depth)
        return picture if cache is None else cache.put(id, picture, item.label)


class _Clock:
    """The time of some samples by stage: seconds, samples, bytes."""

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self.stages: dict[Stage, list[Any]] = {}

    def stop(self, stage: Stage, nbytes: int) -> None:
        """All the time since the last stop went into one sample's stage."""
        begin = self._at
        self._at = time.perf_counter()
        seconds, samples, total = self.stages.get(stage, (0.0, 0, 0))
        self.stages[stage] = [seconds + self._at - begin, samples + 1, total + nbytes]


def decode_picture(
    data: bytes | Picture,
    name: str,
    side: int | None,
    max_pixels: int | None = None,
    channels: int | None = None,
    depth: Depth | None = None,
) -> Picture:
    """A file's bytes, or pixels -> [H, W, C], the shorter side reduced to ``side`` pixels: JPEGs at the smallest DCT
    scale that covers that, then by Pillow with antialiasing. ``depth``: None for that of the pixels. Raises DecodeError
    with ``name``."""
    if isinstance(data, np.ndarray):
        image = data
    elif side is None or channels not in (None, 3) or not is_jpeg(data):
        image = read_image(data, name, max_pixels, channels)
    else:
        header = checked_header(data, name, max_pixels)
        image = decode_jpeg_scaled(data, *_reduced(*header.oriented_size, side), name, max_pixels, header)
    height, width = image.shape[:2]
    check_side(name, height, width)
    image = image if depth is None else in_depth(image, depth, name)
    if side is not None:
        height, width = _reduced(height, width, side)
    if (height, width) == image.shape[:2]:
        return image
    is_color = image.shape[2] == 3 and image.dtype == np.uint8
    parts = [image] if is_color else [image[:, :, channel] for channel in range(image.shape[2])]
    if image.dtype == np.uint16:  # which Pillow does not resize
        parts = [part.astype(np.float32) for part in parts]
    pictures = [Image.fromarray(part).resize((width, height), Image.Resampling.BILINEAR) for part in parts]
    reduced = np.dstack([np.asarray(picture) for picture in pictures])
    return np.rint(reduced).astype(np.uint16) if image.dtype == np.uint16 else reduced


def _reduced(height: int, width: int, side: int) -> tuple[int, int]:
    shorter = min(height, width)
    if shorter <= side:
        return height, width
    return max(side, round(height * side / shorter)), max(side, round(width * side / shorter))
