"""Measuring a small data set: what is measured, on what, and what is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.apps.diagnose.made_up import measurements
from tests.loader.samples import MemorySource, MemoryStream
from variegate import transforms as T
from variegate.apps.diagnose import Measurements, PlotError, draw_plot, measure
from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.measure import training_transform, without_policy
from variegate.apps.diagnose.measurements import TimedSpan, rate_of
from variegate.apps.diagnose.recorder import take_span
from variegate.errors import DecodeError
from variegate.formats.base import SourceError

CROP = T.Compose([T.RandomResizedCrop(32), T.RandAugment(), T.Normalize((0.5,), (0.5,))])
ALONE = {m.READ_FIRST, m.READ, m.DECODE, m.DECODE_WHOLE, m.AUGMENT}
ONE_THREAD = {m.DECODE_ONE, m.AUGMENT_ONE}
TOGETHER = {m.READ_DECODE, m.DECODE_AUGMENT, m.LOADER}


@pytest.fixture(autouse=True)
def _few_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """What more of them come to is below, by numbers that nobody has to wait for."""
    monkeypatch.setattr("variegate.apps.diagnose.recorder._ROUNDS", 2)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Eleven good pictures, one of them a PNG, and two that are none."""
    rng = np.random.default_rng(3)
    root = tmp_path / "photos"
    for number in range(11):
        folder = root / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3)).astype(np.uint8))
        picture = coarse.resize((90 + number, 70), Image.Resampling.BICUBIC)
        picture.save(folder / f"{number}.{'jpg' if number else 'png'}")
    (root / "cat/bad.jpg").write_bytes(b"")
    (root / "dog/cut.jpg").write_bytes((root / "dog/2.jpg").read_bytes()[:200])
    return root


def quick(source: Any, transform: T.Transform = CROP, **options: Any) -> Measurements:
    return measure(source, transform, **({"seconds": 0.03, "batch_size": 4, "device": "cpu", "threads": 2} | options))


def check_rates(data: Measurements, stages: set[str]) -> None:
    assert set(data.rates) == stages
    for rate in data.rates.values():
        assert rate.images_per_second > 0
        assert rate.megabytes_per_second > 0
        assert min(rate.spans) <= rate.images_per_second <= max(rate.spans)


def test_a_folder(photos: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    data = quick(str(photos), alternatives=True, on_progress=lambda *step: steps.append(step))
    alternatives = {m.AUGMENT_PLAIN, m.AUGMENT_LARGE, m.DECODE_REDUCED, m.AUGMENT_REDUCED, m.DECODE_INDEXED}
    check_rates(data, ALONE | ONE_THREAD | TOGETHER | alternatives)
    assert (data.samples, data.measured, data.skipped) == (13, 11, 2)
    assert sorted(bad.partition(": ")[0].rpartition("/")[2] for bad in data.bad) == ["bad.jpg", "cut.jpg"]
    assert (data.mean_height, data.mean_width) == (70, 95)
    assert data.mean_pixel_bytes == pytest.approx(70 * 95 * 3)
    assert (data.out_side, data.reduced_side) == (32, 37)
    assert (data.source, data.device, data.threads, data.batch_size) == (str(photos), "cpu", 2, 4)
    assert data.has_a_file_each
    assert not data.is_remote
    assert data.rates[m.DECODE_ONE].threads == 1
    # What goes in: bytes of files here, pixels there.
    decode, augment = data.rates[m.DECODE], data.rates[m.AUGMENT]
    assert decode.megabytes_per_second / decode.images_per_second < 0.01
    assert augment.megabytes_per_second / augment.images_per_second == pytest.approx(0.02, rel=0.1)
    measured = [step for step in steps if step[2]]
    assert [done for _, done, _ in measured] == list(range(len(measured)))
    assert measured[-1] == (m.TITLES[m.LOADER], len(measured) - 1, len(measured))


def test_one_thread_and_few_samples(photos: Path) -> None:
    data = quick(photos, threads=1, limit=5)
    check_rates(data, ALONE | TOGETHER)
    assert data.measured + data.skipped == 5


def test_a_cache_is_filled_before_it_is_measured(photos: Path) -> None:
    data = quick(photos, cache="host")
    check_rates(data, ALONE | ONE_THREAD | TOGETHER | {m.LOADER_FIRST})
    assert data.cache == "host"


def test_a_cache_of_reduced_pictures(photos: Path, tmp_path: Path) -> None:
    data = quick(photos, cache=tmp_path / "cache", cache_side=35, alternatives=True)
    assert data.rates[m.LOADER].images_per_second > 0
    assert data.mean_height == 35
    assert data.cache == str(tmp_path / "cache")
    assert list((tmp_path / "cache").rglob("*.pixels"))


def test_sizes_that_differ(photos: Path) -> None:
    data = quick(photos, training_transform("trivialaugment", "none"), alternatives=True)
    assert (data.out_side, data.reduced_side) == (None, None)
    assert m.DECODE_REDUCED not in data.rates


def test_a_stream() -> None:
    data = quick(MemoryStream(20, broken={3: DecodeError("memory: 3.jpg", "gone")}))
    check_rates(data, (ALONE | ONE_THREAD | TOGETHER) - {m.READ_DECODE})
    assert (data.samples, data.measured, data.skipped) == (None, 19, 1)
    assert data.is_remote
    assert data.pixel_bytes is None


class Pixels(MemorySource):
    def read(self, index: int) -> Any:
        return super().read(index)._replace(data=np.full((40, 50, 3), index, np.uint8))


def test_pixels_need_no_decoding() -> None:
    data = quick(Pixels(9))
    check_rates(data, {m.READ_FIRST, m.READ, m.AUGMENT, m.AUGMENT_ONE, m.LOADER})


def test_arrays() -> None:
    data = quick((np.zeros((9, 40, 50, 3), np.uint8), np.arange(9)), cache="host")
    assert data.rates[m.LOADER].images_per_second > 0
    assert (data.samples, data.mean_height, data.has_a_file_each) == (9, 40, False)


def test_nothing_to_measure(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"hello")
    with pytest.raises(SourceError, match=r"none of 1 samples could be read; .*a\.jpg: not an image"):
        quick(tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, "batch_size: got 0; accepted: an integer from 1 on"),
        ({"limit": 0}, "limit: got 0"),
        ({"threads": 1.5}, "threads: got 1.5"),
        ({"seconds": 0}, "seconds: got 0; accepted: a positive number"),
        ({"device": "gpu"}, "device: got 'gpu'"),
        ({"cache_side": 9}, "cache_side: got 9 without a cache"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        quick(MemorySource(3), **options)


def test_a_rate_is_the_median_of_spans() -> None:
    """Four spans of 100 images/s and a hiccup."""
    rate = rate_of([TimedSpan(10, 10_000, seconds) for seconds in (0.1, 0.1, 0.9, 0.1, 0.1)], threads=3)
    assert rate.images_per_second == pytest.approx(100)
    assert rate.megabytes_per_second == pytest.approx(0.1)
    assert rate.spread == pytest.approx((100 - 10 / 0.9) / 100)
    assert (len(rate.spans), rate.threads) == (5, 3)


def test_a_span_counts_neither_its_lead_nor_less_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lengths = [0.0], iter([9.0, 9.0, 0.1, 0.1, 0.1, 9.0])
    monkeypatch.setattr("variegate.apps.diagnose.recorder.time.perf_counter", lambda: now[0])

    def step() -> tuple[int, int]:
        now[0] += next(lengths)
        return 10, 10_000

    assert take_span(step, 0.15, lead=2, steps_at_least=3) == (30, 30_000, pytest.approx(0.3))


def test_what_is_left_without_the_policy() -> None:
    crop, normalize = T.RandomResizedCrop(32), T.Normalize((0.5,), (0.5,))
    transform = T.Compose([T.Compose([crop, T.RandomHorizontalFlip()]), T.RandAugment(), normalize])
    assert without_policy(transform) == T.Compose([crop, normalize])
    assert without_policy(T.Compose([crop, normalize])) is None
    assert without_policy(T.RandAugment()) is not None


@pytest.mark.parametrize("bottleneck", ["decode", "loader"])
def test_the_plot(tmp_path: Path, bottleneck: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "bench.png"
    draw_plot(measurements(), bottleneck, path)
    with Image.open(path) as image:
        assert image.format == "PNG"
        counts = {colour: count for count, colour in image.convert("RGB").getcolors(1 << 24)}
    assert len(counts) > 50
    # The wall has a colour of its own.
    assert counts[0xD1, 0x49, 0x5B] > 1000


def test_no_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match=r"pip install 'variegate\[plot\]'"):
        draw_plot(measurements(), "decode", tmp_path / "bench.png")
    assert not (tmp_path / "bench.png").exists()
