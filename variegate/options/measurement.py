"""What measurements of a loader can be told."""

from __future__ import annotations

import os
from dataclasses import dataclass

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class MeasurementOptions:
    """Of ``measure``, and of the commands that measure.

    ``seconds`` are about kept. Samples are drawn as a shuffled epoch draws them.

    Raises ValueError naming the argument.
    """

    batch_size: int = option(64, "How many images the loader puts in a batch.", "Loader", low=1)
    device: str = option(
        "auto", "The loader's device: cpu, cuda, cuda:N, or auto for a GPU if there is one.", "Loader", metavar="DEVICE"
    )
    threads: int | None = option(None, "The loader's threads. Without it, all cores.", "Loader", low=1)
    cache: str | os.PathLike[str] | None = option(
        None, "Keep decoded pixels there, as the loader's cache does.", "Loader", metavar="host|device|DIR"
    )
    cache_side: int | None = option(None, "Reduce images in the cache to this shorter side.", "Loader", low=1)
    fast_decode: bool = option(
        False,
        "Decode JPEGs at half, a quarter or an eighth of their size where crops are large enough for it, as the "
        "loader's fast_decode does.",
        "Loader",
    )
    index: str | None = option(
        None,
        "Cut crops out of coded JPEGs by an index, as the loader's index does: auto for the one of variegate index, or "
        "a file.",
        "Loader",
        metavar="auto|FILE",
    )
    prefetch: int = option(2, "How many batches the loader makes ahead.", "Loader", low=0)
    seconds: float = option(3.0, "How long each rate is measured.", "Measurement", low=0.01, high=3600)
    limit: int = option(
        1000,
        "How many samples to measure at most, drawn at random. Fewer are used where they are large.",
        "Measurement",
        low=1,
    )

    def __post_init__(self) -> None:
        check_options(self, "batch_size", "limit", "threads")
        if not self.seconds > 0:
            raise ValueError(f"seconds: got {self.seconds!r}; accepted: a positive number")
