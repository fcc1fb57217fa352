"""Network, image size and batch size that a training chooses by its data and by the memory that is free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.learn.train.digits import digits, options
from variegate.learn import choices
from variegate.learn.averaging import DistContext
from variegate.learn.choices import TRAIN, Choice, Data, choose, fit_memory, memory_of
from variegate.learn.feed import DataPipeline
from variegate.learn.trainer import train
from variegate.options.fit import FitOptions


def chosen(images: int, *sizes: tuple[int, int], **given: Any) -> tuple[str, tuple[int, int], bool, int]:
    found = choose(Data(images, images, list(sizes)), TRAIN, **given)
    return found.model, found.size, found.is_kept, found.batch_size


@pytest.fixture(autouse=True)
def plenty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "available_memory", lambda: 64 << 30)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)


def test_the_network_and_the_size_follow_from_the_images() -> None:
    assert chosen(50_000, (32, 32)) == ("wrn-28-2", (32, 32), True, 128)
    assert chosen(600, (28, 28)) == ("wrn-16-1", (28, 28), True, 64)
    assert chosen(10_000, (72, 96)) == ("wrn-28-2-stem2", (72, 72), False, 128)
    assert chosen(1_000, (40, 60), (50, 30), (44, 90)) == ("wrn-16-1", (40, 40), False, 64)
    assert chosen(10_000, (375, 500), (500, 333), (1200, 1600)) == ("wrn-28-2-stem4", (224, 224), False, 128)
    assert chosen(600, (28, 28), model="wrn-10-1", batch_size=7)[:1] == ("wrn-10-1",)


def test_the_batch_is_halved_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data(10_000, 10_000, [(96, 72)])
    need = memory_of("wrn-10-1", 3, 10, (72, 72), FitOptions(), 0)
    assert need is not None

    def fitted(batch_size: int | None = None) -> Choice:
        wanted = choose(data, TRAIN, model="wrn-10-1", batch_size=batch_size)
        return fit_memory(wanted, data, 3, 10, FitOptions(batch_size=batch_size), 0, "cpu")

    monkeypatch.setattr(choices, "available_memory", lambda: need.of(40) * 4 // 3)
    found = fitted()
    assert found.batch_size == 32
    assert found.reasons[0] == "wrn-10-1, 200 epochs, batches of 32 images of 72x72: 10,000 images of 96x72"
    assert found.reasons[1].startswith("batches of 128 would take 0.")
    assert found.reasons[1].endswith("are free; --accumulate 4 makes steps of as many images")
    with pytest.raises(ValueError, match=r"batch_size: got 128, for which wrn-10-1 takes .* at 72x72, and .* at most"):
        fitted(128)
    monkeypatch.setattr(choices, "available_memory", lambda: need.of(7))
    with pytest.raises(ValueError, match=r"model: wrn-10-1 takes .* for a batch of 8 images of 72x72, and .* are free"):
        fitted()


def test_processes_of_a_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert choices.free_memory("cpu") == 16 << 30


@pytest.mark.parametrize(("model", "size"), [("wrn-10-1", (24, 32)), ("wrn-10-1-stem2", (72, 72))])
def test_a_training_with_a_stem_and_one_without_run(model: str, size: tuple[int, int], tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (16, *size, 3)).astype(np.uint8)
    given = options(tmp_path, model=model, size="none", epochs=1, batch_size=8, policy="crop")
    events: list[Any] = []
    assert train((images, np.arange(16) % 2), given, on_event=events.append)["is_done"]
    assert (
        events[0].text
        == f"{model}, 1 epoch, batches of 8 images of {size[0]}x{size[1]}: 16 images of {size[0]}x{size[1]}"
    )


def test_a_run_keeps_what_it_chose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = digits(64)
    given = options(tmp_path, epochs=1, batch_size=None)
    monkeypatch.setattr(choices, "choose_batch", lambda images: 32)
    train(source, given)
    assert json.loads((tmp_path / "train.json").read_text())["batch_size"] == 32
    monkeypatch.setattr(choices, "choose_batch", lambda images: 16)
    assert train(source, given)["is_done"]


def test_a_model_that_cannot_be_measured_trains(tmp_path: Path) -> None:
    assert memory_of("tests.learn.train.digits:without_statistics", 3, 10, (8, 8), FitOptions(), 0) is None
    feed = DataPipeline(digits(64)[0], None, options(tmp_path), DistContext())
    assert (feed.model, feed.batch_size) == ("tests.learn.train.digits:without_statistics", 32)


@pytest.mark.parametrize(("images", "epochs"), [(100, 200), (50_000, 200), (100_000, 100), (1_300_000, 30)])
def test_epochs_see_ten_million_images_within_bounds(images: int, epochs: int) -> None:
    assert choose(Data(images, images, [(32, 32)]), TRAIN).epochs == epochs
