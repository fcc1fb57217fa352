"""A race by ``variegate search``, and an evaluation that is broken off, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests.cli.searches import run
from variegate.learn.image_race import ImageRace, WholeTrainings

TINY = ("--model", "tests.learn.search.crashing:linear", "--batch-size", 16, "--epochs", 1, "--devices", "cpu")
RACE = ("--policies", "none,flip,randaugment-1-5+flip+crop1", "--rounds", 2, *TINY)


def race(stripes: Path, out: Path, *more: object) -> int:
    return run("search", stripes, "--out", out, *RACE, *more)


def test_a_race_and_its_policy(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "race"
    assert race(stripes, out) == 0
    shown, told = capsys.readouterr()
    lines = told.splitlines()
    assert lines[0].startswith("sizes: 48 of 60 images train, 12 score; tests.learn.search.crashing:linear, 1 epoch, ")
    assert ", 3 policies within 1,800 s, 8x8" in lines[0]
    rounds = [line for line in lines if " leads with " in line]
    assert [line.split(":")[0] for line in rounds][:2] == ["round 1", "round 2"]
    assert all(" left" in line for line in rounds)
    assert lines[1].startswith("none, round 1: ")
    assert Image.open(out / "search.png").format == "PNG"
    table, (verdict, cost, use) = shown.splitlines()[:-3], shown.splitlines()[-3:]
    assert table[0].split() == ["policy", "stage", "rounds", "accuracy", "behind", "its", "leader", "left"]
    assert " variation" in verdict
    assert cost.startswith("cost: ")
    assert cost.endswith(" seconds")
    assert use == f"use it: variegate train SRC --policy {out}/policy.json"
    assert vg.load_policy(out / "policy.json") is not None
    assert race(stripes, out) == 0  # nothing is trained again
    assert capsys.readouterr().out == shown
    assert race(stripes, out, "--rounds", 3) == 0  # more rounds resume it
    assert "round 3: " in capsys.readouterr().err
    assert race(stripes, out, "--seed", 4) == 2
    assert "race: holds a race with seed 0, this one has 4; choose another name" in capsys.readouterr().err


def test_lines_of_json(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert race(stripes, tmp_path / "race", "--json", "--budget", "2m") == 0
    start, *middle, done = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (start["event"], start["policies"], start["budget"]) == (
        *("start", ["none", "flip", "randaugment-1-5+flip+crop1"], 120.0),
    )
    assert [one["event"] for one in middle][:4] == ["training"] * 3 + ["round"]
    assert middle[3].keys() == {"event", "stage", "number", "leader", "mean", "left", "dropped"}
    assert (done["event"], done["policy"]) == ("done", str(tmp_path / "race" / "policy.json"))
    assert done["standings"][0]["candidate"] == done["winner"]


def test_a_budget_that_holds_no_two_rounds(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert race(stripes, tmp_path / "race", "--budget", "0.000001s") == 1
    shown, told = capsys.readouterr()
    assert shown == ""
    *_, error = told.splitlines()
    assert "No verdict: a race needs two complete rounds; the budget ended it after 0." in error
    assert error.endswith("images or candidates help. To resume, run the same command with a higher --budget.")
    assert not (tmp_path / "race" / "policy.json").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--population", 4), "--population: got 4; accepted: with --method pba"),
        (("--operations", "Rotate"), "--operations: got 'Rotate'; accepted: with --method pba"),
        (("--address", "a:b@there"), "--address: got 'there'; accepted: with --backend ray"),
        (("--method", "pba", "--rounds", 3), "--rounds: got 3; accepted: with --method race"),
        (("--method", "pba", "--policies", "none"), "--policies: got 'none'; accepted: with --method race"),
        (("--method", "fast"), "--method"),
        (("--budget", "soon"), "budget: got 'soon'; accepted: seconds, or a number with a unit"),
        (("--policies", "none"), "policies: got 1; accepted: two or more"),
        (("--policies", "none,randaug"), "randaug"),
        (
            ("--policies", "none,flip+spin"),
            "policies: got 'spin' in 'flip+spin'; accepted: none, or a policy and parts",
        ),
    ],
)
def test_bad_input(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[object, ...], said: str
) -> None:
    assert run("search", stripes, "--out", tmp_path / "out", *options) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_folder_goes_on_with_its_method(stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--population", 2, "--interval", 1, *TINY)
    for name, method in (("pba", ("--method", "pba", *small)), ("race", RACE)):
        assert run("search", stripes, "--out", tmp_path / name, *method) == 0
    capsys.readouterr()
    assert run("search", stripes, "--out", tmp_path / "pba", *small) == 0
    assert "pba/schedule.json: 1 epoch," in capsys.readouterr().out
    for name, other in (("pba", "race"), ("race", "pba")):
        assert run("search", stripes, "--out", tmp_path / name, "--method", other) == 2
        said = f"{name}: holds a search with --method {name}, this one has {other}; choose another folder"
        assert said in capsys.readouterr().err


EVALUATE = ("--policies", "none,flip,randaugment+crop2", "--repeats", 2, *TINY)


def test_a_broken_off_evaluation_goes_on(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.png", tmp_path / "e.png"
    assert run("evaluate", stripes, *EVALUATE, "--out", whole) == 0
    shown, told = capsys.readouterr()
    trained = [line.split(",")[0] for line in told.splitlines() if ", round " in line]
    assert trained == ["none", "flip", "randaugment+crop2"] * 2
    head = shown[: shown.index("s per run")].split()
    assert {"(95", "on", "these", "images)"} <= set(head)
    train, trained = WholeTrainings.train, list[str]()

    def breaks(self: WholeTrainings, row: object, *given: object) -> object:
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.append(str(row))
        return train(self, row, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(WholeTrainings, "train", breaks)
    assert run("evaluate", stripes, *EVALUATE, "--out", out) == 130
    monkeypatch.undo()
    capsys.readouterr()
    assert run("evaluate", stripes, *EVALUATE, "--epochs", 2, "--out", out) == 2
    assert "e.jsonl: holds an evaluation with epochs 1, this one has 2; choose another name" in capsys.readouterr().err
    assert run("evaluate", stripes, *EVALUATE, "--out", out) == 0
    again, told = capsys.readouterr()
    assert "note: resuming after 4 of 6 training runs" in told
    assert told.count(", round ") == 2
    accuracies = [
        {one["policy"]: one["accuracies"] for one in json.loads(path.with_suffix(".json").read_text())["policies"]}
        for path in (whole, out)
    ]
    assert accuracies[0] == accuracies[1]
    assert "results: " in again


def test_images_that_were_searched_on_score_nothing(
    stripes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert race(stripes, tmp_path / "race") == 0
    test = tmp_path / "test"
    for folder in stripes.iterdir():
        (test / folder.name).mkdir(parents=True)
        for number, path in enumerate(sorted(folder.iterdir())):
            if number < 5:
                (test / folder.name / path.name).write_bytes(path.read_bytes())
            elif number < 9:  # which nobody has seen
                pixels = np.asarray(Image.open(path))
                Image.fromarray(255 - pixels).save(test / folder.name / path.name)
    capsys.readouterr()
    policies = f"none,{tmp_path}/race/policy.json"
    given = ("--policies", policies, "--repeats", 1, *TINY, "--out", tmp_path / "e.png")
    assert run("evaluate", stripes, "--test", test, *given) == 0
    told = capsys.readouterr().err
    assert "note: --test: skipped 10 of 18 images, on which the search ran" in told
    assert "48 of 60 images train, 8 score" in told
    assert "which favors it" not in told
    # Where it has seen all of them, it is said.
    assert run("evaluate", stripes, "--test", stripes, *given, "--out", tmp_path / "f.png") == 0
    assert "note: policy.json was searched on 60 of the 60 images" in capsys.readouterr().err


def test_variations_follow_the_options(stripes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raced: list[str] = []
    run_race = ImageRace.run

    def noting(self: ImageRace, *given: object) -> object:
        found = run_race(self, *given)  # type: ignore[arg-type]
        raced.extend(self.rows)
        return found

    monkeypatch.setattr(ImageRace, "run", noting)
    assert (
        run("search", stripes, "--out", tmp_path / "r", "--no-flip", "--policies", "none,crop", "--rounds", 2, *TINY)
        == 0
    )
    assert len(raced) > 2
    assert not any("flip" in name for name in raced)
