"""One model on every rank, and what keeps its copies together."""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from variegate.backends.devices import resolve
from variegate.training.feed import Shares


class RanksError(RuntimeError):
    """Ranks that do not find each other, or one that is gone."""


@dataclass(frozen=True)
class Ranks(Shares):
    """``saving``: a group of its own, by which checkpoints are agreed on while steps go on."""

    saving: Any = None

    def sum_and_max(self, sums: list[float], most: list[float]) -> tuple[list[float], list[float]]:
        """Over all ranks; every rank calls it."""
        if self.ranks > 1:
            added, highest = torch.tensor(sums, dtype=torch.float64), torch.tensor(most, dtype=torch.float64)
            dist.all_reduce(added, group=self.saving[0])
            dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.saving[0])
            return added.tolist(), highest.tolist()
        return sums, most


@contextmanager
def joined(device: str, seconds: float) -> Iterator[Ranks]:
    """Meet the other processes that ``torchrun`` started; alone, there is nothing to meet.

    Raises RanksError where they do not come, and where one of them is lost meanwhile.
    """
    size, limit = int(os.environ.get("WORLD_SIZE", "1")), timedelta(seconds=seconds)
    is_ours = size > 1 and not dist.is_initialized()
    if device == "auto" and "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        device = f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    device = resolve(device)
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    try:
        if is_ours:
            dist.init_process_group("cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo", timeout=limit)
        if not dist.is_initialized():
            yield Ranks(0, 1, device)
            return
        saving = tuple(dist.new_group(backend="gloo", timeout=limit) for _ in range(2))
        yield Ranks(dist.get_rank(), dist.get_world_size(), device, saving)
        for group in saving:
            dist.destroy_process_group(group)
    except (dist.DistError, RuntimeError) as error:
        if (said := _explained(error, size, seconds)) is None:
            raise
        raise RanksError(said) from error
    finally:
        if is_ours and dist.is_initialized():
            dist.destroy_process_group()


def _explained(error: RuntimeError, size: int, seconds: float) -> str | None:
    """What happened, in a user's words; None for what has nothing to do with ranks."""
    text = " ".join(str(error).split())
    where = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
    if "EADDRINUSE" in text or "address already in use" in text.lower():
        return f"{where}: the port is in use; choose another (torchrun --master-port, or MASTER_PORT)"
    if isinstance(error, dist.DistStoreError) or "wait timeout" in text or "clients joined" in text:
        rank = os.environ.get("RANK", "?")
        return (
            f"rank {rank} waited {seconds:g} s for all {size} ranks at {where}; start the missing ones there, with the "
            "same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, or give them longer (--timeout)"
        )
    if isinstance(error, dist.DistNetworkError) or any(word in text for word in ("gloo", "NCCL", "Connection")):
        return (
            f"another rank is gone, or did not answer for {seconds:g} s ({text[:120]}); its own message says why. The "
            "same command goes on from the last checkpoint"
        )
    return None


class Replicas:
    """Alone, or the base of what several do. ``model``: to be called; ``module``: what it is about.

    ``is_alike``: all ranks have the same weights after every step.
    """

    is_alike = True

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        self.module = self.model = module
        self.ranks = ranks

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        """Before the first step, on images of any content; nothing is learnt."""

    def communicates(self, is_last: bool) -> AbstractContextManager[Any]:
        """Around the forward and backward pass of a part of a step; ``is_last``: of its parts."""
        return nullcontext()

    def after(self, step: int) -> None:
        """The weights have followed the gradients of this step, counted from 1."""

    def settle(self) -> None:
        """All ranks have the same weights and statistics from here on."""

    def state(self) -> dict[str, torch.Tensor]:
        """What is under way between steps."""
        return {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        """``state``: empty where other ranks saved it."""

    def _weights(self) -> list[torch.Tensor]:
        return [weight.data for weight in self.module.parameters()]


class GradientAveraging(Replicas):
    """Gradients are averaged while they are computed (DistributedDataParallel)."""

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        super().__init__(module, ranks)
        devices = [torch.device(ranks.device)] if ranks.device.startswith("cuda") else None
        # Statistics of rank 0 are the ones that count; they travel when somebody asks for them, not in every step.
        known = inspect.signature(DistributedDataParallel.__init__).parameters
        without: Any = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        warnings.filterwarnings("ignore", "Grad strides do not match")  # of some convolutions, on small images
        replicated: Any = DistributedDataParallel
        self.replicated = replicated(module, devices, gradient_as_bucket_view=True, **{without: False})
        self.model = self.replicated

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        # Gradients are sent in the order in which they came in the first pass. Sums over three ranks and more depend on
        # that order by a rounding, so that it has to be found before the first step of a run that goes on, too.
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
    """Each rank goes its own way, and all weights are averaged in every ``period``-th step: post-local SGD (Lin et al.
    2018, arXiv 1808.07217). Until step ``start`` gradients are averaged, as while the learning rate rises."""

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
        # Steps count from 1: with a period of 4, weights meet after steps 4, 8, ... behind the start.
        self._averager.step = step
        self._averager.average_parameters(self.module.parameters())

    def settle(self) -> None:
        average_over_ranks(self._weights() + floats_of(self.module.buffers()))

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        self._hook.iter = step


class BackgroundAveraging(Replicas):
    """The weights after a step are averaged while the next step is computed; what that one changed is put on top of
    their mean. No rank waits unless the network takes longer than a step (DaSGD, arXiv 2006.00441)."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        super().__init__(module, ranks)
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, 0)
        self._before = self._mean = torch.empty(0)
        self._work: Any = None

    def after(self, step: int) -> None:
        self._take()
        self._before = flat = torch.cat([weight.reshape(-1) for weight in self._weights()])
        self._mean = flat / self.ranks.ranks
        self._work = dist.all_reduce(self._mean, async_op=True)

    def _take(self) -> None:
        if self._work is not None:
            self._work.wait()
            self._work = None
        if len(self._mean):
            moved, weights = (self._mean - self._before), self._weights()
            parts = moved.split([weight.numel() for weight in weights])
            for weight, part in zip(weights, parts, strict=True):
                weight += part.view_as(weight)
        self._before = self._mean = torch.empty(0)

    def settle(self) -> None:
        self._take()
        average_over_ranks(self._weights() + floats_of(self.module.buffers()))

    def state(self) -> dict[str, torch.Tensor]:
        if self._work is not None:
            self._work.wait()
            self._work = None
        return {"before": self._before, "mean": self._mean} if len(self._mean) else {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        if state:
            device = self.ranks.device
            self._before, self._mean = state["before"].to(device), state["mean"].to(device)


def replicas_of(module: torch.nn.Module, ranks: Ranks, period: int, warmup_steps: int) -> Replicas:
    """``period``: as ``TrainOptions.period`` has it."""
    if ranks.ranks == 1:
        return Replicas(module, ranks)
    if period == 0:
        return GradientAveraging(module, ranks)
    return BackgroundAveraging(module, ranks) if period < 0 else PeriodicAveraging(module, ranks, period, warmup_steps)


def average_over_ranks(tensors: list[torch.Tensor]) -> None:
    """In one message."""
    if not tensors:
        return
    flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


def floats_of(tensors: Any) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.is_floating_point()]
