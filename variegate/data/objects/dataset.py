"""Any map-style data set (torch, torchvision, Hugging Face's ``datasets``, a list of pairs) as a source."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Int64Array
from variegate.data.annotated.frames import frame_of
from variegate.data.base import Item, SampleRef, digest_of
from variegate.data.labels import LABEL_NAMES, hash_labels, names_of
from variegate.data.objects.samples import check_rest, image_of, label_of, other_targets, own_label, split_sample
from variegate.data.samples import Samples, Store
from variegate.errors import DecodeError
from variegate.threads import at_fork

_ACCEPTED = "a map-style data set: __getitem__ for 0..len-1 and __len__"


class DatasetStore(Store):
    """A data set of the user. ``written``: format of boxes, and whether they are normalized, if the rest of a sample is
    its targets."""

    def __init__(self, dataset: Any, is_locked: bool, written: tuple[str, bool] | None = None) -> None:
        self.dataset = dataset
        self.is_locked = is_locked
        self._classes = class_names(dataset)
        self._written = written
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._turn = threading.Lock() if self.is_locked else nullcontext()

    def read(self, samples: Samples, row: int) -> Item:
        """Pixels (uint8 [H, W, 1] or [H, W, 3]) or the bytes of a file. Raises DecodeError naming the sample, with the
        type and message of the data set's error."""
        name = str(self.name(row))
        try:
            with self._turn:
                sample = self.dataset[row]
        except MemoryError:
            raise
        except DecodeError as error:
            raise DecodeError(name, error.reason) from error
        except Exception as error:
            raise DecodeError(name, f"{type(error).__name__}: {error}") from error
        return item_of(sample, name, self._classes, self._written)

    def with_targets(self, box_format: str, normalized: bool) -> tuple[Store, bool]:
        """The first sample decides whether images have labels of their own."""
        has_labels = False
        with suppress(Exception), self._turn:
            has_labels = own_label(self.dataset[0]) is not None
        return DatasetStore(self.dataset, self.is_locked, (box_format, normalized)), has_labels

    def digest(self, samples: Samples) -> str:
        """Digest of the type, the length, the classes, and metadata that are known without reading an image: files
        (``samples``, ``imgs``), labels (``targets``, ``labels``, the labels of a list or TensorDataset) or Hugging
        Face's fingerprint."""
        parts: list[str | bytes] = [f"{type(self.dataset).__qualname__}\0{samples.size}\0{samples.classes}"]
        inner, chosen = _innermost(self.dataset)
        if chosen is not None:
            parts.append(chosen.tobytes())
        root = getattr(inner, "root", None)
        for path, label in _files_of(inner) or ():
            name = os.path.relpath(path, root) if isinstance(root, (str, os.PathLike)) else path
            parts.append(f"\0{name}\0{label}")
        parts.append(str(getattr(inner, "_fingerprint", "")))
        with suppress(TypeError, ValueError, RuntimeError):
            parts.append(hash_labels(_as_labels(_stored_labels(inner), len(inner))))
        return digest_of(*parts)

    def name(self, row: int) -> SampleRef:
        """The file, where the data set lists its files; else the type of the data set and the index."""
        inner = self.dataset
        while _is_subset(inner):
            row = int(inner.indices[row])
            inner = inner.dataset
        files = _files_of(inner)
        if files is not None:
            return SampleRef(os.fspath(files[row][0]))
        return SampleRef(type(inner).__name__, f"item {row}")

    def labels(self, rows: Int64Array) -> AnyArray | None:
        """Labels that the data set lists without reading an image; otherwise None."""
        inner, chosen = _innermost(self.dataset, rows)
        if getattr(inner, "target_transform", None) is not None:
            return None  # the listed labels are not the labels that it yields
        files = _files_of(inner)
        targets = [label for _, label in files] if files is not None else _stored_labels(inner)
        targets = _label_column(inner) if targets is None else targets
        array = None
        with suppress(TypeError, ValueError, RuntimeError):
            array = _as_labels(targets, len(inner))
        if array is None or array.dtype.kind != "U":
            return None if array is None else array[chosen]
        if not set(array.tolist()) <= set(self._classes):
            return None
        return np.array([self._classes.index(name) for name in array[chosen].tolist()], np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.after_fork()
        at_fork(self)


def open_dataset(dataset: Any, lock: bool | None = None) -> Samples:
    """A data set whose samples are (image, label, ...), {"image": ..., "label": ...}, or an image alone.

    ``objects.samples.image_of`` lists accepted images: PIL, uint8 array or tensor, or the bytes of a file. The data
    set's own transform, if any, must return such an image: ToTensor and Normalize belong in the transform given to
    Variegate.

    Several threads read, where torch's DataLoader has processes with a copy of the data set each. A data set that seeks
    in one open file (HDF5, zip, LMDB) would then quietly give one sample's bytes for another's. By default
    (``lock=None``) several threads call only data sets whose samples are independent: lists, TensorDataset, data sets
    that list their files as torchvision's ImageFolder does (``samples`` or ``imgs``), and Subsets of these. Other data
    sets are called by one thread at a time; their samples are still decoded and converted in parallel. ``lock=False``
    says that ``__getitem__`` may be called by many threads, which is faster where it decodes; ``lock=True`` always
    locks.

    ``with_targets``: the other entries of a dict, or a dict next to the image, are the image's targets, under their own
    names. Without it, masks, boxes, key points and further images anywhere in a sample are refused, because they would
    no longer fit the augmented image.

    Nothing is read at opening. Raises TypeError for an object that cannot be indexed, and, on reading, for unsupported
    images, labels and targets; DecodeError if the data set raises or a single image is damaged.
    """
    size = _check_dataset(dataset)
    store = DatasetStore(dataset, not _is_independent(dataset) if lock is None else lock)
    classes = class_names(dataset)
    return Samples(place=type(dataset).__name__, size=size, store=store, classes=classes, label=store.labels)


def item_of(sample: Any, name: str, classes: tuple[str, ...], written: tuple[str, bool] | None = None) -> Item:
    """``written``: box format, and whether boxes are normalized, if the rest of the sample is its targets."""
    image, label = split_sample(sample, name)
    pixels = image_of(image, name)
    if written is None:
        check_rest(sample, pixels, name)
        return Item(pixels, label_of(label, name, classes))
    targets = other_targets(sample, frame_of(pixels, name).displayed, name, classes, *written)
    return Item(pixels, label_of(own_label(sample), name, classes), targets)


def _check_dataset(dataset: Any) -> int:
    """Its length."""
    from torch.utils.data import IterableDataset  # takes a second to load, which listing a folder should not

    got = f"dataset: got {type(dataset).__name__}"
    if isinstance(dataset, Mapping):
        names = ", ".join(map(repr, list(dataset)[:5]))
        raise TypeError(f"{got} with the keys {names}; accepted: {_ACCEPTED}, such as one value of it")
    if isinstance(dataset, IterableDataset):
        raise TypeError(f"{got}, an IterableDataset; accepted: {_ACCEPTED}")
    if isinstance(dataset, (str, bytes)) or not hasattr(dataset, "__getitem__"):
        raise TypeError(f"{got}; accepted: {_ACCEPTED}")
    try:
        return len(dataset)
    except (TypeError, NotImplementedError) as error:
        raise TypeError(f"{got}, which has no length; accepted: {_ACCEPTED}") from error


def _is_subset(dataset: Any) -> bool:
    # Also the Subsets of other libraries; a wrapper that transforms has no `indices`.
    indices = getattr(dataset, "indices", None)
    if not isinstance(indices, (Sequence, np.ndarray)) or not hasattr(dataset, "dataset"):
        return False
    return len(indices) == len(dataset)


def _innermost(dataset: Any, chosen: Int64Array | None = None) -> tuple[Any, Int64Array | None]:
    """The data set that Subsets of Subsets are of, and the places in it of the samples ``chosen`` of the outermost
    (None: all); None where it is that one itself."""
    while _is_subset(dataset):
        indices = np.asarray(dataset.indices, np.int64)
        chosen = indices if chosen is None else indices[chosen]
        dataset = dataset.dataset
    return dataset, chosen


def _is_independent(dataset: Any) -> bool:
    from torch.utils.data import TensorDataset

    dataset, _ = _innermost(dataset)
    return isinstance(dataset, (list, tuple, TensorDataset)) or _files_of(dataset) is not None


def _files_of(dataset: Any) -> Sequence[Any] | None:
    """torchvision's list of (path, class), as ImageFolder and its like have it."""
    for files in (getattr(dataset, name, None) for name in ("samples", "imgs")):
        if isinstance(files, (list, tuple)) and files and len(files) == len(dataset):
            first = files[0]
            if isinstance(first, (list, tuple)) and len(first) == 2 and isinstance(first[0], (str, os.PathLike)):
                return files
    return None


def class_names(dataset: Any) -> tuple[str, ...]:
    dataset, _ = _innermost(dataset)
    names = getattr(dataset, "classes", None)
    features = getattr(dataset, "features", None)
    if names is None and isinstance(features, Mapping):  # Hugging Face's
        columns = (*(name for name in LABEL_NAMES if name in features), *features)
        found = (getattr(features[column], "names", None) for column in columns)
        names = next((each for each in found if each is not None), None)
    return names_of(names)


def _stored_labels(dataset: Any) -> Any:
    """Labels that are known without reading samples, in any form; otherwise None."""
    if isinstance(dataset, (list, tuple)):
        return [sample[1] for sample in dataset if isinstance(sample, (list, tuple)) and len(sample) > 1]
    tensors = getattr(dataset, "tensors", None)
    if isinstance(tensors, tuple) and len(tensors) > 1:
        return tensors[1]
    targets = getattr(dataset, "targets", None)
    return getattr(dataset, "labels", None) if targets is None else targets


def _label_column(dataset: Any) -> Any:
    """Read Hugging Face's label column directly, because formats and transforms of rows are not needed."""
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping) or not hasattr(dataset, "with_format"):
        return None
    column = next((name for name in LABEL_NAMES if name in features), None)
    return None if column is None else list(dataset.with_format(None)[column])


def _as_labels(targets: Any, length: int) -> AnyArray | None:
    array = np.asarray(targets)
    is_known = array.ndim > 0 and len(array) == length and array.dtype.kind in "biufU"
    return array if is_known else None
