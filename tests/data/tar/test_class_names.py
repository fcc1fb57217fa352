"""The file beside shards that names their classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.data.tars import write_shards, write_tar
from tests.data.web import serving
from variegate.data.base import Source, SourceError
from variegate.data.labels import class_names_beside, class_names_bytes
from variegate.data.opening import open_source
from variegate.io.location import Location

NAMES = tuple(f"class {number}" for number in range(10))


def beside(shards: Sequence[str]) -> tuple[str, ...] | None:
    return class_names_beside([Location.parse(shard) for shard in shards])


@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\n\n"])
def test_a_class_a_line(tmp_path: Path, end: str) -> None:
    shards = write_shards(tmp_path)
    separator = "\r\n" if end == "\r\n" else "\n"
    (tmp_path / "classnames.txt").write_bytes((separator.join(NAMES) + end).encode())
    for spec in (tmp_path, f"{tmp_path}/*.tar", shards):
        source = open_source(spec)
        assert isinstance(source, Source)
        assert source.classes == NAMES
        assert [source.read(index).label for index in range(4)] == [0, 1, 2, 3]
    assert open_source(shards, stream=True).classes == NAMES
    assert open_source(shards, classes=NAMES[::-1]).classes == NAMES[::-1]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    shards = write_shards(tmp_path)
    names = (" a ", "Zürich", "caf\udce9", "a")
    (tmp_path / "classnames.txt").write_bytes(class_names_bytes(names))
    assert beside(shards) == names


def test_without_such_a_file(tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_shards(tmp_path / "a")
    assert beside(shards) is None
    (tmp_path / "classnames.txt").write_text("a\n")
    other = write_tar(tmp_path / "b.tar", [])
    assert beside([*shards, other]) is None  # whose would they be?
    (tmp_path / "a" / "classnames.txt").touch()
    assert beside(shards) is None
    memory.pipe("/d/a.tar", b"")
    assert beside(["memory://d/a.tar"]) is None
    memory.pipe("/d/classnames.txt", b"x\ny\n")
    assert beside(["memory://d/a.tar"]) == ("x", "y")
    monkeypatch.chdir(tmp_path)
    assert beside(["b.tar"]) == ("a",)
    with serving({"a.tar": b"", "classnames.txt": b"a\n"}) as (address, requests):
        assert beside([f"{address}/a.tar"]) is None
        assert requests == []


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    shards = write_shards(tmp_path)
    (tmp_path / "classnames.txt").mkdir()
    with pytest.raises(SourceError, match=r"/classnames\.txt: a folder, not a file$"):
        open_source(shards)
