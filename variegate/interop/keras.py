"""Batches of a ``vg.Loader`` for Keras 3, on any of its back ends: ``model.fit(PyDataset(loader), shuffle=False)``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Generic, TypeVar

import keras
import numpy as np
import torch

from variegate.arrays import AnyArray, Float32Array
from variegate.augmenter.planner import MixedLabels
from variegate.checks import integer, refused
from variegate.data.samples import Samples
from variegate.loader import Batch, Loader
from variegate.loader.batch import tensors_of
from variegate.threads import Lookahead, Threads, at_fork

_LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}
_CROP = "End the transform with a crop or resize of fixed size, such as T.RandomResizedCrop(224)"


class PyDataset(keras.utils.PyDataset):
    """Batches of a loader for Keras' ``fit``, ``evaluate`` and ``predict``.

    Args:
        loader: a ``vg.Loader`` with device="cpu" and Keras' layout ("NHWC" unless the image data format is
            channels_first), over a source of known length.
        one_hot: False returns labels unchanged, True one-hot vectors over the source's classes, a number one-hot
            vectors of that length. Images that the transform mixes (``T.MixUp``) get the weighted mean of the vectors.
        workers: batches to prepare in parallel. 1 prepares each when Keras asks for it (on TensorFlow, Keras asks
            ahead); more use threads to prepare the following ones. Pixels do not change.
        max_queue_size: limit of batches prepared ahead, if ``workers`` is above 1.

    Each end of an epoch moves the loader to its next one. Keras ends one epoch more than it trains, when ``fit``
    begins. If the epoch's number matters (schedules, ``initial_epoch``), pass ``callbacks=[dataset.epochs()]`` to
    ``fit``. The loader shuffles, so pass ``shuffle=False``: otherwise Keras draws the order of batches from Python's
    global generator, and nothing can be prepared ahead.

    Raises:
        TypeError, ValueError: naming the argument and accepted values.
    """

    def __init__(self, loader: Loader, one_hot: bool | int = False, workers: int = 1, max_queue_size: int = 10) -> None:
        _check_loader(loader)
        for name, value in (("workers", workers), ("max_queue_size", max_queue_size)):
            integer(name, value, 1)
        # Keras' own queue keeps its batches when an epoch ends and returns them in the next one: batches of two epochs
        # mix and the last ones are lost. With one worker it has no queue.
        super().__init__(workers=1, use_multiprocessing=False, max_queue_size=max_queue_size)
        self.loader = loader
        self.num_classes = _count_classes(one_hot, loader)
        self._ahead = BatchesAhead(self._make, workers, max_queue_size) if workers > 1 else None

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(self.loader)

    def __getitem__(self, index: int) -> tuple[Any, AnyArray]:
        """Batch ``index`` of the loader's epoch.

        Returns:
            Images [N, H, W, C], or [N, C, H, W] for channels_first, and labels int64[N], float32[N, num_classes], or
            the source's own. Images are float32 (float16) if the transform normalizes, else uint8. With ``T.MultiView``
            they are a tuple of arrays, one per group of views, for models of several inputs. N may be less than the
            batch size in the last batch, and if the loader skips images that cannot be read.

        Raises IndexError for other numbers, ValueError for images of several shapes and labels outside the classes.
        """
        epoch = self.loader.epoch
        return self._make(epoch, index) if self._ahead is None else self._ahead.get(epoch, index, len(self))

    def on_epoch_end(self) -> None:
        self.loader.set_epoch(self.loader.epoch + 1)

    def epochs(self) -> keras.callbacks.Callback:
        """Return a callback for ``fit`` that sets the loader's epoch to Keras' number.

        Its ``on_train_begin`` raises ValueError if ``steps_per_epoch`` of ``fit`` is not ``len(dataset)``: an epoch of
        Keras would then have batches of two epochs of the loader, with some images twice and others not at all.
        """
        return _SetEpoch(self)

    def _make(self, epoch: int, index: int) -> tuple[Any, AnyArray]:
        batch: Batch = self.loader.batch(index, epoch)
        images: Any = batch.images
        parts = images if isinstance(images, tuple) else (images,)
        if not all(isinstance(part, torch.Tensor) for part in parts):
            shapes = sorted({tuple(image.shape) for image in tensors_of(images)})
            few = ", ".join(map(str, shapes[:3])) + (", ..." if len(shapes) > 3 else "")
            raise ValueError(f"batch {index}: got images of shapes {few}; accepted: one shape. {_CROP}")
        arrays = tuple(part.numpy() for part in parts)
        given = arrays if isinstance(images, tuple) else arrays[0]
        return given, _labels_of(batch.labels, self.num_classes)


class _SetEpoch(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    def __init__(self, dataset: PyDataset) -> None:
        super().__init__()
        self._dataset = dataset

    def on_train_begin(self, logs: Any = None) -> None:
        steps = self.params.get("steps")
        length = len(self._dataset)
        if steps is not None and steps != length:
            more = "for epochs of another length, pass no dataset.epochs()"
            raise refused("steps_per_epoch", steps, f"None, or the {length} batches of an epoch; {more}")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._dataset.loader.set_epoch(epoch)


def _check_loader(loader: Any) -> None:
    if not isinstance(loader, Loader):
        raise TypeError(f"loader: got {type(loader).__name__}; accepted: a vg.Loader")
    if not isinstance(loader.source, Samples):
        accepted = "samples by index, as open_source(..., stream=False) gives"
        raise TypeError(f"loader: its source is {loader.source!r}, whose length is not known; accepted: {accepted}")
    if loader.targets is not None:
        raise ValueError("loader: its batches have targets; accepted: one made with targets=False")
    if loader.device.startswith("cuda"):
        why = "Keras moves batches to its devices itself, from the host's memory"
        raise ValueError(f"loader: got device={loader.device!r}; accepted: 'cpu'. {why}")
    data_format = keras.config.image_data_format()
    layout = loader.augmenter.layout
    if layout != _LAYOUTS[data_format]:
        raise ValueError(
            f"loader: got layout={layout!r}, but keras.config.image_data_format() is {data_format!r}; accepted: "
            f"layout={_LAYOUTS[data_format]!r}, or keras.config.set_image_data_format() before the model is made"
        )
    if loader.augmenter.dtype == torch.bfloat16:
        raise ValueError("loader: got dtype='bfloat16', which NumPy does not have; accepted: 'float32', 'float16'")


def _count_classes(one_hot: Any, loader: Loader) -> int | None:
    """The length of one-hot vectors; None for unchanged labels."""
    if one_hot is False:
        return None
    if one_hot is True:
        if not loader.source.classes:
            raise ValueError("one_hot: got True, but the source names no classes; accepted: the number of classes")
        return len(loader.source.classes)
    if not isinstance(one_hot, int) or one_hot < 1:
        raise ValueError(f"one_hot: got {one_hot!r}; accepted: False, True, or the number of classes")
    return one_hot


def _labels_of(labels: torch.Tensor | MixedLabels, num_classes: int | None) -> AnyArray:
    """Labels of a batch, or vectors of ``num_classes``; of mixed images, the weighted means of those."""
    if isinstance(labels, MixedLabels):
        if num_classes is None:
            accepted = "True or the number of classes, as the transform mixes images and has no num_classes"
            raise refused("one_hot", False, accepted)
        own = _to_one_hot(labels.label.numpy(), num_classes)
        partners = labels.partner.reshape(len(own), -1).numpy()
        weights = labels.weight.reshape(len(own), -1).numpy()
        mixed = own * (1.0 - weights.sum(axis=1, keepdims=True))
        for column in range(partners.shape[1]):
            mixed += weights[:, column : column + 1] * _to_one_hot(partners[:, column], num_classes)
        return mixed
    array: AnyArray = labels.numpy()
    if num_classes is None or (array.dtype.kind == "f" and array.shape[1:] == (num_classes,)):
        return array
    return _to_one_hot(array, num_classes)


def _to_one_hot(labels: AnyArray, num_classes: int) -> Float32Array:
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError(f"one_hot: got labels {labels.dtype}{list(labels.shape)}; accepted: one integer per image")
    outside = labels[(labels < 0) | (labels >= num_classes)]
    if len(outside):
        raise ValueError(f"one_hot: got the label {outside[0]}; accepted: 0 to {num_classes - 1}")
    return np.eye(num_classes, dtype=np.float32)[labels]


T = TypeVar("T")


class BatchesAhead(Generic[T]):
    """``make(epoch, index)`` in threads: an epoch in order has ``depth`` batches on their way, jumps have none."""

    def __init__(self, make: Callable[[int, int], T], workers: int, depth: int) -> None:
        self._make = make
        self._depth = depth
        self._pool = Threads(workers, "variegate-ahead")
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        """Restart in a child: batches in flight belong to the parent's threads."""
        self._lock = Lock()
        self._ahead: Lookahead[Future[T]] = Lookahead(iter(()))
        self._next: tuple[int, int] | None = None

    def get(self, epoch: int, index: int, length: int) -> T:
        """Batch ``index`` of 0..length-1, and begin those after it. Raises what ``make`` raised."""
        if not 0 <= index < length:
            return self._make(epoch, index)  # which names accepted values
        with self._lock:
            is_in_order = self._next == (epoch, index)
            # An epoch begins, or order was not kept: batches in flight may never be requested.
            if not is_in_order:
                for waiting in self._ahead.close():
                    waiting.cancel()
                self._ahead = Lookahead(self._pool.submit(self._make, epoch, i) for i in range(index, length))
            asked = self._ahead.take()
            if is_in_order or index == 0:
                self._ahead.begin(self._depth)
            self._next = (epoch, index + 1)
        assert asked is not None
        return asked.result()
