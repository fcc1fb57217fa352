"""The training step on one repeated batch beside the step fed by the loader, and the GPU's utilization."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.loader.samples import MemorySource
from variegate import transforms as T
from variegate.apps.doctor import Rate, TrainingRates, probes, training
from variegate.apps.doctor.training import CEILING, FED, Utilization, draw_training, measure_training
from variegate.apps.plotting import PlotError
from variegate.data.base import SourceError
from variegate.learn.fit import one_thread_each
from variegate.learn.models import ModelError

CROP = T.Compose([T.RandomResizedCrop(16), T.Normalize((0.5,), (0.5,))])


@pytest.fixture(autouse=True)
def _few_spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On one thread of torch: several wait for each other where other tests run beside them."""
    monkeypatch.setattr(probes, "SPANS", 2)
    with one_thread_each("cpu"):
        yield


def test_the_ceiling_repeats_one_batch_and_the_other_step_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes a second, and so does the loader for every batch after the first."""
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    loader = vg.Loader(MemorySource(64), CROP, 8, device="cpu", num_threads=1, prefetch=0)
    seen: list[int] = []

    def prepare(batch: Any) -> tuple[Any, ...]:
        nonlocal now
        now += 1.0
        return tuple(batch)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        nonlocal now
        now += 1.0
        assert (len(images), len(labels)) == (8, 8)
        seen.append(id(images))

    found = measure_training(loader, step, prepare, 20.0)
    assert found.ceiling.images_per_second == pytest.approx(8)
    assert found.fed.images_per_second == pytest.approx(4)
    assert found.share == pytest.approx(0.5)
    assert len(set(seen[:11])) == 1, "the first span repeats one batch"
    assert found.lines()[-1] == "Training reaches 50.0% of the ceiling, which needs no data."
    assert (found.utilization, found.note) == ({}, None)


def test_a_model_by_name_and_a_step_of_the_user() -> None:
    options: Any = {"seconds": 0.02, "batch_size": 4, "devices": "cpu", "threads": 1}
    found = vg.doctor(MemorySource(12), CROP, train=True, model="wrn-10-1", **options)
    assert found.training is not None
    assert found.training.ceiling.images_per_second > 0
    assert "of the ceiling" in str(found)
    shapes: list[Any] = []
    mine = vg.doctor(MemorySource(12), CROP, step=lambda images, labels: shapes.append(images.shape), **options)
    assert mine.training is not None
    assert set(shapes) == {torch.Size([4, 3, 16, 16])}
    assert vg.doctor(MemorySource(12), CROP, **options).training is None


@pytest.mark.parametrize(
    ("source", "transform", "model", "error", "message"),
    [
        (MemorySource(8), CROP, "resnet", ModelError, "model: got 'resnet'; accepted: "),
        (MemorySource(8), T.Normalize((0.5,), (0.5,)), "wrn-10-1", SourceError, "several sizes"),
    ],
)
def test_what_cannot_be_trained(source: Any, transform: T.Transform, model: str, error: Any, message: str) -> None:
    options: Any = {"seconds": 0.01, "batch_size": 4, "devices": "cpu", "threads": 1, "limit": 4}
    measured: list[Any] = []
    with pytest.raises(error, match=message):
        vg.doctor(source, transform, train=True, model=model, on_event=measured.append, **options)
    assert measured == []


def test_the_utilization_of_a_gpu_is_sampled_while_its_step_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def utilization(device: str) -> int:
        asked.append(device)
        return min(100, 10 * len(asked))

    monkeypatch.setattr(torch.cuda, "utilization", utilization)
    monkeypatch.setattr(training, "_SAMPLE_SECONDS", 0.001)
    found = Utilization("cuda:1")
    for name in (CEILING, FED):
        with found.watch(name):
            before = len(asked)
            while len(asked) < before + 12:
                time.sleep(0.001)
    after = len(asked)
    time.sleep(0.01)
    assert len(asked) == after, "nothing is sampled between the spans"
    assert set(asked) == {"cuda:1"}
    assert found.samples[CEILING][:9] == [20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert set(found.samples[FED]) == {100}


def test_without_nvml_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(device: str) -> int:
        raise ModuleNotFoundError("pynvml does not seem to be installed or it can't be imported.")

    monkeypatch.setattr(torch.cuda, "utilization", missing)
    found = Utilization("cuda:0")
    with found.watch(CEILING):
        pass
    assert found.samples == {}
    assert str(found.note).endswith("pip install nvidia-ml-py")
    assert Utilization("cpu").note is None


RATES = TrainingRates(Rate(500.0), Rate(400.0), {CEILING: (95, 100, 100, 0), FED: (41, 49, 100, 0)})


def test_the_histogram_of_utilization() -> None:
    assert RATES.histogram(CEILING) == [0.25, 0, 0, 0, 0, 0, 0, 0, 0, 0.75]
    assert RATES.histogram(FED) == [0.25, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.25]
    assert "GPU busy 74%" in RATES.lines()[0]
    assert "80.0% of the ceiling" in RATES.lines()[-1]


def test_the_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "training.png"
    widths = []
    for found in (TrainingRates(RATES.ceiling, RATES.fed), RATES):
        draw_training(found, "wrn-28-2 on photos", path)
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert len(np.unique(np.asarray(image.convert("L")))) > 20
            widths.append(image.width)
    assert widths[1] > 1.5 * widths[0], "a histogram for each of the two"


def test_no_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match=r"pip install 'variegate\[plot\]'"):
        draw_training(RATES, "", tmp_path / "training.png")
    assert not (tmp_path / "training.png").exists()
