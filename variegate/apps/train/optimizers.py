"""The optimisers of ``train``, and all of their state as tensors."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from variegate.apps.train.step import descent
from variegate.options.training import TrainOptions

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
        return torch.optim.AdamW(weights, fused=True, **how)
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
    """All that its next step depends on besides weights, gradients and options: of each weight, such as momenta, and
    the steps that some count for a group of weights."""
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
