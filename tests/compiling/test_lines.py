"""What is said while kernels are compiled, and when nothing is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.compiling.tiny import RESULTS, end, go, run, start
from variegate.compiling.turn import Notice

COMPILING = "variegate: compiling kernels (takes one to two minutes), cached in /kept\n"


@pytest.fixture(autouse=True)
def _aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VARIEGATE_QUIET")
    monkeypatch.delenv("LOCAL_RANK", raising=False)


@pytest.mark.process
def test_one_line_at_the_beginning_and_one_at_the_end(tmp_path: Path) -> None:
    done, said = run(tmp_path, pause=0.6)
    assert done["results"] == RESULTS
    assert len(said) == 2
    start_line = "variegate: compiling kernels (takes one to two minutes), cached in "
    assert said[0].startswith(start_line)
    assert (tmp_path / "cache") in Path(said[0].removeprefix(start_line)).parents
    assert said[1].startswith("variegate: kernels compiled after ")


@pytest.mark.process
def test_quiet(tmp_path: Path) -> None:
    assert run(tmp_path, pause=0.6, env={"VARIEGATE_QUIET": "1"})[1] == []


@pytest.mark.process
def test_who_waits_says_so_and_who_compiles_too(tmp_path: Path) -> None:
    processes = [start(tmp_path, "results += [tiny.right(1)]", pause=1.0, waits=True) for _ in range(2)]
    go(*processes)
    said = sorted(end(process)[1] for process in processes)
    assert [[" ".join(line.split()[1:3]) for line in lines] for lines in said] == [
        ["compiling kernels", "kernels compiled"],
        ["waiting for", "kernels ready"],
    ]


def test_nothing_is_said_within_a_moment(capsys: pytest.CaptureFixture[str]) -> None:
    notice = Notice()
    assert notice.compiling(0.9, "/kept", "") is None
    notice.waiting(0.9, "/kept")
    notice.finish(0.95)
    assert capsys.readouterr() == ("", "")


def test_a_spell_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    notice = Notice()
    mark = notice.compiling(1.1, "/kept", "")
    assert mark is not None
    assert mark.split()[0] == str(os.getpid())
    assert notice.compiling(2.0, "/kept", "") is None
    notice.waiting(3.0, "/kept")
    notice.finish(70.4)
    notice.finish(70.4)
    assert capsys.readouterr() == ("", COMPILING + "variegate: kernels compiled after 70 s\n")


def test_one_of_many_workers_speaks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    notice = Notice()
    notice.waiting(5.0, "/kept")
    now = f"{time.time() + 0.5:.0f}"  # as a mark may be rounded
    assert notice.compiling(5.0, "/kept", f"{os.getppid()} {now}") is None
    assert capsys.readouterr().err == ""
    # A mark of this process, an old one, one of a process that is gone, and none that can be read.
    for other in (f"{os.getpid()} {now}", f"{os.getppid()} 1", f"{2**22 + 1} {now}", "x y", ""):
        assert Notice().compiling(5.0, "/kept", other) is not None
        assert capsys.readouterr().err == COMPILING


def test_a_closed_or_absent_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = (tmp_path / "closed").open("w")
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr("sys.stderr", stream)
        assert Notice().compiling(5.0, "/kept", "") is not None
