"""``model.fit`` with one feed, timed in Keras' own loop; the graph itself times its waits for data."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.training.peers import normalisation_of, shuffled, source_of, steps_of
from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.study import LEAST_STEPS, processor_seconds, settle
from variegate.apps.train.study_report import CEILING, OURS, Span
from variegate.formats.base import FileSource, Source
from variegate.integrations.keras import PyDataset

_ENDLESS = 10**9  # epochs; a span ends long before


@dataclass
class KerasFeed:
    """``data``: the argument of ``fit``. ``warm_up``: uncounted steps of a span. ``is_held``: devices keep the first
    batch, which every step takes. ``left_out``, ``how``: as ``StudiedFeed`` has them."""

    name: str
    data: Any
    warm_up: int = 1
    how: str = ""
    left_out: tuple[str, ...] = ()
    callbacks: tuple[Any, ...] = ()
    is_held: bool = False


class FitBench:
    """Timing of ``model.fit``."""

    def __init__(self, model: Any, stop: Event | None = None) -> None:
        self._model, self._stop = model, stop
        self._stepped, self._fetch_and_step = _functions(model)

    def span(self, feed: KerasFeed, seconds: float) -> Span:
        """Time three steps or more of one ``fit``, after those that use up what is made in advance."""
        settle()
        step = self._held(feed) if feed.is_held else self._fetch_and_step
        timer = _Timer(step, seconds, feed.warm_up, self._stop)
        # ``fit`` takes the function that is there, and else makes one of the same parts.
        self._model.train_function = timer.step
        self._model.fit(feed.data, epochs=_ENDLESS, shuffle=False, callbacks=[*feed.callbacks, timer], verbose=0)
        gc.collect(1)  # of the feed's iterator, which else makes batches while others are timed
        return timer.span()

    def _held(self, feed: KerasFeed) -> Callable[[Any], tuple[Any, Any, Any]]:
        data = next(iter(feed.data))
        images = sum(len(part) for part in self._model.distribute_strategy.experimental_local_results(data[1]))
        return lambda iterator: (self._stepped(data), 0.0, images)


class _Timer(keras.callbacks.Callback):
    """A stand-in for the model's ``train_function``, and the callback that ends ``fit``; reopening data counts as
    waiting."""

    def __init__(
        self, fetch_and_step: Callable[[Any], tuple[Any, Any, Any]], seconds: float, warm_up: int, stop: Event | None
    ) -> None:
        super().__init__()
        self._fetch_and_step, self._seconds, self._left, self._stop = fetch_and_step, seconds, warm_up, stop
        self._span, self._is_over = Span(), False
        self._begun = self._last = 0.0
        self._epoch_ended: float | None = None
        # Seconds, waiting and images of each step; numbers that devices hold are read at the end.
        self._steps: list[tuple[float, Any, Any, float]] = []

    def step(self, iterator: Any) -> Any:
        now = time.perf_counter()
        between, self._epoch_ended = (now - self._epoch_ended if self._epoch_ended is not None else 0.0), None
        logs, waited, images = self._fetch_and_step(iterator)
        self._left -= 1
        if self._left == 0:
            _wait_for(logs)
            self._span.processor = processor_seconds()
            self._begun = self._last = time.perf_counter()
        if self._left >= 0:
            return logs
        ended = time.perf_counter()
        self._steps.append((ended - self._last, waited, images, between))
        self._last = ended
        if len(self._steps) >= LEAST_STEPS and ended - self._begun >= self._seconds:
            _wait_for(logs)
            self._span.seconds = time.perf_counter() - self._begun
            self._span.processor = processor_seconds() - self._span.processor
            self._is_over = True
        return logs

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._epoch_ended = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._stop is not None and self._stop.is_set():
            self.model.stop_training = True
            raise KeyboardInterrupt
        if self._is_over:
            self.model.stop_training = True

    def span(self) -> Span:
        for seconds, waited, images, between in self._steps:
            self._span.steps.append(seconds)
            self._span.waits.append(float(waited) + between)
            self._span.images += int(images)
        return self._span


def _functions(model: Any) -> tuple[Any, Callable[[Any], tuple[Any, Any, Any]]]:
    """Keras' training function from public parts: of a batch -> logs; of an iterator -> logs, seconds waited,
    images."""
    strategy = model.distribute_strategy

    @tf.autograph.experimental.do_not_convert
    def stepped(data: Any) -> Any:
        logs = strategy.run(model.train_step, args=(data,))
        return {name: strategy.experimental_local_results(value)[0] for name, value in logs.items()}

    compiled = tf.function(stepped, reduce_retracing=True, jit_compile=model.jit_compile)

    @tf.autograph.experimental.do_not_convert
    def fetched(iterator: Any) -> tuple[Any, Any, Any]:
        asked = tf.timestamp()
        with tf.control_dependencies([asked]):
            data = iterator.get_next()
        parts = tf.nest.flatten(data, expand_composites=True)
        with tf.control_dependencies(parts):
            given = tf.timestamp()
        labels = strategy.experimental_local_results(data[1])
        images = tf.add_n([tf.shape(part)[0] for part in labels])
        with tf.control_dependencies([given]):
            return compiled(data), given - asked, images

    made: Any = tf.function(fetched, reduce_retracing=True)
    return compiled, made


def _wait_for(logs: Any) -> None:
    """Wait for the devices' numbers."""
    for value in tf.nest.flatten(logs):
        value.numpy()


# As the page about Keras shows it: Keras asks ahead by itself, too.
_WORKERS, _QUEUE = 2, 3
# Steps that nothing is counted of: an iterator is new in each span, and its queues fill or run empty in a few steps.
_WARM_UP = 2


def synthetic(feed: Feed, strategy: Any, labels_of: Any) -> KerasFeed:
    """Each replica's part of one batch, again and again: nothing is made, cut or copied."""
    rng = np.random.default_rng(feed.options.seed)

    def repeated(context: Any) -> Any:
        rows = context.get_per_replica_batch_size(feed.batch_size)
        images = rng.standard_normal((rows, *feed.size, feed.channels), np.float32)
        labels = labels_of(rng.integers(0, len(feed.classes), rows))
        return tf.data.Dataset.from_tensors((images, labels)).repeat()

    data = strategy.distribute_datasets_from_function(repeated)
    return KerasFeed(CEILING, data, how="one batch of random numbers, held by the replicas", is_held=True)


def ours(feed: Feed, one_hot: bool | int) -> KerasFeed:
    """``PyDataset``, as docs/keras.md feeds ``fit``."""
    loader, epochs = feed.train, feed.options.epochs
    dataset = PyDataset(loader, one_hot=one_hot, workers=_WORKERS, max_queue_size=_QUEUE)
    follow = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs=None: loader.set_epoch(epoch % epochs))
    how = f"PyDataset, {loader.num_threads} threads, workers={_WORKERS}, max_queue_size={_QUEUE}"
    return KerasFeed(OURS, dataset, _WARM_UP, how, callbacks=(follow,))


_KEPT_SHARE = 0.875
_SHUFFLED = 1024


def open_tf_data(feed: Feed, labels_of: Any) -> KerasFeed:
    """Raises MissingPeerError for a stream."""
    source = source_of(feed)
    layers, left_out, size = spelled(keras.layers, feed)
    augment = keras.Sequential(layers)
    read, how = _folder(feed, source, size), "image_dataset_from_directory"
    if read is None:
        read, how = _any_source(feed, source, size), "tf.data, read by Python"

    @tf.autograph.experimental.do_not_convert
    def augmented(images: Any, labels: Any) -> tuple[Any, Any]:
        return augment(images, training=True), labels_of(labels)

    data = read.map(augmented, num_parallel_calls=tf.data.AUTOTUNE)
    how = (
        f"{how}, resized to {size[0]}x{size[1]}, {', '.join(type(one).__name__ for one in layers)}; prefetch(AUTOTUNE)"
    )
    return KerasFeed("tf.data+Keras layers", data.prefetch(tf.data.AUTOTUNE), _WARM_UP, how, left_out)


def spelled(layers: Any, feed: Feed) -> tuple[list[Any], tuple[str, ...], tuple[int, int]]:
    """-> the training's augmentation in Keras' layers, names of steps that they lack, and the size of images before:
    Keras crops at one size, where RandomResizedCrop draws one."""
    found, left_out, size = list[Any](), list[str](), feed.size
    for step in steps_of(feed.transform):
        if type(step) is T.RandomResizedCrop:
            size = math.ceil(feed.size[0] / _KEPT_SHARE), math.ceil(feed.size[1] / _KEPT_SHARE)
            found.append(layers.RandomCrop(*feed.size))
        elif type(step) is T.RandomCrop:
            found += [layers.ZeroPadding2D(step.padding or 0), layers.RandomCrop(*feed.size)]
        elif type(step) is T.RandomHorizontalFlip:
            found.append(layers.RandomFlip("horizontal"))
        elif type(step) is T.RandAugment and feed.channels == 3:
            factor = step.magnitude / (step.num_magnitude_bins - 1)
            found.append(layers.RandAugment((0, 255), step.num_ops, factor))
        elif type(step) is T.AugMix and feed.channels == 3:
            found.append(layers.AugMix((0, 255), step.mixture_width, max(1, step.chain_depth), step.severity / 10))
        else:
            left_out.append(type(step).__name__)
    mean, std = normalisation_of(feed.transform)
    means, variances = [255 * one for one in mean], [(255 * one) ** 2 for one in std]
    return [*found, layers.Normalization(mean=means, variance=variances)], tuple(left_out), size


def _folder(feed: Feed, source: Source, size: tuple[int, int]) -> Any:
    """The data set of a local folder with a folder for each class; None of other sources."""
    if not isinstance(source, FileSource) or source.is_remote:
        return None
    folder = Path(source.folder.address())
    if not all((folder / name).is_dir() for name in feed.classes):
        return None
    how: dict[str, Any] = {"class_names": list(feed.classes), "batch_size": feed.batch_size, "image_size": size}
    how |= {"color_mode": "grayscale" if feed.channels == 1 else "rgb", "seed": feed.options.seed}
    return keras.utils.image_dataset_from_directory(folder, **how, follow_links=True, verbose=False)


def _any_source(feed: Feed, source: Source, size: tuple[int, int]) -> Any:
    """A data set that Python reads one by one, and TensorFlow decodes and resizes in parallel."""
    encoded = isinstance(source.read(0).data, bytes)
    spec = tf.TensorSpec((), tf.string) if encoded else tf.TensorSpec((None, None, feed.channels), tf.uint8)
    signature = (spec, tf.TensorSpec((), tf.int64))

    @tf.autograph.experimental.do_not_convert
    def prepared(data: Any, label: Any) -> tuple[Any, Any]:
        image = data
        if encoded:
            image = tf.io.decode_image(data, feed.channels, expand_animations=False)
            image.set_shape((None, None, feed.channels))
        return tf.ensure_shape(tf.image.resize(image, size), (*size, feed.channels)), label

    epochs = count()

    def samples() -> Iterator[tuple[Any, Any]]:
        for item in shuffled(source, feed.options.seed, next(epochs)):
            yield item.data, np.int64(item.label)

    data = tf.data.Dataset.from_generator(samples, output_signature=signature)
    data = data.shuffle(min(_SHUFFLED, len(source))).map(prepared, num_parallel_calls=tf.data.AUTOTUNE)
    # As long as an epoch is, which from_generator does not say.
    return data.apply(tf.data.experimental.assert_cardinality(len(source))).batch(feed.batch_size)
