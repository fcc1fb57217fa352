"""Pipelines in plain Python: a function that runs once for each sample, on an image that records operations.

``pipeline.py`` has the transform and its decorator; ``run.py`` runs the function for the rows of a batch. ``image.py``
is the recorded image, ``draws.py`` its random numbers, ``sites.py`` assigns a slot to each call.
"""

from variegate.pipelines.draws import choice, coin, normal, randint, select, uniform
from variegate.pipelines.image import PipelineError
from variegate.pipelines.pipeline import Pipeline, pipeline

__all__ = ["Pipeline", "PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"]
