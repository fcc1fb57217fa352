"""Traced functions as transforms: values of each sample, and a tree of transforms that read them."""

from variegate.ops.traced.function import Function
from variegate.ops.traced.pipeline import Measure, TracedPipeline

__all__ = ["Function", "Measure", "TracedPipeline"]
