"""Training classifiers: models, recipes, and the loop over epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variegate.apps.train.trainer import Trainer, train
    from variegate.options.training import TrainOptions

__all__ = ["TrainOptions", "Trainer", "train"]


def __getattr__(name: str) -> Any:
    """Import what trains on first use: a search has no need of it."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "variegate.options.training" if name == "TrainOptions" else "variegate.apps.train.trainer"
    return getattr(import_module(home), name)
