"""Ranks of a training: processes connect, exchange values, and average their copies of a model."""

from __future__ import annotations

import copy
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from variegate.arrays import Int32Array
from variegate.errors import one_line
from variegate.executors.runners.devices import resolve
from variegate.options.shared import device_names

# Ranks wait this long for each other.
TIMEOUT_SECONDS = 600.0
# Words in messages of torch.distributed.
_DISTRIBUTED = ("gloo", "NCCL", "Connection")
# Where in torch's C++ a message comes from: "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] ".
_SOURCE = re.compile(r"\[[^\]\s]*\.(cc|cpp|h|hpp):\d+\]\s*")


class DistError(RuntimeError):
    """Ranks that do not find each other, or one that is gone."""


@dataclass(frozen=True)
class DistContext:
    """This process's rank and the collective operations. ``messages``, ``saving``: groups over CPUs; checkpoints are
    agreed on while steps go on."""

    rank: int = 0
    ranks: int = 1
    device: str = "cpu"
    messages: Any = None
    saving: Any = None

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum_and_max(self, sums: list[float], most: list[float]) -> tuple[list[float], list[float]]:
        """Over all ranks; every rank calls it."""
        if self.ranks == 1:
            return sums, most
        added = torch.tensor(sums, dtype=torch.float64)
        highest = torch.tensor(most, dtype=torch.float64)
        dist.all_reduce(added, group=self.messages)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.messages)
        return added.tolist(), highest.tolist()

    def highest(self, values: Int32Array) -> Int32Array:
        """Elementwise maximum over all ranks; every rank calls it."""
        if self.ranks > 1:
            dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self.messages)
        return values

    def gather(self, value: Any, group: Any = None) -> list[Any]:
        """The values of all ranks, by rank; every rank calls it. ``group``: by default ``messages``."""
        found = [value] * self.ranks
        if self.ranks > 1:
            dist.all_gather_object(found, value, group=group or self.messages)
        return found


@contextmanager
def joined(devices: str, seconds: float = TIMEOUT_SECONDS) -> Iterator[DistContext]:
    """Join the other processes of ``torchrun``, if any. Raises DistError.

    ``devices``: "auto", or names separated by commas, of the ranks on this machine in their order.
    """
    limit = timedelta(seconds=seconds)
    is_ours = os.environ.get("WORLD_SIZE", "1") != "1" and not dist.is_initialized()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    names = device_names(devices)
    if devices == "auto" and torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        names = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    device = resolve(names[local_rank % len(names)], "devices")
    is_cuda = device.startswith("cuda")
    if is_cuda:
        torch.cuda.set_device(device)
    has_joined = False
    try:
        if is_ours:
            dist.init_process_group("cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=limit)
        if not dist.is_initialized():
            yield DistContext(device=device)
            return
        groups = [dist.new_group(backend="gloo", timeout=limit) for _ in range(2)]
        has_joined = True
        yield DistContext(dist.get_rank(), dist.get_world_size(), device, *groups)
        for group in groups:
            dist.destroy_process_group(group)
    except (RuntimeError, ValueError) as error:
        # An error in the forward pass of a distributed model is reported as a ModelError, a ValueError.
        cause = error.__cause__ if isinstance(error, ValueError) else error
        message = _message(cause, has_joined, seconds) if isinstance(cause, RuntimeError) else None
        if message is None:
            raise
        raise DistError(message) from error
    finally:
        if is_ours and dist.is_initialized():
            dist.destroy_process_group()


def _message(error: RuntimeError, has_joined: bool, seconds: float) -> str | None:
    """The message for an error of torch.distributed; None for any other error."""
    text = one_line(error)
    is_distributed = isinstance(error, dist.DistError) or any(word in text for word in _DISTRIBUTED)
    if not is_distributed:
        return None
    reason = _SOURCE.sub("", text)[:200]
    if has_joined:
        return (
            f"another rank is gone, or did not answer for {seconds:g} s ({reason}); its own message says why. To "
            "resume from the last checkpoint, run the same command again"
        )
    address = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
    size = os.environ.get("WORLD_SIZE", "?")
    return (
        f"the {size} ranks did not meet at {address} within {seconds:g} s ({reason}); start all of them, with the same "
        "MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and a port that is free"
    )


class ParallelStrategy:
    """A single rank, and the base of several. ``model`` is called in steps. ``is_alike``: all ranks have the same
    weights after each step."""

    is_alike = True

    def __init__(self, module: torch.nn.Module, ranks: DistContext) -> None:
        self.module = self.model = module
        self.ranks = ranks

    def warm_up_backward(self, add_gradients: Callable[[], object]) -> None:
        """Run a backward pass before the first step if the order of gradients depends on it; weights do not change."""

    def no_sync_unless_last(self, is_last: bool) -> AbstractContextManager[Any]:
        """Context of a forward and backward pass. ``is_last``: of the batches accumulated in a step."""
        return nullcontext()

    def after(self, step: int) -> None:
        """Average after the optimizer step with this number, counted from 1."""

    def synchronize(self) -> None:
        """Make weights and statistics equal on all ranks."""

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors in transit between steps, for a checkpoint."""
        return {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Resume after ``step`` steps. ``state`` is empty if another number of ranks saved it."""


class GradientAveraging(ParallelStrategy):
    """Average gradients during the backward pass (DistributedDataParallel)."""

    def __init__(self, module: torch.nn.Module, ranks: DistContext) -> None:
        super().__init__(module, ranks)
        devices = [torch.device(ranks.device)] if ranks.device.startswith("cuda") else None
        # Statistics of rank 0 are sent before a scoring or a checkpoint, not in every step.
        arguments = inspect.signature(DistributedDataParallel.__init__).parameters
        sync_buffers: Any = "forward_sync_buffers" if "forward_sync_buffers" in arguments else "broadcast_buffers"
        make: Any = DistributedDataParallel
        self.replicated = make(module, devices, gradient_as_bucket_view=True, **{sync_buffers: False})
        self.model = self.replicated

    def warm_up_backward(self, add_gradients: Callable[[], object]) -> None:
        # DDP sends gradients in the order of the first backward pass. With three or more ranks, sums depend on that
        # order by a rounding. A resumed run therefore needs the same order before its first step.
        kept = copy.deepcopy(self.module.state_dict())
        add_gradients()
        self.module.zero_grad(set_to_none=True)
        self.module.load_state_dict(kept)

    def no_sync_unless_last(self, is_last: bool) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = nullcontext() if is_last else self.replicated.no_sync()
        return context

    def synchronize(self) -> None:
        for buffer in self.module.buffers():
            dist.broadcast(buffer, 0)


class PeriodicAveraging(GradientAveraging):
    """Average weights every ``period`` steps (post-local SGD, arXiv 1808.07217), and gradients before step ``start``,
    both by torch."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: DistContext, period: int, start: int) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_local
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        super().__init__(module, ranks)
        self._hook = post_local.PostLocalSGDState(None, None, start, post_local_gradient_allreduce=False)
        self.replicated.register_comm_hook(self._hook, post_local.post_localSGD_hook)
        self._averager = PeriodicModelAverager(period, start)

    def warm_up_backward(self, add_gradients: Callable[[], object]) -> None:
        super().warm_up_backward(add_gradients)
        self._hook.iter = 0

    def after(self, step: int) -> None:
        self._averager.step = step
        self._averager.average_parameters(self.module.parameters())
        # The averager replaces weights by contiguous ones; fused optimizers need the layout of the momenta.
        self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def synchronize(self) -> None:
        average_module(self.module)

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        self._hook.iter = step


class BackgroundAveraging(ParallelStrategy):
    """Average weights while the next step is computed, and add the change afterwards (DaSGD, arXiv 2006.00441)."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: DistContext) -> None:
        super().__init__(module, ranks)
        share_over_ranks(module, ranks)
        # The weights that were sent, and their mean once ``_work`` is done; empty if nothing is in transit.
        self._sent = self._mean = torch.empty(0)
        self._work: Any = None

    def after(self, step: int) -> None:
        self._apply()
        self._sent = torch.cat([weight.data.reshape(-1) for weight in self.module.parameters()])
        self._mean = self._sent / self.ranks.ranks
        self._work = dist.all_reduce(self._mean, async_op=True)

    def _wait(self) -> None:
        if self._work is not None:
            self._work.wait()
        self._work = None

    @torch.no_grad()
    def _apply(self) -> None:
        self._wait()
        if not len(self._mean):
            return
        weights = list(self.module.parameters())
        changes = (self._mean - self._sent).split([weight.numel() for weight in weights])
        for weight, change in zip(weights, changes, strict=True):
            weight.add_(change.view_as(weight))
        self._sent = self._mean = torch.empty(0)

    def synchronize(self) -> None:
        self._apply()
        average_module(self.module)

    def state(self) -> dict[str, torch.Tensor]:
        self._wait()
        return {"sent": self._sent, "mean": self._mean} if len(self._mean) else {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        if state:
            self._sent = state["sent"].to(self.ranks.device)
            self._mean = state["mean"].to(self.ranks.device)


def parallel_strategy(module: torch.nn.Module, ranks: DistContext, period: int, warmup_steps: int) -> ParallelStrategy:
    """``period``: see ``TrainOptions.period``."""
    if ranks.ranks == 1:
        return ParallelStrategy(module, ranks)
    if period == 0:
        return GradientAveraging(module, ranks)
    if period < 0:
        return BackgroundAveraging(module, ranks)
    return PeriodicAveraging(module, ranks, period, warmup_steps)


def share_over_ranks(module: torch.nn.Module, ranks: DistContext) -> None:
    """Copy the weights and statistics of rank 0 to all ranks."""
    if ranks.ranks > 1:
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, 0)


def average_module(module: torch.nn.Module) -> None:
    """Replace weights and statistics by their means over all ranks."""
    weights = [weight.data for weight in module.parameters()]
    average_over_ranks([*weights, *floats_of(module.buffers())])


def average_over_ranks(tensors: list[torch.Tensor]) -> None:
    """Replace the tensors by their means over all ranks, in one message."""
    if not tensors:
        return
    flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(mean.view_as(tensor))


def floats_of(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.is_floating_point()]
