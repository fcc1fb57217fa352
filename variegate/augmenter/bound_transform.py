"""A transform bound to a device and a seed: checked, shown as the call that makes it, copied to other processes."""

from __future__ import annotations

import inspect
from copy import copy
from os import PathLike
from typing import Any, get_args

import torch

from variegate.augmenter.per_image import RunningCount
from variegate.augmenter.pickling import CopiedByState, check_copied
from variegate.checks import integer, one_of, spelt
from variegate.errors import shown
from variegate.executors.runners.runner import Decode, Dtype, ForkedRunner, Geometry, Layout, make_runner
from variegate.ops.arguments import MAX_SLOTS
from variegate.ops.base import Transform
from variegate.policies import load_policy
from variegate.program.program import Output
from variegate.threads import at_fork


class BoundTransform(CopiedByState):
    """What an ``Augmenter`` is before it has seen an image; that says what the arguments are."""

    @spelt()
    def __init__(
        self,
        transform: Transform | str | PathLike[str],
        device: str = "cpu",
        seed: int = 0,
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        num_threads: int | None = None,
        geometry: Geometry = "composed",
        *,
        decode: Decode = "auto",
        fast_decode: bool = False,
        consistent: bool = False,
    ) -> None:
        if isinstance(transform, (str, PathLike)):
            transform = load_policy(transform)
        if not isinstance(transform, Transform):
            raise TypeError(
                f"transform: got {shown(transform)}; accepted: a variegate transform, such as T.Compose([...]), "
                "or what vg.load_policy takes"
            )
        if transform.num_slots > MAX_SLOTS:
            got = f"one that draws {transform.num_slots:,} blocks of random numbers for an image"
            raise ValueError(f"transform: got {got}; accepted: at most {MAX_SLOTS:,}")
        cores = "a positive integer, or None for all cores"
        self.transform = transform
        self.seed = integer("seed", seed, 0, 2**64 - 1)
        self.dtype: torch.dtype = getattr(torch, one_of("dtype", str(dtype).removeprefix("torch."), get_args(Dtype)))
        self.layout = one_of("layout", layout, get_args(Layout))
        self.num_threads = None if num_threads is None else integer("num_threads", num_threads, 1, accepted=cores)
        self.geometry = one_of("geometry", geometry, get_args(Geometry))
        self.decode = decode
        self.fast_decode = one_of("fast_decode", fast_decode, (True, False))
        self.consistent = one_of("consistent", consistent, (True, False))
        if self.consistent and transform._mixers:
            mixer = type(transform._mixers[0]).__name__
            raise ValueError(
                f"consistent: got True with a transform that has {mixer}, which mixes images; accepted: transforms of "
                "one clip alone"
            )
        self._output = Output(dtype=str(self.dtype).removeprefix("torch."), layout=self.layout)
        self._wanted_device = device
        self._count = RunningCount()
        self._start()

    def _start(self) -> None:
        """What belongs to this process alone."""
        settings = self.dtype, self.num_threads, self.geometry, self.decode
        self.device, self._runner = make_runner(self._wanted_device, *settings)
        at_fork(self)

    def after_fork(self) -> None:
        if self.device.startswith("cuda"):
            self._runner = ForkedRunner(self.device, self._runner.lower)

    def check_process(self) -> None:
        """Raises RuntimeError in a forked child where the device is a GPU."""
        if isinstance(self._runner, ForkedRunner):
            self._runner.take(None)

    def __getstate__(self) -> dict[str, Any]:
        check_copied("transform", self.transform, "accepted: functions and classes that a module declares")
        return self._portable()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _portable(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_runner", "device")}
        return {**kept, "_count": copy(self._count)}

    def __repr__(self) -> str:
        """The call that makes it, on the device that was found."""
        values = {**vars(self), "dtype": str(self.dtype).removeprefix("torch.")}
        _, _, *options = inspect.signature(BoundTransform).parameters.values()
        told = "".join(f", {p.name}={values[p.name]!r}" for p in options if values[p.name] != p.default)
        return f"{type(self).__name__}({self.transform!r}, device={self.device!r}{told})"
