"""``variegate search`` and ``variegate evaluate`` as a user meets them."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from variegate.cli import main

SMALL = ("--model", "wrn-10-1", "--batch-size", 16, "--padding", 1, "--cutout", 0)


@pytest.fixture
def stripes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(60):
        pixels = rng.integers(60, 120, (8, 8, 3)).astype(np.uint8)
        pixels[:: 1 + number % 2] += 60
        path = tmp_path / "stripes" / ("all", "half")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return tmp_path / "stripes"


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def search(stripes: Path, out: Path, *more: object) -> int:
    population = ("--train", 32, "--population", 4, "--epochs", 4, "--interval", 2)
    return run("search", stripes, "--out", out, *population, *SMALL, "--devices", "cpu", *more)


def test_a_search_and_what_it_was_worth(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "search"
    assert search(stripes, out) == 0
    shown, told = capsys.readouterr()
    assert f"{out}/schedule.json: 4 epochs, of member " in shown
    steps = [line for line in told.splitlines() if not line.startswith("note: ")]
    assert [line.split(":")[0] for line in steps] == ["step 1/2", "step 2/2"]
    for name in ("schedule.png", "population.png"):
        assert Image.open(out / name).format == "PNG"
    assert vg.load_policy(out / "schedule.json") is not None
    policies = f"none,flip-crop,autoaugment,{out}/schedule.json"
    plot = tmp_path / "evaluate.png"
    training = (*SMALL, "--epochs", 2, "--repeats", 2, "--devices", "cpu", "--out", plot)
    assert run("evaluate", stripes, "--policies", policies, *training) == 0
    table = capsys.readouterr().out
    assert [line.split()[0] for line in table.splitlines()[1:5]] == [
        "none",
        "flip-crop",
        "autoaugment",
        "schedule.json",
    ]
    assert Image.open(plot).format == "PNG"


def test_lines_of_json(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(stripes, tmp_path / "search", "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["start", "step", "step", "done"]
    assert events[0] == {"event": "start", "train": 32, "validation": 28, "members": 4, "devices": ["cpu:0"]}
    assert (events[1]["epoch"], events[2]["copies"]) == (2, [])
    assert len(events[1]["copies"]) == (0 if events[1]["is_flat"] else 1)
    assert run("evaluate", stripes, "--policies", "none", *SMALL, "--epochs", 1, "--repeats", 1, "--json",
               "--devices", "cpu", "--out", tmp_path / "e.png") == 0  # fmt: skip
    trial, done = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert trial["event"] == "trial"
    assert done["policies"][0]["accuracies"] == [trial["accuracy"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "{src}", "--train", "100"], "60 images are not enough for 100 to train and some to validate"),
        (
            ["search", "{src}", "--train", "32", "--model", "resnet", "--batch-size", "9"],
            "model: got 'resnet'; accepted: wrn-",
        ),
        (["search", "{src}", "--train", "32", "--operations", "Rotate,Spin"], "Spin"),
        (["search", "{src}", "--train", "32", "--space", "mine"], "mine"),
        (["search", "{src}", "--train", "32", "--devices", "gpu"], "devices: got 'gpu'"),
        (["search", "{src}", "--train", "32", "--devices", "reference"], "devices: got 'reference:0', which trains"),
        (["search", "{src}", "--address", "auto"], "--address: got 'auto', with --backend local; accepted: with"),
        (["search", "{src}", "--gpus-per-member", "1"], "--gpus-per-member: got 1.0, with --backend local"),
        (["search", "{src}", "--backend", "ray", "--devices", "cpu"], "--devices: got 'cpu', with --backend ray"),
        (["search", "{src}", "--backend", "rya"], "--backend"),
        (["search", "{src}", "--train", "32", "--lr", "0"], "lr: got 0.0; accepted: more than 0"),
        (["search", "{src}", "--train", "32", "--lr", "inf"], "lr: got inf; accepted: more than 0, and finite"),
        (["search", "{src}", "--train", "32"], "batch_size: got 128, with 32 images to train; accepted: no more"),
        (
            ["search", "{src}", "--train", "32", "--model", "no:x:y", "--batch-size", "9"],
            "model no:x:y: ",
        ),  # and no emoji for :x:
        (["search", "{src}/all"], "has one class (.); accepted: two or more, in folders of their own"),
        (["search", "{src}", "--out", "{src}"], "stripes: holds files of something else (all); choose an empty folder"),
        (["search", "{src}", "--out", "{src}/all/0.png"], "0.png: is a file; accepted: a folder, or a name that is"),
        (["search", "{src}", "--train", "32", "--momentum", "-1"], "--momentum"),
        (["search", "{src}/gone"], "no such file or folder"),
        (["search", "{src}", "--population", "1"], "--population"),
        (["evaluate", "{src}", "--policies", "none,none"], "policies: got 'none' twice"),
        (["evaluate", "{src}", "--policies", "nonsense"], "nonsense"),
        (["evaluate", "{src}", "--out", "{src}/gone/x.png"], "accepted: a file in a folder that is there"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    stripes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*(argument.format(src=stripes) for argument in arguments)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "search").exists()


def test_images_that_cannot_be_read_are_counted(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        (stripes / "all" / f"{2 * number}.png").write_bytes(b"no image")
    assert search(stripes, tmp_path / "search", "--epochs", 1) == 0
    assert "note: 4 of 60 images cannot be read and are left out" in capsys.readouterr().err


def test_a_lost_population_leaves_one_line(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(stripes, tmp_path / "search", "--lr", "1e30") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "variegate: error: epoch 2: none of 4 members has a score (all NaN); a lower --lr may help, with another "
        "folder as --out"
    ]


def test_a_table_outlasts_a_plot_that_cannot_be_written(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    plot = tmp_path / "e.png"
    training = (*SMALL, "--epochs", 1, "--repeats", 1, "--devices", "cpu", "--lr", "1e30", "--out", plot)
    assert run("evaluate", stripes, "--policies", "none", *training) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split()[:2] == ["none", "0.00%"]
    assert shown.err.splitlines() == [
        "note: none: 1 of its trainings diverged (the loss is not finite) and count as 0; a lower --lr may help",
        f"variegate: error: {plot}: the disk is full (No space left on device)",
    ]
    assert run("evaluate", stripes, "--policies", "none", *training, "--json") == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["trial", "done", "error"]
    assert (events[0]["accuracy"], events[1]["plot"]) == (None, None)


def test_evaluate_trains_on_as_many_images_as_there_are(stripes: Path, tmp_path: Path) -> None:
    training = (*SMALL, "--epochs", 1, "--repeats", 1, "--devices", "cpu", "--out", tmp_path / "e.png")
    assert run("evaluate", stripes, "--policies", "none", "--test", stripes, "--train", 60, *training) == 0


RAY = ("--train", "32", "--backend", "ray", *SMALL)


def test_images_to_test_on_have_the_same_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    for name, classes in (("three", 3), ("two", 2), ("four", 4)):
        columns = {"image": [{"bytes": buffer.getvalue()}] * 24, "label": [n % classes for n in range(24)]}
        parquet.write_table(arrow.table(columns), tmp_path / f"{name}.parquet")
    training = (*SMALL, "--epochs", 1, "--repeats", 1, "--devices", "cpu", "--out", tmp_path / "e.png")
    for test, code in (("two", 0), ("four", 2)):  # no image of the third class; one that is not trained
        source = tmp_path / "three.parquet"
        given = ("--policies", "none", "--test", tmp_path / f"{test}.parquet")
        assert run("evaluate", source, *given, *training) == code
    assert "four.parquet: other classes, or images of another size, than " in capsys.readouterr().err


def test_a_ray_that_is_not_there_is_one_line(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "search"
    pytest.importorskip("ray")
    assert run("search", stripes, "--out", out, *RAY, "--address", "ray://there:10001") == 2
    assert "address: got 'ray://there:10001', which Tune's scheduler" in capsys.readouterr().err
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert run("search", stripes, "--out", out, *RAY, "--address", f"127.0.0.1:{port}") == 1
    assert "where no Ray cluster answers" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run("search", stripes, "--out", out, *RAY) == 2
    assert "backend='ray' needs Ray Tune: pip install 'variegate[ray]'" in capsys.readouterr().err


def test_ray_is_imported_when_it_is_asked_for() -> None:
    modules = "variegate.cli.search, variegate.search.local, variegate.search.tune"
    probe = f"import sys, {modules}; print('ray' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=100)
    assert ran.stdout.strip() == "False"
