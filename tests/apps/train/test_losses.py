"""Losses of samples, recorded: each draw's once, wherever a run was stopped, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.apps.train.digits import digit_files, digits, losses, options
from tests.apps.train.digits import lines as lines_of
from tests.needed import needs
from variegate.apps.train import train
from variegate.apps.train.checkpoints import Checkpoints
from variegate.apps.train.learner import Learner
from variegate.apps.train.losses import LossRecorder, RecordedLosses
from variegate.apps.train.ranks import Ranks
from variegate.policies.load import load_policy

pytestmark = needs("sklearn")


def recorded(out: Path, epochs: int = 3) -> Any:
    """float16 [epochs, copies, N]"""
    return RecordedLosses(out, (0, epochs)).losses


def test_they_are_those_of_the_log_and_change_nothing(tmp_path: Path) -> None:
    source, _ = digits(200)
    chosen: dict[str, Any] = {"policy": "randaugment", "precision": "bfloat16", "label_smoothing": 0.1}
    train(source, options(tmp_path / "with", report=True, accumulate=2, batch_size=16, **chosen))
    train(source, options(tmp_path / "without", accumulate=2, batch_size=16, **chosen))
    assert lines_of(tmp_path / "with") == lines_of(tmp_path / "without")
    found = recorded(tmp_path / "with")
    assert found.shape == (3, 1, 200)
    # The last step of an epoch has 8 images.
    steps = np.reshape(losses(tmp_path / "with"), (3, 7)) * ([32] * 6 + [8])
    assert found.sum((1, 2), dtype=np.float64) == pytest.approx(steps.sum(1), rel=1e-3)
    assert load_policy(RecordedLosses(tmp_path / "with").transform).to_dict()["transforms"][0]["type"] == "RandAugment"


@pytest.mark.parametrize("dies_in", ["step", "save"])
def test_a_run_that_is_killed_has_each_draw_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str) -> None:
    """Where losses were written, and the checkpoint after them was not, draws come again and have their old place."""
    source, _ = digits(200)
    chosen: dict[str, Any] = {"report": True, "copies": 2, "cutmix": 1.0, "loss": "bce"}
    train(source, options(tmp_path / "whole", **chosen))

    def die(owner: Any, step: int, *more: Any) -> Any:
        if step == 20:
            raise ZeroDivisionError
        return before(owner, step, *more)

    owner: Any = Learner if dies_in == "step" else Checkpoints
    name = "begin_step" if dies_in == "step" else "save"
    before = getattr(owner, name)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, die)
        with pytest.raises(ZeroDivisionError):
            train(source, options(tmp_path / "parts", checkpoint_every=5, **chosen))
    some = np.isfinite(recorded(tmp_path / "parts", 2)[1]).sum()
    assert 0 < some < 400
    train(source, options(tmp_path / "parts", **chosen))
    whole = recorded(tmp_path / "whole")
    assert whole.shape == (3, 2, 200)
    assert np.isfinite(whole).all()
    assert np.array_equal(recorded(tmp_path / "parts"), whole)


def test_images_that_cannot_be_read_have_none(tmp_path: Path) -> None:
    folder = digit_files(tmp_path / "photos")
    bad = sorted(folder.rglob("*.png"))[5]
    bad.write_bytes(bad.read_bytes()[:60])
    train(folder, options(tmp_path / "out", model="wrn-10-1", batch_size=16, report=True))
    assert np.isnan(recorded(tmp_path / "out")).sum((1, 2)).tolist() == [1, 1, 1]


def test_what_cannot_be_recorded_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^report: got True with epochs=1; accepted: with 2 epochs or more$"):
        options(tmp_path, report=True, epochs=1)
    with pytest.raises(
        ValueError, match=r"^run: got .*, which has no losses; accepted: a folder of variegate train --rep"
    ):
        RecordedLosses(tmp_path)
    with pytest.raises(
        ValueError, match=r"^report: got a stream, whose samples are not known beforehand; accepted: samp"
    ):
        LossRecorder(SimpleNamespace(source=iter(())), Ranks())  # type: ignore[arg-type]
    source, _ = digits(64)
    train(source, options(tmp_path, report=True))
    with pytest.raises(ValueError, match=r"^epochs: got \(2, 9\); accepted: \(first, end\) within \(0, 3\)$"):
        RecordedLosses(tmp_path, (2, 9))
    assert RecordedLosses(tmp_path).epochs == (1, 3)
    (tmp_path / "report" / "losses" / "0002.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"^run: .*report: is damaged \(.*\); train again into another folder$"):
        RecordedLosses(tmp_path)
