"""``variegate clean`` and ``--exclude`` as they are typed: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apps.check.cleaning.tables import table_of
from tests.data.contract import folder, pictures
from variegate.cli import main


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    folder(tmp_path / "photos", pictures())
    found = {1: [("corrupt", None)], 3: [("duplicates", 0)], 4: [("duplicates", 0)], 5: [("dark", None)]}
    table_of(tmp_path / "f.parquet", tmp_path / "photos", found, sizes={3: (9, 9)})
    return ["clean", str(tmp_path / "photos"), "--from", str(tmp_path / "f.parquet")]


def test_it_says_what_was_left_out_and_why(tmp_path, asked, capsys):
    listed = tmp_path / "list.txt"
    command = [*asked, "--out", str(listed), "--drop", "corrupt,duplicates,leaks"]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "corrupt: 1 left out, ant/001.png" in shown.out
    assert "duplicates: 1 left out, bee/004.png (bee/003.png is kept)" in shown.out
    assert f"next: variegate pack {tmp_path / 'photos'} DST --exclude {listed}" in shown.out
    assert "found in no image: leaks" in shown.err
    assert main([*command, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["images"], done["kept"], done["left_out"], done["out"]) == (7, 5, 2, str(listed))
    assert done["counts"] == {"corrupt": 1, "duplicates": 1}


def test_a_list_is_what_other_commands_take(tmp_path, asked, capsys):
    listed, out = str(tmp_path / "list.txt"), str(tmp_path / "out")
    assert main([*asked, "--drop", "all", "--out", listed]) == 0
    quick = ["--policy", "none", "--workers", "thread", "--devices", "cpu:0", "--threads", "1"]
    command = ["augment", str(tmp_path / "photos"), out, *quick]
    assert main([*command, "--exclude", listed]) == 0
    assert "excluded: 3 of 7 images, by the names of list.txt" in capsys.readouterr().err
    assert len(list((tmp_path / "out").rglob("*.jpg"))) == 4
    assert main(["replay", out, "1", "--out", str(tmp_path / "again.jpg")]) == 0
    assert main(command) == 2
    assert "holds a run of other files" in capsys.readouterr().err


def test_without_a_choice_it_says_what_there_is(asked, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(asked) == 2
    assert "has: corrupt (1), dark (1), duplicates (2); accepted: such names" in capsys.readouterr().err
    assert not (tmp_path / "excluded.txt").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--drop", "corupt"], "drop: got 'corupt'; accepted: corrupt, "),
        (["--drop", "corrupt", "--split", "test"], "has no test images"),
        (["--drop", "corrupt", "--exclude", "no.txt"], "exclude: no.txt"),
        (["--exclude-list", "l.txt"], "command clean --exclude-list was removed: name the list with --out FILE"),
    ],
)
def test_what_is_typed_wrong_is_named(asked, tmp_path, monkeypatch, capsys, more, said):
    monkeypatch.chdir(tmp_path)
    assert main([*asked, *more]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_a_table_is_needed(asked, capsys):
    assert main([*asked[:2], "--drop", "corrupt"]) == 2
    assert "--from: is missing; accepted: the findings.parquet" in capsys.readouterr().err
