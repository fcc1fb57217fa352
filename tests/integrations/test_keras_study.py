"""Keras' ``fit`` under ``MirroredStrategy``: what arrives on the replicas, and how a study times it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported here

from variegate.training.study.feeds import CEILING, OURS
from variegate.training.study.report import FedStep, Study, headings, rows, summary

ROOT = Path(__file__).resolve().parents[2]
PEER = "tf.data+Keras layers"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What tests/integrations/keras_on_two.py says; TensorFlow gets a process of its own."""
    if importlib.util.find_spec("tensorflow") is None or importlib.util.find_spec("keras") is None:
        pytest.skip("needs Keras and TensorFlow")
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(40):
        path = root / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(path)
    more = {"KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tests.integrations.keras_on_two", str(root)]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **more}, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_each_replica_gets_its_part_of_each_batch_and_each_image_comes_once(found: list[Any]) -> None:
    given, batches = found[0]["given"], found[0]["batches"]
    assert len(given) == 2 * len(batches) == 20
    assert sorted(label for batch in batches[:5] for label in batch) == list(range(18))
    for place, batch in enumerate(batches):
        parts = {replica: (x, y) for replica, x, y in given[2 * place : 2 * place + 2]}
        assert sorted(parts) == [0, 1]
        assert [*parts[0][1], *parts[1][1]] == batch
        for x, y in parts.values():
            np.testing.assert_allclose(x, y, atol=1e-4)


def study_in(told: dict[str, Any]) -> Study:
    feeds = tuple(FedStep(**{**one, "left_out": tuple(one["left_out"])}) for one in told["feeds"])
    return Study(told["facts"], feeds, told["missing"], tuple(told["edges"]), tuple(told["notes"]))


def test_a_study_of_fit(found: list[Any]) -> None:
    one = study_in(found[1])
    assert [feed.name for feed in one.feeds] == [CEILING, OURS, PEER], one.missing
    assert one.facts["device"] == "cpu, 2 replicas"
    assert one.is_on_cpu
    for feed in one.feeds:
        assert feed.steps == sum(feed.waiting) >= 3
        assert feed.images_per_second > 0
        assert (feed.next_mean_ms > 0) == (feed.name != CEILING)
        assert 0 <= feed.next_share < 1
        assert feed.left_out == ()
    assert {len(row) for row in rows(one)} == {len(headings(one))}
    assert "Fed by Variegate the training reaches" in summary(one)
    assert one.feeds[2].how.startswith(
        "image_dataset_from_directory, resized to 8x8, ZeroPadding2D, RandomCrop, Random"
    )


def test_the_peer_reads_any_source(found: list[Any]) -> None:
    read = found[2]
    assert read["shapes"] == [[8, 8, 8, 1], [8, 8, 8, 1], [4, 8, 8, 1]]
    assert read["labels"] == sorted(number % 3 for number in range(20))
    assert read["how"].startswith("tf.data, read by Python, resized to 8x8, ZeroPadding2D, RandomCrop, RandomFlip")


def test_what_cannot_be_studied(found: list[Any]) -> None:
    last, few, other, nothing, many = found[3]
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
    from variegate.integrations.keras_study import study

    if keras.backend.backend() == "tensorflow":
        pytest.skip("needs another")
    with pytest.raises(ValueError, match=r"KERAS_BACKEND: got '.*'; accepted: 'tensorflow', set before"):
        study((np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2), lambda shape, classes: None)
