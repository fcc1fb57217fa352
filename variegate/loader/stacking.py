"""Rows of a batch, apart and joined to tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter.per_image import MixedLabels
from variegate.threads import by_openmp


def by_row(outputs: Any) -> list[Any]:
    """What each row has; of groups of views a tuple, of its part of each."""
    return list(zip(*outputs, strict=True)) if isinstance(outputs, tuple) else list(outputs)


def whole_of_rows(outputs: Any) -> Any:
    """One tensor, if the shapes agree; of groups of views a tuple with one for each."""
    if isinstance(outputs, (torch.Tensor, tuple)):
        return outputs
    if isinstance(outputs[0], tuple):
        return tuple(whole_of_rows(list(group)) for group in zip(*outputs, strict=True))
    shapes = {output.shape if isinstance(output, torch.Tensor) else None for output in outputs}
    same = len(shapes) == 1 and None not in shapes
    return by_openmp(lambda: torch.stack(list(outputs))) if same else list(outputs)


def each_label(labels: Any) -> list[Any]:
    """Labels by row."""
    return list(map(MixedLabels._make, zip(*labels, strict=True))) if isinstance(labels, MixedLabels) else list(labels)


def stacked_labels(labels: Any) -> torch.Tensor | MixedLabels:
    """int64 for whole numbers, float32 for Python's and NumPy's floats, else as they come; stacked."""
    if isinstance(labels, (torch.Tensor, MixedLabels)):
        return labels
    if isinstance(labels[0], MixedLabels):
        return MixedLabels(*(torch.stack(parts) for parts in zip(*labels, strict=True)))
    if isinstance(labels[0], torch.Tensor):
        return torch.stack(list(labels))
    array = np.asarray(labels)
    if array.dtype.kind in "iu":
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array)


def conditions_by_labels(labels: Any) -> dict[str, npt.NDArray[Any]] | None:
    """What ``Cond(by="label")`` chooses by, where labels are classes."""
    if isinstance(labels, np.ndarray):
        return {"label": labels} if labels.dtype.kind in "iu" and labels.ndim == 1 else None
    are_classes = all(isinstance(label, (int, np.integer)) for label in labels)
    return {"label": np.array(labels, np.int64)} if are_classes else None
