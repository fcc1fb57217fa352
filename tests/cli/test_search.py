"""``variegate search`` and ``variegate evaluate`` as a user meets them."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.cli.searches import SMALL, run, search

PBA = ("--method", "pba")


def test_a_search_and_what_it_was_worth(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "search"
    assert search(stripes, out) == 0
    shown, told = capsys.readouterr()
    assert f"{out}/schedule.json: 4 epochs, of member " in shown
    steps = [line for line in told.splitlines() if not line.startswith("note: ")]
    assert [line.split(":")[0] for line in steps] == ["sizes", "step 1/2", "step 2/2"]
    assert Image.open(out / "search.png").format == "PNG"
    assert vg.load_policy(out / "schedule.json") is not None
    policies = f"none,flip+crop,autoaugment,{out}/schedule.json"
    plot = tmp_path / "evaluate.png"
    training = (*SMALL, "--epochs", 2, "--repeats", 2, "--devices", "cpu", "--out", plot)
    assert run("evaluate", stripes, "--policies", policies, *training) == 0
    table, told = capsys.readouterr()
    assert "note: schedule.json was searched on 60 of the 60 images from which those that score are taken" in told
    assert "  to " in table.splitlines()[0]
    # The head, which says what the intervals cover, takes several lines.
    lines = table[table.index("s per run") :].splitlines()[1:]
    assert [line.split()[0] for line in lines[:4]] == ["none", "flip+crop", "autoaugment", "schedule.json"]
    verdict, scope = lines[4:6]
    assert verdict.startswith(("No difference shown: schedule.json is ", "schedule.json is ", "schedule.json and "))
    assert scope.startswith("Intervals cover the chance in training, where 48 of 60 images train and 12 others score.")
    assert Image.open(plot).format == "PNG"


def test_lines_of_json(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(stripes, tmp_path / "search", "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["start", "step", "step", "done"]
    sizes = {"images": 60, "train": 32, "score": 28, "batch_size": 16, "epochs": 4, "model": "wrn-10-1", "test": 0}
    chosen = {"size": [8, 8], "members": 4, "devices": ["cpu:0"], "policies": [], "repeats": 0, "budget": None}
    assert events[0] == {"event": "start", **sizes, **chosen}
    assert (events[1]["epoch"], events[2]["copies"]) == (2, [])
    assert len(events[1]["copies"]) == (0 if events[1]["is_flat"] else 1)
    assert run("evaluate", stripes, "--policies", "None,Crop+Flip", *SMALL, "--epochs", 1, "--repeats", 2, "--json",
               "--devices", "cpu", "--out", tmp_path / "e.png") == 0  # fmt: skip
    start, *trials, done = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (start["event"], start["train"], start["score"], start["repeats"]) == ("start", 48, 12, 2)
    assert [(trial["event"], trial["candidate"]) for trial in trials] == [
        ("training", "none"),
        ("training", "flip+crop"),
    ] * 2
    none, crop = done["policies"]
    assert none["accuracies"] == [trial["score"] for trial in trials[::2]]
    differences = [a - b for a, b in zip(crop["accuracies"], none["accuracies"], strict=True)]
    pair = next(one for one in done["pairs"] if (one["policy"], one["to"]) == ("flip+crop", "none"))
    assert pair["each"] == pytest.approx(differences)
    assert pair["low"] <= pair["mean"] <= pair["high"]
    assert done["reference"] in ("none", "flip+crop")
    assert (done["repeats"], len(done["verdicts"]), crop["needs_search"]) == (2, 1, False)
    assert done["scope"].startswith("Intervals cover")


def test_a_search_ends_by_comparing_its_result(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "search"
    assert search(stripes, out, "--repeats", 2, "--epochs", 2) == 0
    shown, told = capsys.readouterr()
    assert "sizes: 32 of 60 images train, 16 score, 12 compare; wrn-10-1" in told
    assert "\nOn 12 images that the search has not seen: none " in shown
    assert len((out / "comparison.jsonl").read_text().splitlines()) == 9  # after the settings
    assert json.loads((out / "comparison.json").read_text())["is_complete"]
    schedule: Any = vg.load_policy(out / "schedule.json")
    assert schedule.resolved.has_base_augment
    space = schedule.resolved.to_dict()["space"]
    assert (space["crop"], space["flip"], space.get("cutout")) == (0.125, True, None)
    assert search(stripes, out, "--repeats", 2, "--epochs", 2, "--json") == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert done["verdict"].startswith("On 12 images that the search has not seen: none ")
    test = lay(tmp_path / "test", {"all": 6, "half": 6})
    assert search(stripes, tmp_path / "other", "--repeats", 1, "--epochs", 1, "--test", test, "--around", "fixed") == 0
    assert "On 12 images that the search has not seen: none " in capsys.readouterr().out
    few = lay(tmp_path / "few", {"a": 10, "b": 10})
    assert run("search", few, *PBA, "--out", tmp_path / "third", "--population", 2, "--epochs", 1, *SMALL[:2]) == 0
    assert "note: too few images to hold some out and compare the result; --test SRC2" in capsys.readouterr().err


def lay(folder: Path, counts: dict[str, int], side: int = 8) -> Path:
    rng = np.random.default_rng(1)
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 256, (side + number % 3 * (side > 8), side, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["search", "{src}", *PBA, "--train", "100"],
            "train: got 100, of 48 images in 2 classes, with 12 more held out",
        ),
        (
            ["search", "{src}", *PBA, "--train", "32", "--operations", "no.such:Haze"],
            "operations: got 'no.such' (ModuleNotFound",
        ),
        (["evaluate", "{src}", "--import", "no_such"], "import: got 'no_such' (ModuleNotFoundError: No module named"),
        (
            ["search", "{src}", *PBA, "--train", "32", "--model", "resnet", "--batch-size", "9"],
            "model: got 'resnet'; accepted: wrn-",
        ),
        (["search", "{src}", *PBA, "--address", "auto"], "--address: got 'auto'; accepted: with --backend ray"),
        (
            ["search", "{src}", *PBA, "--gpus-per-member", "1"],
            "--gpus-per-member: got 1.0; accepted: with --backend ray",
        ),
        (
            ["search", "{src}", *PBA, "--backend", "ray", "--devices", "cpu"],
            "--devices: got 'cpu'; accepted: with --backend local",
        ),
        (["search", "{src}", *PBA, "--train", "32", "--model", "no:x:y", "--batch-size", "9"], "model no:x:y: "),
        (["search", "{src}/all"], "has one class (.); accepted: two or more, in folders of their own"),
        (
            ["search", "{src}", *PBA, "--out", "{src}"],
            "stripes: holds files of something else (all); choose an empty folder",
        ),
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
    assert "note: skipped 4 of 60 images, which cannot be read" in capsys.readouterr().err


def test_a_lost_population_leaves_one_line(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(stripes, tmp_path / "search", "--lr", "1e30") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
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
    assert shown.err.splitlines()[1:] == [
        *(line for line in shown.err.splitlines() if line.startswith("none, round 1: diverged, ")),
        "note: none: 1 of its training runs diverged (the loss is not finite) and count as 0; a lower --lr may help",
        f"variegate: error: {plot.with_suffix('.json')}: the disk is full (No space left on device)",
    ]
    assert run("evaluate", stripes, "--policies", "none", *training, "--out", tmp_path / "f.png", "--json") == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["start", "training", "done", "error"]
    assert (events[1]["score"], events[2]["plot"]) == (None, None)


def test_evaluate_trains_on_as_many_images_as_there_are(stripes: Path, tmp_path: Path) -> None:
    training = (*SMALL, "--epochs", 1, "--repeats", 1, "--devices", "cpu", "--out", tmp_path / "e.png")
    assert run("evaluate", stripes, "--policies", "none", "--test", stripes, "--train", 60, *training) == 0


RAY = ("--method", "pba", "--train", "32", "--backend", "ray", *SMALL)


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
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # which other tests may have done in this process
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
