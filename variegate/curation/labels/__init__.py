"""Which labels are likely to be wrong: those that a model doubts which was trained on other images."""

from variegate.curation.labels.doubts import LabelDoubts, doubtful_labels
from variegate.curation.labels.judgement import check_cleanlab

__all__ = ["LabelDoubts", "check_cleanlab", "doubtful_labels"]
