"""tf.data service with a worker process per core. TensorFlow has no RandAugment, so that it has less to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

from benchmarks.inputs import MEAN, SIZE, STD
from benchmarks.loader import photos
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener

_WORKER = """
import sys, tensorflow as tf
config = tf.data.experimental.service.WorkerConfig(dispatcher_address=sys.argv[1], heartbeat_interval_ms=100)
server = tf.data.experimental.service.WorkerServer(config)
sys.stdin.read()
"""


def _crop(data: Any) -> Any:
    box = tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
    start, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), box, area_range=(0.08, 1.0), aspect_ratio_range=(3 / 4, 4 / 3)
    )
    window = tf.stack([start[0], start[1], size[0], size[1]])
    return tf.image.random_flip_left_right(
        tf.image.resize(tf.image.decode_and_crop_jpeg(data, window, channels=3), [SIZE, SIZE])
    )


class _Epochs:
    def __init__(self, given: Given) -> None:
        service = tf.data.experimental.service
        self._dispatcher = service.DispatchServer()
        address = self._dispatcher.target.split("://")[1]
        self._workers = [
            subprocess.Popen([sys.executable, "-c", _WORKER, address], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(given.cores)
        ]
        files, labels = photos.listing(given.folder)
        mean, std = (255.0 * tf.constant(values)[:, None, None] for values in (MEAN, STD))

        def one(file: Any, label: Any) -> tuple[Any, Any]:
            return (tf.transpose(_crop(tf.io.read_file(file)), [2, 0, 1]) - mean) / std, label

        named = tf.data.Dataset.from_tensor_slices(([str(file) for file in files], labels)).shuffle(len(files))
        made = named.map(one, tf.data.AUTOTUNE).batch(given.batch, drop_remainder=True)
        shared = service.distribute(service.ShardingPolicy.DYNAMIC, self._dispatcher.target)
        self._batches = made.apply(shared).prefetch(tf.data.AUTOTUNE)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        yield from self._batches.as_numpy_iterator()

    def __del__(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()


class TfData(LoaderPeer):
    name = "tf.data service, without RandAugment"
    packages = ("tensorflow-cpu",)

    def variants(self, given: Given) -> dict[str, Opener]:
        return {f"{given.cores} workers": partial(_Epochs, given)}


PEER = TfData()
