"""Pipelines in plain Python: a function that runs once for each sample, on an image that records operations.

``pipeline.py`` has the transform and its decorator, ``run.py`` runs the function for the rows of a batch, ``image.py``
is the image that it gets, ``draws.py`` are its random numbers, and ``sites.py`` gives each of their calls a slot.
"""

from variegate.pipelines.draws import choice, coin, normal, randint, select, uniform
from variegate.pipelines.image import PipelineError
from variegate.pipelines.pipeline import Pipeline, pipeline

__all__ = ["Pipeline", "PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"]
