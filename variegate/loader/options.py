"""What a ``Loader`` was asked for: its arguments, as one record that every part of it reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from variegate.checks import integer, one_of
from variegate.decode import MAX_DECODE_BYTES, MAX_PIXELS, check_limit
from variegate.executors.runners.runner import Decode, Dtype, Geometry, Layout
from variegate.loader.ranks import find_rank, processes_here
from variegate.targets.settings import Targets
from variegate.threads import default_threads
from variegate.transforms import Identity, MultiView, Transform

OnError = Literal["raise", "skip", "replace"]
Partners = Literal["epoch", "batch"]
# Ids uint64[N] -> N values by name, the same throughout an epoch; and a function that has one for each epoch.
ConditionsOfIds = Callable[[npt.NDArray[np.uint64]], Mapping[str, Any]]
ConditionsOfEpoch = Callable[[int], ConditionsOfIds]


@dataclass(frozen=True)
class LoaderOptions:
    """``Loader`` says what they mean. Made by ``check``."""

    source: Any
    annotations: Any
    transform: Transform | None
    batch_size: int
    device: str
    seed: int
    shuffle: bool | None
    drop_last: bool
    num_threads: int
    rank: int
    world_size: int
    on_error: OnError
    cache: Literal["host", "device"] | str | os.PathLike[str] | None
    prefetch: int
    max_errors: int | float | None
    decode: Decode
    fast_decode: bool
    dtype: Dtype | torch.dtype
    layout: Layout
    geometry: Geometry
    cache_bytes: int | None
    cache_side: int | None
    max_pixels: int
    max_decode_bytes: int
    sampler: Any
    weights: Any
    num_samples: int | None
    copies: int
    shuffle_buffer: int
    shuffle_bytes: int
    partners: Partners
    conditions: ConditionsOfEpoch | None
    index: str | os.PathLike[str] | None
    targets: Targets | bool | None
    has_views: bool  # ``views`` made the transform several

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> LoaderOptions:
        """A user's arguments, with integers for integers, and what None stands for of ranks, threads and limits.

        Raises ValueError naming the argument, its value and what is accepted.
        """
        options = dict(given)
        for name, least in {
            "batch_size": 1,
            "prefetch": 0,
            "copies": 1,
            "shuffle_buffer": 1,
            "shuffle_bytes": 1,
        }.items():
            options[name] = integer(name, given[name], least)
        for name, default in {"max_pixels": MAX_PIXELS, "max_decode_bytes": MAX_DECODE_BYTES}.items():
            options[name] = check_limit(name, given[name], default)
        one_of("partners", given["partners"], get_args(Partners))
        options["has_views"] = given["views"] is not None
        options["transform"] = _with_views(given["transform"], options.pop("views"))
        if not (given["conditions"] is None or callable(given["conditions"])):
            accepted = "None, or a function of an epoch that gives a function of ids"
            raise TypeError(f"conditions: got {given['conditions']!r}; accepted: {accepted}")
        if given["targets"] not in (None, False) and not isinstance(given["targets"], Targets):
            raise TypeError(f"targets: got {given['targets']!r}; accepted: vg.Targets(...), False for none, or None")
        on_error, max_errors = one_of("on_error", given["on_error"], get_args(OnError)), given["max_errors"]
        if max_errors is not None and on_error == "raise":
            got = f"got {max_errors!r} with on_error='raise'"
            raise ValueError(f"max_errors: {got}; accepted with on_error='skip' or 'replace'")
        options["rank"], options["world_size"] = find_rank(given["rank"], given["world_size"])
        if given["num_threads"] is None:
            options["num_threads"] = max(1, default_threads() // processes_here())
        return cls(**options)

    def conditions_of(self, epoch: int) -> ConditionsOfIds | None:
        """Asked for when an epoch begins. Raises TypeError for what is no function of ids."""
        found = None if self.conditions is None else self.conditions(epoch)
        if self.conditions is not None and not callable(found):
            raise TypeError(f"conditions: gave {found!r} for epoch {epoch}; accepted: a function of ids")
        return found

    @property
    def decode_limits(self) -> tuple[int, int]:
        """As decoders take them."""
        return self.max_pixels, self.max_decode_bytes


def _with_views(transform: Any, views: Any) -> Any:
    if views is None:
        return transform
    number = integer("views", views, 1)
    if isinstance(transform, MultiView):
        raise ValueError(f"views: got {number} with a transform that is a MultiView; accepted: either of the two")
    return MultiView([Identity() if transform is None else transform], counts=[number])
