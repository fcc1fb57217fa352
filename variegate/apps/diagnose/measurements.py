"""Measurements as plain numbers, for JSON, plots and advice, as people read them, and costs of an image.

Reading waits, so it runs beside everything else. On a CPU decoding and augmenting share the cores, so that their times
add up; with a GPU the stages run beside each other, and the slowest one counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

# Alone, each on data that lies where the stage finds it in a loader.
READ_FIRST, READ, DECODE, AUGMENT, TRANSFER = "read_first", "read", "decode", "augment", "transfer"
# On one thread, beside all of them above.
DECODE_ONE, AUGMENT_ONE = "decode_one_thread", "augment_one_thread"
# Together.
READ_DECODE, DECODE_AUGMENT, LOADER_FIRST, LOADER = "read_decode", "decode_augment", "loader_first", "loader"
# What would be, were something else than it is: what advice is computed from.
DECODE_WHOLE, AUGMENT_PLAIN, AUGMENT_LARGE = "decode_whole", "augment_without_policy", "augment_large_batch"
DECODE_REDUCED, AUGMENT_REDUCED, DECODE_INDEXED = "decode_reduced", "augment_reduced", "decode_indexed"

# In the order of reports.
TITLES = {
    READ_FIRST: "read, first touch",
    READ: "read",
    DECODE: "decode",
    DECODE_ONE: "decode, 1 thread",
    AUGMENT: "augment",
    AUGMENT_ONE: "augment, 1 thread",
    TRANSFER: "transfer",
    READ_DECODE: "read + decode",
    DECODE_AUGMENT: "decode + augment",
    LOADER_FIRST: "loader, first epoch",
    LOADER: "whole loader",
    AUGMENT_PLAIN: "augment without the policy",
    AUGMENT_LARGE: "augment, 4 batches in one",
    DECODE_REDUCED: "decode reduced files",
    AUGMENT_REDUCED: "augment reduced pictures",
    DECODE_INDEXED: "decode with an index",
    DECODE_WHOLE: "decode whole pictures",
}

# A spread beyond this share of the median makes a note.
WIDE_SPREAD = 0.20
# Of the memory that is free, how much the system can be expected to keep files in.
_CACHED_SHARE = 0.8
# Share of the files in the page cache from which on they count as being there.
IN_MEMORY = 0.5


@dataclass(frozen=True)
class Rate:
    """A measured rate: the median of several spans of time.

    ``megabytes_per_second`` (10^6 bytes) counts input of the stage: bytes of files for reading and decoding, pixels for
    augmenting and sending.
    """

    images_per_second: float
    megabytes_per_second: float
    spans: tuple[float, ...]  # images/s of each
    threads: int

    @property
    def spread(self) -> float:
        """From the slowest to the fastest span, as a share of the median."""
        return (max(self.spans) - min(self.spans)) / self.images_per_second

    def is_surely_faster(self, other: Rate) -> bool:
        """Whichever spans are compared with the other's median, and the other way round."""
        return min(self.spans) > other.images_per_second and self.images_per_second > max(other.spans)


class TimedSpan(NamedTuple):
    images: int
    nbytes: int
    seconds: float


def rate_of(spans: Sequence[TimedSpan], threads: int) -> Rate:
    """The median of the spans' rates."""
    rates = tuple(span.images / span.seconds for span in spans)
    bytes_each = sum(span.nbytes for span in spans) / sum(span.images for span in spans)
    median = statistics.median(rates)
    return Rate(median, median * bytes_each / 1e6, rates, threads)


@dataclass(frozen=True)
class Measurements:
    """Rates of a loader, with its data set, its settings and the machine; see ``measure``."""

    source: str
    samples: int | None  # None: a stream, which is not counted
    measured: int  # samples that the rates were taken on
    skipped: int  # samples that could not be read or decoded
    bad: tuple[str, ...]  # the first of these, with the reason
    mean_bytes: float  # of a file
    mean_height: float  # of a picture, decoded whole, or as a cache holds it
    mean_width: float
    mean_pixel_bytes: float
    is_remote: bool
    has_a_file_each: bool  # not shards
    in_page_cache: float | None  # share of the files that the system had in memory before; None where it cannot tell
    device: str
    gpus: int
    decoder: str  # "cpu" or "gpu": who decodes JPEGs
    threads: int
    cores: int
    batch_size: int
    prefetch: int
    cache: str | None
    available_memory: int  # bytes
    rates: dict[str, Rate]
    out_side: int | None = None  # the shorter side of what leaves the transform; None where sizes differ
    reduced_side: int | None = None  # the shorter side that pictures were reduced to for the rates named so
    kernels: str = ""  # versions that installed kernels need and are others here; "" where they fit, or there are none
    notes: tuple[str, ...] = ()

    def rate(self, stage: str) -> float | None:
        """Images per second of a stage; None where it was not measured."""
        rate = self.rates.get(stage)
        return None if rate is None else rate.images_per_second

    @property
    def stored_bytes(self) -> float | None:
        """Of the whole data set, from the mean."""
        return None if self.samples is None else self.samples * self.mean_bytes

    @property
    def pixel_bytes(self) -> float | None:
        """Of the whole data set decoded, from the mean."""
        return None if self.samples is None else self.samples * self.mean_pixel_bytes

    @property
    def fits_in_memory(self) -> bool:
        """Can the system keep the files of a local data set in the memory that is free?"""
        stored = self.stored_bytes
        return stored is not None and not self.is_remote and stored <= _CACHED_SHARE * self.available_memory

    def to_dict(self) -> dict[str, Any]:
        """For JSON; rates get their ``spread``."""
        rates = {stage: asdict(rate) | {"spread": rate.spread} for stage, rate in self.rates.items()}
        rounded: dict[str, Any] = _rounded(asdict(self) | {"rates": rates})
        return rounded


def _rounded(value: Any) -> Any:
    """Every float in it, to five digits."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Costs:
    """Seconds per image of each stage, when it has all threads for itself."""

    read: float
    decode: float
    augment: float
    transfer: float
    shares_cores: bool

    @property
    def seconds(self) -> float:
        """Per image, of all of them."""
        busy = self.decode + self.augment if self.shares_cores else max(self.decode, self.augment, self.transfer)
        return max(self.read, busy, 1e-12)

    def gain(self, **changes: float | bool) -> float:
        """Speed-up with other costs."""
        return self.seconds / replace(self, **changes).seconds  # type: ignore[arg-type]

    def gain_of_host(self, factor: float) -> float:
        """With a host so many times as fast; what a GPU augments does not depend on its threads."""
        augment = self.augment / factor if self.shares_cores else self.augment
        return self.gain(decode=self.decode / factor, augment=augment)

    def largest(self) -> str:
        """The stage that holds up the others."""
        if self.read >= self.seconds:
            return READ
        stages = {DECODE: self.decode, AUGMENT: self.augment}
        if not self.shares_cores:
            stages[TRANSFER] = self.transfer
        return max(stages, key=lambda stage: stages[stage])


def costs_of(data: Measurements) -> Costs:
    """Today's. A cache takes reading and decoding away, as far as the loader was measured with it full."""
    rates = [data.rate(stage) for stage in (DECODE, AUGMENT, TRANSFER, DECODE_AUGMENT)]
    decode, augment, transfer, together = (0.0 if each is None else 1.0 / each for each in rates)
    shares_cores = not data.device.startswith("cuda")
    if data.cache is not None:
        return Costs(0.0, 0.0, augment, transfer, shares_cores)
    if shares_cores and together:
        # Decoding at a reduced scale leaves less to resample than whole pictures do, which were measured alone.
        augment = min(max(together - decode, 0.3 * augment), augment)
    # In epochs to come, files are read from the page cache where they fit in it.
    read, first = data.rates[READ].images_per_second, data.rate(READ_FIRST)
    if first and not data.fits_in_memory and data.in_page_cache is not None and data.in_page_cache < IN_MEMORY:
        read = min(read, first)
    return Costs(1.0 / read, decode, augment, transfer, shares_cores)


def rate(images_per_second: float) -> str:
    """``"1,234 images/s"``."""
    return f"{number(images_per_second)} images/s"


def number(value: float) -> str:
    """Three digits or more: 0.123, 1.23, 12.3, 123, 1,234."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f}"


def size(nbytes: float) -> str:
    """``"1.2 GB"``, of 10^9 bytes."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.0f} bytes"


def times(factor: float) -> str:
    """``"1.08x"``, ``"2.5x"``, ``"12x"``."""
    places = 2 if factor < 2 else 1 if factor < 10 else 0
    return f"{factor:.{places}f}x"
