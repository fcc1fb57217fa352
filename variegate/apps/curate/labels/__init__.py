"""Which labels are likely to be wrong: those that a model doubts which was trained on other images."""

from variegate.apps.curate.labels.doubts import LabelDoubts, doubtful_labels
from variegate.apps.curate.labels.judgement import check_cleanlab

__all__ = ["LabelDoubts", "check_cleanlab", "doubtful_labels"]
