"""Feeds of peers beside Variegate's: those that are missing, and what is asked of those that are there."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run_feeds import main
from benchmarks.training.peers import PEERS, normalisation_of, open_peers, spelled, steps_of
from tests.apps.train.digits import SMALL, digit_files, digits
from variegate import transforms as T
from variegate.apps.train import TrainOptions
from variegate.apps.train.feed import Feed
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.study import SPANS, study
from variegate.apps.train.study_report import CEILING, OURS

OPTIONS = TrainOptions(model="wrn-10-1", policy="flip+crop", padding=1, batch_size=32, device="cpu", threads=1)


def missing_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def importing(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith(("torchvision", "nvidia")):
            raise ImportError(f"No module named {name!r}")
        return plain(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_arrays_and_peers_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing_peers(monkeypatch)
    found = study(digits(96)[0], OPTIONS, seconds=0.05, open_others=open_peers)
    assert [one.name for one in found.feeds] == [CEILING, OURS]
    assert set(found.missing) == set(PEERS)
    assert found.missing["DALI"].startswith("nvidia.dali cannot be imported: No module named 'nvidia")
    assert all(one.steps >= 3 * SPANS for one in found.feeds)
    assert found.facts["classes"] == 10


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return digit_files(tmp_path / "images")


def run_feeds(images: Path, out: Path, *more: object) -> int:
    return main([str(one) for one in (images, "--out", out, *SMALL, "--study-seconds", 0.05, *more)])


def test_the_command_prints_one_object_and_draws(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing_peers(monkeypatch)
    assert run_feeds(images, tmp_path / "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["event"] == "done"
    study = tmp_path / "out" / "study"
    assert {path.name for path in study.iterdir()} == {"study.json", "throughput.png", "waiting.png"}
    written = json.loads((study / "study.json").read_text())
    assert written["missing"] == told["missing"]
    assert set(told["missing"]) == set(PEERS)
    assert run_feeds(images, tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "DALI: not timed, nvidia.dali cannot be imported" in shown
    assert "Fed by Variegate, training reaches" in shown


def test_what_is_typed_wrong_ends_it_with_a_line(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_feeds(images, tmp_path / "out", "--study-seconds", 4000) == 2
    assert capsys.readouterr().err == "variegate: error: --study-seconds: got 4000.0; accepted: 3600 or less\n"
    assert run_feeds(images, tmp_path / "out", "--no-such") == 2
    assert "--no-such" in capsys.readouterr().err


class Spelling:
    """torchvision's names, as what was asked of them."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: (name, *arguments)


def test_what_torchvision_is_asked_to_do() -> None:
    options = TrainOptions(
        policy="rand-m9-mstd0.5-inc1+flip+crop+cutout2", model="wrn-10-1", batch_size=8, device="cpu"
    )
    feed = Feed(digits(32)[0], None, options, Ranks())
    steps, left_out = spelled(Spelling(), feed)
    assert [step[0] for step in steps] == ["RandomCrop", "RandomHorizontalFlip", "PILToTensor", "ToDtype", "Normalize"]
    assert steps[0] == ("RandomCrop", (8, 8), 1, False)
    assert left_out == ("TimmRandAugment", "Cutout")
    policy = T.Compose([T.RandomResizedCrop(24), T.RandAugment(3, 7), T.TrivialAugmentWide(), T.Normalize(0.5, 0.25)])
    assert [type(step).__name__ for step in steps_of(policy)] == [
        "RandomResizedCrop",
        "RandAugment",
        "TrivialAugmentWide",
    ]
    assert normalisation_of(policy) == ([0.5], [0.25])
