"""The model on every rank, and how its copies are averaged."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from variegate.learn.ranks import Ranks


class Replicas:
    """A single rank, and the base of several. ``model`` is called in steps. ``is_alike``: all ranks have the same
    weights after each step."""

    is_alike = True

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        self.module = self.model = module
        self.ranks = ranks

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        """Run a backward pass before the first step if the order of gradients depends on it; nothing is learnt."""

    def communicates(self, is_last: bool) -> AbstractContextManager[Any]:
        """Context of a forward and backward pass. ``is_last``: of the batches accumulated in a step."""
        return nullcontext()

    def after(self, step: int) -> None:
        """Average after the optimizer step with this number, counted from 1."""

    def settle(self) -> None:
        """Make weights and statistics equal on all ranks."""

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors in transit between steps, for a checkpoint."""
        return {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        """Resume after ``step`` steps. ``state`` is empty if another number of ranks saved it."""


class GradientAveraging(Replicas):
    """Average gradients during the backward pass (DistributedDataParallel)."""

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        super().__init__(module, ranks)
        devices = [torch.device(ranks.device)] if ranks.device.startswith("cuda") else None
        # Statistics of rank 0 are sent before a scoring or a checkpoint, not in every step.
        arguments = inspect.signature(DistributedDataParallel.__init__).parameters
        sync_buffers: Any = "forward_sync_buffers" if "forward_sync_buffers" in arguments else "broadcast_buffers"
        make: Any = DistributedDataParallel
        self.replicated = make(module, devices, gradient_as_bucket_view=True, **{sync_buffers: False})
        self.model = self.replicated

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        # DDP sends gradients in the order of the first backward pass. With three or more ranks sums depend on that
        # order by a rounding, so that a resumed run has to find the same order before its first step.
        kept = copy.deepcopy(self.module.state_dict())
        add_gradients()
        self.module.zero_grad(set_to_none=True)
        self.module.load_state_dict(kept)

    def communicates(self, is_last: bool) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = nullcontext() if is_last else self.replicated.no_sync()
        return context

    def settle(self) -> None:
        for buffer in self.module.buffers():
            dist.broadcast(buffer, 0)


class PeriodicAveraging(GradientAveraging):
    """Average weights every ``period`` steps (post-local SGD, arXiv 1808.07217), and gradients before step ``start``,
    both by torch."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: Ranks, period: int, start: int) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_local
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        super().__init__(module, ranks)
        self._hook = post_local.PostLocalSGDState(None, None, start, post_local_gradient_allreduce=False)
        self.replicated.register_comm_hook(self._hook, post_local.post_localSGD_hook)
        self._averager = PeriodicModelAverager(period, start)

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        super().rehearse(add_gradients)
        self._hook.iter = 0

    def after(self, step: int) -> None:
        self._averager.step = step
        self._averager.average_parameters(self.module.parameters())
        # The averager replaces weights by contiguous ones; fused optimizers need the layout of the momenta.
        self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def settle(self) -> None:
        average_module(self.module)

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        self._hook.iter = step


class BackgroundAveraging(Replicas):
    """Average weights while the next step is computed, and add the change afterwards (DaSGD, arXiv 2006.00441)."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
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

    def settle(self) -> None:
        self._apply()
        average_module(self.module)

    def state(self) -> dict[str, torch.Tensor]:
        self._wait()
        return {"sent": self._sent, "mean": self._mean} if len(self._mean) else {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        if state:
            self._sent = state["sent"].to(self.ranks.device)
            self._mean = state["mean"].to(self.ranks.device)


def replicas_of(module: torch.nn.Module, ranks: Ranks, period: int, warmup_steps: int) -> Replicas:
    """``period``: see ``TrainOptions.period``."""
    if ranks.ranks == 1:
        return Replicas(module, ranks)
    if period == 0:
        return GradientAveraging(module, ranks)
    if period < 0:
        return BackgroundAveraging(module, ranks)
    return PeriodicAveraging(module, ranks, period, warmup_steps)


def share_over_ranks(module: torch.nn.Module, ranks: Ranks) -> None:
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
