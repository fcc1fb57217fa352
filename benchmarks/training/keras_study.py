"""Study of whether data limit Keras' ``fit`` on TensorFlow, timed with one feed after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from threading import Event
from typing import Any

import keras

from benchmarks.training.peers import opened
from variegate.apps.train.feed import Feed
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.study import OnProgress, facts_of, time_feeds
from variegate.apps.train.study_report import Study, study_of
from variegate.options.training import TrainOptions

__all__ = ["study"]

# Of TrainOptions, what feeds are made from, or where results go; the rest is the model's own matter.
HEEDED = {"size", "policy", "padding", "flip", "cutout", "epochs", "batch_size", "seed", "threads", "out"}

MakeModel = Callable[[tuple[int, int, int], int], Any]


def study(
    source: Any,
    make_model: MakeModel,
    options: TrainOptions | None = None,
    seconds: float = 10.0,
    *,
    strategy: Any = None,
    one_hot: bool = False,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> Study:
    """Time ``make_model((height, width, channels), classes).fit`` with each feed for so many seconds: one batch
    repeated, which is the ceiling, ``PyDataset``, and tf.data with Keras' preprocessing layers.

    Args:
        source: whatever ``vg.open_source`` takes, but for streams.
        make_model: is called under the strategy. A model that is not compiled gets SGD at a learning rate of 0; one
            that is trains as it was compiled.
        options: how images are augmented, and how many make a batch (the global one). Others are refused.
        strategy: tf.distribute.MirroredStrategy() over all GPUs, or the CPU, unless given.
        one_hot: labels are vectors, as the loss of a compiled model may want them.

    ``on_progress``, ``stop``: as ``variegate.apps.train.study.study`` has them. Raises SourceError, PolicyError,
    ValueError naming an option, ImportError without TensorFlow, and what Keras says of a model.
    """
    if keras.backend.backend() != "tensorflow":
        backend = keras.backend.backend()
        raise ValueError(
            f"KERAS_BACKEND: got {backend!r}; accepted: 'tensorflow', set before Keras is imported (the study runs "
            "under tf.distribute)"
        )
    import tensorflow as tf

    from benchmarks.training.keras_fit import FitBench, open_tf_data, ours, synthetic

    options = options or TrainOptions()
    _check(options)
    feed = Feed(source, None, options, Ranks())
    strategy = strategy if strategy is not None else tf.distribute.MirroredStrategy()
    classes, shape = len(feed.classes), (*feed.size, feed.channels)
    _check_last_batch(feed, strategy.num_replicas_in_sync)
    labels_of = partial(keras.ops.one_hot, num_classes=classes) if one_hot else keras.ops.convert_to_tensor
    with strategy.scope():
        model = make_model(shape, classes)
        _check_model(model)
        if not model.compiled:
            model.compile(keras.optimizers.SGD(0.0), _loss(model, one_hot))
    peers, missing = opened({"tf.data+Keras layers": lambda: open_tf_data(feed, labels_of)})
    feeds: list[Any] = [synthetic(feed, strategy, labels_of), ours(feed, classes if one_hot else False), *peers]
    device = "gpu" if any("GPU" in name for name in strategy.extended.worker_devices) else "cpu"
    spans, failed = time_feeds(FitBench(model, stop), feeds, seconds, on_progress, stop)
    described = {one.name: (one.how, one.left_out) for one in feeds}
    replicas = strategy.num_replicas_in_sync
    facts = facts_of(source, feed, device, seconds)
    facts |= {"model": f"{model.name} (Keras)", "precision": keras.config.dtype_policy().name, "replicas": replicas}
    facts |= {"device": f"{device}, {replicas} {'replica' if replicas == 1 else 'replicas'}"}
    facts |= {"keras": keras.__version__, "tensorflow": tf.__version__}
    return study_of(facts, spans, described, missing | failed, {})


def _check(options: TrainOptions) -> None:
    """Raises ValueError for an option that would do nothing."""
    plain = TrainOptions()
    for one in fields(options):
        value = getattr(options, one.name)
        if one.name not in HEEDED and value != getattr(plain, one.name):
            why = "a model of Keras trains as it was made and compiled"
            raise ValueError(f"{one.name}: got {value!r}; accepted with Keras: nothing, since {why}")


def _check_model(model: Any) -> None:
    """Raises ValueError for what has no ``fit`` of single steps that a graph takes."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"make_model: gave {type(model).__name__}; accepted: a keras.Model")
    if model.compiled and (model.run_eagerly or model.steps_per_execution > 1):
        name = "run_eagerly" if model.run_eagerly else "steps_per_execution"
        raise ValueError(
            f"make_model: gave a model compiled with {name}={getattr(model, name)}; accepted: without, since the wait "
            "of every single step is timed in its graph"
        )


def _check_last_batch(feed: Feed, replicas: int) -> None:
    """A replica without an image in the last batch of an epoch ends ``fit`` in models with batch norm."""
    if feed.batch_size < replicas:
        raise ValueError(
            f"batch_size: got {feed.batch_size}, for {replicas} replicas; accepted: {replicas} or more, since it is "
            "the global one"
        )
    last = (feed.length or 0) % feed.batch_size
    if 0 < last < replicas:
        raise ValueError(
            f"batch_size: got {feed.batch_size}, which leaves {last} of {feed.length:,} images for the last batch of "
            f"an epoch; accepted: what leaves one or more for each of the {replicas} replicas"
        )


def _loss(model: Any, one_hot: bool) -> Any:
    """Cross-entropy of what the model's last layer gives: shares of 1, or logits."""
    is_soft = getattr(model.layers[-1], "activation", None) is keras.activations.softmax
    kind = keras.losses.CategoricalCrossentropy if one_hot else keras.losses.SparseCategoricalCrossentropy
    return kind(from_logits=not is_soft)
