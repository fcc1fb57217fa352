"""Measure a loader on your own data: its throughput, its bottleneck, and advice.

``measure`` takes rates; ``advise`` draws conclusions from them, as a function of numbers only.
"""

from variegate.apps.diagnose.advise import Diagnosis, Finding, advise
from variegate.apps.diagnose.measure import measure, training_transform
from variegate.apps.diagnose.measurements import Measurements, Rate
from variegate.apps.diagnose.report import draw_plot
from variegate.apps.plotting import PlotError

__all__ = [
    "Diagnosis",
    "Finding",
    "Measurements",
    "PlotError",
    "Rate",
    "advise",
    "draw_plot",
    "measure",
    "training_transform",
]
