"""A study of Keras' ``fit`` under ``MirroredStrategy``, with Variegate's feed and with tf.data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from PIL import Image

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported here

from tests.one_tensorflow import on_tensorflow
from variegate.apps.train.study_report import CEILING, OURS, rows, summary

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("tensorflow")]
PEER = "tf.data+Keras layers"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(40):
        path = root / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(path)
    return on_tensorflow("tests.benchmarks.keras_feeds_on_two:find", root)


def test_a_study_of_fit(found: dict[str, Any]) -> None:
    one = found["study"]
    assert [feed.name for feed in one.feeds] == [CEILING, OURS, PEER], one.missing
    assert one.facts["device"] == "cpu, 2 replicas"
    assert one.is_on_cpu
    for feed in one.feeds:
        assert feed.steps == sum(feed.waiting) >= 3
        assert feed.images_per_second > 0
        assert (feed.next_mean_ms > 0) == (feed.name != CEILING)
        assert 0 <= feed.next_share < 1
        assert feed.left_out == ()
    assert {tuple(row) for row in rows(one)} == {tuple(rows(one)[0])}
    assert "Fed by Variegate, training reaches" in summary(one)
    assert one.feeds[2].how.startswith(
        "image_dataset_from_directory, resized to 8x8, ZeroPadding2D, RandomCrop, Random"
    )


def test_the_peer_reads_any_source(found: dict[str, Any]) -> None:
    read = found["peer"]
    assert read["shapes"] == [(8, 8, 8, 1), (8, 8, 8, 1), (4, 8, 8, 1)]
    assert read["labels"] == sorted(number % 3 for number in range(20))
    assert read["how"].startswith("tf.data, read by Python, resized to 8x8, ZeroPadding2D, RandomCrop, RandomFlip")


def test_what_cannot_be_studied(found: dict[str, Any]) -> None:
    last, few, other, nothing, many = found["refused"]
    assert last == (
        "batch_size: got 8, which leaves 1 of 17 images for the last batch of an epoch; accepted: what leaves one or "
        "more for each of the 2 replicas"
    )
    assert few == "batch_size: got 1, for 2 replicas; accepted: 2 or more, since it is the global one"
    assert other == (
        "ema: got 0.9; accepted with Keras: nothing, since a model of Keras trains as it was made and compiled"
    )
    assert nothing == "make_model: gave NoneType; accepted: a keras.Model"
    assert many.startswith("make_model: gave a model compiled with steps_per_execution=4; accepted: without")


def test_another_back_end_is_refused() -> None:
    keras = pytest.importorskip("keras")
    from benchmarks.training.keras_study import study

    if keras.backend.backend() == "tensorflow":
        pytest.skip("needs another")
    with pytest.raises(ValueError, match=r"KERAS_BACKEND: got '.*'; accepted: 'tensorflow', set before"):
        study((np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2), lambda shape, classes: None)
