"""A step of a training: scores, loss, gradients, weights. Searches, comparisons and ``train`` share this definition."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as nnf

from variegate.apps.train.models import ModelError
from variegate.augmenter.planner import MixedLabels
from variegate.options.training import TrainOptions

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# Of a mixed image: what a class needs of it to be there, for a loss that asks of each class whether it is.
_IS_THERE = 0.2


@dataclass(frozen=True)
class TrainingStep:
    """A step on a batch. It does not know its owner, so that memory and CUDA graph are free at once.

    ``precision``: a key of ``DTYPES``, or "float32". ``clip``: largest norm of gradients; 0 for none. ``scaler``: of
    float16. ``loss``: "cross-entropy", "bce". ``on_scores``: gets scores of each batch.
    ``entropy_loss``: weight of the probabilities' entropy, as a share of log(classes) (EntLoss, arXiv 2409.06290).
    """

    name: str
    model: torch.nn.Module
    num_classes: int
    optimizer: torch.optim.Optimizer
    precision: str = "float32"
    clip: float = 0.0
    label_smoothing: float = 0.0
    scaler: torch.amp.GradScaler | None = None
    loss: str = "cross-entropy"
    on_scores: Callable[[torch.Tensor], object] | None = None
    entropy_loss: float = 0.0

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
        with precision_of(batch.device.type, self.precision):
            scores = self._scores(batch)
            losses = self._losses(scores, labels)
        if self.on_scores is not None:
            self.on_scores(scores.detach())
        total = (losses if weights is None else losses * weights).sum()
        mean = total / images
        (mean if self.scaler is None else self.scaler.scale(mean)).backward()
        return total.detach()

    def update(self) -> None:
        """The weights follow the gradients."""
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
            labels = shares_of(labels, self.num_classes)
        if self.loss == "bce":
            losses = binary_losses(scores, labels, self.label_smoothing)
        else:
            losses = nnf.cross_entropy(scores, labels, reduction="none", label_smoothing=self.label_smoothing)
        return losses + self.entropy_loss * entropy_share(scores) if self.entropy_loss else losses


def entropy_share(scores: torch.Tensor) -> torch.Tensor:
    """float32 [N]: entropy of the softmax of scores [N, classes], over log(classes); 0 of a single class."""
    logarithms = scores.float().log_softmax(1)
    return -(logarithms.exp() * logarithms).sum(1) / max(math.log(scores.shape[1]), 1e-9)


def without_compiler(kind: type[torch.optim.Optimizer]) -> Any:
    """``kind`` without the parts that concern torch.compile, whose import takes seconds; no step here is compiled."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    return type(kind.__name__, (kind,), {**plain, "step": torch.no_grad()(inspect.unwrap(kind.step))})


_SGD, _AdamW = without_compiler(torch.optim.SGD), without_compiler(torch.optim.AdamW)


def descent(model: torch.nn.Module, lr: torch.Tensor, options: Any, groups: Any = None) -> torch.optim.SGD:
    """Nesterov SGD. ``lr``: a tensor, which captured steps read; ``groups``: of weights treated differently."""
    made: torch.optim.SGD = _SGD(
        model.parameters() if groups is None else groups,
        lr=lr,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        nesterov=options.momentum > 0,
        fused=True,
    )
    return made


def binary_losses(scores: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """float32 [N]: mean binary loss over classes (arXiv 2110.00476). ``labels``: int64 [N], or shares [N, C]."""
    if labels.dim() == 1:
        labels = nnf.one_hot(labels, scores.shape[1])
    there = (labels > _IS_THERE).to(torch.float32)
    wanted = there * (1.0 - smoothing) + smoothing / scores.shape[1]
    return nnf.binary_cross_entropy_with_logits(scores.float(), wanted, reduction="none").mean(1)


def shares_of(labels: MixedLabels, num_classes: int) -> torch.Tensor:
    """Labels of mixed images as float32 [N, ``num_classes``]."""
    partner, weight = (one.reshape(len(labels.label), -1) for one in (labels.partner, labels.weight))
    own = 1 - weight.sum(1, keepdim=True)
    shares = torch.zeros(len(labels.label), num_classes, device=weight.device)
    return shares.scatter_add_(1, torch.cat([labels.label[:, None], partner], 1), torch.cat([own, weight], 1))


def precision_of(device: str, precision: str) -> torch.autocast:
    """The context that scores and losses are computed in."""
    # A cache of cast weights would outlive the CUDA graph that they were cast in.
    dtype = DTYPES.get(precision, torch.bfloat16)
    return torch.autocast(device.split(":")[0], dtype, enabled=precision in DTYPES, cache_enabled=False)


def in_channels_last(images: torch.Tensor) -> torch.Tensor:
    """[N, H, W, C] as a view [N, C, H, W], the layout that convolutions are fastest in."""
    return images.permute(0, 3, 1, 2)


Tensors = dict[str, torch.Tensor]

_SQUARES_BETA = 0.999
# In a checkpoint, beside the names of what there is of each weight.
_GROUP = "steps of group"


class OptimizerError(ValueError):
    """An optimiser that cannot be had."""


def optimizer_of(model: torch.nn.Module, lr: torch.Tensor, options: TrainOptions) -> torch.optim.Optimizer:
    """Of the weights that are to be trained. ``lr``: a tensor, which every step reads. Raises OptimizerError."""
    groups = None if options.decay_norms else groups_by_decay(model, options.weight_decay)
    if options.optimizer == "sgd":
        return descent(model, lr, options, groups)
    weights: Any = model.parameters() if groups is None else groups
    how: dict[str, Any] = {"lr": lr, "betas": (options.momentum, _SQUARES_BETA), "weight_decay": options.weight_decay}
    if options.optimizer == "adamw":
        adamw: torch.optim.Optimizer = _AdamW(weights, fused=True, **how)
        return adamw
    try:
        lamb: Any = importlib.import_module("timm.optim").Lamb
    except Exception as error:  # what it imports may fail in any way
        raise OptimizerError(
            f"optimizer: got 'lamb', which is timm's ({error}): pip install timm; accepted without it: 'sgd', 'adamw'"
        ) from error
    made: torch.optim.Optimizer = lamb(weights, **how)
    return made


def groups_by_decay(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weights of two dimensions and more decay; biases and what norms multiply by do not."""
    parts: tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]] = ([], [])
    for weight in model.parameters():
        if weight.requires_grad:
            parts[weight.dim() < 2].append(weight)
    pairs = zip(parts, (weight_decay, 0.0), strict=True)
    return [{"params": weights, "weight_decay": decay} for weights, decay in pairs if weights]


def state_of(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> Tensors:
    """The optimiser's tensors for each weight, such as momenta, and the steps counted by group."""
    found: Tensors = {}
    for name, weight in model.named_parameters():
        kept = optimizer.state.get(weight, {})
        found |= {f"{key}/{name}": one for key, one in kept.items() if isinstance(one, torch.Tensor)}
    for number, group in enumerate(optimizer.param_groups):
        if (step := group.get("step")) is not None:
            found[f"{_GROUP}/{number}"] = torch.as_tensor(step)
    return found


def load_state(optimizer: torch.optim.Optimizer, model: torch.nn.Module, state: Tensors) -> None:
    """Go on where ``state_of`` was asked. Raises LookupError for that of another model."""
    weights = dict(model.named_parameters())
    for name, tensor in state.items():
        key, _, owner = name.partition("/")
        if key == _GROUP:
            # A number where it counts in numbers, a tensor of the CPU's where in tensors.
            optimizer.param_groups[int(owner)]["step"] = tensor.clone() if tensor.is_floating_point() else int(tensor)
            continue
        weight = weights[owner]
        # Laid out as the weight is, which the fused optimisers take for granted.
        kept = torch.empty_like(weight) if tensor.shape == weight.shape else tensor.to(weight.device)
        optimizer.state[weight][key] = kept.copy_(tensor)
