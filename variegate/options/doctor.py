"""Options of ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.options import check_options, option, same_option
from variegate.options.fit import FitOptions, Precision


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Options of ``doctor``. Raises ValueError naming the argument."""

    batch_size: int = option(64, "Images per batch.", "Loader", low=1)
    device: str = option(
        "auto", "Device of the loader: cpu, cuda, cuda:N, or auto (a GPU if there is one).", "Loader", metavar="DEVICE"
    )
    threads: int | None = option(None, "Threads of the loader. By default, all cores.", "Loader", low=1)
    fast_decode: bool = option(
        False, "Decode JPEGs at 1/2, 1/4 or 1/8 of their size where crops are large enough.", "Loader"
    )
    index: str | None = option(
        None,
        "Read crops of JPEGs through an index: the one that variegate index wrote (auto), or a file.",
        "Loader",
        metavar="auto|FILE",
    )
    prefetch: int = option(2, "Batches to prefetch.", "Loader", low=0)
    consume: float | None = option(None, "Images per second that your model takes.", "Model", low=0.001, metavar="RATE")
    train: bool = option(
        False, "Time the training step as well: on one repeated batch, and fed by the loader.", "Model"
    )
    model: str = option("wrn-28-2-stem4", "With --train: network, as for variegate train.", "Model", metavar="NAME")
    precision: Precision = same_option(
        FitOptions, "precision", panel="Model", help="With --train: precision of the step."
    )
    seconds: float = option(1.0, "Seconds to measure each rate.", "Measurement", low=0.01, high=3600)
    limit: int = option(
        1000,
        "Maximum number of samples to hold in memory, drawn at random. Fewer are used if they are large.",
        "Measurement",
        low=1,
    )

    def __post_init__(self) -> None:
        check_options(self)
