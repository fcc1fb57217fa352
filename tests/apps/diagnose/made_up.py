"""Measurements that nobody took, of machines that nobody has."""

from __future__ import annotations

from typing import Any

from variegate.apps.diagnose import Measurements, Rate
from variegate.apps.diagnose import measurements as m


def rate(images_per_second: float, spread: float = 0.0, threads: int = 4) -> Rate:
    half = images_per_second * spread / 2
    spans = images_per_second - half, images_per_second, images_per_second + half
    return Rate(images_per_second, images_per_second * 0.1, spans, threads)


# A CPU with four cores where decoding is the wall: 1 ms to decode, 0.25 ms to augment.
RATES = {
    m.READ_FIRST: 20_000,
    m.READ: 40_000,
    m.DECODE: 1000,
    m.DECODE_ONE: 255,
    m.AUGMENT: 4000,
    m.AUGMENT_ONE: 1000,
    m.READ_DECODE: 980,
    m.DECODE_AUGMENT: 800,
    m.LOADER: 790,
}


def measurements(rates: dict[str, float | Rate | None] | None = None, **changes: Any) -> Measurements:
    """``rates`` go over RATES; None takes one out."""
    every = {**RATES, **(rates or {})}
    threads = changes.get("threads", 4)
    taken = {
        stage: value if isinstance(value, Rate) else rate(value, threads=threads)
        for stage, value in every.items()
        if value is not None
    }
    values: dict[str, Any] = {
        "source": "photos",
        "samples": 1_000_000,
        "measured": 1000,
        "skipped": 0,
        "bad": (),
        "mean_bytes": 110e3,
        "mean_height": 400.0,
        "mean_width": 500.0,
        "mean_pixel_bytes": 600e3,
        "is_remote": False,
        "has_a_file_each": True,
        "in_page_cache": 1.0,
        "device": "cpu",
        "gpus": 0,
        "decoder": "cpu",
        "threads": threads,
        "cores": 4,
        "batch_size": 64,
        "prefetch": 2,
        "cache": None,
        "available_memory": 64 * 10**9,
        "rates": taken,
    }
    return Measurements(**(values | changes))
