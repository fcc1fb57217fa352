"""Train a Keras model on two devices under ``tf.distribute.MirroredStrategy``, from class folders of JPEG files.

``python examples/keras_mirrored.py``. The devices are two halves of the CPU; on a machine with GPUs leave them out, and
``tf.distribute.MirroredStrategy()`` takes all GPUs. It needs TensorFlow, and Variegate's extra ``keras``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"  # before Keras is imported
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")  # quiet, and the same sums on every CPU

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

import variegate as vg
from variegate import transforms as T
from variegate.interop.keras import PyDataset


def write_photos(root: str, size: int = 48) -> None:
    """Four classes, one for each photo: 32 cut-outs of each, as JPEG files."""
    rng = np.random.default_rng(0)
    for name, photo in zip(("astronaut", "cat", "coffee", "rocket"), vg.sample_images(4), strict=True):
        folder = Path(root) / name
        folder.mkdir()
        for number in range(32):
            top, left = rng.integers(0, np.array(photo.shape[:2]) - 2 * size)
            cut = Image.fromarray(photo[top : top + 2 * size, left : left + 2 * size])
            cut.resize((size, size)).save(folder / f"{number:02d}.jpg", quality=90)


def make_model(classes: int) -> Any:
    return keras.Sequential([
        keras.Input((32, 32, 3)),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(classes, activation="softmax"),
    ])  # fmt: skip


def main(epochs: int = 6) -> None:
    t = T.Compose([
        T.RandomResizedCrop(32, scale=(0.5, 1.0)), T.RandomHorizontalFlip(), T.RandAugment(num_ops=1, magnitude=5),
        T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
    ])  # fmt: skip
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
    keras.utils.set_random_seed(0)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with tempfile.TemporaryDirectory() as root:
        write_photos(root)
        # The batch is the global one: each of the two devices gets half of its rows.
        loader = vg.Loader(root, t, batch_size=32, device="cpu", seed=0, layout="NHWC")
        dataset = PyDataset(loader, one_hot=True, workers=2)
        with strategy.scope():
            model = make_model(len(loader.source.classes))
            model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy", metrics=["accuracy"])
        # The loader shuffles; the callback keeps its epoch in step with Keras' own.
        history = model.fit(dataset, epochs=epochs, shuffle=False, callbacks=[dataset.epochs()], verbose=0)  # pyright: ignore[reportArgumentType]
    print(f"{strategy.num_replicas_in_sync} devices, classes: {', '.join(loader.source.classes)}")
    for epoch, (loss, accuracy) in enumerate(zip(history.history["loss"], history.history["accuracy"], strict=True)):
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
