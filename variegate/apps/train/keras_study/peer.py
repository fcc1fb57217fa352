"""The usual way of Keras: ``image_dataset_from_directory``, preprocessing layers and ``prefetch(AUTOTUNE)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.keras_study.feeds import WARM_UP
from variegate.apps.train.keras_study.spans import KerasFeed
from variegate.apps.train.study.peers import name_of, normalisation_of, source_of, steps_of
from variegate.formats.base import FileSource, Source
from variegate.loader.shuffle import Permutation

TF_DATA = "tf.data+Keras layers"
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
    how = f"{how}, resized to {size[0]}x{size[1]}, {', '.join(map(name_of, layers))}; prefetch(AUTOTUNE)"
    return KerasFeed(TF_DATA, data.prefetch(tf.data.AUTOTUNE), WARM_UP, how, left_out)


def spelled(layers: Any, feed: Feed) -> tuple[list[Any], tuple[str, ...], tuple[int, int]]:
    """-> the training's augmentation in Keras' layers, the names of what they do not have, and the size that images are
    brought to before. Keras crops at one size, where RandomResizedCrop draws one."""
    found: list[Any] = []
    left_out: list[str] = []
    size = feed.size
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
            left_out.append(name_of(step))
    mean, std = normalisation_of(feed.transform)
    means, variances = [255 * one for one in mean], [(255 * one) ** 2 for one in std]
    return [*found, layers.Normalization(mean=means, variance=variances)], tuple(left_out), size


def _folder(feed: Feed, source: Source, size: tuple[int, int]) -> Any:
    """None where it is no folder of this machine with a folder for each class."""
    if not isinstance(source, FileSource) or source.is_remote:
        return None
    folder = Path(source.folder.address())
    if not all((folder / name).is_dir() for name in feed.classes):
        return None
    return keras.utils.image_dataset_from_directory(
        folder,
        class_names=list(feed.classes),
        color_mode="grayscale" if feed.channels == 1 else "rgb",
        batch_size=feed.batch_size,
        image_size=size,
        seed=feed.options.seed,
        follow_links=True,
        verbose=False,
    )


def _any_source(feed: Feed, source: Source, size: tuple[int, int]) -> Any:
    """Bytes or pixels, one by one, from Python; TensorFlow decodes and resizes in parallel."""
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

    data = tf.data.Dataset.from_generator(_samples(source, feed.options.seed), output_signature=signature)
    data = data.shuffle(min(_SHUFFLED, len(source))).map(prepared, num_parallel_calls=tf.data.AUTOTUNE)
    # As long as an epoch is, which from_generator does not say.
    return data.apply(tf.data.experimental.assert_cardinality(len(source))).batch(feed.batch_size)


def _samples(source: Source, seed: int) -> Callable[[], Iterator[tuple[Any, Any]]]:
    epoch = -1

    def samples() -> Iterator[tuple[Any, Any]]:
        nonlocal epoch
        epoch += 1
        for index in Permutation(len(source), seed, epoch)(np.arange(len(source))).tolist():
            item = source.read(index)
            yield item.data, np.int64(item.label)

    return samples
