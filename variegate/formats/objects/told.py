"""What a map-style data set tells of itself without giving a sample: its files, classes and labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.formats.labels import LABEL_NAMES


def is_subset(dataset: Any) -> bool:
    # Also the Subsets of other libraries; a wrapper that transforms has no `indices`.
    indices = getattr(dataset, "indices", None)
    if not isinstance(indices, (Sequence, np.ndarray)) or not hasattr(dataset, "dataset"):
        return False
    return len(indices) == len(dataset)


def innermost(dataset: Any, chosen: npt.NDArray[np.int64] | None = None) -> tuple[Any, npt.NDArray[np.int64] | None]:
    """The data set that Subsets of Subsets are of, and where the samples ``chosen`` of the outermost (None: all) are in
    it; None where it is that one itself."""
    while is_subset(dataset):
        indices = np.asarray(dataset.indices, np.int64)
        chosen = indices if chosen is None else indices[chosen]
        dataset = dataset.dataset
    return dataset, chosen


def is_independent(dataset: Any) -> bool:
    from torch.utils.data import TensorDataset

    dataset, _ = innermost(dataset)
    return isinstance(dataset, (list, tuple, TensorDataset)) or files_of(dataset) is not None


def files_of(dataset: Any) -> Sequence[Any] | None:
    """torchvision's list of (path, class), as ImageFolder and its like have it."""
    for name in ("samples", "imgs"):
        files = getattr(dataset, name, None)
        if isinstance(files, (list, tuple)) and files and len(files) == len(dataset):
            listed: Sequence[Any] = files
            first = listed[0]
            if isinstance(first, (list, tuple)) and len(first) == 2 and isinstance(first[0], (str, os.PathLike)):
                return listed
    return None


def class_names_of(dataset: Any) -> tuple[str, ...]:
    dataset, _ = innermost(dataset)
    names = getattr(dataset, "classes", None)
    features = getattr(dataset, "features", None)
    if names is None and isinstance(features, Mapping):  # Hugging Face's
        columns = (*(name for name in LABEL_NAMES if name in features), *features)
        found = (getattr(features[column], "names", None) for column in columns)
        names = next((each for each in found if each is not None), None)
    is_names = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
    return tuple(names) if names and is_names else ()


def targets_told(dataset: Any) -> Any:
    """Its labels, in any form; None where it does not tell them."""
    targets = getattr(dataset, "targets", None)
    targets = getattr(dataset, "labels", None) if targets is None else targets
    tensors = getattr(dataset, "tensors", None)
    if isinstance(dataset, (list, tuple)):
        targets = [sample[1] for sample in dataset if isinstance(sample, (list, tuple)) and len(sample) > 1]
    elif isinstance(tensors, tuple) and len(tensors) > 1:
        targets = tensors[1]
    return targets


def label_column(dataset: Any) -> Any:
    """Hugging Face's, read by itself: what formats and transforms make of a row is not needed."""
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping) or not hasattr(dataset, "with_format"):
        return None
    column = next((name for name in LABEL_NAMES if name in features), None)
    return None if column is None else list(dataset.with_format(None)[column])


def as_labels(targets: Any, length: int) -> npt.NDArray[Any] | None:
    array = np.asarray(targets)
    is_known = array.ndim > 0 and len(array) == length and array.dtype.kind in "biufU"
    return array if is_known else None
