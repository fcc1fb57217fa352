"""Learner: a model on each rank, its optimiser, and a moving average of its weights; all of it as named tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from variegate.apps.train.checkpoints import Tensors
from variegate.apps.train.models import CompiledModel, ModelError, layer_seed, model_to_train
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.replicas import (
    Replicas,
    ShardedModel,
    average_over_ranks,
    floats_of,
    replicas_of,
    share_over_ranks,
)
from variegate.apps.train.step import TrainingStep, in_channels_last, load_state, optimizer_of, state_of
from variegate.options.training import TrainOptions


class Learner:
    """``name``: of the model, for ``num_classes`` and so many ``channels``. ``warmup``: steps in which ranks that go
    ways of their own do not do so yet. ``on_scores``: as ``TrainingStep`` has it. Raises ModelError."""

    def __init__(
        self,
        name: str,
        num_classes: int,
        channels: int,
        options: TrainOptions,
        ranks: Ranks,
        warmup: int = 0,
        on_scores: Callable[[torch.Tensor], object] | None = None,
    ) -> None:
        self.name, self.ranks, self._seed, self._channels = name, ranks, options.seed, channels
        is_split = options.shard and ranks.ranks > 1
        # What is split may be too large for one device as a whole.
        home = "cpu" if is_split else ranks.device
        of_timm: dict[str, Any] = {"pretrained": True} if options.pretrained else {}
        of_timm |= {"drop_path_rate": options.drop_path} if options.drop_path else {}
        self.module = model_to_train(name, num_classes, channels, home, options.seed, **of_timm)
        self.average = MovingAverage(self.module, options.ema) if options.ema else None
        if is_split:
            self.replicas: Replicas = ShardedModel(self.module, ranks, name)
        else:
            self.replicas = replicas_of(self.module, ranks, options.period, warmup)
        if self.average is not None:
            self.replicas.split(self.average.module)
        self.lr = torch.tensor(options.lr, device=home)
        self._optimizer = optimizer_of(self.module, self.lr, options)
        self.replicas.adopt(self._optimizer)
        called = CompiledModel(self.replicas.model, name) if options.compile else self.replicas.model
        self.step = TrainingStep(
            name,
            called,
            num_classes,
            self._optimizer,
            options.precision,
            options.clip,
            options.label_smoothing,
            torch.amp.GradScaler(ranks.device.split(":")[0]) if options.precision == "float16" else None,
            options.loss,
            on_scores,
            options.entropy_loss,
        )

    @property
    def scored(self) -> torch.nn.Module:
        """The model that is scored, and kept in the end."""
        return self.module if self.average is None else self.average.module

    def weights(self) -> Tensors:
        """Of ``scored``, whole, on the CPU; every rank calls it."""
        found = self.scored.state_dict().items()
        return {name: self.replicas.whole(tensor.detach()).cpu().contiguous() for name, tensor in found}

    def room_for(self, name: str, size: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """For one of ``tensors`` in a checkpoint."""
        return self.replicas.room_for(name.partition("/")[2], size, dtype)

    def begin_step(self, steps: int) -> None:
        """``steps``: done before it. What layers draw in it is a function of the seed, the step and the rank: nothing
        that a checkpoint could forget."""
        seed = layer_seed(self._seed, steps, self.ranks.rank)
        torch.default_generator.manual_seed(seed)
        if self.ranks.device.startswith("cuda"):
            torch.cuda.default_generators[torch.device(self.ranks.device).index or 0].manual_seed(seed)
        self._optimizer.zero_grad(set_to_none=True)

    def end_step(self, steps: int, lr: float) -> None:
        """The weights follow the gradients. ``steps``: done with it."""
        self.lr.fill_(lr)
        self.step.update()
        self.replicas.after(steps)
        if self.average is not None:
            self.average.follow(self.module, steps)

    def settle(self) -> None:
        """All ranks have the same weights, and the same averages of them."""
        self.replicas.settle()
        if self.average is not None:
            self.average.settle(self.module, not self.replicas.is_alike)

    def rehearse(self, size: tuple[int, int]) -> None:
        """Before the first step, for images of this (height, width). Raises ModelError."""

        def add_gradients() -> None:
            images = torch.zeros(2, *size, self._channels, device=self.ranks.device)
            labels = torch.zeros(2, dtype=torch.int64, device=self.ranks.device)
            self.step.add_gradients(in_channels_last(images), labels, 2)

        self.module.train()
        self.replicas.rehearse(add_gradients)

    def initialise(self, read: Callable[[], torch.Tensor]) -> None:
        """Of a model with a method of this name, which is called before the first step of all, with some thousand
        images [N, C, H, W] as ``read`` gives them. Rank 0 reads them, and all have what it made of them. Raises
        ModelError."""
        follows_from_images = getattr(self.module, "initialise", None)
        if follows_from_images is None:
            return
        if isinstance(self.replicas, ShardedModel):
            raise ModelError(f"model {self.name}: follows from the images at first, and cannot be split (--shard)")
        if self.ranks.is_first:
            try:
                follows_from_images(read())
            except RuntimeError as error:
                raise ModelError(f"model {self.name}: cannot be initialised by the images: {error}") from error
        share_over_ranks(self.module, self.ranks)
        if self.average is not None:
            self.average.module.load_state_dict(self.module.state_dict())

    def tensors(self) -> Tensors:
        """All that the next step depends on."""
        found = {f"model/{name}": tensor for name, tensor in self.module.state_dict().items()}
        found |= {f"optimizer/{name}": tensor for name, tensor in state_of(self._optimizer, self.module).items()}
        if self.average is not None:
            found |= {f"average/{name}": tensor for name, tensor in self.average.module.state_dict().items()}
        if self.step.scaler is not None:
            numbers = self.step.scaler.state_dict().items()
            found |= {f"scaler/{name}": torch.tensor(value, dtype=torch.float64) for name, value in numbers}
        return found | {f"between/{name}": tensor for name, tensor in self.replicas.state().items()}

    def load(self, tensors: Tensors, steps: int) -> None:
        """Go on where these were taken, after so many steps. Raises ValueError or LookupError for another model's."""
        parts: dict[str, Tensors] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            self.module.load_state_dict(parts["model"])
            if self.average is not None:
                self.average.module.load_state_dict(parts["average"])
        except (RuntimeError, LookupError) as error:
            said = str(error).strip().splitlines()[0].rstrip(":. ")
            raise ValueError(f"its weights are not those of {self.name}: {said}") from error
        load_state(self._optimizer, self.module, parts.get("optimizer", {}))
        if self.step.scaler is not None:
            numbers = {name: tensor.item() for name, tensor in parts["scaler"].items()}
            whole = {name: int(value) for name, value in numbers.items() if "growth_" in name and "factor" not in name}
            self.step.scaler.load_state_dict({**numbers, **whole})
        self.replicas.load_state(parts.get("between", {}), steps)


class MovingAverage:
    """A model whose weights follow another's slowly: ``decay`` of themselves is left after a step, and less after the
    first ones, (1 + n) / (10 + n) after n, so that a short training ends without what it began with."""

    def __init__(self, module: torch.nn.Module, decay: float) -> None:
        self.module, self._decay = copy.deepcopy(module).eval(), decay
        self.module.requires_grad_(False)

    @torch.no_grad()
    def follow(self, module: torch.nn.Module, steps: int) -> None:
        """``steps``: done by then."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for mine, new in zip(self.module.parameters(), module.parameters(), strict=True):
            mine.lerp_(new, 1 - decay)

    @torch.no_grad()
    def settle(self, module: torch.nn.Module, is_between_ranks: bool) -> None:
        """Take over what is no weight, such as statistics."""
        for mine, new in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(new)
        if is_between_ranks:
            average_over_ranks(floats_of(self.module.parameters()))
