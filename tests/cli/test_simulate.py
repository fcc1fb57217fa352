"""``variegate simulate`` as a user meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from PIL import Image

from tests.children import start_command
from variegate.cli import main

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: object) -> int:
    return main(["simulate", *(str(argument) for argument in arguments)])


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_table_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "simulate.png"
    assert run("--devices", 4, "--tasks", 200, "--speeds", "1,0.25", "--variation", 0, "--out", out) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "4 devices of speeds 0.25 to 1; 200 tasks of 16 items, 1 s each at speed 1, varying by 0%"
    assert lines[1] == "8 waiting per device, 2 in flight; no failures; ideal 80.0 s"
    table = {line.split()[0]: line.split() for line in lines[3:9]}
    assert table["round_robin"][1:5] == ["200", "s", "2.500x", "62.5%"]
    assert float(table["round_robin+steal"][1]) < 90
    assert lines[9].startswith("plot: ")
    assert Image.open(out).format == "PNG"
    assert shown.err == ""


def test_the_same_options_give_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--devices", 3, "--tasks", 100, "--spread", 0.5, "--failure-rate", 60, "--restart", 5, "--json")
    found = []
    for seed in (1, 1, 2):
        assert run(*options, "--seed", seed, "--out", tmp_path / "simulate.png") == 0
        found.append(events(capsys))
    first, again, other = found
    assert first == again
    assert first != other
    assert [event["strategy"] for event in first if event["event"] == "strategy"] == [
        *("least_loaded+steal", "least_loaded", "round_robin+steal", "round_robin", "random+steal", "random"),
    ]
    done = first[-1]
    assert done["event"] == "done"
    assert done["scenario"]["failure_rate"] == 60
    for event in first[:-1]:
        assert event["makespan"] == pytest.approx(event["ratio"] * done["ideal"])
        assert event["ratio"] >= 1
        assert event["items"] == 1600
        assert 0 < event["utilisation_min"] <= event["utilisation_mean"] <= 1


def test_strategies_are_chosen_and_progress_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "simulate.png"
    assert (
        run("--tasks", 6000, "--strategies", "random,least_loaded+steal", "--queue", "none", "--json", "--out", out)
        == 0
    )
    found = events(capsys)
    assert [event["strategy"] for event in found if event["event"] == "strategy"] == ["random", "least_loaded+steal"]
    assert {event["what"] for event in found if event["event"] == "simulating"} == {"random", "least_loaded+steal"}
    assert found[-1]["scenario"]["queue"] is None


def test_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("--tasks", 20, "--out", tmp_path / "simulate.png") == 0
    captured = capsys.readouterr()
    assert captured.err == "note: no plot was drawn, since matplotlib is missing: pip install 'variegate[plot]'\n"
    assert "least_loaded+steal" in captured.out
    assert "plot:" not in captured.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--devices", "2000"], "--devices: got 2000; accepted: 1 to 1,024"),
        (["--tasks", "0"], "--tasks: got 0; accepted: 1 to 5,000,000"),
        (["--speeds", "1,fast"], "--speeds: got '1,fast'; accepted: numbers with commas between them"),
        (["--speeds", "1,0"], "--speeds: got 0.0; accepted: 0.001 to 1,000"),
        (["--queue", "all"], "--queue: got 'all'; accepted: a number, or none"),
        (["--strategies", "best"], "--strategies: got 'best'; accepted: all, or any of least_loaded+steal, "),
        (["--out", "gone/simulate.png"], "--out: got gone/simulate.png; accepted: a file in a folder that is there"),
        (["--restart", "soon"], "--restart: got 'soon'; accepted: a number (see variegate simulate --help)"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"variegate: error: {said}")


def test_devices_that_never_get_anything_done_end_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "simulate.png"
    options = ("--devices", 1, "--tasks", 1, "--task-seconds", 90_000, "--failure-rate", 3600, "--restart", 0)
    assert run(*options, "--strategies", "random", "--out", out) == 1
    assert capsys.readouterr().err.startswith("variegate: error: random: no device is left; the last was device 0")
    assert not out.exists()


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    arguments = ["simulate", "--tasks", "5000000", "--json", "--out", tmp_path / "simulate.png"]
    started = start_command(*arguments, stdout=PIPE, stderr=PIPE, text=True)
    assert started.stdout is not None
    assert json.loads(started.stdout.readline())["event"] == "simulating"
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate(timeout=60)
    assert started.returncode == 130
    assert stderr == "variegate: error: interrupted\n"
    assert not list(tmp_path.iterdir())


SHOWN = re.compile(r"^\$ variegate simulate (.*)\n((?:.*\n)+?)```", re.M)
PAGES = [ROOT / "docs" / "simulate.md"]


@pytest.mark.parametrize(
    ("options", "output"),
    [found for page in PAGES for found in SHOWN.findall(page.read_text(encoding="utf-8"))],
    ids=lambda text: text[:60],
)
def test_pages_show_what_is_printed(
    options: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is simulated, so it is the same on every machine."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(*options.split()) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--workers", 8, "--strategies", "foo"), "--strategies: got 'foo' with --workers; accepted: without"),
        (("--workers", 8, "--tasks", 5), "--tasks: got '5' with --workers; accepted: without"),
        (("--ranks", 2), "--ranks: got '2'; accepted: with --workers"),
    ],
)
def test_options_without_effect_are_refused(
    given: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*given) == 2
    assert said in capsys.readouterr().err
