"""The search over a cluster: members are trials of Ray Tune. Importing this does not need Ray."""

from variegate.search.tune.search import TuneSearch

__all__ = ["TuneSearch"]
