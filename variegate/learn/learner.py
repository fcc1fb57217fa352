"""The model of a training with its optimizer and moving average, and how it is scored."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from variegate.learn.feed import Feed, tensors_of
from variegate.learn.models import ModelError, layer_seed, model_to_train
from variegate.learn.ranks import Ranks
from variegate.learn.replicas import Replicas, average_over_ranks, floats_of, replicas_of, share_over_ranks
from variegate.learn.step import (
    Tensors,
    TrainingStep,
    in_channels_last,
    load_state,
    optimizer_of,
    precision_of,
    state_of,
)
from variegate.loader import Loader
from variegate.options.training import TrainOptions


@torch.no_grad()
def top_accuracies(model: torch.nn.Module, loader: Loader, precision: str, ranks: Ranks) -> tuple[float, float] | None:
    """Over all ranks, the shares of images whose class has the highest score, and one of the five highest; None if no
    image could be read."""
    model.eval()
    counts = torch.zeros(3, dtype=torch.int64, device=ranks.device)
    for batch in loader:
        images, labels, _ = tensors_of(batch, ranks.device)
        valid = torch.from_numpy(~batch.padding).to(ranks.device)
        with precision_of(ranks.device, precision):
            scores: torch.Tensor = model(images)
        highest = scores.float().topk(min(5, scores.shape[1]), 1).indices
        matches = highest == labels[:, None]
        counts[0] += (matches[:, 0] & valid).sum()
        counts[1] += (matches.any(1) & valid).sum()
        counts[2] += valid.sum()
    (one, five, total), _ = ranks.sum_and_max(counts.tolist(), [0.0])
    return (one / total, five / total) if total else None


def evaluated(feed: Feed, model: torch.nn.Module, ranks: Ranks) -> dict[str, float]:
    """Log fields of an epoch that is over."""
    if feed.scored is None:
        return {}
    accuracies = top_accuracies(model, feed.scored, feed.options.precision, ranks)
    return {} if accuracies is None else {"top1": accuracies[0], "top5": accuracies[1]}


class Learner:
    """A rank's model by ``name``. ``warmup``: steps before ranks may differ. ``on_scores``: see ``TrainingStep``.

    Raises ModelError.
    """

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
        timm_arguments: dict[str, Any] = {"pretrained": True} if options.pretrained else {}
        self.module = model_to_train(name, num_classes, channels, ranks.device, options.seed, **timm_arguments)
        self.average = MovingAverage(self.module, options.ema) if options.ema else None
        self.replicas: Replicas = replicas_of(self.module, ranks, options.period, warmup)
        self.lr = torch.tensor(options.lr, device=ranks.device)
        self._optimizer = optimizer_of(self.module, self.lr, options)
        model: Any = torch.compile(self.replicas.model) if options.compile else self.replicas.model
        device_type = ranks.device.split(":")[0]
        self.step = TrainingStep(
            name,
            model,
            num_classes,
            self._optimizer,
            options.precision,
            options.clip,
            options.label_smoothing,
            torch.amp.GradScaler(device_type) if options.precision == "float16" else None,
            on_scores,
        )

    @property
    def scored(self) -> torch.nn.Module:
        """The model that is scored, and saved in the end."""
        return self.module if self.average is None else self.average.module

    def weights(self) -> Tensors:
        """The weights of ``scored``, on the CPU."""
        return {name: tensor.detach().cpu().contiguous() for name, tensor in self.scored.state_dict().items()}

    def begin_step(self, steps: int) -> None:
        """Seed random layers by the seed, the number of completed steps and the rank, and clear gradients."""
        seed = layer_seed(self._seed, steps, self.ranks.rank)
        torch.default_generator.manual_seed(seed)
        if self.ranks.device.startswith("cuda"):
            torch.cuda.default_generators[torch.device(self.ranks.device).index or 0].manual_seed(seed)
        self._optimizer.zero_grad(set_to_none=True)

    def end_step(self, steps: int, lr: float) -> None:
        """Update the weights. ``steps``: completed steps, with this one."""
        self.lr.fill_(lr)
        self.step.update()
        self.replicas.after(steps)
        if self.average is not None:
            self.average.follow(self.module, steps)

    def settle(self) -> None:
        """Make weights, statistics and moving averages equal on all ranks."""
        self.replicas.settle()
        if self.average is not None:
            self.average.settle(self.module, not self.replicas.is_alike)

    def rehearse(self, size: tuple[int, int]) -> None:
        """Warm up before the first step. ``size``: (height, width) of the images. Raises ModelError."""

        def add_gradients() -> None:
            images = torch.zeros(2, *size, self._channels, device=self.ranks.device)
            labels = torch.zeros(2, dtype=torch.int64, device=self.ranks.device)
            self.step.add_gradients(in_channels_last(images), labels, 2)

        self.module.train()
        self.replicas.rehearse(add_gradients)

    def initialise(self, read: Callable[[], torch.Tensor]) -> None:
        """Call the model's ``initialise``, if it has one, with images [N, C, H, W] read on rank 0. Raises
        ModelError."""
        initialise = getattr(self.module, "initialise", None)
        if initialise is None:
            return
        if self.ranks.is_first:
            try:
                initialise(read())
            except RuntimeError as error:
                raise ModelError(f"model {self.name}: cannot be initialised by the images: {error}") from error
        share_over_ranks(self.module, self.ranks)
        if self.average is not None:
            self.average.module.load_state_dict(self.module.state_dict())

    def tensors(self) -> Tensors:
        """All tensors that the next step depends on, by PART/NAME."""
        parts: dict[str, Tensors] = {
            "model": self.module.state_dict(),
            "optimizer": state_of(self._optimizer, self.module),
            "between": self.replicas.state(),
        }
        if self.average is not None:
            parts["average"] = self.average.module.state_dict()
        if self.step.scaler is not None:
            numbers = self.step.scaler.state_dict().items()
            parts["scaler"] = {name: torch.tensor(value, dtype=torch.float64) for name, value in numbers}
        return {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}

    def load(self, tensors: Tensors, steps: int) -> None:
        """Resume with ``tensors`` after so many steps. Raises ValueError or LookupError for those of another model."""
        parts: dict[str, Tensors] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            self.module.load_state_dict(parts["model"])
            if self.average is not None:
                self.average.module.load_state_dict(parts["average"])
        except (RuntimeError, LookupError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(":. ")
            raise ValueError(f"its weights are not those of {self.name}: {reason}") from error
        load_state(self._optimizer, self.module, parts.get("optimizer", {}))
        if self.step.scaler is not None:
            # Counters have to be integers again.
            numbers = {name: tensor.item() for name, tensor in parts["scaler"].items()}
            counters = {name: int(numbers[name]) for name in ("growth_interval", "_growth_tracker")}
            self.step.scaler.load_state_dict({**numbers, **counters})
        self.replicas.load_state(parts.get("between", {}), steps)


class MovingAverage:
    """A moving average of weights. After n steps min(``decay``, (1 + n) / (10 + n)) of the average stays."""

    def __init__(self, module: torch.nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(module).eval()
        self._decay = decay
        self.module.requires_grad_(False)

    @torch.no_grad()
    def follow(self, module: torch.nn.Module, steps: int) -> None:
        """Update by the weights of ``module`` after ``steps`` steps."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for mine, new in zip(self.module.parameters(), module.parameters(), strict=True):
            mine.lerp_(new, 1 - decay)

    @torch.no_grad()
    def settle(self, module: torch.nn.Module, is_between_ranks: bool) -> None:
        """Copy buffers, such as statistics. ``is_between_ranks``: average the weights over ranks."""
        for mine, new in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(new)
        if is_between_ranks:
            average_over_ranks(floats_of(self.module.parameters()))
