"""Studies of Keras' ``fit`` under ``tf.distribute.MirroredStrategy`` on two halves of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np

import variegate.apps.train.study as feeds
from benchmarks.training.keras_fit import open_tf_data
from benchmarks.training.keras_study import study
from tests.integrations.keras_on_two import two_halves
from variegate.apps.train.feed import Feed
from variegate.apps.train.ranks import Ranks
from variegate.options.training import TrainOptions


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return "nothing"


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


@mock.patch.object(feeds, "SPANS", 1)  # what more of them come to, other tests show without TensorFlow
def find(root: Path) -> dict[str, Any]:
    """``peer``: the shapes and labels of what tf.data made, and how; ``refused``: what was said each time."""
    strategy, options = two_halves(), TrainOptions(policy="flip+crop", batch_size=8, padding=1, threads=1)
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
    return {"study": found, "peer": read, "refused": [told(one) for one in refused]}
