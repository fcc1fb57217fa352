"""What was measured: plain numbers, fit for JSON, for a plot and for advice, and as people read them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# Alone, each on data that lies where the stage finds it in a loader.
READ_FIRST, READ, DECODE, AUGMENT, TRANSFER = "read_first", "read", "decode", "augment", "transfer"
# On one thread, beside all of them above.
DECODE_ONE, AUGMENT_ONE = "decode_one_thread", "augment_one_thread"
# Together.
READ_DECODE, DECODE_AUGMENT, LOADER_FIRST, LOADER = "read_decode", "decode_augment", "loader_first", "loader"
# What would be, were something else than it is: what advice is computed from.
DECODE_WHOLE, AUGMENT_PLAIN, AUGMENT_LARGE = "decode_whole", "augment_without_policy", "augment_large_batch"
DECODE_REDUCED, AUGMENT_REDUCED = "decode_reduced", "augment_reduced"

TITLES = {
    READ_FIRST: "read, first touch",
    READ: "read",
    DECODE: "decode",
    AUGMENT: "augment",
    TRANSFER: "transfer",
    DECODE_ONE: "decode, 1 thread",
    AUGMENT_ONE: "augment, 1 thread",
    READ_DECODE: "read + decode",
    DECODE_AUGMENT: "decode + augment",
    LOADER_FIRST: "loader, first epoch",
    LOADER: "whole loader",
    DECODE_WHOLE: "decode whole pictures",
    AUGMENT_PLAIN: "augment without the policy",
    AUGMENT_LARGE: "augment, 4 batches in one",
    DECODE_REDUCED: "decode reduced files",
    AUGMENT_REDUCED: "augment reduced pictures",
}

# A spread beyond this share of the median makes a note.
WIDE_SPREAD = 0.20


@dataclass(frozen=True)
class Rate:
    """A rate: the median of several spans of time.

    ``megabytes_per_second`` (10^6 bytes) is of what goes into the stage: bytes of files where it reads or decodes,
    pixels where it only augments or sends them to a device.
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


@dataclass(frozen=True)
class Measurements:
    """A data set, a machine, a loader's settings, and the rates they give. See ``measure``."""

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
    notes: tuple[str, ...] = field(default=())

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

    def to_dict(self) -> dict[str, Any]:
        """For JSON; rates get their ``spread``."""
        out = asdict(self)
        for stage, rate in self.rates.items():
            out["rates"][stage] = _rounded(asdict(rate) | {"spread": rate.spread})
        return _rounded(out)


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    def short(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.5g}")
        return [short(v) for v in value] if isinstance(value, (tuple, list)) else value

    return {name: short(value) for name, value in values.items()}


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


def percent(share: float) -> str:
    return f"{share:.0%}"


def side(pixels: float) -> str:
    return f"{pixels:.0f}"
