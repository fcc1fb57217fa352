"""Ctrl-C while ``variegate search`` is at something: one line, exit code 130, and the same command goes on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from threading import Timer
from typing import Any

import pytest

import variegate.learn.driver
import variegate.learn.images
from tests.children import start_python
from tests.cli.searches import search_in_three_steps as search
from variegate.learn.fit import Fit
from variegate.learn.history import PopulationLog
from variegate.learn.run import SearchRun

TOLD = ("note: ", "sizes: ", "step ")
KEPT = "interrupted: completed steps are saved; to resume, run the same command again"


def interrupting(real: Callable[..., Any], undo: Callable[[], None]) -> Callable[..., Any]:
    """Ctrl-C the first time that this is called."""

    def call(*arguments: Any, **options: Any) -> Any:
        undo()
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    return call


def lasting(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".png"}


@pytest.fixture
def whole(stripes: Path, tmp_path: Path) -> dict[str, bytes]:
    assert search(stripes, tmp_path / "whole") == 0
    return lasting(tmp_path / "whole")


def test_at_any_time(
    stripes: Path,
    tmp_path: Path,
    whole: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments: list[tuple[Any, str, int, str]] = [
        (variegate.learn.images, "load_images", 130, "interrupted"),
        (variegate.learn.images, "split", 130, KEPT),
        (variegate.learn.driver, "LocalSearch", 130, KEPT),
        (Fit, "train_epoch", 130, KEPT),
        (variegate.learn.driver.LocalSearch, "_copy", 130, KEPT),
        (PopulationLog, "append", 130, KEPT),
        (variegate.learn.driver.LocalSearch, "_resume", 130, KEPT),
        (SearchRun, "finish", 0, ""),  # all is done
    ]
    out = tmp_path / "out"
    capsys.readouterr()
    for owner, name, code, said in moments:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupting(getattr(owner, name), patch.undo))
            assert search(stripes, out) == code, name
        errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(TOLD)]
        assert errors == ([f"variegate: error: {said}"] if said else []), name
    assert lasting(out) == whole


@pytest.mark.process
def test_from_outside_with_a_second_search_meanwhile(
    stripes: Path, tmp_path: Path, whole: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """The searching process stops at its first step until the other has been refused."""
    pytest.importorskip("fcntl")
    out = tmp_path / "out"
    driver = (
        "import sys; from pathlib import Path; from tests.cli.searches import search_in_three_steps as search;"
        "from variegate.learn.driver import LocalSearch; save = LocalSearch._copy;"
        "LocalSearch._copy = lambda *a: (save(*a), print('saved', flush=True), sys.stdin.readline());"
        "sys.exit(search(Path(sys.argv[1]), Path(sys.argv[2]), '--json'))"
    )
    with start_python(driver, stripes, out, text=True, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        watchdog = Timer(60, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["event"] == "start"
            assert process.stdout.readline() == "saved\n"
            capsys.readouterr()
            assert search(stripes, out) == 2
            assert [line for line in capsys.readouterr().err.splitlines() if not line.startswith(TOLD)] == [
                f"variegate: error: {out}: another run (process {process.pid}) is writing there; wait until it has "
                "ended, or choose another folder"
            ]
            process.send_signal(signal.SIGINT)
            shown, said = process.communicate("\n")
        finally:
            watchdog.cancel()
            process.kill()
    assert process.returncode == 130
    assert [json.loads(line)["event"] for line in shown.splitlines()] == ["step", "error"]
    assert said == f"variegate: error: {KEPT}\n"
    assert search(stripes, out) == 0
    assert lasting(out) == whole
