"""Pipelines in plain Python: a function with ``if`` that is traced once into a transform.

``tracing.py`` begins: the function is rewritten (``jumps.py``, ``rewrite.py``, ``convert.py``) into
calls of ``runtime.py``, and run on an image without pixels (``image.py``) and values without numbers (``scalar.py``).
Branches leave as it was what they share with others (``reach.py``), and nobody draws for all samples (``calling.py``).
What it did to the image becomes a tree of transforms (``tracing.py``).
"""

from variegate.pipelines.draws import choice, coin, normal, randint, select, uniform
from variegate.pipelines.graph import PipelineError
from variegate.pipelines.tracing import pipeline

__all__ = ["PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"]
