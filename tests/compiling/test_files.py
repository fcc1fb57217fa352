"""Compiled code on disk: what is whole comes back, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from variegate.compiling.stored import CheckedFile

KEY, OTHER = (
    ("signature", ("triple", "processor", "features"), ("a", "b")),
    ("signature 2", ("t", "p 2", "f"), ("a", "b")),
)
CODE = {"code": b"\x00\x01machine code" * 9}


def file_in(folder: Path, stamp: Any = ("source", "digest")) -> CheckedFile:
    return CheckedFile(str(folder), "module.kernel-7.py311", stamp)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    assert file.load(KEY) is None
    file.save(KEY, CODE)
    file.save(OTHER, "other")
    file.save(KEY, CODE)
    assert (file_in(tmp_path).load(KEY), file_in(tmp_path).load(OTHER)) == (CODE, "other")
    assert file.processors() == {("triple", "processor", "features"), ("t", "p 2", "f")}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "module.kernel-7.py311.1.nbc",
        "module.kernel-7.py311.2.nbc",
        "module.kernel-7.py311.nbi",
    ]
    assert file.num_bytes() == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_code_of_other_sources_is_not_there(tmp_path: Path) -> None:
    file_in(tmp_path).save(KEY, CODE)
    assert file_in(tmp_path, "other sources").load(KEY) is None
    # Not even where an index of these sources names it.
    index = tmp_path / "module.kernel-7.py311.nbi"
    kept = index.read_bytes()
    file_in(tmp_path, "other sources").save(KEY, "other code")
    index.write_bytes(kept)
    assert file_in(tmp_path).load(KEY) is None


def test_code_for_another_signature_is_not_there(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    file.save(KEY, CODE)
    file.save(OTHER, "other")
    os.replace(tmp_path / "module.kernel-7.py311.2.nbc", tmp_path / "module.kernel-7.py311.1.nbc")
    assert file.load(KEY) is None


@pytest.mark.parametrize("name", ["module.kernel-7.py311.nbi", "module.kernel-7.py311.1.nbc"])
def test_any_damage_is_found(tmp_path: Path, name: str) -> None:
    file_in(tmp_path).save(KEY, CODE)
    path = tmp_path / name
    whole = path.read_bytes()
    damaged = [whole[:n] for n in range(len(whole))]
    for n in range(len(whole)):
        damaged += [whole[:n] + bytes([whole[n] ^ bit]) + whole[n + 1 :] for bit in (1, 8, 128)]
    for data in damaged:
        path.write_bytes(data)
        assert file_in(tmp_path).load(KEY) in (None, CODE)
        file_in(tmp_path).processors()
    file_in(tmp_path).save(KEY, CODE)
    assert file_in(tmp_path).load(KEY) == CODE


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    file_in(tmp_path).save(KEY, CODE)
    (tmp_path / "module.kernel-7.py311.1.nbc").unlink()
    assert file_in(tmp_path).load(KEY) is None
    file_in(tmp_path).save(KEY, CODE)
    assert file_in(tmp_path).load(KEY) == CODE


def test_the_code_is_there_before_the_index_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (replaced.append(Path(b).suffix), replace(a, b)))
    file_in(tmp_path).save(KEY, CODE)
    assert replaced == [".nbc", ".nbi"]
