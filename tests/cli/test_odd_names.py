"""Names of files and classes that a terminal would act upon: shown by every command, and never sent."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from pathlib import Path

import pytest
from PIL import Image

from tests.children import start_command
from tests.images import photo
from variegate.cli import main
from variegate.decode import read_image
from variegate.errors import DecodeError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")

CLASS = "cat\x1b[31m$5$\udcff"
ODD = "a\nvariegate: error: \x1b]0;title\x07\t\x7f\x9b2J\u202egpj.\u2066x.jpg"
# Control characters of ASCII but for line feeds; C1, marks of direction and separators of lines, in UTF-8; no UTF-8.
ACTING = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xff")


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / f"photos{CLASS}"
    for name in (f"{CLASS}/good{ODD}", "dog/2.jpg"):
        (root / name).parent.mkdir(parents=True)
        Image.fromarray(photo(16, 16)).save(root / name, "JPEG")
    (root / CLASS / ODD).write_bytes(b"no image")
    (root / CLASS / f"notes{ODD}.txt").touch()
    os.mkfifo(root / CLASS / f"fifo{ODD}")
    return root


def printed(capture: pytest.CaptureFixture[bytes], *arguments: object) -> bytes:
    code = main([str(argument) for argument in arguments])
    captured = capture.readouterr()
    assert code == 0, captured.err
    both = captured.out + captured.err
    assert not ACTING.search(both), ACTING.search(both)
    both.decode()
    return both


QUICK = ("--seconds", "0.05", "--size", "8", "--batch-size", "2")


@pytest.mark.parametrize(
    "command",
    [
        ("augment", "{}", "out\x1b[1m", "--workers", "thread", "--policy", "none"),
        ("augment", "{}", "out", "--workers", "thread", "--policy", "none", "--layout", "webdataset"),
        ("preview", "{}", "--out", "sheet\x1b[1m.png", "--policy", "none"),
        ("doctor", "{}", *QUICK),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_names_are_shown(command: tuple[str, ...], photos: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    said = printed(capfdbinary, *(part.format(photos) for part in command))
    assert rb"\x1b" in said
    assert b"no image" in said or b"known format" in said
    for line in said.splitlines():  # a line feed in a name begins no line
        assert not line.startswith(b"variegate: error: \\x1b]0")


@pytest.mark.parametrize(
    "command",
    [
        ("augment", "{}", "out", "--workers", "thread", "--on-error", "raise"),
        ("augment", "{}/gone\x1b[1m", "out"),
        ("augment", "{}", "out", "--policy", "p\x1b[1m.json"),
        ("replay", "{}", "0"),
        ("evaluate", "{}", "--policies", "\x1b[1m\u202e"),
        ("doctor", "gone\x1b[1m\u202e"),
    ],
    ids=lambda command: ascii(" ".join(command)),
)
def test_errors_show_them(command: tuple[str, ...], photos: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for json_too in ((), ("--json",)):
        assert main([part.format(photos) for part in (*command, *json_too)]) in (1, 2)
        captured = capfdbinary.readouterr()
        both = captured.out + captured.err
        assert not ACTING.search(both), both
        assert captured.err.count(b"variegate: error: ") >= 1
        assert b"Traceback" not in both
        assert all(json.loads(line)["event"] for line in captured.out.splitlines() if json_too)


def test_json_tells_the_true_names(photos: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    said = printed(capfdbinary, "augment", photos, "out", "--workers", "thread", "--policy", "none", "--json")
    events = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
    (skipped,) = [event for event in events if event["event"] == "skipped"]
    assert skipped["source"] == f"{CLASS}/{ODD}"
    said = printed(capfdbinary, "preview", photos, "--out", "sheet.png", "--policy", "none", "--json")
    (done,) = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
    assert done["passed_over"] == [f"{photos}/{CLASS}/{ODD}"]


def test_a_traceback_ends_with_a_printable_line(photos: Path) -> None:
    for path in (photos / CLASS / ODD, photos / CLASS / f"gone{ODD}"):
        with pytest.raises(DecodeError) as raised:
            read_image(path)
        (last,) = traceback.format_exception_only(raised.value)
        assert last.startswith("variegate.errors.DecodeError: ")
        assert not ACTING.search(last.rstrip("\n").encode())


@pytest.mark.process
def test_on_a_terminal_too(photos: Path) -> None:
    """There Rich sends codes of its own, and none of the names'."""
    import pty  # not on every system

    ours, theirs = pty.openpty()
    arguments = ("augment", photos, "out", "--workers", "thread", "--policy", "none")
    surroundings = os.environ | {"TERM": "xterm", "COLUMNS": "2000"}
    run = start_command(*arguments, stdout=theirs, stderr=theirs, env=surroundings)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    assert run.wait() == 0, said
    os.close(ours)
    assert rb"\x1b]0;title\x07\x09\x7f\x9b2J\u202egpj.\u2066x.jpg" in said
    assert b"\x1b]0;" not in said
    assert b"\x1b[31m" not in said.replace(rb"\x1b[31m", b"")
    assert b"\x07" not in said
