"""What a user should know that no change of the loader would improve."""

from __future__ import annotations

from collections.abc import Callable

from variegate.diagnose import measurements as m
from variegate.diagnose.costs import Costs, keeps_files_in_memory
from variegate.diagnose.findings import CACHE_SHARE, Finding
from variegate.diagnose.measurements import rate, size


def first_epoch(data: m.Measurements, costs: Costs) -> Finding | None:
    first = data.rates.get(m.READ_FIRST)
    if first is None or data.in_page_cache is None or not keeps_files_in_memory(data) or data.in_page_cache >= 0.5:
        return None
    if first.images_per_second >= data.rates[m.LOADER].images_per_second:
        return None
    return Finding(
        "first epoch",
        "expect a slow first epoch; later ones find the files in memory",
        f"files that were not in memory are read at {rate(first.images_per_second)} ({first.megabytes_per_second:,.0f} "
        f"MB/s); all of them, {size(data.stored_bytes or 0)}, fit in the {size(data.available_memory)} that are free",
    )


def bad_files(data: m.Measurements, costs: Costs) -> Finding | None:
    if not data.skipped:
        return None
    return Finding(
        "bad files",
        'on_error="skip" or "replace": training would stop at them, or repair them',
        f"{data.skipped:,} of {data.measured + data.skipped:,} samples could not be read, such as {data.bad[0]}",
    )


def cache_too_small(data: m.Measurements, costs: Costs) -> Finding | None:
    pixels, room = data.pixel_bytes, CACHE_SHARE * data.available_memory
    if data.cache != "host" or pixels is None or pixels <= room:
        return None
    return Finding(
        "cache room",
        "expect less: the cache has no room for all pictures (cache_side makes them smaller)",
        f"{data.samples:,} pictures of {size(data.mean_pixel_bytes)} are {size(pixels)}, of which {size(room)} are "
        "held; the rates here are those of pictures that are",
    )


REMARKS: tuple[Callable[[m.Measurements, Costs], Finding | None], ...] = (first_epoch, cache_too_small, bad_files)
