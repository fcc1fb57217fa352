"""Conclusions from measurements: what to change or know, and what a change would bring. Numbers in, sentences out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.measurements import Costs, Measurements, number, rate, size, times
from variegate.compiling.stored import INSTALL_KERNELS

# Of the free memory, what ``cache="host"`` takes.
_CACHE_SHARE = 0.5
_SMALL_FILE = 1e6
_EXPECTED_SCALING, _POOR_SCALING = 0.9, 0.65
_LOSS = "small crops lose detail"


@dataclass(frozen=True)
class Finding:
    """A change to make, or a remark.

    ``gain``: expected rate divided by today's rate, 1.0 if no rate depends on it; an upper bound if ``is_limit``.
    ``images_per_second``: the expected rate.
    """

    kind: str
    advice: str
    why: str
    gain: float = 1.0
    is_limit: bool = False
    images_per_second: float | None = None


def changes(data: Measurements, costs: Costs) -> Iterator[Finding]:
    """Changes to the loader's rate, whether by much or not."""
    for subject in (_threads, _pictures, _index, _storage, _augmenting, _gpu, _prefetch):
        yield from subject(data, costs)


def _threads(data: Measurements, costs: Costs) -> Iterator[Finding]:
    speedup = _speedup(data, m.DECODE, m.DECODE_ONE)
    if data.threads < data.cores:
        known = speedup or _speedup(data, m.AUGMENT, m.AUGMENT_ONE) or data.threads
        scaled = f" ({data.threads} decode {times(known)} as fast as 1)" if data.threads > 1 else ""
        yield Finding(
            "threads",
            f"num_threads={data.cores}: use all cores",
            f"{data.threads} of {data.cores} cores work{scaled}",
            costs.gain_of_host(max(1.0, data.cores / data.threads * min(1.0, known / data.threads))),
            is_limit=data.threads == 1,
        )
    if speedup is None:
        return
    one, every = data.rates[m.DECODE_ONE].images_per_second, data.rates[m.DECODE]
    if max(every.spans) < _POOR_SCALING * data.threads * one:  # not even at times
        yield Finding(
            "scaling",
            "find out what limits the cores: other processes, a CPU quota of the container, or hyperthreads",
            f"{data.threads} threads decode {rate(every.images_per_second)}, 1 decodes {rate(one)}: {times(speedup)}",
            costs.gain_of_host(_EXPECTED_SCALING * data.threads / speedup),
            is_limit=True,
        )


def _speedup(data: Measurements, every: str, one: str) -> float | None:
    fast, slow = data.rate(every), data.rate(one)
    return None if fast is None or slow is None or data.threads == 1 else fast / slow


def _pictures(data: Measurements, costs: Costs) -> Iterator[Finding]:
    """Decoded once, or decoded from less."""
    if data.cache is not None:
        return
    decode, augment, pixels = data.rate(m.DECODE), data.rate(m.AUGMENT), data.pixel_bytes
    decode_reduced, augment_reduced = data.rate(m.DECODE_REDUCED), data.rate(m.AUGMENT_REDUCED)
    reduced = data.reduced_side
    if decode and augment and pixels is not None:
        room = _CACHE_SHARE * data.available_memory
        every = f"{data.samples:,} images of {size(data.mean_pixel_bytes)} on average are {size(pixels)}, "
        every += f"{size(data.available_memory)} of memory are free; "
        kept = "; only the first epoch decodes"
        if pixels <= room:
            why = f"{every}decoded images are augmented at {rate(augment)}{kept}"
            gain = costs.gain(read=0.0, decode=0.0, augment=1.0 / augment)
            yield Finding("cache", 'cache="host": decode once', why, gain)
        elif reduced and augment_reduced:
            shrunk = pixels * (reduced / min(data.mean_height, data.mean_width)) ** 2
            where, disk = '"host"', ""
            if shrunk > room:
                where, disk = '"FOLDER"', ", from a disk that is read faster"
            yield Finding(
                "cache",
                f"cache={where}, cache_side={reduced}: decode once, shrink images to a shorter side of {reduced}",
                f"{every}shrunk, they are {size(shrunk)} and are augmented at {rate(augment_reduced)}{disk}{kept}; "
                f"{_LOSS}",
                costs.gain(read=0.0, decode=0.0, augment=1.0 / augment_reduced),
                is_limit=shrunk > room,
            )
    if decode and decode_reduced and augment_reduced and reduced:
        yield Finding(
            "reduce",
            f"store smaller images: variegate pack SRC DST --size {reduced}",
            f"they are {data.mean_width:.0f} x {data.mean_height:.0f} on average, and the transform outputs "
            f"{data.out_side}; smaller files decode at {rate(decode_reduced)}, these at {rate(decode)}; {_LOSS}",
            costs.gain(decode=1.0 / decode_reduced, augment=min(costs.augment, 1.0 / augment_reduced)),
        )


def _index(data: Measurements, costs: Costs) -> Iterator[Finding]:
    decode, indexed = data.rates.get(m.DECODE), data.rates.get(m.DECODE_INDEXED)
    if decode is None or indexed is None or not indexed.is_surely_faster(decode):
        return
    yield Finding(
        "index",
        'index="auto", after variegate index: decode only the crop of each JPEG',
        f"with an index, they decode at {rate(indexed.images_per_second)} instead of "
        f"{rate(decode.images_per_second)}, to the same pixels; files are not changed",
        costs.gain(decode=1.0 / indexed.images_per_second),
    )


def _storage(data: Measurements, costs: Costs) -> Iterator[Finding]:
    if costs.largest() != m.READ:
        return
    gain = costs.gain(read=0.0)
    reading = f"reading gives {rate(1 / costs.read)} ({data.mean_bytes / costs.read / 1e6:,.0f} MB/s)"
    cores = f"the cores could take {rate(gain / costs.seconds)}"
    if data.has_a_file_each and data.mean_bytes < _SMALL_FILE:
        advice = "pack the small files into shards: variegate pack SRC DST --keep-jpeg"
        why = f"{reading} in files of {size(data.mean_bytes)} each; {cores}"
        yield Finding("shards", advice, why, gain, is_limit=True)
    place = "copy the data to a local disk" if data.is_remote else "move the data to a faster disk, or into memory"
    yield Finding("storage", place, f"{reading}; {cores}", gain, is_limit=True)


def _augmenting(data: Measurements, costs: Costs) -> Iterator[Finding]:
    augment, plain, large = (data.rates.get(stage) for stage in (m.AUGMENT, m.AUGMENT_PLAIN, m.AUGMENT_LARGE))
    if augment is None:
        return
    today = augment.images_per_second
    if plain is not None and plain.is_surely_faster(augment):
        milliseconds, faster = 1e3 / today, plain.images_per_second
        yield Finding(
            "policy",
            "choose a cheaper policy: fewer operations per image (num_ops), or a single one (trivialaugment)",
            f"augmenting takes {milliseconds:.2f} ms per image, of which the policy {milliseconds - 1e3 / faster:.2f} "
            f"ms; without it {rate(faster)} instead of {rate(today)}",
            costs.gain(augment=costs.augment * today / faster),
            is_limit=True,
        )
    if large is not None and large.is_surely_faster(augment):
        number, faster = 4 * data.batch_size, large.images_per_second
        yield Finding(
            "batch",
            f"batch_size={number}, if your training run allows it",
            f"batches of {number} are augmented at {rate(faster)}, of {data.batch_size} at {rate(today)}",
            costs.gain(augment=costs.augment * today / faster),
        )


def _gpu(data: Measurements, costs: Costs) -> Iterator[Finding]:
    if not data.device.startswith("cuda"):
        if data.gpus:
            share = f"{costs.augment / costs.seconds:.0%}"
            yield Finding(
                "gpu",
                'device="cuda": augment on the GPU, so that the cores only decode',
                f"a GPU is available; augmentation takes {share} of CPU time",
                costs.gain(augment=0.0, shares_cores=False),
                is_limit=True,
            )
    elif data.decoder != "gpu" and data.cache is None and costs.largest() == m.DECODE:
        yield Finding(
            "gpu decode",
            "decode JPEGs on the GPU: pip install 'variegate[gpu]'; decode=\"auto\" then uses it",
            f"{data.threads} threads decode {rate(1 / costs.decode)}, {data.device} augments {rate(1 / costs.augment)}"
            "; the decoding rate of the GPU was not measured",
            costs.gain(decode=0.0),
            is_limit=True,
        )


def _prefetch(data: Measurements, costs: Costs) -> Iterator[Finding]:
    loader, parts = data.rates[m.LOADER].images_per_second, 1.0 / costs.seconds
    if loader < 0.85 * parts:
        advice = f"prefetch={2 * data.prefetch}: smooth out slow batches, if nothing else uses the cores"
        if data.prefetch < 2:
            advice = "prefetch=2: prepare batches ahead of time"
        why = f"the loader delivers {rate(loader)}, its stages together {rate(parts)}; prefetch is {data.prefetch}"
        yield Finding("prefetch", advice, why, parts / loader, is_limit=True)


def _workers(data: Measurements, consume: float, wire: float | None) -> Iterator[Finding]:
    """Machines that make batches for a model that waits, where sizes and rates are known: on a CPU."""
    today = data.rates[m.LOADER].images_per_second
    if data.out_side is None or data.device.startswith("cuda") or today >= consume:
        return
    nbytes = 3 * data.out_side**2
    carried = math.inf if wire is None else wire * 1e9 / 8 / nbytes
    reached = min(consume, carried)
    bits = f"{number(reached * nbytes * 8 / 1e9)} Gbit/s"
    carries = "" if wire is None else f"; the wire carries {rate(carried)}"
    why = f"the model waits {1 - today / consume:.0%} of the time, and a machine like this one makes {rate(today)}; "
    if reached < _LEAST_GAIN * today:
        advice = "keep the loader on this machine: workers on others would not pay"
        yield Finding("workers", advice, f"{why}an image is {size(nbytes)}{carries}")
        return
    count = math.ceil(reached / today)
    machines = "1 other machine" if count == 1 else f"{count:,} other machines"
    yield Finding(
        "workers",
        f"workers=vg.RayWorkers(count={count}, cpus={data.threads}): make batches on {machines} like this one",
        f"{why}an image is {size(nbytes)}, so that {rate(reached)} take {bits}{carries}",
        reached / today,
        is_limit=True,
    )


def remarks(data: Measurements) -> Iterator[Finding]:
    """Remarks that no change of the loader would improve."""
    first, pixels = data.rates.get(m.READ_FIRST), data.pixel_bytes
    was_read = data.in_page_cache is None or data.in_page_cache >= m.IN_MEMORY
    if first is not None and not was_read and data.fits_in_memory:
        megabytes, slow = f"{first.megabytes_per_second:,.0f} MB/s", first.images_per_second
        if slow < data.rates[m.LOADER].images_per_second:
            yield Finding(
                "first epoch",
                "expect a slow first epoch; later epochs read the files from memory",
                f"files that were not in memory are read at {rate(slow)} ({megabytes}); all of them, "
                f"{size(data.stored_bytes or 0)}, fit in the free {size(data.available_memory)}",
            )
    room = _CACHE_SHARE * data.available_memory
    if data.cache == "host" and pixels is not None and pixels > room:
        yield Finding(
            "cache room",
            "expect less: not all images fit in the cache (cache_side shrinks them)",
            f"{data.samples:,} images of {size(data.mean_pixel_bytes)} are {size(pixels)}, of which {size(room)} fit; "
            "the rates here are those of cached images",
        )
    if data.kernels:
        yield Finding(
            "kernels",
            f"install the compiled kernels that fit: {INSTALL_KERNELS}",
            f"the installed kernels wheel needs {data.kernels}; without it, kernels are compiled on this machine",
        )
    if data.skipped:
        yield Finding(
            "bad files",
            'on_error="skip" or "replace": a training run would stop at these files; or repair them',
            f"{data.skipped:,} of {data.measured + data.skipped:,} samples could not be read, such as {data.bad[0]}",
        )


# Less is lost in the noise of measuring.
_LEAST_GAIN = 1.05
# A loader this much slower than its stages together is held up by none of them.
_HELD_UP_ELSEWHERE = 0.6


@dataclass(frozen=True)
class Diagnosis:
    """Bottleneck of a loader, and advice.

    ``bottleneck``: "read", "decode", "augment", "transfer", or "loader" if its stages do not explain its rate.
    ``margin``: the loader's surplus as a share of ``consume``; negative if it is too slow, None without ``consume``.
    ``findings``: changes, the largest gain first, then remarks.
    """

    bottleneck: str
    summary: str
    images_per_second: float
    consume: float | None
    margin: float | None
    findings: tuple[Finding, ...]

    @property
    def keeps_up(self) -> bool | None:
        return None if self.margin is None else self.margin >= 0

    def to_dict(self) -> dict[str, Any]:
        """Return a description for JSON."""
        return asdict(self) | {"keeps_up": self.keeps_up, "findings": [asdict(finding) for finding in self.findings]}


def advise(data: m.Measurements, consume: float | None = None, wire: float | None = None) -> Diagnosis:
    """Find the loader's bottleneck and changes that help.

    ``data`` comes from ``measure``; ``consume`` is the number of images per second that a model takes, ``wire`` the
    number of gigabits per second that this machine receives from workers on others. Gains are computed separately from
    the measured rates and do not add up. Raises ValueError for a ``consume`` or ``wire`` that is not positive.
    """
    for name, value, unit in (("consume", consume, "images"), ("wire", wire, "gigabits")):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}: got {value!r}; accepted: a positive number of {unit} per second")
    costs = m.costs_of(data)
    today = data.rates[m.LOADER].images_per_second
    bottleneck = m.LOADER if today < _HELD_UP_ELSEWHERE / costs.seconds else costs.largest()
    summary = f"The loader delivers {rate(today)}{_cause(costs, bottleneck)}."
    margin = None if consume is None else today / consume - 1.0
    if consume is not None and margin is not None:
        spare = f"the loader keeps up, with {margin:.0%} to spare"
        verdict = spare if margin >= 0 else f"it waits for data {-margin:.0%} of the time"
        summary = f"{summary} Your model takes {rate(consume)}: {verdict}."
    remote = [] if consume is None else list(_workers(data, consume, wire))
    found = [
        replace(change, images_per_second=today * change.gain)
        for change in (*changes(data, costs), *remote)
        if change.gain >= _LEAST_GAIN
    ]
    # Of two that promise the same, the one that says what it gives before the one that says what it gives at most.
    found.sort(key=lambda change: (-change.gain, change.is_limit))
    return Diagnosis(
        bottleneck, summary, today, consume, margin, (*found, *(one for one in remote if one.gain == 1), *remarks(data))
    )


def _cause(costs: m.Costs, bottleneck: str) -> str:
    if bottleneck == m.LOADER:
        together = rate(1 / costs.seconds)
        return f", its stages together {together}. Work between the stages or other programs slow it down"
    if bottleneck == m.READ:
        return f". Reading is the bottleneck, at {rate(1 / costs.read)}"
    if bottleneck == m.TRANSFER:
        return f". The transfer to the GPU is the bottleneck, at {rate(1 / costs.transfer)}"
    what, seconds = ("Decoding", costs.decode) if bottleneck == m.DECODE else ("Augmentation", costs.augment)
    of_what = "CPU time" if costs.shares_cores else "the time"
    return f". {what} is the bottleneck: it takes {seconds / costs.seconds:.0%} of {of_what}"


def consumed(consume: float | None, model_ms: float | None, batch_size: int) -> float | None:
    """Images per second, from what a user knows: the rate itself, or the milliseconds of a batch.

    Raises ValueError for both at once, and for what is not positive.
    """
    if consume is not None and model_ms is not None:
        raise ValueError(f"consume, model-ms: got {consume:g} and {model_ms:g}; accepted: one of them")
    for name, value in (("consume", consume), ("model-ms", model_ms)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}: got {value:g}; accepted: a positive number")
    return consume if model_ms is None else batch_size * 1000.0 / model_ms
