"""An optimizer step: scores, loss, gradients, weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as nnf

from variegate.augmenter.planner import MixedLabels
from variegate.learn.models import ModelError
from variegate.options.fit import FitOptions

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class TrainingStep:
    """A step on a batch. It holds no reference to its owner, so that memory is freed at once.

    ``precision``: a key of ``DTYPES``, or "float32". ``clip``: maximum norm of gradients; 0 for none. ``scaler``: for
    float16. ``on_scores``: called with the scores of each batch.
    """

    name: str
    model: torch.nn.Module
    num_classes: int
    optimizer: torch.optim.Optimizer
    precision: str = "float32"
    clip: float = 0.0
    label_smoothing: float = 0.0
    scaler: torch.amp.GradScaler | None = None
    on_scores: Callable[[torch.Tensor], object] | None = None

    def __call__(self, batch: torch.Tensor, labels: Any) -> torch.Tensor:
        """All of a step on one batch -> its mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        total = self.add_gradients(batch, labels, len(batch))
        self.update()
        return total / len(batch)

    def add_gradients(
        self, batch: torch.Tensor, labels: Any, images: int, weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Add the gradients of a part of a step of ``images`` -> its sum of losses. ``weights``: float32 [N]. Raises
        ModelError."""
        with precision_context(batch.device.type, self.precision):
            scores = self._scores(batch)
            losses = self._losses(scores, labels)
        if self.on_scores is not None:
            self.on_scores(scores.detach())
        total = (losses if weights is None else losses * weights).sum()
        mean = total / images
        (mean if self.scaler is None else self.scaler.scale(mean)).backward()
        return total.detach()

    def update(self) -> None:
        """Update the weights by the gradients."""
        if self.clip > 0:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def _scores(self, batch: torch.Tensor) -> torch.Tensor:
        wanted = [len(batch), self.num_classes]
        try:
            scores: Any = self.model(batch)
        except Exception as error:  # a model is anybody's code
            raise ModelError(f"model {self.name}: fails on images {list(batch.shape)}: {error}") from error
        if not isinstance(scores, torch.Tensor) or list(scores.shape) != wanted:
            got = list(scores.shape) if isinstance(scores, torch.Tensor) else f"a {type(scores).__name__}"
            raise ModelError(f"model {self.name}: gave {got}; accepted: scores {wanted}, for each image and class")
        return scores

    def _losses(self, scores: torch.Tensor, labels: Any) -> torch.Tensor:
        """[N]. ``labels``: int64 [N], shares of classes [N, C], or ``MixedLabels``."""
        if isinstance(labels, MixedLabels):
            labels = soft_targets(labels, self.num_classes)
        return nnf.cross_entropy(scores, labels, reduction="none", label_smoothing=self.label_smoothing)


def without_compiler(kind: type[torch.optim.Optimizer]) -> Any:
    """``kind`` without the parts that concern torch.compile, whose import takes seconds; no step here is compiled."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return type(kind.__name__, (kind,), {**plain, "step": torch.no_grad()(inspect.unwrap(kind.step))})


_SGD = without_compiler(torch.optim.SGD)
_AdamW = without_compiler(torch.optim.AdamW)


def make_sgd(model: torch.nn.Module, lr: torch.Tensor, options: FitOptions) -> torch.optim.SGD:
    """Nesterov SGD, with weight decay of all weights. ``lr``: a tensor that every step reads."""
    made: torch.optim.SGD = _SGD(
        model.parameters(),
        lr=lr,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        nesterov=options.momentum > 0,
        fused=True,
    )
    return made


def soft_targets(labels: MixedLabels, num_classes: int) -> torch.Tensor:
    """Labels of mixed images as float32 [N, ``num_classes``]."""
    partner, weight = (one.reshape(len(labels.label), -1) for one in (labels.partner, labels.weight))
    own = 1 - weight.sum(1, keepdim=True)
    shares = torch.zeros(len(labels.label), num_classes, device=weight.device)
    return shares.scatter_add_(1, torch.cat([labels.label[:, None], partner], 1), torch.cat([own, weight], 1))


def precision_context(device: str, precision: str) -> torch.autocast:
    """The context that scores and losses are computed in."""
    dtype = DTYPES.get(precision, torch.bfloat16)
    return torch.autocast(device.split(":")[0], dtype, enabled=precision in DTYPES)


def in_channels_last(images: torch.Tensor) -> torch.Tensor:
    """[N, H, W, C] as a view [N, C, H, W], the layout that convolutions are fastest in."""
    return images.permute(0, 3, 1, 2)


Tensors = dict[str, torch.Tensor]

_SQUARES_BETA = 0.999


def make_optimizer(model: torch.nn.Module, lr: torch.Tensor, options: FitOptions) -> torch.optim.Optimizer:
    """The optimizer of the trainable weights. ``lr``: a tensor that every step reads."""
    if options.optimizer == "sgd":
        return make_sgd(model, lr, options)
    adamw: torch.optim.Optimizer = _AdamW(
        groups_by_decay(model, options.weight_decay), lr=lr, betas=(options.momentum, _SQUARES_BETA), fused=True
    )
    return adamw


def groups_by_decay(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups: weights with two or more dimensions decay; biases and scales of norms do not."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    decayed = [weight for weight in weights if weight.dim() >= 2]
    others = [weight for weight in weights if weight.dim() < 2]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def state_of(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> Tensors:
    """The optimizer's tensors of each weight, such as momenta, by KIND/WEIGHT."""
    found: Tensors = {}
    for name, weight in model.named_parameters():
        for kind, tensor in optimizer.state.get(weight, {}).items():
            if isinstance(tensor, torch.Tensor):
                found[f"{kind}/{name}"] = tensor
    return found


def load_state(optimizer: torch.optim.Optimizer, model: torch.nn.Module, state: Tensors) -> None:
    """Replace the state by a copy of what ``state_of`` returned. Raises LookupError for the state of another model."""
    optimizer.state.clear()
    weights = dict(model.named_parameters())
    for name, tensor in state.items():
        kind, _, owner = name.partition("/")
        weight = weights[owner]
        # Fused optimizers need the layout of the weight.
        place = torch.empty_like(weight) if tensor.shape == weight.shape else tensor.to(weight.device)
        optimizer.state[weight][kind] = place.copy_(tensor)
