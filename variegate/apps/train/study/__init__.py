"""Is a training limited by its data? The same step, timed with one feed after another."""

from __future__ import annotations

from variegate.apps.train.study.report import Study
from variegate.apps.train.study.run import study

__all__ = ["Study", "study"]
