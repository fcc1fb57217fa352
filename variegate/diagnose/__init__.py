"""How fast a loader is on a user's own data, what holds it up, and what to do about it.

``measure`` takes rates, ``advise`` draws conclusions from them: a function of numbers alone.
"""

from variegate.diagnose.advise import Diagnosis, advise
from variegate.diagnose.findings import Finding
from variegate.diagnose.measure import measure, training_transform
from variegate.diagnose.measurements import Measurements, Rate
from variegate.diagnose.report import draw_plot
from variegate.plotting import PlotError

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
