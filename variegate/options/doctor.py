"""Options of ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from variegate.options import Opt, Options
from variegate.options.fit import Precision
from variegate.options.shared import Threads


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Options of ``doctor``. Raises ValueError naming the argument."""

    batch_size: Annotated[int, Opt("Images per batch.", "Loader", ge=1)] = 64
    devices: Annotated[
        str,
        Opt("Device of the loader: cpu, cuda, cuda:N, or auto (a GPU if there is one).", "Loader", metavar="DEVICE"),
    ] = "auto"
    threads: Threads = None
    fast_decode: Annotated[
        bool, Opt("Decode JPEGs at 1/2, 1/4 or 1/8 of their size where crops are large enough.", "Loader")
    ] = False
    index: Annotated[
        str | None,
        Opt(
            "Read crops of JPEGs through an index: the one that variegate index wrote (auto), or a file.",
            "Loader",
            metavar="auto|FILE",
        ),
    ] = None
    prefetch: Annotated[int, Opt("Batches to prefetch.", "Loader", ge=0)] = 2
    consume: Annotated[
        float | None, Opt("Images per second that your model takes.", "Model", ge=0.001, metavar="RATE")
    ] = None
    train: Annotated[
        bool, Opt("Time the training step as well: on one repeated batch, and fed by the loader.", "Model")
    ] = False
    model: Annotated[
        str,
        Opt("With --train: network, as for variegate train.", "Model", metavar="NAME", needs=("train", True)),
    ] = "wrn-28-2-stem4"
    precision: Annotated[Precision, Opt("With --train: precision of the step.", "Model", needs=("train", True))] = (
        "float32"
    )
    seconds: Annotated[float, Opt("Seconds to measure each rate.", "Measurement", ge=0.01, le=3600)] = 1.0
    limit: Annotated[
        int,
        Opt(
            "Maximum number of samples to hold in memory, drawn at random. Fewer are used if they are large.",
            "Measurement",
            ge=1,
        ),
    ] = 1000
