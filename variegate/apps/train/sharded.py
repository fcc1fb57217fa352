"""A model of which each rank has a part: weights, gradients, momenta and moving averages, split by torch's FSDP2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from variegate.apps.train.models import ModelError
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.replicas import Replicas

_OLDEST = "2.6"


class ShardedModel(Replicas):
    """The ranks' batches give the gradients that replicas would average; every rank keeps its part of them alone, and
    moves its part of the weights (Zhao et al. 2023, arXiv 2304.11277).

    ``module`` is changed: its weights become DTensors, which the optimiser is made of afterwards. Raises ModelError for
    weights that cannot be split, ValueError for a torch without ``fully_shard``.
    """

    def __init__(self, module: nn.Module, ranks: Ranks, name: str) -> None:
        super().__init__(module, ranks)
        self._name = name
        self.split(module)

    def split(self, module: nn.Module) -> None:
        """Each block by itself, then what is left: the weights of one are together while it is computed."""
        fully_shard, mesh = _torchs(), _mesh(self.ranks)
        # In FSDP2, parts are cut from rows of contiguous weights.
        module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        try:
            for one in (*blocks_of(module), module):
                fully_shard(one, mesh=mesh)
        except (NotImplementedError, ValueError, RuntimeError) as error:
            said = str(error).strip().splitlines()[0]
            raise ModelError(f"model {self._name}: cannot be split over ranks (--shard): {said}") from error

    def communicates(self, is_last: bool) -> AbstractContextManager[Any]:
        return self._syncing(is_last)

    @contextmanager
    def _syncing(self, is_last: bool) -> Iterator[None]:
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
    """From the inside out: items of every ``Sequential`` and ``ModuleList`` that have weights and are made of parts,
    but for those that are such lists themselves."""
    lists = (nn.Sequential, nn.ModuleList)
    found: dict[nn.Module, None] = {}
    for one in module.modules():
        for item in one.children() if isinstance(one, lists) else ():
            is_block = not isinstance(item, lists) and any(True for _ in item.children())
            if is_block and any(True for _ in item.parameters()):
                found[item] = None
    return list(found)[::-1]


def _mesh(ranks: Ranks) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(torch.device(ranks.device).type, (ranks.ranks,))


def _torchs() -> Any:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError as error:
        raise ValueError(f"shard: this is torch {torch.__version__}; accepted: torch {_OLDEST} or newer") from error
    return fully_shard
