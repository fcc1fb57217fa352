"""Conclusions from measured rates: the bottleneck, and the expected gain of each change. Numbers in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from variegate.apps.doctor.probes import Rate, rate_row, rate_text
from variegate.apps.doctor.training import TrainingRates
from variegate.io.amounts import format_size, pluralize

# Names of rates. All but READ and WHOLE are of samples in memory.
READ, DECODE, AUGMENT, DECODE_AUGMENT, WHOLE = "read", "decode", "augment", "decode_augment", "whole"
# Alternatives: the whole loader with all cores, smaller files, and augmentation on the GPU.
ALL_CORES = "all_cores"
SMALLER = "smaller"
ON_GPU = "on_gpu"

TITLES = {
    READ: "read",
    DECODE: "decode",
    AUGMENT: "augment",
    DECODE_AUGMENT: "decode + augment",
    WHOLE: "whole loader",
    ALL_CORES: "whole loader, all cores",
    SMALLER: "decode + augment smaller files",
    ON_GPU: "decode + augment on the GPU",
}

# Smaller gains are lost in the noise.
_MIN_GAIN = 1.05
# A loader slower than this share of its slowest stage is limited by something else.
_UNEXPLAINED = 0.6
# Share of the free memory that ``cache="host"`` uses.
_CACHE_SHARE = 0.5
_SMALL_FILE = 1e6
WIDE_SPREAD = 0.2


@dataclass(frozen=True)
class Measurements:
    """Rates of a loader in images per second, with its data, settings and machine. Sizes are means per image."""

    source: str
    samples: int
    held: int  # samples in memory, on which rates without storage were measured
    bad: int  # samples that could not be read or decoded
    file_bytes: float
    pixel_bytes: float
    width: float
    height: float
    has_single_files: bool  # one file per sample
    is_remote: bool
    device: str
    decodes_on_gpu: bool
    threads: int
    cores: int
    batch_size: int
    free_memory: int  # bytes
    rates: dict[str, Rate]
    smaller_side: int | None = None  # shorter side of the smaller files

    def rate(self, name: str) -> float | None:
        """Return images per second; None if it was not measured."""
        rate = self.rates.get(name)
        return None if rate is None else rate.images_per_second


@dataclass(frozen=True)
class Advice:
    """A change and its expected rate; ``gain`` is that rate divided by today's. ``is_limit``: it is an upper bound."""

    kind: str
    change: str
    reason: str
    images_per_second: float
    gain: float
    is_limit: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``doctor``; ``print`` shows it as text.

    Attributes:
        measurements: the rates, and the data and machine that they were measured on.
        bottleneck: "read", "decode" or "augment"; "loader" if these do not explain the rate.
        summary: the bottleneck in a sentence.
        advice: changes, the largest gain first. Gains do not multiply.
        consume: images per second that the model takes, if known.
        training: the training step on one repeated batch and fed by the loader, if measured.
        notes: remarks, such as unreadable files.
    """

    measurements: Measurements
    bottleneck: str
    summary: str
    advice: tuple[Advice, ...]
    consume: float | None = None
    training: TrainingRates | None = None
    notes: tuple[str, ...] = ()

    @property
    def keeps_up(self) -> bool | None:
        """True if the loader is as fast as the model; None without ``consume``."""
        return None if self.consume is None else self.measurements.rates[WHOLE].images_per_second >= self.consume

    def to_dict(self) -> dict[str, Any]:
        """Return a description for JSON."""
        return asdict(self) | {"keeps_up": self.keeps_up}

    def __str__(self) -> str:
        found = self.measurements
        skipped = f", {found.bad:,} unreadable skipped" if found.bad else ""
        size = f"{format_size(found.file_bytes)}, {found.width:.0f} x {found.height:.0f} on average"
        lines = [
            f"{found.source}: {pluralize(found.samples, 'sample')}, {found.held:,} held in memory{skipped}; {size}",
            f"device {found.device}, {found.threads} of {found.cores} cores, batches of {found.batch_size}",
            f"{'':<31}{'images/s':>10}{'spread':>8}",
        ]
        for name, title in TITLES.items():
            if name in found.rates:
                lines.append(rate_row(title, found.rates[name]))
        if self.training is not None:
            lines += self.training.lines()
        lines += ["", self.summary]
        for number, advice in enumerate(self.advice, start=1):
            limit = "at most " if advice.is_limit else ""
            is_enough = self.keeps_up is False and advice.images_per_second >= (self.consume or 0.0)
            enough = ", enough for the model" if is_enough else ""
            gain = f"{limit}{advice.gain:.2g}x, {rate_text(advice.images_per_second)}{enough}"
            lines += [f"{number}. {advice.change}  ({gain})", f"   because {advice.reason}"]
        if not self.advice:
            lines.append("No change is expected to gain 5% or more.")
        return "\n".join(lines)


def advise(found: Measurements, consume: float | None = None) -> Diagnosis:
    """Find the bottleneck, and the changes that would help. ``consume``: images per second that the model takes."""
    bottleneck = find_bottleneck(found)
    today = found.rates[WHOLE].images_per_second
    summary = f"The loader delivers {rate_text(today)}. {_explain(found, bottleneck)}."
    if consume is not None:
        verdict = f"the loader keeps up, with {today / consume - 1:.0%} to spare"
        if today < consume:
            verdict = f"it waits for data {1 - today / consume:.0%} of the time"
        summary += f" Your model takes {rate_text(consume)}: {verdict}."
    advice = [*_advise_threads(found), *_advise_cache_or_pack(found, bottleneck), *_advise_gpu(found, bottleneck)]
    useful = [one for one in advice if one.gain >= _MIN_GAIN]
    useful.sort(key=lambda one: -one.gain)
    return Diagnosis(found, bottleneck, summary, tuple(useful), consume)


def find_bottleneck(found: Measurements) -> str:
    """Return the stage that limits the loader.

    Reading waits for storage, so it runs parallel to the other stages. Decoding and augmenting share the cores of a
    CPU; a GPU augments in parallel.
    """
    made = found.rate(DECODE_AUGMENT) or found.rates[AUGMENT].images_per_second
    read = found.rates[READ].images_per_second
    if found.rates[WHOLE].images_per_second < _UNEXPLAINED * min(made, read):
        return "loader"
    if read < made:
        return READ
    return DECODE if _decode_share(found) >= 0.5 else AUGMENT


def _decode_share(found: Measurements) -> float:
    """Return decoding's share of the time that decoding and augmenting take."""
    decode = found.rate(DECODE)
    if decode is None:
        return 0.0
    if found.device.startswith("cuda"):
        return 1.0 if decode <= found.rates[AUGMENT].images_per_second else 0.0
    return min(1.0, found.rates[DECODE_AUGMENT].images_per_second / decode)


def _explain(found: Measurements, bottleneck: str) -> str:
    if bottleneck == READ:
        return f"Reading is the bottleneck, at {rate_text(found.rates[READ].images_per_second)}"
    if bottleneck == "loader":
        return "Its stages alone are faster; other programs, or slow batches, hold it up"
    stage = "Decoding" if bottleneck == DECODE else "Augmentation"
    if found.device.startswith("cuda"):
        return f"{stage} is the bottleneck, at {rate_text(found.rates[bottleneck].images_per_second)}"
    share = _decode_share(found)
    return f"{stage} is the bottleneck: it takes {share if bottleneck == DECODE else 1 - share:.0%} of CPU time"


def _advice(found: Measurements, kind: str, rate: float, change: str, reason: str, is_limit: bool = False) -> Advice:
    return Advice(kind, change, reason, rate, rate / found.rates[WHOLE].images_per_second, is_limit)


def _advise_threads(found: Measurements) -> Iterator[Advice]:
    rate = found.rate(ALL_CORES)
    if rate is not None:
        change = f"num_threads={found.cores}: use all cores"
        yield _advice(found, "threads", rate, change, f"{found.threads} of {found.cores} cores work; measured with all")


def _advise_cache_or_pack(found: Measurements, bottleneck: str) -> Iterator[Advice]:
    read = found.rates[READ].images_per_second
    augment = found.rates[AUGMENT].images_per_second
    decoded = found.samples * found.pixel_bytes
    if DECODE_AUGMENT in found.rates and decoded <= _CACHE_SHARE * found.free_memory:
        sizes = f"{format_size(decoded)} of decoded images fit into {format_size(found.free_memory)} of free memory"
        reason = f"{sizes}; they are augmented at {rate_text(augment)}; only the first epoch decodes"
        yield _advice(found, "cache", augment, 'cache="host": decode once', reason)
        return
    if bottleneck == READ:
        rate = found.rate(DECODE_AUGMENT) or augment
        reason = f"files in memory are decoded and augmented at {rate_text(rate)}"
        if found.has_single_files and found.file_bytes < _SMALL_FILE:
            change = "pack the small files into shards: variegate pack SRC DST --keep-jpeg"
            yield _advice(
                found, "pack", rate, change, f"{reason}; files are {format_size(found.file_bytes)} each", True
            )
        else:
            place = "a local disk" if found.is_remote else "a faster disk, or memory"
            yield _advice(found, "storage", rate, f"move the data to {place}", reason, True)
    smaller = found.rate(SMALLER)
    if smaller is not None:
        change = f"store smaller images: variegate pack SRC DST --size {found.smaller_side}"
        reason = f"images are {found.width:.0f} x {found.height:.0f}; smaller files are decoded and augmented at "
        reason += f"{rate_text(smaller)}; small crops lose detail"
        yield _advice(found, "pack", min(read, smaller), change, reason)


def _advise_gpu(found: Measurements, bottleneck: str) -> Iterator[Advice]:
    read = found.rates[READ].images_per_second
    on_gpu = found.rate(ON_GPU)
    if on_gpu is not None:
        reason = f"with a GPU that augments, files in memory become batches at {rate_text(on_gpu)}"
        change = 'device="cuda": augment on the GPU, so that the cores only decode'
        yield _advice(found, "gpu", min(read, on_gpu), change, reason)
    elif found.device.startswith("cuda") and bottleneck == DECODE and not found.decodes_on_gpu:
        rate = min(read, found.rates[AUGMENT].images_per_second)
        reason = f"{found.threads} threads decode {rate_text(found.rates[DECODE].images_per_second)}"
        change = "decode JPEGs on the GPU: pip install 'variegate[gpu]'"
        yield _advice(found, "gpu", rate, change, f"{reason}; the rate of the GPU was not measured", True)
