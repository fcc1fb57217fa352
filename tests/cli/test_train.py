"""``variegate train`` as a user meets it."""

from __future__ import annotations

import io
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.children import start_python
from tests.cli.searches import run
from variegate.cli import main
from variegate.cli.render import rendering
from variegate.cli.train import _looks
from variegate.learn.events import EpochEnded, Logged
from variegate.learn.fit import Fit, one_thread_each

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """As in the processes that are killed: sums are added in the same order."""
    with one_thread_each("cpu"):
        yield


SMALL = ("--model", "wrn-10-1", "--batch-size", 10, "--epochs", 3, "--devices", "cpu", "--threads", 1)


def train(stripes: Path, out: Path, *more: object) -> int:
    return run("train", stripes, "--out", out, *SMALL, *more)


def logged(out: Path) -> list[dict[str, Any]]:
    lines = (out / "log.jsonl").read_text().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return [{name: one for name, one in line.items() if name not in ("images_per_second", "waiting")} for line in whole]


def test_a_training_and_the_same_command_again(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert train(stripes, out, "--validation", stripes, "--policy", "trivialaugment") == 0
    shown, told = capsys.readouterr()
    assert shown.startswith(f"{out}: 3 epochs, 18 steps, top-1 ")
    network, begun, *epochs = told.splitlines()
    assert network == "wrn-10-1, 3 epochs, batches of 10 images of 8x8: 60 images of 8x8"
    assert begun == "total batch size 10; learning rate 0.1"
    assert [line.split(": loss ")[0] for line in epochs] == ["epoch 1", "epoch 2", "epoch 3"]
    files = {"augmentation.json", "checkpoints", "log.jsonl", "model.pt", "train.json"}
    assert {path.name for path in out.iterdir()} == files
    assert train(stripes, out, "--validation", stripes, "--policy", "trivialaugment", "--json") == 0
    shown, told = capsys.readouterr()
    assert told == ""
    done = json.loads(shown)
    assert {"epoch", "step", "loss", "lr", "images_per_second", "waiting", "top1", "seconds"} <= set(done)
    assert (done["event"], done["epoch"], done["step"]) == ("done", 2, 18)
    assert [line["top1"] for line in logged(out) if "top1" in line][-1] == done["top1"]


def test_a_policy_that_is_not_given_is_a_line(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert train(stripes, out, "--epochs", 1) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note:")]
    assert len(notes) == 1
    assert notes[0].startswith("note: --policy is not given: crop alone, which moves images and never mirrors them. ")
    assert train(stripes, out, "--epochs", 1, "--policy", "crop", "--json") == 0, "the same run"
    assert capsys.readouterr().err == ""
    assert train(stripes, out, "--epochs", 1, "--policy", "none") == 2
    assert "with --policy 'crop', this one has 'none'" in capsys.readouterr().err
    assert train(stripes, tmp_path / "other", "--policy", "flip-crop") == 2
    assert "--policy: got 'flip-crop', an old name; accepted: flip+crop, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--model", "resnet"), "model: got 'resnet'; accepted: wrn-DEPTH-WIDTH"),
        (("--averaging", "sometimes"), "averaging: got 'sometimes'; accepted: 'sync', 'async', or 'periodic:K'"),
        (("--batch-size", 61), "--batch-size: got 61, with 60 images to train; accepted: no more than that in a step"),
        (("--policy", "randagument"), "randagument"),
        (("--warmup", 3), "warmup: got 3.0; accepted: fewer than the 3 epochs"),
        (("--devices", "gpu"), "--devices: got 'gpu'"),
    ],
)
def test_what_was_typed_wrongly(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[object, ...], said: str
) -> None:
    assert train(stripes, tmp_path / "out", *more) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("variegate: error: ")
    assert said in told[0]
    assert not (tmp_path / "out").exists()


def test_other_classes_and_a_missing_one(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "all").symlink_to(stripes / "all")
    assert train(stripes, tmp_path / "out", "--validation", other) == 2
    assert f"{other}: has other classes than {stripes} (half); accepted: the same 2" in capsys.readouterr().err
    assert train(other, tmp_path / "out") == 2
    assert f"{other}: has one class (all); accepted: two or more" in capsys.readouterr().err


def test_images_that_cannot_be_read_are_told(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stripes / "all" / "broken.jpg").write_bytes(b"\xff\xd8")
    assert train(stripes, tmp_path / "out", "--epochs", 1) == 0
    assert f"note: skipped 1 unreadable image: {stripes}/all/broken.jpg: " in capsys.readouterr().err
    for number in range(9):
        (stripes / "all" / f"broken{number}.jpg").write_bytes(b"\xff\xd8")
    assert train(stripes, tmp_path / "other", "--epochs", 1) == 1
    assert "samples could not be read, max_errors=0.1 allows" in capsys.readouterr().err


def test_a_loss_that_diverges_fails(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(stripes, tmp_path / "out", "--lr", 1e20, "--clip", 0) == 1
    assert "a lower --lr (it is 1e+20)" in capsys.readouterr().err


# Slow enough to be killed in the middle, and the losses are logged at once.
SLOWLY = """
import sys, time
from variegate.cli import main
from variegate.learn import progress
from variegate.cli.render import rendering
from variegate.cli.train import _looks
from variegate.learn.events import EpochEnded, Logged
from variegate.learn.fit import Fit, one_thread_each
progress._TELL_SECONDS, update = 0.0, Fit._update
Fit._update = lambda *given: (time.sleep(0.05), update(*given))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.process
def test_killed_and_interrupted_it_goes_on_to_the_same_digits(
    stripes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, more = tmp_path / "parts", ("--checkpoint-every", 4)
    process = start_python(SLOWLY, "train", stripes, "--out", out, *SMALL, *more)
    until = time.monotonic() + 120
    while len(list(out.glob("checkpoints/step-*"))) < 1 or len(logged(out)) < 9:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert 9 <= len(logged(out)) < 18

    update = Fit._update

    def interrupt(fit: Fit, lr: float) -> None:
        if fit.steps == 15:
            signal.raise_signal(signal.SIGINT)
        update(fit, lr)

    with monkeypatch.context() as patched:
        patched.setattr(Fit, "_update", interrupt)
        assert train(stripes, out, *more) == 130
    assert "interrupted: progress is saved; to resume, run the same command again" in capsys.readouterr().err
    assert logged(out)[-1]["step"] == 15
    assert train(stripes, out, *more) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1].startswith(f"{out}: 3 epochs, 18 steps, loss ")
    assert train(stripes, tmp_path / "whole", "--json") == 0
    assert logged(out) == logged(tmp_path / "whole")


def test_what_a_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("variegate.cli.render.stderr", lambda: Console(file=shown, force_terminal=True, width=120))
    line = {"epoch": 0, "step": 7, "loss": 0.5, "lr": 0.1, "images_per_second": 1234.5, "waiting": 0.25}
    with rendering(False, _looks()) as view:
        view(Logged(line, 3))
        view(EpochEnded(1, 0.5, 1234.5, {"top1": 0.5}))
    text = shown.getvalue()
    assert "step 7: loss 0.5000, 1,234 images/s, 25% waiting" in text
    assert "0/3" in text
    assert "epoch 1" not in text, "a line an epoch is for files"


@pytest.mark.parametrize(("rank", "objects"), [("0", 1), ("1", 0)])
def test_ranks_print_one_object_of_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rank: str,
    objects: int,
) -> None:
    monkeypatch.setenv("RANK", rank)
    assert main(["train", str(tmp_path), "--epochs", "0", "--json"]) == 2
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == objects
    assert "variegate: error: " in told.err
