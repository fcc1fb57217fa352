"""What feeds a studied ``fit``: a batch that is there already on each device, and our ``PyDataset``."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from variegate.apps.train.feed import Feed
from variegate.apps.train.keras_study.spans import KerasFeed
from variegate.apps.train.study.feeds import CEILING, OURS
from variegate.integrations.keras import PyDataset

# As the page about Keras shows it: Keras asks ahead by itself, too.
_WORKERS, _QUEUE = 2, 3
# Steps that nothing is counted of: an iterator is new in each span, and its queues fill or run empty in a few steps.
WARM_UP = 2


def synthetic(feed: Feed, strategy: Any, labels_of: Any) -> KerasFeed:
    """Each replica has its part of one batch, again and again: nothing is made, cut or copied."""
    rng = np.random.default_rng(feed.options.seed)

    def repeated(context: Any) -> Any:
        rows = context.get_per_replica_batch_size(feed.batch_size)
        images = rng.standard_normal((rows, *feed.size, feed.channels), np.float32)
        labels = labels_of(rng.integers(0, len(feed.classes), rows))
        return tf.data.Dataset.from_tensors((images, labels)).repeat()

    data = strategy.distribute_datasets_from_function(repeated)
    return KerasFeed(CEILING, data, how="one batch of random numbers, held by the replicas", is_held=True)


def ours(feed: Feed, one_hot: bool | int) -> KerasFeed:
    """As docs/keras.md feeds ``fit``."""
    loader, epochs = feed.train, feed.options.epochs
    dataset = PyDataset(loader, one_hot=one_hot, workers=_WORKERS, max_queue_size=_QUEUE)
    follow = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs=None: loader.set_epoch(epoch % epochs))
    how = f"PyDataset, {loader.num_threads} threads, workers={_WORKERS}, max_queue_size={_QUEUE}"
    return KerasFeed(OURS, dataset, WARM_UP, how, callbacks=(follow,))
