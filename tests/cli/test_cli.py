"""The commands as a user meets them: results, one-line errors, exit codes, Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache, partial
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
import typer
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import variegate
from tests.children import run_command, start_command
from variegate.cli import console, main
from variegate.cli.commands import app
from variegate.decode import read_image

WIDE = {**os.environ, "COLUMNS": "100"}
# Of doctor.
QUICK = ("--seconds", "0.02", "--size", "32", "--batch-size", "2", "--threads", "1", "--devices", "cpu")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    rng = np.random.default_rng(1)
    for name in ("cat/1.jpg", "cat/2.png", "dog/3.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3)).astype(np.uint8))
        coarse.resize((50, 40), Image.Resampling.BICUBIC).save(root / name)
    return root


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def augment(*arguments: object) -> int:
    """By threads: processes take seconds to start, and other tests have them."""
    return run("augment", *arguments, "--workers", "thread")


def one_error_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("variegate: error: ")
    assert "Traceback" not in captured.out + captured.err
    return lines[0]


@cache
def registered() -> dict[str, typer.core.TyperCommand]:
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", sorted(registered()))
def test_help_explains_every_option(command: str, columns: int) -> None:
    is_long = any(param.name == "help_all" for param in registered()[command].params)
    wanted = "--help-all" if is_long else "--help"
    result = CliRunner().invoke(app, [command, wanted], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0
    lines = result.output.splitlines()
    for param in registered()[command].params:
        if any(flag.startswith("--") for flag in param.opts):
            assert any(re.search(rf"{flag} .*\w", line) for flag in param.opts for line in lines), param.opts
    assert max(map(len, lines)) <= columns
    # Typer prints the type of an argument, as "INTEGER RANGE" or "<int range>", and of an option without a metavar.
    assert [line for line in lines if "--" in line and re.search("(int|integer|float) range", line, re.I)] == []


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        assert run(*arguments) == 0
        shown = capsys.readouterr().out
        assert all(f"│ {command} " in shown for command in registered())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"variegate {variegate.__version__}\n"


def test_augment_writes_and_sums_up(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert augment(photos, out, "--copies", 2, "--size", 32, "--seed", 4, "--format", "png", "--threads", 1) == 0
    shown = capsys.readouterr()
    files = sorted(p.relative_to(out).as_posix() for p in out.rglob("*.png"))
    assert files == ["cat/1_0.png", "cat/1_1.png", "cat/2_0.png", "cat/2_1.png", "dog/3_0.png", "dog/3_1.png"]
    assert read_image(out / files[0]).shape == (32, 32, 3)
    # A long path is broken over lines.
    for word in ("files in", "written", "skipped", "images/s", str(out)):
        assert word.replace(" ", "") in "".join(shown.out.split())
    assert shown.err == ""


def test_a_schedule_that_does_nothing_yet_is_said(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "note: pba-cifar10: in epoch 11 this schedule does nothing; --epoch selects another, from 0 to 199"
    assert augment(photos, tmp_path / "out", "--policy", "pba-cifar10", "--epoch", 11) == 0
    assert said in capsys.readouterr().err
    assert run("preview", photos, "--policy", "pba-cifar10", "--epoch", 11, "--out", tmp_path / "p.png") == 0
    assert said in capsys.readouterr().err
    assert augment(photos, tmp_path / "later", "--policy", "pba-cifar10", "--epoch", 12) == 0
    assert "note: " not in capsys.readouterr().err


def test_json_lines(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat/bad.jpg").write_text("hello")
    assert augment(photos, tmp_path / "out", "--json", "--on-error", "skip") == 0
    captured = capsys.readouterr()
    events = [json.loads(line) for line in captured.out.splitlines()]
    assert [event["event"] for event in events if event["event"] != "progress"] == ["start", "skipped", "done"]
    assert events[0] == {"event": "start", "files": 4, "classes": 2, "total": 4, "devices": ["cpu:0"]}
    assert events[-1] | {"seconds": 0, "images_per_second": 0} == {
        "event": "done",
        "files": 4,
        "written": 3,
        "resumed": 0,
        "repaired": 0,
        "skipped": 1,
        "seconds": 0,
        "images_per_second": 0,
        "destination": str(tmp_path / "out"),
    }
    assert captured.err == ""


def test_skipped_files_and_notes_are_named(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat/bad.jpg").write_bytes(b"")
    (photos / "cat/notes.txt").write_text("hello")
    (photos / "void").mkdir()
    assert augment(photos, tmp_path / "out", "--on-error", "skip") == 0
    shown = capsys.readouterr().err
    assert "skipped cat/bad.jpg: zero bytes: the file is empty" in shown
    assert "note: class folders without images: void" in shown
    assert "note: ignored 1 file of other kinds: cat/notes.txt" in shown


def test_a_bad_file_ends_with_its_name(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "dog/9.jpg").write_text("hello")
    assert augment(photos, tmp_path / "out", "--copies", 16, "--on-error", "raise", "--ordered") == 1  # a part each
    line = one_error_line(capsys)
    assert "dog/9.jpg: not an image" in line
    assert "kept 48 written images" in line
    assert "--on-error skip" in line
    assert len(list((tmp_path / "out").rglob("*.jpg"))) == 48


def test_an_interrupted_run_goes_on_and_other_settings_are_refused(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "dog/9.jpg").write_text("hello")
    out = tmp_path / "out"
    copies = "--copies", 16  # a part of the run for each photo
    assert augment(photos, out, *copies, "--on-error", "raise", "--ordered") == 1
    capsys.readouterr()
    assert augment(photos, out, *copies, "--seed", 5) == 2
    assert "holds a run with seed 0, this one has seed 5" in one_error_line(capsys)
    assert augment(photos, out, *copies, "--json") == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["written"], done["resumed"], done["skipped"]) == (0, 48, 1)
    assert augment(photos, out, *copies) == 0
    assert "48 (by an earlier run)" in capsys.readouterr().out


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_shards_are_written_and_expanded_again(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: str
) -> None:
    shards = tmp_path / "shards"
    assert (
        augment(photos, shards, "--copies", 3, "--layout", layout, "--shard-size", 4, "--devices", "cpu:0,cpu:1") == 0
    )
    kind = "tar" if layout == "webdataset" else "parquet"
    assert len(list(shards.glob(f"shard-*.{kind}"))) == 3
    assert augment(f"{shards}/shard-*.{kind}", tmp_path / "again", "--allocation", "random", "--no-steal") == 0
    assert len(list((tmp_path / "again").glob("cat/*.jpg"))) == 6


def test_replay_makes_a_row_again(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert augment(photos, out, "--copies", 2) == 0
    capsys.readouterr()
    assert run("replay", out / "manifest.parquet", 3, "--out", tmp_path / "again.jpg") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'again.jpg'}: copy 1 of cat/2.png, the same\n"
    assert (tmp_path / "again.jpg").read_bytes() == (out / "cat/2_1.jpg").read_bytes()
    (photos / "cat/2.png").write_bytes((photos / "cat/1.jpg").read_bytes())
    assert run("replay", out, 3, "--out", tmp_path / "other.jpg", "--json") == 1
    done, error = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert done["is_same"] is False
    assert "was another file" in error["message"]


def test_verify_names_what_is_wrong_and_augment_mends_it(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert augment(photos, out, "--copies", 2) == 0
    capsys.readouterr()
    assert run("verify", out) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["outputs", "6"], ["good", "6"]]
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    damaged = out / "cat/1_0.jpg"
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"something")
    (out / "dog/3_1.jpg").unlink()
    assert run("verify", out) == 1
    shown = capsys.readouterr()
    assert "cat/1_0.jpg: its checksum differs from the manifest\ndog/3_1.jpg: missing\n" in shown.out
    assert shown.err == (
        "variegate: error: 2 problems; to write missing files again, run the command that wrote them; "
        "--delete-damaged deletes damaged files, so that the same command writes them again\n"
    )
    assert run("verify", out, "--json", "--delete-damaged") == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "event": "done",
        **{"outputs": 6, "good": 4, "missing": 1, "damaged": 1, "unreadable": 0, "extra": 0, "deleted": 1},
        "problems": [
            {"file": "cat/1_0.jpg", "problem": "its checksum differs from the manifest", "kind": "damaged"},
            {"file": "dog/3_1.jpg", "problem": "missing", "kind": "missing"},
        ],
    }
    assert shown.err == ""
    assert not damaged.exists()
    assert augment(photos, out, "--copies", 2, "--json") == 0
    shown = capsys.readouterr()
    done = json.loads(shown.out.splitlines()[-1])
    assert (done["written"], done["resumed"], done["repaired"]) == (6, 0, 6)
    assert shown.err == "note: writing 6 outputs of an earlier run again: files are missing or have another size\n"
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    assert run("verify", out, "--json") == 0
    (out / "cat/1_1.jpg").unlink()
    assert augment(photos, out, "--copies", 2) == 0
    assert "repaired  6 (were missing or had another size)" in capsys.readouterr().out


def test_a_changed_source_is_refused_by_name(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert augment(photos, out) == 0
    os.utime(photos / "dog/3.jpg", (0, 10**9))
    capsys.readouterr()
    assert augment(photos, out) == 2
    said = one_error_line(capsys)
    assert said.startswith(f"variegate: error: {photos}/dog/3.jpg: was ")
    assert "restore the source, choose another folder, or start over with --no-resume" in said
    assert augment(photos, out, "--no-resume", "--json") == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["written"], done["resumed"], done["repaired"]) == (3, 0, 0)
    assert augment(photos, out) == 0


def test_nothing_written_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.jpg").touch()
    (tmp_path / "src/b.jpg").write_bytes(b"no")
    assert augment(tmp_path / "src", tmp_path / "out", "--on-error", "skip") == 1
    said = "could read 0 of 2 images, for 2 reasons; the first: "
    assert said in capsys.readouterr().err
    assert augment(tmp_path / "src", tmp_path / "out") == 1  # nor has the run before, which was complete


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["augment", "{photos}/gone", "{out}"], "gone: no such file or folder"),
        (["augment", "{photos}", "{photos}/new"], "lies inside the source"),
        (["augment", "{photos}", "{photos}"], "is the source itself"),
        (["augment", "{photos}", "{out}", "--policy", "randaug"], "accepted: "),
        (["augment", "{photos}", "{out}", "--policy", "gone.json"], "gone.json"),
        (["augment", "{photos}", "{out}", "--size", "big"], "--size: got 'big'; accepted: a side such as 224"),
        (["augment", "{photos}", "{out}", "--format", "gif"], "accepted: 'jpg', 'png', 'webp', 'tif', 'npy'; did"),
        (["augment", "{photos}", "{out}", "--workers", "threads"], "'ray'; did you mean 'thread'?"),
        (
            ["augment", "{photos}", "{out}", "--quality", "101"],
            "--quality: got 101; accepted: an integer from 1 to 100",
        ),
        (["augment", "{photos}", "{out}", "--copies=0"], "--copies: got 0; accepted: an integer from 1 on"),
        (["augment", "{photos}", "{out}", "--seed", "-1"], "--seed: got -1; accepted: an integer from 0 on"),
        (
            ["augment", "{photos}", "{out}", "--threads", "none"],
            "--threads: got 'none'; accepted: an integer from 1 on",
        ),
        (["augment", "{photos}", "{out}", "--steal=x"], "'--steal' does not take a value"),
        (["augment", "{photos}", "{out}", "--polic", "none"], "--policy"),
        (["augment", "{photos}", "{out}", "--devices", "gpu"], "got 'gpu'; accepted: "),
        (["augment", "{photos}", "{out}", "--changed", "same"], "command augment --changed was removed: changed files"),
        (["verify", "{photos}"], "photos: holds no run; accepted: a folder that variegate augment or pack wrote"),
        (["replay", "{photos}/gone.parquet", "0"], "gone.parquet"),
        (["replay", "x", "one"], "ROW: got 'one'; accepted: an integer from 0 on"),
        (["replay", "x", "-1"], "-1: no argument of this command may be negative (see variegate replay --help)"),
        (["augment", "{photos}"], "Missing argument 'DST' (see variegate augment --help)"),
        (["augment", "{photos}", "{out}", "--frobnicate"], "--frobnicate"),
        (
            ["preview", "{photos}", "--sweep", "Twirl", "--out", "{out}.png"],
            "--sweep: got 'Twirl'; accepted: AutoContrast",
        ),
        (["preview", "{photos}", "--out", "{out}.gif"], ".gif; accepted: a file that ends in .png, .jpg, .jpeg, .webp"),
        (
            ["doctor", "{photos}", "--seconds", "inf"],
            "--seconds: got inf; accepted: a finite number from 0.01 to 3,600",
        ),
        (["doctor", "{photos}", "--devices", "gpu"], "--devices: got 'gpu'"),
        (["doctor", "{photos}", "--train", "--plot", "{out}/gone/x.png"], "accepted: a file in a folder that is there"),
        (["doctor", "{photos}", "--plot", "{out}.png"], "out.png'; accepted: with --train"),
        (["doctor", "{photos}", *QUICK, "--train", "--model", "resnet"], "model: got 'resnet'; accepted: "),
        (["bench", "{photos}"], "command bench was removed: use variegate doctor SRC"),
        (["doctor", "{photos}", "--wire=10"], "command doctor --wire was removed: divide the rate"),
        (["augmnt"], "augmnt"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    filled = [argument.format(photos=photos, out=tmp_path / "out") for argument in arguments]
    assert run(*filled) == 2
    assert said in one_error_line(capsys)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.png").exists()


def test_a_file_may_have_the_name_of_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy").mkdir()
    assert run("verify", "policy") == 2
    assert run("augment", "policy", "out", "--policy", "none") == 2
    assert run("augment", "policy", "out", "--size", "big") == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("variegate: error: policy: holds no run")
    assert second.startswith("variegate: error: policy: ")
    assert third.startswith("variegate: error: --size: got 'big'")


def test_errors_are_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("augment", tmp_path / "gone", tmp_path / "out", "--json") == 2
    event = json.loads(capsys.readouterr().out)
    assert event["event"] == "error"
    assert "no such file or folder" in event["message"]


def test_deep_gray_images_are_noted(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(np.full((9, 9), 1000, np.uint16)).save(photos / "cat/deep.png")
    assert augment(photos, tmp_path / "out", "--policy", "none") == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "deep.png" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note: ")
    assert "16 bits are scaled to 8 bits" in notes[0]


def test_preview_draws_a_sheet(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat/1.jpg").write_bytes(b"")
    out = tmp_path / "sheet.png"
    assert run("preview", photos, "--images", 2, "--samples", 3, "--size", 32, "--out", out) == 0
    shown = capsys.readouterr()
    assert str(out) in shown.out
    assert "note: skipped" in shown.err
    assert Image.open(out).width > 4 * 200
    assert run("preview", photos / "dog/3.jpg", "--sweep", "rotate", "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["images"] == 1


def test_doctor_measures_and_says_whether_the_loader_keeps_up(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "cat/bad.jpg").write_text("hello")
    assert run("doctor", photos, *QUICK, "--consume", 1) == 0
    shown = capsys.readouterr()
    for text in ("3 held in memory, 1 unreadable skipped", "decode + augment", "images/s", "the loader keeps up"):
        assert text in shown.out
    assert f"note: skipped {photos}/cat/bad.jpg: not an image" in shown.err


def test_doctor_times_training_and_draws(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "training.png"
    training = ("--train", "--model", "wrn-10-1", "--plot", out)
    assert run("doctor", photos, *QUICK, *training) == 0
    shown = capsys.readouterr().out
    assert "training, one repeated batch" in shown
    assert "of the ceiling, which needs no data." in shown
    assert f"plot: {out}" in shown
    assert Image.open(out).format == "PNG"

    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("doctor", photos, *QUICK, *training, "--consume", 2e7, "--json") == 0
    captured = capsys.readouterr()
    events = [json.loads(line) for line in captured.out.splitlines()]
    assert {event["event"] for event in events} == {"measuring", "done"}
    done = events[-1]
    assert (done["plot"], done["keeps_up"]) == (None, False)
    assert done["measurements"]["rates"]["whole"]["images_per_second"] > 0
    assert done["training"]["ceiling"]["images_per_second"] > 0
    assert captured.err == "note: no plot was drawn, since matplotlib is missing: pip install 'variegate[plot]'\n"


def test_demo_needs_nothing_but_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    root = tmp_path / "demo"
    assert run("demo", root, "--copies", 1, "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (done,) = [event for event in events if event["event"] != "progress"]
    photos = list((root / "photos").rglob("*.jpg"))
    assert len(photos) == done["written"] == len(list((root / "augmented").rglob("*.jpg")))
    assert done["images_per_second"] > 0
    assert Image.open(done["sheet"]).format == "PNG"
    assert len({p.parent.name for p in photos}) == 6


@pytest.mark.process
def test_a_real_process(photos: Path, tmp_path: Path) -> None:
    for module in ("variegate", "variegate.cli"):
        run = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (0, f"variegate {variegate.__version__}\n")
    ran = run_command("augment", photos, tmp_path / "out", env=WIDE)
    assert ran.returncode == 0, ran.stderr
    assert "images/s" in ran.stdout
    ran = run_command("augment", tmp_path / "gone", tmp_path / "out", env=WIDE)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"variegate: error: {tmp_path / 'gone'}: no such file or folder\n"


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_keeps_what_is_done(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = ("--copies", 100_000, "--threads", 2, "--devices", "cpu:0")
    started = start_command("augment", photos, out, *settings, stdout=PIPE, stderr=PIPE, text=True, env=WIDE)
    deadline = time.monotonic() + 120
    while len(list(out.glob("cat/*.jpg"))) < 20 and started.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    stdout, stderr = started.communicate(timeout=60)
    assert started.returncode == 130, stderr
    assert stderr.count("\n") == 1
    assert "images; to resume, run the same command again" in stderr
    assert stdout == ""
    files = sorted(out.rglob("*.jpg"))
    assert len(files) >= 20
    for path in files[:: max(1, len(files) // 50)]:
        read_image(path)
    assert not list((out / ".variegate" / "tmp").iterdir())


def test_a_demo_leaves_the_users_folders_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    assert run("demo", str(tmp_path / "photos")) == 2
    assert "photos: holds files that no demo wrote; accepted: a new folder, an empty one, or" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat"]


def test_an_interrupt_while_modules_are_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "variegate.cli.commands":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "variegate.cli.commands")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["--version"]) == 130
    assert capsys.readouterr() == ("", "variegate: error: interrupted\n")


def test_a_shard_that_cannot_be_reached_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = "memory://nowhere/gone-000.tar"
    assert main(["index", shard, "--out", str(tmp_path / "index")]) == 2
    assert f"variegate: error: {shard}: " in capsys.readouterr().err
    assert main(["train", shard, "--out", str(tmp_path / "run"), "--devices", "cpu"]) == 2
    assert f"variegate: error: {shard}: " in capsys.readouterr().err


def test_something_moves_until_a_command_has_something_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(console, "Console", partial(Console, file=drawn, force_terminal=True))
    with console.starting(as_json=False):
        until = time.monotonic() + 5
        while "starting" not in drawn.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        assert "starting" in drawn.getvalue()
        console.print_line("found")
        assert drawn.getvalue().endswith("\x1b[2Kfound\n")  # after the line that moved is wiped
        assert not console._starting
    drawn.truncate(0)
    with console.starting(as_json=True):
        pass
    assert drawn.getvalue() == ""
