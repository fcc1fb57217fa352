"""Measuring small data sets: which rates are measured, on what, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.loader.samples import MemoryShards, MemorySource
from variegate import transforms as T
from variegate.apps.doctor import Diagnosis, training_transform
from variegate.apps.doctor import probes as timing
from variegate.apps.doctor.advise import ALL_CORES, AUGMENT, DECODE, DECODE_AUGMENT, READ, SMALLER, TITLES, WHOLE
from variegate.apps.doctor.probes import Probe, run_probes
from variegate.data.base import SourceError
from variegate.errors import DecodeError
from variegate.events import Progress

CROP = T.Compose([T.RandomResizedCrop(32), T.RandAugment(), T.Normalize((0.5,), (0.5,))])
OF_FILES = {READ, DECODE, AUGMENT, DECODE_AUGMENT, WHOLE}


@pytest.fixture(autouse=True)
def _few_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SPANS", 2)
    monkeypatch.setattr("variegate.apps.doctor.default_threads", lambda: 2)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Eleven readable images, one of them a PNG, and two that are broken."""
    rng = np.random.default_rng(3)
    root = tmp_path / "photos"
    for number in range(11):
        folder = root / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3)).astype(np.uint8))
        image = coarse.resize((90 + number, 70), Image.Resampling.BICUBIC)
        image.save(folder / f"{number}.{'jpg' if number else 'png'}")
    (root / "cat/bad.jpg").write_bytes(b"")
    (root / "dog/cut.jpg").write_bytes((root / "dog/2.jpg").read_bytes()[:200])
    return root


def quick(source: Any, transform: T.Transform | None = CROP, **options: Any) -> Diagnosis:
    return vg.doctor(
        source, transform, **({"seconds": 0.02, "batch_size": 4, "devices": "cpu", "threads": 2} | options)
    )


def test_a_folder(photos: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    diagnosis = quick(str(photos), on_event=lambda event: steps.append((event.stage, event.done, event.total)))
    found = diagnosis.measurements
    assert set(found.rates) == OF_FILES | {SMALLER}
    assert all(rate.images_per_second > 0 for rate in found.rates.values())
    assert (found.samples, found.held, found.bad) == (13, 11, 2)
    assert (found.height, found.width, found.smaller_side) == (70, 95, 37)
    assert found.pixel_bytes == pytest.approx(70 * 95 * 3)
    assert (found.source, found.device, found.threads, found.batch_size) == (str(photos), "cpu", 2, 4)
    assert found.has_single_files
    assert not found.is_remote
    assert "2 of 13 samples could not be read" in "\n".join(diagnosis.notes)
    assert sum("bad.jpg" in note or "cut.jpg" in note for note in diagnosis.notes) == 2
    measured = [step for step in steps if step[2]]
    assert measured[-1][1:] == (len(measured) - 1, len(measured))
    for title in (TITLES[name] for name in found.rates):
        assert f"\n{title}" in str(diagnosis)


def test_fewer_threads_are_compared_with_all_cores(photos: Path) -> None:
    found = quick(photos, threads=1, limit=5).measurements
    assert ALL_CORES in found.rates
    assert (found.threads, found.cores) == (1, 2)
    assert found.held + found.bad == 5


def test_images_of_several_sizes(photos: Path) -> None:
    found = quick(photos, training_transform("trivialaugment", "none")).measurements
    assert set(found.rates) == OF_FILES


def test_shards_are_read_by_index() -> None:
    shards = MemoryShards(20, broken={3: DecodeError("memory: 3.jpg", "gone")})
    found = quick(shards, T.Compose([T.RandomCrop(32), T.Normalize((0.5,), (0.5,))])).measurements
    assert set(found.rates) == OF_FILES
    assert (found.samples, found.bad) == (20, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_need_no_decoding(channels: int) -> None:
    found = quick((np.zeros((9, 40, 50, channels), np.uint8), np.arange(9))).measurements
    assert set(found.rates) == {READ, AUGMENT, WHOLE}
    assert (found.samples, found.height, found.has_single_files) == (9, 40, False)


def test_a_gray_file_is_measured_smaller(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((80, 90), np.uint8)).save(tmp_path / "gray.png")
    assert SMALLER in quick(tmp_path).measurements.rates


def test_no_readable_sample(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"hello")
    with pytest.raises(SourceError, match=r"none of 1 sample could be read; .*a\.jpg: not an image"):
        quick(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: got 0; accepted: an integer from 1 on"),
        ({"limit": 0}, "limit: got 0"),
        ({"threads": 1.5}, "threads: got 1.5"),
        ({"seconds": 0}, "seconds: got 0; accepted: "),
        ({"consume": 0}, "consume: got 0; accepted: "),
        ({"consume": float("nan")}, "consume: got nan; accepted: "),
        ({"devices": "gpu"}, "devices: got 'gpu'"),
        ({"precision": "float8"}, "precision: got 'float8'"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(MemorySource(3), **options)


def test_a_rate_is_the_median_of_spans_without_the_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps take 0.1 s but for the first, which compiles, and one span, which is disturbed."""
    monkeypatch.setattr(timing, "SPANS", 3)
    now = 0.0
    rests: list[float] = []
    monkeypatch.setattr("time.perf_counter", lambda: now)
    monkeypatch.setattr("time.sleep", rests.append)

    def step() -> int:
        nonlocal now
        is_disturbed = len(probe.spans) == 1
        now += 9.0 if now == 0.0 else 0.3 if is_disturbed else 0.1
        return 10

    events: list[Progress] = []
    probe = Probe("work", step, ahead=2)
    run_probes([probe], 1.5, events.append)
    assert probe.rate().images_per_second == pytest.approx(100)
    assert probe.rate().spread == pytest.approx((100 - min(probe.spans)) / 100)
    assert events == [Progress("work", done, 3) for done in range(3)]
    assert rests[0] == pytest.approx(0.3), "batches that are prepared ahead take their time"
