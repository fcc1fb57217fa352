"""What could be changed, what it would bring, and the numbers that say so: a function for every kind of change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from variegate.diagnose import measurements as m
from variegate.diagnose.costs import Costs
from variegate.diagnose.measurements import percent, rate, side, size, times

# Of the free memory, what ``cache="host"`` takes.
CACHE_SHARE = 0.5
_SMALL_FILE = 1e6
_EXPECTED_SCALING, _POOR_SCALING = 0.9, 0.65


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


def more_threads(data: m.Measurements, costs: Costs) -> Finding | None:
    if data.threads >= data.cores:
        return None
    speedup = _speedup(data, m.DECODE, m.DECODE_ONE) or _speedup(data, m.AUGMENT, m.AUGMENT_ONE) or data.threads
    factor = max(1.0, data.cores / data.threads * min(1.0, speedup / data.threads))
    # What a GPU augments does not depend on the host's threads.
    augment = costs.augment / factor if costs.shares_cores else costs.augment
    scaled = f" ({data.threads} decode {times(speedup)} as fast as 1)" if data.threads > 1 else ""
    return Finding(
        "threads",
        f"num_threads={data.cores}: use all cores",
        f"{data.threads} of {data.cores} cores work{scaled}",
        costs.gain(decode=costs.decode / factor, augment=augment),
        is_limit=data.threads == 1,
    )


def poor_scaling(data: m.Measurements, costs: Costs) -> Finding | None:
    speedup = _speedup(data, m.DECODE, m.DECODE_ONE)
    if speedup is None or speedup >= _POOR_SCALING * data.threads:
        return None
    one, every = data.rates[m.DECODE_ONE].images_per_second, data.rates[m.DECODE].images_per_second
    if max(data.rates[m.DECODE].spans) >= _POOR_SCALING * data.threads * one:
        return None  # it does at times
    factor = _EXPECTED_SCALING * data.threads / speedup
    augment = costs.augment / factor if costs.shares_cores else costs.augment
    return Finding(
        "scaling",
        "find out what else uses the cores: other processes, a quota of the container, or cores that are hyperthreads",
        f"{data.threads} threads decode {rate(every)}, 1 decodes {rate(one)}: {times(speedup)}",
        costs.gain(decode=costs.decode / factor, augment=augment),
        is_limit=True,
    )


def cache_pixels(data: m.Measurements, costs: Costs) -> Finding | None:
    pixels, augment = data.pixel_bytes, data.rate(m.AUGMENT)
    if data.cache is not None or pixels is None or augment is None or not data.rate(m.DECODE):
        return None
    room = CACHE_SHARE * data.available_memory
    every = f"{data.samples:,} pictures of {size(data.mean_pixel_bytes)} on average are {size(pixels)}"
    free = f"{size(data.available_memory)} of memory are free"
    kept = "; the first epoch decodes as before, the others do not"
    if pixels <= room:
        gain = costs.gain(read=0.0, decode=0.0, augment=1.0 / augment)
        from_pixels = f"whole pictures are augmented at {rate(augment)}"
        return Finding("cache", 'cache="host": decode once', f"{every}, {free}; {from_pixels}{kept}", gain)
    reduced, augment_reduced = data.reduced_side, data.rate(m.AUGMENT_REDUCED)
    if reduced is None or augment_reduced is None:
        return None
    shrunk = pixels * (reduced / min(data.mean_height, data.mean_width)) ** 2
    where = '"host"' if shrunk <= room else '"FOLDER"'
    disk = "" if shrunk <= room else ", on a disk that is read faster than that"
    return Finding(
        "cache",
        f"cache={where}, cache_side={reduced}: decode once, keep pictures with a shorter side of {reduced}",
        f"{every}, {free}; reduced they are {size(shrunk)} and are augmented at {rate(augment_reduced)}{disk}{kept}; "
        "small crops lose detail",
        costs.gain(read=0.0, decode=0.0, augment=1.0 / augment_reduced),
        is_limit=shrunk > room,
    )


def smaller_files(data: m.Measurements, costs: Costs) -> Finding | None:
    decode, augment = data.rate(m.DECODE_REDUCED), data.rate(m.AUGMENT_REDUCED)
    if data.cache is not None or decode is None or augment is None or data.reduced_side is None:
        return None
    before = data.rates[m.DECODE].images_per_second
    return Finding(
        "reduce",
        f"store the pictures smaller, once: a shorter side of {data.reduced_side}, JPEG",
        f"they are {side(data.mean_width)} x {side(data.mean_height)} on average, of which the transform makes "
        f"{data.out_side}; reduced files decode at {rate(decode)}, these at {rate(before)}; small crops lose detail",
        costs.gain(decode=1.0 / decode, augment=min(costs.augment, 1.0 / augment)),
    )


def shards(data: m.Measurements, costs: Costs) -> Finding | None:
    if costs.largest() != m.READ or data.mean_bytes >= _SMALL_FILE or not data.has_a_file_each:
        return None
    return Finding(
        "shards",
        "pack the small files into .tar shards (WebDataset) or Parquet of 100 MB and more, and read these",
        f"{_reading(data, costs)} in files of {size(data.mean_bytes)} each; the cores could take "
        f"{rate(1 / _without_read(costs))}",
        costs.gain(read=0.0),
        is_limit=True,
    )


def faster_storage(data: m.Measurements, costs: Costs) -> Finding | None:
    if costs.largest() != m.READ:
        return None
    place = "copy the data to a local disk" if data.is_remote else "put the data on a faster disk, or into memory"
    return Finding(
        "storage",
        place,
        f"{_reading(data, costs)}; the cores could take {rate(1 / _without_read(costs))}",
        costs.gain(read=0.0),
        is_limit=True,
    )


def cheaper_policy(data: m.Measurements, costs: Costs) -> Finding | None:
    if not _is_faster(data, m.AUGMENT_PLAIN, m.AUGMENT):
        return None
    with_it, plain = data.rates[m.AUGMENT].images_per_second, data.rates[m.AUGMENT_PLAIN].images_per_second
    return Finding(
        "policy",
        "choose a cheaper policy: fewer operations per image (num_ops), or one alone (trivialaugment)",
        f"augmenting takes {1e3 / with_it:.2f} ms per image, of which the policy {1e3 / with_it - 1e3 / plain:.2f} ms; "
        f"without it {rate(plain)} instead of {rate(with_it)}",
        costs.gain(augment=costs.augment * with_it / plain),
        is_limit=True,
    )


def use_the_gpu(data: m.Measurements, costs: Costs) -> Finding | None:
    if not data.gpus or data.device.startswith("cuda"):
        return None
    return Finding(
        "gpu",
        'device="cuda": augment on the GPU, and leave the cores to decoding',
        f"a GPU is there; augmenting takes {percent(costs.augment / costs.seconds)} of the cores' time",
        costs.gain(augment=0.0, shares_cores=False),
        is_limit=True,
    )


def decode_on_the_gpu(data: m.Measurements, costs: Costs) -> Finding | None:
    on_cuda = data.device.startswith("cuda")
    if not on_cuda or data.decoder == "gpu" or data.cache is not None or costs.largest() != m.DECODE:
        return None
    return Finding(
        "gpu decode",
        "have the GPU decode JPEGs: pip install 'variegate[gpu]', then decode=\"auto\" takes it",
        f"{data.threads} threads decode {rate(1 / costs.decode)}, {data.device} augments {rate(1 / costs.augment)}; "
        "at what rate the GPU decodes was not measured",
        costs.gain(decode=0.0),
        is_limit=True,
    )


def larger_batches(data: m.Measurements, costs: Costs) -> Finding | None:
    if not _is_faster(data, m.AUGMENT_LARGE, m.AUGMENT):
        return None
    small, large = data.rates[m.AUGMENT].images_per_second, data.rates[m.AUGMENT_LARGE].images_per_second
    return Finding(
        "batch",
        f"batch_size={4 * data.batch_size}, if the training allows it",
        f"batches of {4 * data.batch_size} are augmented at {rate(large)}, of {data.batch_size} at {rate(small)}",
        costs.gain(augment=costs.augment * small / large),
    )


def more_prefetch(data: m.Measurements, costs: Costs) -> Finding | None:
    loader, parts = data.rates[m.LOADER].images_per_second, 1.0 / costs.seconds
    if loader >= 0.85 * parts:
        return None
    if data.prefetch < 2:
        advice = "prefetch=2: make batches ahead of their use"
    else:
        advice = f"prefetch={2 * data.prefetch}: even out slow batches, if nothing else uses the cores"
    why = f"the loader gives {rate(loader)}, its stages together {rate(parts)}; prefetch is {data.prefetch}"
    return Finding("prefetch", advice, why, parts / loader, is_limit=True)


CHANGES: tuple[Callable[[m.Measurements, Costs], Finding | None], ...] = (
    more_threads,
    poor_scaling,
    cache_pixels,
    smaller_files,
    shards,
    faster_storage,
    cheaper_policy,
    use_the_gpu,
    decode_on_the_gpu,
    larger_batches,
    more_prefetch,
)


def _is_faster(data: m.Measurements, stage: str, other: str) -> bool:
    return stage in data.rates and other in data.rates and data.rates[stage].is_surely_faster(data.rates[other])


def _speedup(data: m.Measurements, every: str, one: str) -> float | None:
    fast, slow = data.rate(every), data.rate(one)
    return None if fast is None or slow is None or data.threads == 1 else fast / slow


def _reading(data: m.Measurements, costs: Costs) -> str:
    return f"reading gives {rate(1 / costs.read)} ({data.mean_bytes / costs.read / 1e6:,.0f} MB/s)"


def _without_read(costs: Costs) -> float:
    return costs.seconds / costs.gain(read=0.0)
