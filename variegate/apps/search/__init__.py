"""A learnt schedule of policies: Population Based Augmentation (Ho et al. 2019, arXiv 1905.05393).

What is here decides, and trains nothing: functions of the settings, a seed and the members' scores.
"""

from variegate.apps.plotting import PlotError
from variegate.apps.search.history import (
    History,
    LogError,
    PopulationLog,
    Row,
    Settings,
    lineage,
    read_log,
    schedule_of,
)
from variegate.apps.search.plots import plot_population, plot_schedule
from variegate.apps.search.policy import Numbers, SearchSpace
from variegate.apps.search.population import Copy, LostPopulationError, Population, Step, exploit, explore, is_flat

__all__ = [
    "Copy",
    "History",
    "LogError",
    "LostPopulationError",
    "Numbers",
    "PlotError",
    "Population",
    "PopulationLog",
    "Row",
    "SearchSpace",
    "Settings",
    "Step",
    "exploit",
    "explore",
    "is_flat",
    "lineage",
    "plot_population",
    "plot_schedule",
    "read_log",
    "schedule_of",
]
