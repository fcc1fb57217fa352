"""Training classifiers, comparing policies, and searching for them: Population Based Augmentation and races."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variegate.learn.history import History, LogError, PopulationLog, Row, Settings, lineage, read_log, schedule_of
    from variegate.learn.plots import plot_population, plot_schedule
    from variegate.learn.policy import SearchSpace
    from variegate.learn.population import (
        Copy,
        LostPopulationError,
        Population,
        Step,
        exploit,
        explore,
        is_flat,
    )
    from variegate.learn.trainer import Trainer, train
    from variegate.options.training import TrainOptions

# Imported one after another until one has the name that is used: a search has no need of what trains on several ranks.
_MODULES = ("history", "policy", "population", "plots", "trainer")
__all__ = [
    "Copy",
    "History",
    "LogError",
    "LostPopulationError",
    "Population",
    "PopulationLog",
    "Row",
    "SearchSpace",
    "Settings",
    "Step",
    "TrainOptions",
    "Trainer",
    "exploit",
    "explore",
    "is_flat",
    "lineage",
    "plot_population",
    "plot_schedule",
    "read_log",
    "schedule_of",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for stem in _MODULES:
            module = import_module(f"{__name__}.{stem}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
