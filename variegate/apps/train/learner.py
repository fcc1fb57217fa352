"""The learner of a training (model, optimiser, moving average) and how it is scored."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf

from variegate.apps.train.checkpoints import Tensors
from variegate.apps.train.feed import Feed, tensors_of
from variegate.apps.train.models import ModelError, layer_seed, model_to_train
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.replicas import (
    Replicas,
    ShardedModel,
    average_over_ranks,
    floats_of,
    replicas_of,
    share_over_ranks,
)
from variegate.apps.train.step import TrainingStep, in_channels_last, load_state, optimizer_of, precision_of, state_of
from variegate.loader import Loader
from variegate.options.training import TrainOptions


class Scores(NamedTuple):
    """The shares of images whose class has the highest score, and one of the five highest; the mean cross-entropy."""

    top1: float
    top5: float
    loss: float


@torch.no_grad()
def top_accuracies(
    model: torch.nn.Module, loader: Loader, precision: str, ranks: Ranks, views: str = "none"
) -> Scores | None:
    """Scores over all ranks; None where no image could be read. ``views``: of ``mean_scores``."""
    model.eval()
    counts = torch.zeros(4, dtype=torch.float64, device=ranks.device)
    for batch in loader:
        (images, labels, _), good = tensors_of(batch, ranks.device), torch.from_numpy(~batch.padding).to(ranks.device)
        with precision_of(ranks.device, precision):
            scores = mean_scores(model, images, views)
        losses = nnf.cross_entropy(scores.float(), labels, reduction="none").double()
        best = scores.float().topk(min(5, scores.shape[1]), 1).indices == labels[:, None]
        counts[:3] += (torch.stack([best[:, 0], best.any(1), torch.ones_like(good)]) & good).sum(1)
        counts[3] += losses[good].sum()
    one, five, total, loss = ranks.sum_and_max(counts.tolist(), [0.0])[0]
    return Scores(one / total, five / total, loss / total) if total else None


def evaluated(feed: Feed, model: torch.nn.Module, epoch: int, ranks: Ranks) -> dict[str, Any]:
    """Entries for the line of an epoch that is over: accuracies if due, and those of the adaptation."""
    options = feed.options
    is_due = (epoch + 1) % options.score_every == 0 or epoch + 1 == options.epochs or feed.compared is not None
    loaders = (feed.scored, feed.compared) if is_due else (None, None)
    scored, compared = (
        None if one is None else top_accuracies(model, one, options.precision, ranks, options.tta) for one in loaders
    )
    accuracies = {} if scored is None else {"top1": scored.top1, "top5": scored.top5}
    train, validation = (math.nan if one is None else one.loss for one in (compared, scored))
    return {**accuracies, **feed.adaptation.end_epoch(train, validation)}


def mean_scores(model: torch.nn.Module, images: torch.Tensor, views: str) -> torch.Tensor:
    """[N, C]: mean over views of images [N, C, H, W]; "flip-shift" moves by a pixel (arXiv 2404.00498)."""

    def mirrored(one: torch.Tensor) -> torch.Tensor:
        both: torch.Tensor = (model(one) + model(one.flip(3))) / 2
        return both

    if views == "none":
        alone: torch.Tensor = model(images)
        return alone
    if views == "flip":
        return mirrored(images)
    height, width = images.shape[2:]
    wider = nnf.pad(images, (1, 1, 1, 1), "reflect")
    corners = (wider[:, :, at : at + height, at : at + width] for at in (0, 2))
    moved = [mirrored(one.contiguous(memory_format=torch.channels_last)) for one in corners]
    return (mirrored(images) + (moved[0] + moved[1]) / 2) / 2


class Learner:
    """A rank's model by ``name``. ``warmup``: steps before ranks may differ. ``on_scores``: of ``TrainingStep``. Raises
    ModelError."""

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
        """Seed what layers draw by the seed, the ``steps`` done and the rank, which no checkpoint needs to know."""
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
        """Let a model with ``initialise`` begin by images [N, C, H, W] that rank 0 reads. Raises ModelError."""
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
    """A moving average of weights: after n steps min(``decay``, (1 + n) / (10 + n)) of it stays."""

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


class CompiledModel(torch.nn.Module):
    """Called as ``model`` is, which is compiled in the first call. Raises ModelError where that fails."""

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        super().__init__()
        self._name = name
        try:
            self._compiled: Any = torch.compile(model)
        except RuntimeError as error:  # of a Python or a system that torch compiles nothing for
            raise self._failed(error) from error

    def forward(self, images: torch.Tensor) -> Any:
        # Else the second size that comes by has everything compiled once more.
        torch._dynamo.maybe_mark_dynamic(images, 0)
        try:
            return self._compiled(images)
        except torch._dynamo.exc.TorchDynamoException as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ModelError:
        said = str(error).strip().splitlines()[0]
        return ModelError(
            f"model {self._name}: cannot be compiled ({said}); leave --compile out, or give it what it needs: on a "
            "CPU a C++ compiler"
        )
