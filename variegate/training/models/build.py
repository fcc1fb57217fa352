"""A model for a name."""

from __future__ import annotations

import importlib
import re
from typing import Any

from torch import nn

from variegate.training.models.wide_resnet import WideResNet

ACCEPTED = (
    "wrn-DEPTH-WIDTH such as wrn-28-2, wrn-40-2 or wrn-16-1; timm:NAME; or package.module:factory, which is called "
    "with num_classes and gives a torch.nn.Module"
)


class ModelError(ValueError):
    """A model that cannot be made."""


def build_model(name: str, num_classes: int, in_channels: int = 3) -> nn.Module:
    """A new model, its weights drawn from torch's generator.

    ``name``: "wrn-28-2", "timm:resnet18" (timm must be installed), or "package.module:factory": a callable that is
    given ``num_classes`` as a keyword. Raises ModelError for a name that is none of these, and for a model that cannot
    be made.
    """
    if wide := re.fullmatch(r"wrn-(\d+)-(\d+)", name):
        try:
            return WideResNet(int(wide[1]), int(wide[2]), num_classes, in_channels)
        except ValueError as error:
            raise ModelError(f"model {name}: {error}") from error
    prefix, _, rest = name.partition(":")
    if prefix == "timm" and rest:
        return _build_timm(rest, num_classes, in_channels)
    if rest:
        return _build_own(name, prefix, rest, num_classes)
    raise ModelError(f"model: got {name!r}; accepted: {ACCEPTED}")


def _build_timm(name: str, num_classes: int, in_channels: int) -> nn.Module:
    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        raise ModelError(f"model timm:{name}: timm is not installed: pip install timm") from error
    try:
        model: nn.Module = timm.create_model(name, num_classes=num_classes, in_chans=in_channels)
    except Exception as error:
        raise ModelError(f"model timm:{name}: {error}") from error
    return model


def _build_own(name: str, module: str, factory: str, num_classes: int) -> nn.Module:
    try:
        made: Any = importlib.import_module(module)
        for part in factory.split("."):
            made = getattr(made, part)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"model {name}: {error}; accepted: {ACCEPTED}") from error
    try:
        model = made(num_classes=num_classes)
    except Exception as error:
        raise ModelError(f"model {name}: {factory}(num_classes={num_classes}) failed: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"model {name}: {factory} gave a {type(model).__name__}; accepted: a torch.nn.Module")
    return model
