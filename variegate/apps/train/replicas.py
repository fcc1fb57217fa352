"""One model on every rank, and what keeps its copies together."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from variegate.apps.train.models import ModelError
from variegate.apps.train.ranks import Ranks


class Replicas:
    """One rank, and the base of several. ``model``: to be called; ``is_alike``: ranks are equal after each step."""

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
        """Tensors that are under way between steps."""
        return {}

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        """``state``: empty where other ranks saved it."""

    def split(self, module: torch.nn.Module) -> None:
        """A module beside this one is kept as this one is."""

    def rest(self, module: torch.nn.Module) -> None:
        """``module`` has scored images: no backward pass follows, after which it would keep its part alone."""

    def adopt(self, optimizer: torch.optim.Optimizer) -> None:
        """It moves the weights of ``module``."""

    def room_for(self, name: str, size: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """On the CPU, for what a checkpoint has of this name and size."""
        return torch.empty(size, dtype=dtype)

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        """Of a weight that may be split; every rank calls it."""
        return tensor

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
    """Averages of weights every ``period`` steps from ``start`` on: post-local SGD (arXiv 1808.07217).

    torch's PeriodicModelAverager leaves weights in another layout than momenta, which the fused optimiser takes for
    one.
    """

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: Ranks, period: int, start: int) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_local

        super().__init__(module, ranks)
        self._hook = post_local.PostLocalSGDState(None, None, start, post_local_gradient_allreduce=False)
        self.replicated.register_comm_hook(self._hook, post_local.post_localSGD_hook)
        self._period, self._start = period, start

    def rehearse(self, add_gradients: Callable[[], object]) -> None:
        super().rehearse(add_gradients)
        self._hook.iter = 0

    def after(self, step: int) -> None:
        if step > self._start and (step - self._start) % self._period == 0:
            average_over_ranks(self._weights())

    def settle(self) -> None:
        average_over_ranks(self._weights() + floats_of(self.module.buffers()))

    def load_state(self, state: dict[str, torch.Tensor], step: int) -> None:
        self._hook.iter = step


class BackgroundAveraging(Replicas):
    """Averages of weights while the next step is computed, whose change is added (DaSGD, arXiv 2006.00441)."""

    is_alike = False

    def __init__(self, module: torch.nn.Module, ranks: Ranks) -> None:
        super().__init__(module, ranks)
        share_over_ranks(module, ranks)
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


def share_over_ranks(module: torch.nn.Module, ranks: Ranks) -> None:
    """All have the weights and statistics of rank 0."""
    for tensor in (*module.parameters(), *module.buffers()) if ranks.ranks > 1 else ():
        dist.broadcast(tensor.data, 0)


def average_over_ranks(tensors: list[torch.Tensor]) -> None:
    """In one message."""
    if not tensors:
        return
    flat = torch.cat([tensor.reshape(-1).float() for tensor in tensors])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


def floats_of(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.is_floating_point()]


_OLDEST = "2.6"


class ShardedModel(Replicas):
    """FSDP2 (arXiv 2304.11277): every rank has its part of the weights, as DTensors that the optimiser is made of.

    Raises ModelError for weights that cannot be split, ValueError for a torch without ``fully_shard``.
    """

    def __init__(self, module: nn.Module, ranks: Ranks, name: str) -> None:
        super().__init__(module, ranks)
        self._name = name
        self.split(module)

    def split(self, module: nn.Module) -> None:
        """Each block by itself, then what is left: the weights of one are together while it is computed."""
        from torch.distributed.device_mesh import init_device_mesh

        try:
            from torch.distributed.fsdp import fully_shard
        except ImportError as error:
            raise ValueError(f"shard: this is torch {torch.__version__}; accepted: torch {_OLDEST} or newer") from error
        mesh = init_device_mesh(torch.device(self.ranks.device).type, (self.ranks.ranks,))
        # In FSDP2, parts are cut from rows of contiguous weights.
        module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        try:
            for one in (*blocks_of(module), module):
                fully_shard(one, mesh=mesh)
        except (NotImplementedError, ValueError, RuntimeError) as error:
            said = str(error).strip().splitlines()[0]
            raise ModelError(f"model {self._name}: cannot be split over ranks (--shard): {said}") from error

    @contextmanager
    def communicates(self, is_last: bool) -> Iterator[None]:
        sharded: Any = self.module
        sharded.set_requires_gradient_sync(is_last)
        yield

    def rest(self, module: nn.Module) -> None:
        sharded: Any = module
        sharded.reshard()

    def adopt(self, optimizer: torch.optim.Optimizer) -> None:
        # There is no fused kernel for parts of tensors.
        for group in optimizer.param_groups:
            group["fused"] = False

    def settle(self) -> None:
        for buffer in self.module.buffers():
            dist.broadcast(buffer, 0)

    def room_for(self, name: str, size: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """``name``: "weight", or "state/weight", as in ``module.state_dict()``."""
        weight = dict(self.module.named_parameters()).get(name.rpartition("/")[2])
        if weight is not None and weight.shape == size and weight.dtype == dtype:
            return torch.empty_like(weight.detach(), device="cpu")
        return super().room_for(name, size, dtype)

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        gather = getattr(tensor, "full_tensor", None)
        found: torch.Tensor = tensor if gather is None else gather()
        return found


def blocks_of(module: nn.Module) -> list[nn.Module]:
    """Items with weights and parts of every ``Sequential`` and ``ModuleList``, from the inside out."""
    lists = (nn.Sequential, nn.ModuleList)
    found: dict[nn.Module, None] = {}
    for one in module.modules():
        for item in one.children() if isinstance(one, lists) else ():
            is_block = not isinstance(item, lists) and any(True for _ in item.children())
            if is_block and any(True for _ in item.parameters()):
                found[item] = None
    return list(found)[::-1]
