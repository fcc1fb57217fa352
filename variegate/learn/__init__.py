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

# Names by the module that defines them, loaded when first used: a search has no need of what trains on several ranks.
_NAMES = {
    "variegate.learn.history": [
        *("History", "LogError", "PopulationLog", "Row", "Settings", "lineage", "read_log", "schedule_of"),
    ],
    "variegate.learn.plots": ["plot_population", "plot_schedule"],
    "variegate.learn.policy": ["SearchSpace"],
    "variegate.learn.population": [
        *("Copy", "LostPopulationError", "Population", "Step", "exploit", "explore", "is_flat"),
    ],
    "variegate.learn.trainer": ["Trainer", "train"],
    "variegate.options.training": ["TrainOptions"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
