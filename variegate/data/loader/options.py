"""What a ``Loader`` was asked for: its arguments, as one record that every part of it reads."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from variegate.backends.runner import Decode, Dtype, Geometry, Layout
from variegate.data.decode import MAX_DECODE_BYTES, MAX_PIXELS, check_limit
from variegate.data.loader.ranks import find_rank, processes_here
from variegate.executors.threads import default_threads
from variegate.transforms.base import Transform

OnError = Literal["raise", "skip", "replace"]


@dataclass(frozen=True)
class LoaderOptions:
    """``Loader`` says what they mean."""

    source: Any
    transform: Transform | None
    batch_size: int
    device: str
    seed: int
    shuffle: bool | None
    drop_last: bool
    num_threads: int | None
    rank: int | None
    world_size: int | None
    on_error: OnError
    cache: Literal["host", "device"] | str | os.PathLike[str] | None
    prefetch: int
    max_errors: int | float | None
    decode: Decode
    dtype: Dtype | torch.dtype
    layout: Layout
    geometry: Geometry
    cache_bytes: int | None
    cache_side: int | None
    max_pixels: int | None
    max_decode_bytes: int | None
    sampler: Any
    weights: Any
    num_samples: int | None
    shuffle_buffer: int
    shuffle_bytes: int

    def checked(self) -> CheckedOptions:
        """With integers for integers, and what None stands for of ranks, threads and limits.

        Raises ValueError naming the argument, its value and what is accepted.
        """
        least = {"batch_size": 1, "prefetch": 0, "shuffle_buffer": 1, "shuffle_bytes": 1}
        integers = {name: check_integer(name, getattr(self, name), number) for name, number in least.items()}
        accepted = get_args(OnError)
        if self.on_error not in accepted:
            raise ValueError(f"on_error: got {self.on_error!r}; accepted: " + ", ".join(map(repr, accepted)))
        if self.max_errors is not None and self.on_error == "raise":
            got = f"got {self.max_errors!r} with on_error='raise'"
            raise ValueError(f"max_errors: {got}; accepted with on_error='skip' or 'replace'")
        rank, world_size = find_rank(self.rank, self.world_size)
        threads = max(1, default_threads() // processes_here()) if self.num_threads is None else self.num_threads
        found = {
            "max_pixels": check_limit("max_pixels", self.max_pixels, MAX_PIXELS),
            "max_decode_bytes": check_limit("max_decode_bytes", self.max_decode_bytes, MAX_DECODE_BYTES),
            "num_threads": threads,
            "rank": rank,
            "world_size": world_size,
        }
        return CheckedOptions(**{**vars(self), **integers, **found})


@dataclass(frozen=True)
class CheckedOptions(LoaderOptions):
    num_threads: int
    rank: int
    world_size: int
    max_pixels: int
    max_decode_bytes: int

    @property
    def decode_limits(self) -> tuple[int, int]:
        """As decoders take them."""
        return self.max_pixels, self.max_decode_bytes


def check_integer(name: str, value: Any, least: int) -> int:
    """``value`` as an int, NumPy's and others' integers too. Raises ValueError for what is none, or less than that."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name}: got {value!r}; accepted: an integer from {least} on")
    return number
