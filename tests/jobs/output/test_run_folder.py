"""Which places a run may write to, what is found there of an earlier life, and what is left at the end."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.children import start_python
from tests.jobs.output.runs import ITEMS, SETTINGS, file_of, make_item, output, run, tree
from variegate.data.base import SourceError
from variegate.data.storage import Storage, WriteError
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.run_folder import RunFolder, work_folder
from variegate.jobs.output.run_record import describe_difference

HOLDER = """
import sys
from variegate.jobs.output.run_folder import RunFolder
folder = RunFolder(sys.argv[1], {"seed": 0})
print("ready", flush=True)
sys.stdin.read()
"""


def begun(storage: Storage) -> None:
    """A run that stopped after two of its items."""
    with RunFolder(storage.root, SETTINGS) as folder:
        for item in (0, 2):
            make_item(folder, item)


def contents(storage: Storage, folder: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in storage.list(folder):
        path = f"{folder}/{name}".strip("/")
        found |= contents(storage, path) if name.endswith("/") else {path: storage.read(path)}
    return found


def test_a_run_leaves_outputs_settings_and_manifest_and_is_not_done_twice(storage: Storage) -> None:
    run(storage.root)
    found = contents(storage)
    outputs = {file_of(item, copy): output(item, copy) for item in range(ITEMS) for copy in range(2)}
    assert found.keys() == {*outputs, "variegate.json", "variegate.source", "manifest.parquet", "manifest.sha256"}
    assert found.items() >= outputs.items()
    assert json.loads(found["variegate.json"]) == read_manifest(storage.root).settings == SETTINGS
    assert [row["file"] for row in read_manifest(storage.root).rows()] == list(outputs)
    assert run(storage.root) == []
    assert contents(storage) == found


def test_without_resuming_all_is_done_again(storage: Storage) -> None:
    begun(storage)
    storage.write(file_of(0, 0), b"damaged")
    assert run(storage.root, resume=False) == list(range(ITEMS))
    whole = contents(storage)
    with RunFolder(storage.root, SETTINGS, resume=False) as folder:
        assert not folder.is_complete
        assert not storage.exists("manifest.parquet")
    run(storage.root, resume=False)
    assert contents(storage) == whole


@pytest.mark.parametrize("resume", [True, False])
def test_another_run_and_files_of_others_are_refused(storage: Storage, resume: bool) -> None:
    storage.write("notes.txt", b"mine")
    message = "holds files that no run of variegate wrote (notes.txt); choose an empty folder or a new name"
    with pytest.raises(SourceError) as raised:
        RunFolder(storage.root, SETTINGS, resume)
    assert str(raised.value) == f"{storage.shown}: {message}"
    storage.remove("notes.txt")
    storage.write(".DS_Store", b"")
    begun(storage)
    for finish in (lambda: None, lambda: run(storage.root)):
        finish()
        before = contents(storage)
        with pytest.raises(SourceError) as raised:
            RunFolder(storage.root, SETTINGS | {"seed": 1}, resume)
        message = "holds a run with seed 0, this one has seed 1; choose another folder"
        assert str(raised.value) == f"{storage.shown}: {message}"
        assert contents(storage) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_settings_that_are_none(storage: Storage, content: bytes) -> None:
    storage.write("variegate.json", content)
    with pytest.raises(SourceError, match=r"/variegate\.json: not .*; choose another folder$"):
        RunFolder(storage.root, SETTINGS)


def test_places_that_are_no_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=r"/file: is a file; expected a folder, or a name that is still free$"):
        RunFolder(tmp_path / "file", SETTINGS)
    with pytest.raises(WriteError, match=r"/file/out: cannot be (listed|made) \(Not a directory\)$"):
        RunFolder(tmp_path / "file" / "out", SETTINGS)


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": float("nan")}, {"a": float("nan")}, ""),
        ({"a": 1}, {"a": True}, "with a 1, this one has a true"),
        ({}, {"a": None}, "with no a, this one has a null"),
        ({"a": 1, "b": "x", "c": 1}, {"b": "y", "a": 2, "c": 1}, 'with b "x", this one has b "y"'),
        ({"t": {"ops": [{"p": 1}, {"p": 2}]}}, {"t": {"ops": [{"p": 1}, {"p": 3}]}}, "with t.ops[1].p 2, this one has"),
        ({"t": [1]}, {"t": [1, 2]}, "with no t[1], this one has t[1] 2"),
        ({"a": "x" * 99}, {"a": "x" * 99 + "y"}, f'with a ...{"x" * 36}", this one has a ...{"x" * 35}y"'),
    ],
)
def test_in_what_two_runs_differ(there: Any, here: Any, words: str) -> None:
    found = describe_difference(there, here)
    assert found.startswith(words)
    assert bool(found) == bool(words)


def test_settings_are_what_json_makes_of_them(tmp_path: Path) -> None:
    for _ in range(2):
        with RunFolder(tmp_path, {"size": (224, 224), "sizes": {1: 2}}) as folder:
            assert folder.settings == {"size": [224, 224], "sizes": {"1": 2}}


@pytest.mark.process
def test_two_runs_at_once(tmp_path: Path) -> None:
    with start_python(HOLDER, tmp_path, stdin=PIPE, stdout=PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        try:
            for resume in (True, False):
                with pytest.raises(SourceError) as raised:
                    RunFolder(tmp_path, {"seed": 0}, resume=resume)
                assert str(raised.value) == (
                    f"{tmp_path}: another run (process {holder.pid}) is writing there; wait until it has ended, or "
                    "choose another folder"
                )
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait(10)
    # Nor twice in one process.
    with RunFolder(tmp_path, {"seed": 0}), pytest.raises(SourceError, match="another run"):
        RunFolder(tmp_path, {"seed": 0})
    RunFolder(tmp_path, {"seed": 0}).close()


def test_a_lock_is_of_the_folder_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before removes the lock's file between our opening and our locking it, and a third makes a new one."""
    import fcntl

    first = RunFolder(tmp_path, SETTINGS)
    real_flock = fcntl.flock
    thirds = []

    def flock(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        first.storage.remove_tree(".variegate")
        first.close()
        thirds.append(RunFolder(tmp_path, SETTINGS))
        real_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(SourceError, match="another run"):
        RunFolder(tmp_path, SETTINGS)
    thirds[0].close()


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    run(tmp_path)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    run(tmp_path, resume=False)
    assert len(read_manifest(tmp_path)) == 8


def test_a_worker_of_an_earlier_life_changes_nothing(tmp_path: Path) -> None:
    with RunFolder(tmp_path, SETTINGS) as folder:
        worker = pickle.loads(pickle.dumps(folder.storage))
    run(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(WriteError):
        worker.write("cat/late.jpg", b"")
    assert tree(tmp_path) == before


# Text, or changes of a row.
DAMAGE = [b"", b"{", b"[7]", b"[[]]", b"[]", b"\xff", {"index": None}, {"index": 3}, {"copy": -1}, {"bytes": "7"}]
DAMAGE += [{"file": 7}, {"file": None}, {"height": 1 << 40}, {"more": 1}, {"bytes": 1}, None]


@pytest.mark.parametrize("content", DAMAGE)
def test_a_part_whose_record_is_damaged_is_made_again(storage: Storage, content: Any) -> None:
    """And none besides those that are not there; None: nothing is damaged."""
    begun(storage)
    name = ".variegate/parts/000002.json"
    if isinstance(content, dict):
        rows = json.loads(storage.read(name))
        content = json.dumps([rows[0] | content, *rows[1:]]).encode()
    if content is not None:
        storage.write(name, content)
    storage.write(".variegate/parts/notes.json", b"[]")
    storage.write(".variegate/parts/000099.json", b"[]")
    storage.write(".variegate/tmp/left", b"half")
    assert run(storage.root) == ([1, 3] if content is None else [1, 2, 3])
    assert len(read_manifest(storage.root)) == 8
    assert ".variegate/" not in storage.list()


def test_a_part_with_lost_files_is_made_again(storage: Storage) -> None:
    """Of an interrupted run, and of a complete one, whose manifest has the others."""
    begun(storage)
    storage.write(file_of(2, 1), b"cut")
    assert run(storage.root) == [1, 2, 3]
    whole = contents(storage)
    storage.remove(file_of(1, 0))
    assert run(storage.root) == [1]
    assert contents(storage) == whole


@pytest.mark.parametrize("left", ["parts/000001.json", "tmp/x", "lock"])
@pytest.mark.parametrize("is_complete", [True, False])
def test_what_is_left_of_an_interrupted_begin_or_end(storage: Storage, left: str, is_complete: bool) -> None:
    """If the manifest is there, the run is complete, whatever else is."""
    run(storage.root)
    whole = contents(storage)
    if not is_complete:
        storage.remove_tree("cat")
        storage.remove_tree("dog")
        for name in storage.list():
            storage.remove(name)
    storage.write(f".variegate/{left}", b"rest")
    assert run(storage.root) == ([] if is_complete else list(range(ITEMS)))
    assert contents(storage) == whole


def test_a_finished_folder_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may lie on a disk that is mounted for reading."""
    run(tmp_path)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    opened = os.open

    def only_read(path: Any, flags: int, *more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError
        return opened(path, flags, *more)

    for name in ("mkdir", "unlink", "replace", "fsync"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(os, "open", only_read)
    assert run(tmp_path) == []


def test_a_run_of_one_file_replaces_another_and_removes_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "found.parquet"
    for seed, entries, was_replaced in ((0, [], False), (0, [1, [2]], False), (1, [], True)):
        with RunFolder(work_folder(file), {"seed": seed}, file=file) as folder:
            with folder.open_log("log") as log:
                assert log.entries == entries
                log.append(1)
                log.append([2])
            (log_path,) = work_folder(file).rglob("log")
            log_path.write_bytes(b"1\n[2]\n[3")  # torn, as by a kill
            assert folder.was_replaced == was_replaced
            with pytest.raises(SourceError, match=rf"^{file}: another run .* or choose another file$"):
                RunFolder(work_folder(file), {"seed": seed}, file=file)
    (work_folder(file) / "variegate.json").write_bytes(b"damaged")
    with RunFolder(work_folder(file), {"seed": 1}, file=file) as folder:
        assert folder.was_replaced
        folder.remove()
    assert list(tmp_path.iterdir()) == []
