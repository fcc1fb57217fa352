"""What verify finds: every kind of damage, by name, and nothing where nothing is wrong."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs.output.contract import CLASSES, records, shards
from tests.jobs.output.runs import SETTINGS, file_of, output, run
from variegate.data.base import SourceError
from variegate.data.labels import CLASS_NAMES, class_names_bytes
from variegate.data.storage import Storage, WriteError, open_storage
from variegate.data.storage.local import LocalStorage
from variegate.events import Progress
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME, read_manifest, write_manifest
from variegate.jobs.output.run_folder import RunFolder
from variegate.jobs.output.verify import delete_damaged, verify

CHECKSUM = "its checksum differs from the manifest"
UNCHECKED = "the other files cannot be checked; if it is deleted, all outputs are written again"


def flip(path: Path, at: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(data)


def sharded(root: Path, layout: str) -> None:
    """Three shards, with settings and manifest."""
    with RunFolder(root, {"layout": layout, "classes": list(CLASSES)}) as folder:
        made = records()
        shards(layout)(folder.storage, made, CLASSES)
        ending = {"webdataset": "tar", "parquet": "parquet"}[layout]
        rows: list[dict[str, Any]] = []
        for number, record in enumerate(made):
            name = f"shard-{number // 5:06}.{ending}"
            whole = (root / name).read_bytes()
            rows.append(
                {"file": name, "member": record.member, "status": "written", "index": record.index, "copy": record.copy}
                | {"sha256": hashlib.sha256(record.data).hexdigest(), "bytes": len(record.data)}
                | {"shard_bytes": len(whole), "shard_sha256": hashlib.sha256(whole).hexdigest()}
            )
        names = [(CLASS_NAMES, class_names_bytes(CLASSES))]
        folder.finish(rows, names if layout == "webdataset" else ())


def found(root: Path | str) -> list[tuple[str, ...]]:
    return [tuple(problem) for problem in verify(root).problems]


def test_files(storage: Storage) -> None:
    run(storage.root)
    seen: list[Any] = []
    verified = verify(storage.root, threads=2, on_event=seen.append)
    assert (verified.outputs, verified.good, verified.problems) == (8, 8, [])
    assert seen[-1] == Progress("verifying", 8, 8)
    storage.remove(file_of(0, 0))
    storage.write(file_of(0, 1), output(0, 1)[:-7])
    storage.write(file_of(3, 1), output(3, 1).replace(b"3", b"4"))
    storage.write("dog/new.jpg", b"new")
    storage.write(".hidden", b"")
    verified = verify(storage.root)
    assert [tuple(problem) for problem in verified.problems] == [
        (file_of(0, 0), "missing", "missing"),
        (file_of(0, 1), "has 393 bytes, the manifest says 400", "damaged"),
        (file_of(3, 1), CHECKSUM, "damaged"),
        ("dog/new.jpg", "not in the manifest", "extra"),
    ]
    assert (verified.outputs, verified.good) == (8, 5)
    assert [verified.count(kind) for kind in ("missing", "damaged", "unreadable", "extra")] == [1, 2, 0, 1]
    assert delete_damaged(storage.root, verified) == sorted([file_of(0, 1), file_of(3, 1)])
    run(storage.root)
    assert {problem.kind for problem in verify(storage.root).problems} == {"extra"}


def test_every_byte_of_an_output_counts(tmp_path: Path) -> None:
    run(tmp_path, size=3)
    name = file_of(3, 1)
    for at in range((tmp_path / name).stat().st_size):
        flip(tmp_path / name, at)
        assert found(tmp_path) == [(name, CHECKSUM, "damaged")]
        flip(tmp_path / name, at)


def test_a_file_that_cannot_be_read_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    real = LocalStorage.open

    def refuse(self: LocalStorage, relative: str) -> BinaryIO:
        if relative == file_of(0, 0):
            raise WriteError(errno.EACCES, "cannot be read (Permission denied)", relative)
        return real(self, relative)

    monkeypatch.setattr(LocalStorage, "open", refuse)
    assert found(tmp_path) == [(file_of(0, 0), "cannot be read (Permission denied)", "unreadable")]
    assert delete_damaged(tmp_path, verify(tmp_path)) == []


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = "caf\udce9/é\udcff_0.jpg"
    with RunFolder(tmp_path, {}) as folder:
        folder.storage.write(name, b"x")
        facts = {"status": "written", "bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
        folder.finish([facts | {"file": name, "index": 0}])
    assert found(tmp_path) == []
    (tmp_path / name).write_bytes(b"y")
    assert found(tmp_path) == [("caf\\udce9/é\\udcff_0.jpg", CHECKSUM, "damaged")]
    delete_damaged(tmp_path, verify(tmp_path))
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_shards_and_files_of_the_whole_run(tmp_path: Path, layout: str) -> None:
    sharded(tmp_path, layout)
    assert found(tmp_path) == []
    (tmp_path / "shard-000000.tar.index").touch()  # a reader's
    first, second, third = sorted(tmp_path.glob("shard-*[rt]"))
    label = first.read_bytes().find(b"00000000_0.cls")  # in a tar, a wrong label counts as well
    flip(first, None if label < 0 else label + 512)
    second.unlink()
    third.write_bytes(third.read_bytes()[:-100])
    (tmp_path / "variegate.json").write_text("{}")
    (tmp_path / "variegate.source").write_bytes(b"PAR1")
    size = third.stat().st_size
    expected = {
        first.name: CHECKSUM,
        second.name: "missing",
        third.name: f"has {size:,} bytes, the manifest says {size + 100:,}",
        "variegate.json": "not the settings that the manifest has",
    }
    if layout == "webdataset":
        (tmp_path / "classnames.txt").write_text("ant\n")
        expected["classnames.txt"] = "has 4 bytes, the manifest says 35"
    verified = verify(tmp_path)
    problems = {problem.file: problem.problem for problem in verified.problems}
    assert problems.pop("variegate.source").startswith("damaged (")
    assert problems == expected
    assert (verified.outputs, verified.good) == (12, 0)
    assert delete_damaged(tmp_path, verified) == sorted({*expected, "variegate.source"} - {second.name})


def test_a_damaged_manifest(tmp_path: Path) -> None:
    run(tmp_path)
    manifest = tmp_path / "manifest.parquet"
    whole = manifest.read_bytes()
    checksum = (tmp_path / "manifest.sha256").read_bytes()
    assert checksum == f"{hashlib.sha256(whole).hexdigest()}  manifest.parquet\n".encode()
    for at in range(0, len(whole), 5):
        flip(manifest, at)
        reason = f"its checksum differs from manifest.sha256; {UNCHECKED}"
        assert found(tmp_path) == [("manifest.parquet", reason, "damaged")]
        manifest.write_bytes(whole)
    # Without the checksum, those of its pages tell of about half, and with newer versions of Arrow of two thirds.
    (tmp_path / "manifest.sha256").unlink()
    seen = []
    for at in range(4, len(whole) // 4, 5):
        flip(manifest, at)
        seen.append(bool(found(tmp_path)))
        manifest.write_bytes(whole)
    assert sum(seen) > 0.45 * len(seen)
    (tmp_path / "manifest.sha256").write_text("nothing")
    assert found(tmp_path) == [("manifest.sha256", "not a checksum of manifest.parquet", "damaged")]
    (tmp_path / "manifest.sha256").write_bytes(checksum)
    for damaged in (whole[: len(whole) // 2], b"", b"PAR1" * 9):
        manifest.write_bytes(damaged)
        (problem,) = verify(tmp_path).problems
        assert (problem.file, problem.kind) == ("manifest.parquet", "damaged")
        assert problem.problem.endswith(UNCHECKED)
    assert delete_damaged(tmp_path, verify(tmp_path)) == ["manifest.parquet"]
    run(tmp_path)
    assert manifest.read_bytes() == whole


def test_a_manifest_without_some_of_its_rows(tmp_path: Path) -> None:
    run(tmp_path)
    rows = list(read_manifest(tmp_path).rows())
    for some, settings, reason in (
        (rows[:-2], {"samples": 4}, "damaged: it has 6 rows, for 4 samples of 2 copies; "),
        ([rows[1], rows[0], *rows[2:]], {}, "damaged: row 0 is of sample 0, copy 1; "),
        ([rows[0] | {"sha256": None}, *rows[1:]], {}, "damaged: row 0 has no file, or no checksum; "),
    ):
        write_manifest(open_storage(tmp_path), some, SETTINGS | settings)
        assert found(tmp_path)[-1][1].startswith(reason)


def test_a_run_that_is_not_complete(tmp_path: Path) -> None:
    RunFolder(tmp_path, SETTINGS).close()
    unfinished = "missing: the run is incomplete; to resume, run the command that began it again"
    assert found(tmp_path) == [("manifest.parquet", unfinished, "missing")]


@pytest.mark.parametrize("name", ["", "gone"])
def test_a_place_without_a_run(storage: Storage, name: str) -> None:
    storage.write("other.txt", b"")
    accepted = "a folder that variegate augment or pack wrote, with variegate.json and manifest.parquet"
    with pytest.raises(SourceError, match=f": holds no run; accepted: {accepted}$"):
        verify(f"{storage.root}/{name}".rstrip("/"))


def test_columns_of_another_type(tmp_path: Path) -> None:
    """Of each column in turn: one problem that names it, and one error of what reads the manifest otherwise."""
    run(tmp_path)
    table = pq.read_table(tmp_path / MANIFEST_NAME)
    (tmp_path / CHECKSUM_NAME).unlink()
    for at, name in enumerate(table.column_names):
        other = pa.string() if table.schema.field(at).type != pa.string() else pa.binary()
        damaged = table.set_column(at, name, pa.nulls(len(table), other))
        pq.write_table(damaged.replace_schema_metadata(table.schema.metadata), tmp_path / MANIFEST_NAME)
        (problem,) = verify(tmp_path).problems
        assert f"its column {name} is of type {other}" in problem.problem
        with pytest.raises(SourceError, match=f"damaged: its column {name} is of type {other}, not "):
            replay(tmp_path, 0)


_SETTINGS = ("command", "layout", "classes", "copies", "samples", "annotated", "pixels", "source", "transform")


@pytest.mark.parametrize("value", [None, 0, -1, 10**30, 0.5, True, "x", "../../x", [], {}, [1], {"format": "coco"}])
def test_settings_files_and_rows_of_any_value(tmp_path: Path, value: Any) -> None:
    """They end in problems, or in one error."""
    run(tmp_path)
    table, path = pq.read_table(tmp_path / MANIFEST_NAME), tmp_path / MANIFEST_NAME
    (tmp_path / CHECKSUM_NAME).unlink()
    metadata = [{b"variegate.settings": json.dumps({**SETTINGS, name: value})} for name in _SETTINGS]
    files = (value, [value], [["a", 1, value]], [["a", value, "0"]], [[value, 1, "0"]], [["../x", 1, "0"]])
    metadata += [{b"variegate.files": json.dumps(some)} for some in files if some not in ([], {})]
    for changes in metadata:
        pq.write_table(table.replace_schema_metadata(table.schema.metadata | changes), path)
        assert verify(tmp_path).problems
        with pytest.raises(SourceError):
            replay(tmp_path, 0)
    for name in table.column_names:
        row = {**table.slice(0, 1).to_pylist()[0], name: value}
        try:
            rows = pa.Table.from_pylist([row, *table.slice(1).to_pylist()], table.schema)
        except (pa.ArrowException, TypeError, OverflowError):
            continue
        pq.write_table(rows, path)
        verify(tmp_path)
