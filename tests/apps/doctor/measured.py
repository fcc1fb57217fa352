"""Made-up measurements of machines that nobody has."""

from __future__ import annotations

from typing import Any

from variegate.apps.doctor.advise import AUGMENT, DECODE, DECODE_AUGMENT, READ, WHOLE, Measurements
from variegate.apps.doctor.probes import Rate

# A CPU with four cores, where decoding is the bottleneck: 1 ms to decode, 0.25 ms to augment.
RATES = {READ: 40_000.0, DECODE: 1000.0, AUGMENT: 4000.0, DECODE_AUGMENT: 800.0, WHOLE: 790.0}


def measurements(rates: dict[str, float | None] | None = None, **changes: Any) -> Measurements:
    """``rates`` replace RATES; None removes one."""
    every = RATES | (rates or {})
    values: dict[str, Any] = {
        "source": "photos",
        "samples": 1_000_000,
        "held": 1000,
        "bad": 0,
        "file_bytes": 110e3,
        "pixel_bytes": 600e3,
        "width": 500.0,
        "height": 400.0,
        "has_single_files": True,
        "is_remote": False,
        "device": "cpu",
        "decodes_on_gpu": False,
        "threads": 4,
        "cores": 4,
        "batch_size": 64,
        "free_memory": 64 * 10**9,
        "rates": {name: Rate(value, 0.1) for name, value in every.items() if value is not None},
    }
    return Measurements(**(values | changes))
