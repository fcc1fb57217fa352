"""What learns: a model on each rank, its optimiser, and a moving average of its weights; all of it as named tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from variegate.options.training import TrainOptions
from variegate.training.checkpoints import ResumeError, Tensors
from variegate.training.draws import layer_seed
from variegate.training.models import model_to_train
from variegate.training.ranks import Ranks
from variegate.training.replicas import average_over_ranks, floats_of, replicas_of
from variegate.training.step import TrainingStep, descent, in_channels_last


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
        self.module = model_to_train(name, num_classes, channels, ranks.device, options.seed)
        self.replicas = replicas_of(self.module, ranks, options.period, warmup)
        self.average = MovingAverage(self.module, options.ema) if options.ema else None
        self.lr = torch.tensor(options.lr, device=ranks.device)
        self._optimizer = descent(self.module, self.lr, options)
        called: Any = torch.compile(self.replicas.model) if options.compile else self.replicas.model
        self.step = TrainingStep(
            name,
            called,
            num_classes,
            self._optimizer,
            options.precision,
            options.clip,
            options.label_smoothing,
            torch.amp.GradScaler(ranks.device.split(":")[0]) if options.precision == "float16" else None,
            on_scores,
            options.entropy_loss,
        )

    @property
    def scored(self) -> torch.nn.Module:
        """The model that is scored, and kept in the end."""
        return self.module if self.average is None else self.average.module

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
            self.average.follow(self.module)

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

    def tensors(self) -> Tensors:
        """All that the next step depends on."""
        found = {f"model/{name}": tensor for name, tensor in self.module.state_dict().items()}
        for name, weight in self.module.named_parameters():
            kept = self._optimizer.state.get(weight, {})
            found |= {f"optimizer/{key}/{name}": one for key, one in kept.items() if isinstance(one, torch.Tensor)}
        if self.average is not None:
            found |= {f"average/{name}": tensor for name, tensor in self.average.module.state_dict().items()}
        if self.step.scaler is not None:
            numbers = self.step.scaler.state_dict().items()
            found |= {f"scaler/{name}": torch.tensor(value, dtype=torch.float64) for name, value in numbers}
        return found | {f"between/{name}": tensor for name, tensor in self.replicas.state().items()}

    def load(self, tensors: Tensors, steps: int) -> None:
        """Go on where these were taken, after so many steps. Raises ResumeError for those of another model."""
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
            raise ResumeError(f"the checkpoint's weights are not those of {self.name} ({said})") from error
        weights = dict(self.module.named_parameters())
        for name, tensor in parts.get("optimizer", {}).items():
            key, _, owner = name.partition("/")
            weight = weights[owner]
            # Laid out as the weight is, which the fused optimiser takes for granted.
            kept = torch.empty_like(weight) if tensor.shape == weight.shape else tensor.to(self.ranks.device)
            self._optimizer.state[weight][key] = kept.copy_(tensor)
        if self.step.scaler is not None:
            numbers = {name: tensor.item() for name, tensor in parts["scaler"].items()}
            whole = {name: int(value) for name, value in numbers.items() if "growth_" in name and "factor" not in name}
            self.step.scaler.load_state_dict({**numbers, **whole})
        self.replicas.load_state(parts.get("between", {}), steps)


class MovingAverage:
    """A model whose weights follow another's slowly: ``decay`` of themselves is left after a step."""

    def __init__(self, module: torch.nn.Module, decay: float) -> None:
        self.module, self._decay = copy.deepcopy(module).eval(), decay
        self.module.requires_grad_(False)

    @torch.no_grad()
    def follow(self, module: torch.nn.Module) -> None:
        for mine, new in zip(self.module.parameters(), module.parameters(), strict=True):
            mine.lerp_(new, 1 - self._decay)

    @torch.no_grad()
    def settle(self, module: torch.nn.Module, is_between_ranks: bool) -> None:
        """Take over what is no weight, such as statistics."""
        for mine, new in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(new)
        if is_between_ranks:
            average_over_ranks(floats_of(self.module.parameters()))
