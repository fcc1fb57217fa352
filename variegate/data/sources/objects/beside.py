"""What belongs to places in an image, in the samples of a data set: dicts, or pairs of an image and a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.data.sources.labels import IMAGE_NAMES

_LABEL = "label"


def targets_beside(sample: Any, name: str) -> dict[str, Any]:
    """All that stands beside the image, under its own names and as it is, but for the image's own label. Raises
    TypeError for a sample that is neither a dict nor an image and a dict."""
    beside = _beside(sample)
    if beside is None:
        kinds = ", ".join(type(one).__name__ for one in sample) if isinstance(sample, (list, tuple)) else ""
        got = f"a {type(sample).__name__}{f' of {kinds}' if kinds else ''}"
        raise TypeError(f"{name}: got {got}; accepted with targets=: a dict, or an image and a dict")
    return {key: value for key, value in beside.items() if key != _LABEL}


def label_beside(sample: Any) -> Any:
    """The image's own label; None without."""
    beside = _beside(sample)
    return None if beside is None else beside.get(_LABEL)


def _beside(sample: Any) -> dict[str, Any] | None:
    if isinstance(sample, Mapping):
        image = next((key for key in IMAGE_NAMES if key in sample), None)
        return {key: value for key, value in sample.items() if key != image}
    is_pair = isinstance(sample, (list, tuple)) and len(sample) == 2 and isinstance(sample[1], Mapping)
    return dict(sample[1]) if is_pair else None
