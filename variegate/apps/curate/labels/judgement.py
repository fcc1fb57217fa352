"""cleanlab's judgement on labels (Northcutt et al. 2021, "Confident learning", arXiv 1911.00068)."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Judgement(NamedTuple):
    """``is_doubtful``: bool[N]. ``quality``: float64[N], 0 to 1, of labels; low is doubtful."""

    is_doubtful: npt.NDArray[np.bool_]
    quality: npt.NDArray[np.float64]


def check_cleanlab() -> Any:
    """The package. Raises ImportError with the command that installs it."""
    try:
        return importlib.import_module("cleanlab")
    except ModuleNotFoundError as error:
        if error.name != "cleanlab":
            raise
        raise ImportError("labels: cleanlab is not installed: pip install 'variegate[labels]'") from None


def judged(labels: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64]) -> Judgement:
    """``labels``: int64[N], every class among them; ``probabilities``: float64[N, classes], of models that were not
    trained on the image."""
    check_cleanlab()
    filters, ranks = (importlib.import_module(f"cleanlab.{name}") for name in ("filter", "rank"))
    is_doubtful = filters.find_label_issues(labels, probabilities, n_jobs=1)
    quality = ranks.get_label_quality_scores(labels, probabilities)
    return Judgement(np.asarray(is_doubtful, np.bool_), np.asarray(quality, np.float64))
