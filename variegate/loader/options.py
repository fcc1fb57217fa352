"""The arguments of a ``Loader``, as one record for all of its parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Concatenate, Literal, ParamSpec, get_args

import torch

from variegate.arrays import UInt64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import integer, number, one_of, refused
from variegate.data.sharded import MOST_BLOCK_SHARDS
from variegate.decode import MAX_PIXELS, check_limit
from variegate.decode.dicom import Dicom
from variegate.executors.runners.runner import Decode, Dtype, Geometry, Layout
from variegate.io.files import StrPath
from variegate.loader.buckets import AspectBuckets
from variegate.loader.ranks import find_rank, processes_here
from variegate.program.depth import Depth
from variegate.program.program import MAX_CHANNELS
from variegate.targets.settings import Targets
from variegate.threads import default_threads
from variegate.transforms import Identity, MultiView, Transform

_LEAST = {"batch_size": 1, "prefetch": 0, "copies": 1}

OnError = Literal["raise", "skip", "replace"]
Partners = Literal["epoch", "batch"]
# Ids uint64[N] -> N values by name, the same throughout an epoch; and a function that has one for each epoch.
ConditionsOfIds = Callable[[UInt64Array], Mapping[str, Any]]
ConditionsOfEpoch = Callable[[int], ConditionsOfIds]


@dataclass(frozen=True)
class ProcessWorkers:
    """Worker processes of this machine, for ``vg.Loader(workers=...)``.

    Args:
        count: number of processes, each with its share of the cores; None for one per device.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            integer("count", self.count, 1)


@dataclass(frozen=True)
class RayWorkers:
    """Actors of a Ray cluster, on any of its machines, for ``vg.Loader(workers=...)``.

    Args:
        address: address of the cluster. None uses the one that Ray is connected to or finds, else starts one on this
            machine.
        count: number of actors, or a range (fewest, most): as many actors run as the cluster has room for, also when
            machines join or leave during an epoch. None for one per device.
        cpus: cores of each; None divides a machine's evenly.
        gpus: GPUs of each, 0 for augmentation on the CPU; a share such as 0.5 lets several actors use one.

    Every machine must see the source by the same path or address.
    """

    address: str | None = None
    count: int | tuple[int, int] | None = None
    cpus: int | None = None
    gpus: float = 0

    def __post_init__(self) -> None:
        accepted = "a number of actors, or a range such as (2, 32)"
        counts = self.count if isinstance(self.count, (tuple, list)) else (self.count, self.count)
        if self.count is not None:
            if len(counts) != 2:
                raise refused("count", self.count, accepted)
            fewest = integer("count", counts[0], 1, accepted=accepted)
            object.__setattr__(self, "count", (fewest, integer("count", counts[1], fewest, accepted=accepted)))
        if self.cpus is not None:
            integer("cpus", self.cpus, 1)
        number("gpus", self.gpus, 0)


Workers = Literal["thread", "process", "ray"] | ProcessWorkers | RayWorkers


@dataclass(frozen=True)
class LoaderArguments:
    """Arguments of ``Loader``, whose docstring describes them, as a user gives them."""

    source: Any
    transform: Transform | StrPath | None = None
    batch_size: int = 64
    device: str = "auto"
    seed: int = 0
    shuffle: bool | None = None
    drop_last: bool = False
    num_threads: int | None = None
    rank: int | None = None
    world_size: int | None = None
    on_error: OnError = "raise"
    cache: Literal["host", "device"] | StrPath | None = None
    prefetch: int = 2
    _: KW_ONLY
    max_errors: int | float | None = None
    decode: Decode = "auto"
    fast_decode: bool = False
    dtype: Dtype | torch.dtype = "float32"
    layout: Layout = "NCHW"
    geometry: Geometry = "composed"
    cache_bytes: int | None = None
    cache_side: int | None = None
    max_pixels: int | None = None
    channels: int | None = None
    depth: Literal["uint8", "uint16", "float32"] | None = None
    dicom: Dicom | None = None
    sampler: Any = None
    weights: Any = None
    num_samples: int | None = None
    copies: int = 1
    block_shards: int = 8
    partners: Partners = "epoch"
    index: StrPath | None = None
    views: int | None = None
    conditions: ConditionsOfEpoch | None = None
    annotations: Any = None
    targets: Targets | Literal[False] | None = None
    workers: Workers = "thread"
    devices: str | Sequence[str] | None = None
    buckets: AspectBuckets | None = None
    batch_sampler: Any = None

    @property
    def has_workers(self) -> bool:
        """True where batches are made by others than the threads of the loader itself."""
        return self.workers != "thread" or self.devices is not None


P = ParamSpec("P")
_Init = Callable[[Any, LoaderArguments], None]


def with_fields_of(record: Callable[P, LoaderArguments]) -> Callable[[_Init], Callable[Concatenate[Any, P], None]]:
    """Decorator of an ``__init__`` that takes the fields of a dataclass as its arguments, and gets one of the class."""

    def decorate(init: _Init) -> Callable[Concatenate[Any, P], None]:
        def __init__(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            init(self, record(*args, **kwargs))

        fields = inspect.signature(record)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        signature = fields.replace(parameters=[itself, *fields.parameters.values()])
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        return __init__

    return decorate


@dataclass(frozen=True, kw_only=True)
class LoaderOptions(LoaderArguments):
    """Checked arguments: ranks, threads and limits are numbers, and ``views`` have become part of the transform."""

    transform: Transform | None
    num_threads: int
    rank: int
    world_size: int
    max_pixels: int

    @classmethod
    def check(cls, arguments: LoaderArguments) -> LoaderOptions:
        """Raises ValueError or TypeError naming the argument, its value and accepted values."""
        given = vars(arguments)
        options = given | {name: integer(name, given[name], least) for name, least in _LEAST.items()}
        options["max_pixels"] = check_limit("max_pixels", given["max_pixels"], MAX_PIXELS)
        integer("block_shards", given["block_shards"], 1, MOST_BLOCK_SHARDS)
        if given["channels"] is not None:
            accepted = f"an integer from 1 to {MAX_CHANNELS}, or None for what files have"
            integer("channels", given["channels"], 1, MAX_CHANNELS, accepted=accepted)
        one_of("depth", given["depth"], (None, *map(str, Depth)))
        if not isinstance(given["dicom"], (Dicom, type(None))):
            raise TypeError(f"dicom: got {given['dicom']!r}; accepted: vg.Dicom(...), or None")
        one_of("partners", given["partners"], get_args(Partners))
        if not isinstance(given["workers"], (ProcessWorkers, RayWorkers)):
            accepted = "'thread', 'process', 'ray', vg.ProcessWorkers(...) or vg.RayWorkers(...)"
            if given["workers"] not in ("thread", "process", "ray"):
                raise refused("workers", given["workers"], accepted)
            kinds = {"process": ProcessWorkers(), "ray": RayWorkers()}
            options["workers"] = kinds.get(given["workers"], given["workers"])
        if given["devices"] is not None and given["device"] != "auto":
            got = f"got {given['device']!r} with devices={given['devices']!r}"
            raise ValueError(f"device: {got}; accepted: one of the two, as batches of several devices come to the host")
        options["transform"] = _with_views(given["transform"], given["views"])
        if not (given["conditions"] is None or callable(given["conditions"])):
            accepted = "None, or a function of an epoch that gives a function of ids"
            raise TypeError(f"conditions: got {given['conditions']!r}; accepted: {accepted}")
        if given["targets"] not in (None, False) and not isinstance(given["targets"], Targets):
            raise TypeError(f"targets: got {given['targets']!r}; accepted: vg.Targets(...), False for none, or None")
        if not isinstance(given["buckets"], (AspectBuckets, type(None))):
            raise TypeError(f"buckets: got {given['buckets']!r}; accepted: vg.AspectBuckets(...), or None")
        on_error = one_of("on_error", given["on_error"], get_args(OnError))
        max_errors = given["max_errors"]
        if max_errors is not None and on_error == "raise":
            got = f"got {max_errors!r} with on_error='raise'"
            raise ValueError(f"max_errors: {got}; accepted with on_error='skip' or 'replace'")
        options["rank"], options["world_size"] = find_rank(given["rank"], given["world_size"])
        if given["num_threads"] is None:
            options["num_threads"] = max(1, default_threads() // processes_here())
        return cls(**options)

    def conditions_of(self, epoch: int) -> ConditionsOfIds | None:
        """Asked for when an epoch begins. Raises TypeError unless it is a function of ids."""
        found = None if self.conditions is None else self.conditions(epoch)
        if self.conditions is not None and not callable(found):
            raise TypeError(f"conditions: gave {found!r} for epoch {epoch}; accepted: a function of ids")
        return found

    def make_augmenter(self, transform: Transform, device: str, num_threads: int) -> Augmenter:
        return Augmenter(
            transform,
            device,
            self.seed,
            self.dtype,
            self.layout,
            num_threads,
            self.geometry,
            decode=self.decode,
            fast_decode=self.fast_decode,
        )


def _with_views(transform: Any, views: Any) -> Any:
    if views is None:
        return transform
    number = integer("views", views, 1)
    if isinstance(transform, MultiView):
        raise ValueError(f"views: got {number} with a transform that is a MultiView; accepted: either of the two")
    return MultiView([Identity() if transform is None else transform], counts=[number])
