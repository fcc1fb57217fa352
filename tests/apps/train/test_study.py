"""A study: feeds beside each other, and what their spans come to."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from tests.apps.train.digits import SMALL, digit_files, digits
from tests.cli.searches import run
from variegate.apps.train import TrainOptions
from variegate.apps.train import study_report as report
from variegate.apps.train.feed import Feed
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.study import SPANS, Bench, Fed, StudiedFeed, Utilisation, ours, settle, study, time_feeds
from variegate.apps.train.study_report import CEILING, OURS, Span, fact_lines, rows, study_of, summary
from variegate.cli.train import _study_table
from variegate.options.training import StudyOptions

OPTIONS = TrainOptions(model="wrn-10-1", policy="flip+crop", padding=1, batch_size=32, device="cpu", threads=1)
FACTS = {"source": "here", "model": "wrn-10-1", "size": [8, 8], "batch_size": 2, "accumulate": 1, "policy": "flip+crop"}
FACTS |= {"precision": "float32", "device": "cpu", "processor": "one", "cores": 2, "seconds": 5}


class FakeClock:
    """Time passes where somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def waiting(clock: FakeClock, seconds: float, taken: list[int]) -> Iterator[Fed]:
    for number in count():
        clock.now += seconds
        taken.append(number)
        yield Fed(torch.zeros(2, 1, 1, 1), torch.zeros(2, dtype=torch.int64), 2)


def timed(clock: FakeClock, waits: dict[str, float], ahead: int = 0) -> Any:
    def step(parts: Any) -> None:
        clock.now += 1.0

    taken: list[int] = []
    feeds = [StudiedFeed(name, waiting(clock, seconds, taken), ahead) for name, seconds in waits.items()]
    told: list[tuple[str, int, int]] = []
    spans, failed = time_feeds(
        Bench(step, clock=clock, processor=clock, settle=lambda: None),
        feeds,
        25.0,
        lambda what, done, total: told.append((what, done, total)),
    )
    assert failed == {}
    return spans, told, taken


def test_the_arithmetic_of_a_study() -> None:
    spans, told, _ = timed(FakeClock(), {CEILING: 0.0, OURS: 0.25, "other": 1.0})
    there = [CEILING, OURS, "other"]
    assert [name for name, *_ in told] == [*there, *there[::-1]] * ((SPANS + 1) // 2)
    assert [place for _, place, _ in told] == list(range(18))
    assert {name: len(found) for name, found in spans.items()} == dict.fromkeys((CEILING, OURS, "other"), SPANS)
    assert [len(one.steps) for one in spans[OURS]] == [4] * SPANS
    found = study_of(FACTS, spans, dict.fromkeys(spans, ("so", ())), {"DALI": "is not here"}, {OURS: [0, 9, 95, 100]})
    ceiling, mine, other = found.feeds
    assert (ceiling.images_per_second, ceiling.ceiling_share, ceiling.next_share) == (2.0, 1.0, 0.0)
    assert (mine.images_per_second, mine.ceiling_share, mine.steps) == (1.6, 0.8, 20)
    assert (mine.data_share, mine.processor_share) == (pytest.approx(0.2), pytest.approx(0.2))
    assert mine.processor_ms == pytest.approx(625.0)
    assert (mine.next_mean_ms, mine.next_median_ms, mine.next_95_ms, mine.step_ms) == (250.0, 250.0, 250.0, 1250.0)
    assert mine.next_share == pytest.approx(0.2)
    assert mine.utilisation == (2, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    assert (other.ceiling_share, other.next_share) == (0.5, 0.5)
    for one in found.feeds:
        assert sum(one.waiting) == one.steps
        (place,) = np.flatnonzero(one.waiting)
        assert found.edges[place] <= max(one.next_mean_ms, 1e-3) * 1.0001
        assert one.next_mean_ms < found.edges[place + 1] * 1.0001
    cells = (OURS, "2", "0%", "80.0%", "20.0%", "250.0", "250.0", "20.0%", "51%")
    assert tuple(rows(found)[1].values()) == cells
    headings = ("", "images/s", "spread", "of ceiling", "CPU for data", "next() ms", "95 %", "of step", "GPU busy")
    assert {tuple(row) for row in rows(found)} == {headings}
    assert summary(found).endswith("reaches 80.0% of the ceiling, which needs no data; fed by other, 50.0%.")
    assert "batches of 2, policy none" in fact_lines(found)[0]
    assert json.loads(json.dumps(found.to_dict()))["missing"] == {"DALI": "is not here"}


def test_bars_are_as_long_as_the_shares_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans differ as the machine is busy: medians of the rates alone say 7.8 of 8.4."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    figure = Figure()
    monkeypatch.setattr(report, "drawn_figure", lambda *_: nullcontext(figure))
    monkeypatch.setattr(report, "fact_lines", lambda _: [])
    ceiling = SimpleNamespace(name=CEILING, spans=(7.6, 8.4, 9.0), images_per_second=8.4, ceiling_share=1.0)
    mine = SimpleNamespace(name=OURS, spans=(7.8, 8.6, 7.0), images_per_second=7.8, ceiling_share=8.6 / 8.4)
    found: Any = SimpleNamespace(feeds=[ceiling, mine])
    report.draw_throughput(found, Path("throughput.png"))
    [axes] = figure.axes
    widths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert widths == [1.0, 8.6 / 8.4]
    assert [text.get_text() for text in axes.texts][:2] == ["8 images/s", "102.4%   8 images/s"]
    thin = [line.get_xdata() for line in axes.lines if len(set(line.get_ydata())) == 1]
    assert thin[1] == pytest.approx([7.0 / 9.0, 7.8 / 7.6])


def test_what_is_made_ahead_is_used_up_before_a_span() -> None:
    _, _, without = timed(FakeClock(), {CEILING: 0.0})
    _, _, taken = timed(FakeClock(), {CEILING: 0.0}, ahead=7)
    assert len(taken) - len(without) == 7 * (SPANS + 1)


def test_what_an_image_costs_is_counted_while_it_is_made() -> None:
    """Where steps of the span are fed with what was made before, and what they use is made again later."""
    computed = 0.0
    clock = FakeClock()

    def step(parts: Any) -> None:
        clock.now += 1.0

    def rest() -> None:  # which makes what was taken, 3 seconds for each batch
        nonlocal computed
        computed += 3.0 * (len(taken) - made[-1])
        made.append(len(taken))

    taken: list[int] = []
    made = [0]
    bench = Bench(step, clock=clock, processor=lambda: computed, settle=rest)
    span = bench.span(StudiedFeed(OURS, waiting(clock, 0.0, taken), ahead=2), 5.0)
    assert (span.images, span.processor) == (10, pytest.approx(15.0))


def test_the_rest_goes_on_without_a_peer_that_fails() -> None:
    def broken() -> Iterator[Fed]:
        yield Fed(torch.zeros(1), torch.zeros(1), 1)
        raise OSError("the disk\nis gone")

    clock = FakeClock()
    feeds = [StudiedFeed(CEILING, waiting(clock, 1.0, [])), StudiedFeed("other", broken())]
    spans, failed = time_feeds(Bench(lambda parts: None, clock=clock, settle=lambda: None), feeds, 5.0)
    assert (set(spans), failed) == ({CEILING}, {"other": "failed: the disk is gone"})
    with pytest.raises(OSError, match="the disk"):
        time_feeds(Bench(lambda parts: None, clock=clock, settle=lambda: None), [StudiedFeed(OURS, broken())], 5.0)


def test_a_noisy_machine_and_a_lesser_peer_are_noted() -> None:
    spans = {
        CEILING: [Span(10, 1.0, 1.0, [1.0], [0.0]), Span(10, 2.0, 1.0, [1.0], [0.0])],
        OURS: [Span(10, 2.0, 1.0, [1.0], [0.5])] * 2,
    }
    found = study_of(FACTS, spans, {CEILING: ("", ()), OURS: ("", ("MixUp", "Cutout"))}, {}, {})
    assert "spans of the ceiling differ by 67%" in found.notes[0]
    assert found.notes[1] == "Variegate does less than the training run requires: it omits MixUp, Cutout"


@pytest.mark.parametrize("width", [40, 80])
def test_numbers_of_the_table_are_never_folded(width: int) -> None:
    spans = {name: [Span(12_345_678, 1.0, 1.0, [1.0], [12.3456])] * 2 for name in (CEILING, OURS)}
    found = study_of(FACTS, spans, dict.fromkeys(spans, ("", ())), {}, {})
    shown = io.StringIO()
    Console(file=shown, width=width).print(_study_table(rows(found)), crop=False)
    (told,) = [line.split() for line in shown.getvalue().splitlines() if line.startswith(OURS)]
    assert told == list(rows(found)[1].values())


def test_arrays_are_studied() -> None:
    found = study(digits(96)[0], OPTIONS, seconds=0.05)
    assert [one.name for one in found.feeds] == [CEILING, OURS]
    assert found.missing == {}
    assert all(one.steps >= 3 * SPANS for one in found.feeds)
    assert found.facts["classes"] == 10


def test_variegate_feeds_what_a_training_is_fed() -> None:
    feed = Feed(digits(80)[0], None, OPTIONS, Ranks())
    fed = ours(feed, "cpu")
    numbers = [next(fed.batches).number for _ in range(6)]
    assert numbers == [32, 32, 16] * 2
    fed.batches.close()  # type: ignore[attr-defined]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return digit_files(tmp_path / "images")


def test_the_command_prints_one_object_and_draws(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, more = tmp_path / "out", ("--study", "--study-seconds", 0.05)
    assert run("train", images, "--out", out, *SMALL, *more, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["event"] == "done"
    assert {path.name for path in (out / "study").iterdir()} == {"study.json", "throughput.png", "waiting.png"}
    written = json.loads((out / "study" / "study.json").read_text())
    assert {"facts", "feeds", "missing", "edges", "notes"} == set(written)
    assert written["feeds"] == told["feeds"]
    wanted = {"images_per_second", "ceiling_share", "data_share", "next_mean_ms", "next_median_ms", "next_95_ms"}
    assert wanted | {"next_share", "waiting", "spans", "how", "left_out"} <= set(told["feeds"][1])
    assert len(told["edges"]) == len(told["feeds"][1]["waiting"]) + 1
    for name in ("throughput", "waiting"):
        assert Image.open(told["plots"][name]).size[0] > 500
    assert run("train", images, "--out", out, *SMALL, "--epochs", 1) == 0, "a training may follow into the same folder"
    assert run("train", images, "--out", out, *SMALL, *more) == 0
    assert "Fed by Variegate, training reaches" in capsys.readouterr().out


def test_what_cannot_be_studied(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=r"study_seconds: got nan; accepted: 0\.01 or more"):
        StudyOptions(study_seconds=float("nan"))
    with pytest.raises(ValueError, match="study_seconds: got 4000; accepted: 3600 or less"):
        StudyOptions(study_seconds=4000)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run("train", images, "--out", tmp_path / "out", *SMALL, "--study") == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said == "variegate: error: --study: got several processes (torchrun); accepted: one, on one device"


class FakeNvml:
    """pynvml, of a GPU that is a tenth busier each time."""

    NVMLError = RuntimeError

    def __init__(self) -> None:
        self.asked = 0
        self.handles: list[Any] = []

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        raise self.NVMLError("a slice")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        self.handles.append(index)
        return self

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        self.asked += 1
        return SimpleNamespace(gpu=min(100, 10 * self.asked))


def test_how_busy_a_gpu_is_is_sampled_while_its_feed_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="0"))
    monkeypatch.setattr("variegate.apps.train.study._EVERY", 0.001)
    busy = Utilisation("cuda:1")
    for name in (OURS, OURS, "other"):
        with busy.watching(name):
            before = nvml.asked
            while nvml.asked < before + 5:
                time.sleep(0.001)
    assert nvml.handles == [1]
    assert list(busy.samples) == [OURS, "other"]
    assert busy.samples[OURS][:10] == list(range(10, 101, 10))
    assert set(busy.samples["other"]) == {100}
    asked = nvml.asked
    time.sleep(0.01)
    assert (nvml.asked, busy.note) == (asked, None), "nobody asks when nothing is timed"


def test_without_nvml_that_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    busy = Utilisation("cuda:0")
    with busy.watching(OURS):
        pass
    assert busy.samples == {}
    assert str(busy.note).startswith("the GPU's utilisation is not known: import of pynvml halted")
    assert Utilisation("cpu").note is None


def test_others_come_to_rest_before_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = iter([0.0, 1.0, 2.0, 3.0, 3.001, 9.0])
    looked: list[float] = []
    monkeypatch.setattr("variegate.apps.train.study.time.sleep", looked.append)
    monkeypatch.setattr("variegate.apps.train.study.processor_seconds", lambda: next(computed))
    settle()
    assert len(looked) == 4
    done: list[str] = []
    feed = StudiedFeed(OURS, waiting(FakeClock(), 1.0, []))
    bench = Bench(lambda parts: done.append("step"), settle=lambda: done.append("rest"))
    bench.span(feed, 0.0)
    assert done == ["rest", *["step"] * (len(done) - 2), "rest"]


def test_threads_of_torch_do_not_spin_for_long(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, given in (("GOMP_SPINCOUNT", "5"), ("OMP_WAIT_POLICY", "ACTIVE"), ("nothing", "")):
        with monkeypatch.context() as patched:
            for one in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
                patched.setenv(one, "")  # so that what is set comes to an end
                patched.delenv(one)
            patched.setenv(name, given)
            assert run("train", images, "--out", tmp_path / "out", "--model", "none") == 2
            assert os.environ.get("GOMP_SPINCOUNT") == {"GOMP_SPINCOUNT": "5", "nothing": "10000"}.get(name)
