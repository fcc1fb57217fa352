"""Training with every batch recorded, on whichever back end Keras has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

import variegate as vg
from variegate import transforms as T
from variegate.data.folder import open_folder
from variegate.interop.keras import PyDataset

POLICY = T.Compose([T.RandomResizedCrop(16), T.GaussianNoise(sigma=0.05), T.Normalize(0.5, 0.25)])


def make_loader(source: Any, t: Any = POLICY, **arguments: Any) -> vg.Loader:
    return vg.Loader(source, t, **{"batch_size": 4, "device": "cpu", "layout": "NHWC", **arguments})


def train(root: Path) -> list[dict[str, Any]]:
    """With one worker and with three: the sum of each batch's pixels, the losses, and what the model says after."""
    return [_train(root, workers) for workers in (1, 3)]


def _train(root: Path, workers: int) -> dict[str, Any]:
    seen: list[float] = []

    class Model(keras.Sequential):
        def train_step(self, *arguments: Any) -> Any:
            data = arguments[-1]
            seen.append(float(keras.ops.sum(data[0])))
            return super().train_step(*arguments)

    dataset = PyDataset(make_loader(open_folder(root)), one_hot=True, workers=workers, max_queue_size=2)
    # Its own seed: keras.utils.set_random_seed would load TensorFlow, on whatever back end.
    last = keras.layers.Dense(3, "softmax", kernel_initializer=keras.initializers.GlorotUniform(seed=0))
    model = Model([keras.Input((16, 16, 3)), keras.layers.Flatten(), last])
    model.compile(keras.optimizers.Adam(0.003), "categorical_crossentropy", run_eagerly=True)
    history = model.fit(dataset, epochs=4, shuffle=False, callbacks=[dataset.epochs()], verbose=0)
    validation = PyDataset(make_loader(open_folder(root), shuffle=False), one_hot=True)
    return {
        "backend": keras.backend.backend(),
        "seen": seen,
        "losses": history.history["loss"],
        "evaluated": model.evaluate(validation, verbose=0),
        "predicted": list(model.predict(validation, verbose=0).shape),
    }
