"""Under ``tf.distribute.MirroredStrategy`` on two halves of the CPU: what replicas are given, and a study of feeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

import variegate as vg
from variegate import transforms as T
from variegate.apps.train.feed import Feed
from variegate.apps.train.keras_study import study
from variegate.apps.train.keras_study.fit import open_tf_data
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.study import timing
from variegate.integrations.keras import PyDataset
from variegate.options.training import TrainOptions


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return "nothing"


def replicas(strategy: Any) -> dict[str, Any]:
    """18 images whose pixels say which they are, two epochs."""
    number = 18
    images = np.zeros((number, 4, 4, 3), np.uint8) + np.arange(number, dtype=np.uint8)[:, None, None, None]
    given: list[tuple[int, list[float], list[int]]] = []

    class Model(keras.Sequential):
        def train_step(self, data: Any) -> Any:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            tf.numpy_function(
                lambda r, x, y: given.append((int(r), x.tolist(), y.tolist())) or np.int32(0),
                [replica, data[0][:, 0, 0, 0], data[1]],
                tf.int32,
            )
            return super().train_step(data)

    loader = vg.Loader(
        (images, np.arange(number)), T.Normalize(0.0, 1 / 255), batch_size=4, device="cpu", layout="NHWC"
    )
    dataset = PyDataset(loader, workers=2)
    with strategy.scope():
        layers = keras.layers
        model = Model([keras.Input((4, 4, 3)), layers.BatchNormalization(), layers.Flatten(), layers.Dense(number)])
        model.compile(keras.optimizers.SGD(0.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset, epochs=2, shuffle=False, callbacks=[dataset.epochs()], verbose=0)
    batches = [loader.batch(index, epoch).labels.tolist() for epoch in range(2) for index in range(5)]
    return {"given": given, "batches": batches}


def make_model(shape: tuple[int, int, int], classes: int) -> Any:
    layers = keras.layers
    return keras.Sequential([keras.Input(shape), layers.Conv2D(4, 3), layers.Flatten(), layers.Dense(classes)])


def compiled(shape: tuple[int, int, int], classes: int) -> Any:
    model = make_model(shape, classes)
    model.add(keras.layers.Softmax())
    model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])
    return model


def in_many_steps(shape: tuple[int, int, int], classes: int) -> Any:
    model = make_model(shape, classes)
    model.compile("sgd", "mse", steps_per_execution=4)
    return model


@mock.patch.object(timing, "SPANS", 1)  # what more of them come to, other tests show without TensorFlow
def find(root: Path) -> dict[str, Any]:
    """``peer``: the shapes and labels of what tf.data made, and how; ``refused``: what was said each time."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    options = TrainOptions(policy="none", batch_size=8, padding=1, threads=1)
    found = study(root, compiled, options, 0.05, strategy=strategy, one_hot=True)
    arrays = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 1), dtype=np.uint8), np.arange(20) % 3
    peer = open_tf_data(Feed(arrays, None, options, Ranks()), keras.ops.convert_to_tensor)
    batches = [(images.numpy(), labels.numpy().tolist()) for images, labels in peer.data]
    shapes, labels = [images.shape for images, _ in batches], sorted(one for _, some in batches for one in some)
    one_over = (arrays[0][:17], arrays[1][:17])
    refused = [
        lambda: study(one_over, make_model, options, strategy=strategy),
        lambda: study(arrays, make_model, TrainOptions(batch_size=1), strategy=strategy),
        lambda: study(arrays, make_model, TrainOptions(batch_size=8, ema=0.9), strategy=strategy),
        lambda: study(arrays, lambda shape, classes: None, TrainOptions(batch_size=10), strategy=strategy),
        lambda: study(arrays, in_many_steps, TrainOptions(batch_size=10), strategy=strategy),
    ]
    read = {"shapes": shapes, "labels": labels, "how": peer.how}
    return {"replicas": replicas(strategy), "study": found, "peer": read, "refused": [told(one) for one in refused]}
