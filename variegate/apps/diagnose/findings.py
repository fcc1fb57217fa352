"""What could be changed or should be known, what a change would bring, and the numbers that say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.measurements import Costs, Measurements, rate, size, times

# Of the free memory, what ``cache="host"`` takes.
_CACHE_SHARE = 0.5
_SMALL_FILE = 1e6
_EXPECTED_SCALING, _POOR_SCALING = 0.9, 0.65
_LOSS = "small crops lose detail"


@dataclass(frozen=True)
class Finding:
    """Something to change, or to know.

    ``gain``: the loader's rate with it over the rate today, 1.0 where no rate hangs on it; at most that where
    ``is_limit``. ``images_per_second``: the rate to expect.
    """

    kind: str
    advice: str
    why: str
    gain: float = 1.0
    is_limit: bool = False
    images_per_second: float | None = None


def changes(data: Measurements, costs: Costs) -> Iterator[Finding]:
    """What would change the loader's rate, whether by much or not."""
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
            "find out what else uses the cores: other processes, a quota of the container, or cores that are "
            "hyperthreads",
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
        every = f"{data.samples:,} pictures of {size(data.mean_pixel_bytes)} on average are {size(pixels)}, "
        every += f"{size(data.available_memory)} of memory are free; "
        kept = "; the first epoch decodes as before, the others do not"
        if pixels <= room:
            why = f"{every}whole pictures are augmented at {rate(augment)}{kept}"
            gain = costs.gain(read=0.0, decode=0.0, augment=1.0 / augment)
            yield Finding("cache", 'cache="host": decode once', why, gain)
        elif reduced and augment_reduced:
            shrunk = pixels * (reduced / min(data.mean_height, data.mean_width)) ** 2
            where, disk = '"host"', ""
            if shrunk > room:
                where, disk = '"FOLDER"', ", on a disk that is read faster than that"
            yield Finding(
                "cache",
                f"cache={where}, cache_side={reduced}: decode once, keep pictures with a shorter side of {reduced}",
                f"{every}reduced they are {size(shrunk)} and are augmented at {rate(augment_reduced)}{disk}{kept}; "
                f"{_LOSS}",
                costs.gain(read=0.0, decode=0.0, augment=1.0 / augment_reduced),
                is_limit=shrunk > room,
            )
    if decode and decode_reduced and augment_reduced and reduced:
        yield Finding(
            "reduce",
            f"store the pictures smaller, once: variegate pack SRC DST --size {reduced}",
            f"they are {data.mean_width:.0f} x {data.mean_height:.0f} on average, of which the transform makes "
            f"{data.out_side}; reduced files decode at {rate(decode_reduced)}, these at {rate(decode)}; {_LOSS}",
            costs.gain(decode=1.0 / decode_reduced, augment=min(costs.augment, 1.0 / augment_reduced)),
        )


def _index(data: Measurements, costs: Costs) -> Iterator[Finding]:
    decode, indexed = data.rates.get(m.DECODE), data.rates.get(m.DECODE_INDEXED)
    if decode is None or indexed is None or not indexed.is_surely_faster(decode):
        return
    yield Finding(
        "index",
        'index="auto", after variegate index: decode little more of a JPEG than the crop',
        f"with an index of where their code can be entered they decode at {rate(indexed.images_per_second)}, without "
        f"at {rate(decode.images_per_second)}; the same pixels, and the files stay as they are",
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
    place = "copy the data to a local disk" if data.is_remote else "put the data on a faster disk, or into memory"
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
            "choose a cheaper policy: fewer operations per image (num_ops), or one alone (trivialaugment)",
            f"augmenting takes {milliseconds:.2f} ms per image, of which the policy {milliseconds - 1e3 / faster:.2f} "
            f"ms; without it {rate(faster)} instead of {rate(today)}",
            costs.gain(augment=costs.augment * today / faster),
            is_limit=True,
        )
    if large is not None and large.is_surely_faster(augment):
        number, faster = 4 * data.batch_size, large.images_per_second
        yield Finding(
            "batch",
            f"batch_size={number}, if the training allows it",
            f"batches of {number} are augmented at {rate(faster)}, of {data.batch_size} at {rate(today)}",
            costs.gain(augment=costs.augment * today / faster),
        )


def _gpu(data: Measurements, costs: Costs) -> Iterator[Finding]:
    if not data.device.startswith("cuda"):
        if data.gpus:
            share = f"{costs.augment / costs.seconds:.0%}"
            yield Finding(
                "gpu",
                'device="cuda": augment on the GPU, and leave the cores to decoding',
                f"a GPU is there; augmenting takes {share} of the cores' time",
                costs.gain(augment=0.0, shares_cores=False),
                is_limit=True,
            )
    elif data.decoder != "gpu" and data.cache is None and costs.largest() == m.DECODE:
        yield Finding(
            "gpu decode",
            "have the GPU decode JPEGs: pip install 'variegate[gpu]', then decode=\"auto\" takes it",
            f"{data.threads} threads decode {rate(1 / costs.decode)}, {data.device} augments {rate(1 / costs.augment)}"
            "; at what rate the GPU decodes was not measured",
            costs.gain(decode=0.0),
            is_limit=True,
        )


def _prefetch(data: Measurements, costs: Costs) -> Iterator[Finding]:
    loader, parts = data.rates[m.LOADER].images_per_second, 1.0 / costs.seconds
    if loader < 0.85 * parts:
        advice = f"prefetch={2 * data.prefetch}: even out slow batches, if nothing else uses the cores"
        if data.prefetch < 2:
            advice = "prefetch=2: make batches ahead of their use"
        why = f"the loader gives {rate(loader)}, its stages together {rate(parts)}; prefetch is {data.prefetch}"
        yield Finding("prefetch", advice, why, parts / loader, is_limit=True)


def remarks(data: Measurements) -> Iterator[Finding]:
    """What a user should know that no change of the loader would improve."""
    first, pixels = data.rates.get(m.READ_FIRST), data.pixel_bytes
    was_read = data.in_page_cache is None or data.in_page_cache >= m.IN_MEMORY
    if first is not None and not was_read and data.fits_in_memory:
        megabytes, slow = f"{first.megabytes_per_second:,.0f} MB/s", first.images_per_second
        if slow < data.rates[m.LOADER].images_per_second:
            yield Finding(
                "first epoch",
                "expect a slow first epoch; later ones find the files in memory",
                f"files that were not in memory are read at {rate(slow)} ({megabytes}); all of them, "
                f"{size(data.stored_bytes or 0)}, fit in the {size(data.available_memory)} that are free",
            )
    room = _CACHE_SHARE * data.available_memory
    if data.cache == "host" and pixels is not None and pixels > room:
        yield Finding(
            "cache room",
            "expect less: the cache has no room for all pictures (cache_side makes them smaller)",
            f"{data.samples:,} pictures of {size(data.mean_pixel_bytes)} are {size(pixels)}, of which {size(room)} are "
            "held; the rates here are those of pictures that are",
        )
    if data.skipped:
        yield Finding(
            "bad files",
            'on_error="skip" or "replace": training would stop at them, or repair them',
            f"{data.skipped:,} of {data.measured + data.skipped:,} samples could not be read, such as {data.bad[0]}",
        )
