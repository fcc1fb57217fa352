"""Keras' ``fit`` under ``tf.distribute.MirroredStrategy`` on two halves of the CPU: the batches of its replicas."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

import variegate as vg
from variegate import transforms as T
from variegate.interop.keras import PyDataset


def two_halves() -> Any:
    """A strategy, in a process that has not used TensorFlow's devices before."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def replicas() -> dict[str, Any]:
    """18 images whose pixels say which they are, two epochs."""
    strategy, number = two_halves(), 18
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
