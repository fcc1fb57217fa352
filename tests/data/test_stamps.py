"""Stamps of files: what is told apart, what a copy may change, and which sources have them."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data import contract
from variegate.data.opening import open_source
from variegate.data.stamps import Stamp, Stamps, describe_change, differences, is_same, stamps_of

SECOND = 1_000_000_000
TIME = 1_700_000_000 * SECOND + 123_456_789


def of_times(*times: int) -> Stamps:
    names = [f"{number}.jpg" for number in range(len(times))]
    return Stamps(names, np.full(len(times), 5), np.array(times, np.int64), (), np.arange(len(times)))


@pytest.mark.parametrize(
    ("now", "is_equal"),
    [
        (TIME, True),
        (TIME - 123_456_789, True),  # an archive keeps whole seconds
        (TIME - 456_789, True),
        (TIME - 789, True),
        (TIME - 89, True),  # NTFS
        (TIME + 1, False),
        (TIME - 1, False),
        (TIME + SECOND, False),
        (TIME - 123_456_789 - SECOND, False),
        (-1, True),  # not known
        (0, False),
    ],
)
def test_times_are_equal_in_what_a_copy_may_keep_of_them(now: int, is_equal: bool) -> None:
    for was, other in ((TIME, now), (now, TIME)):
        assert differences(of_times(TIME, was), of_times(TIME, other)).tolist() == ([] if is_equal else [1])
        assert is_same(Stamp(5, was), Stamp(5, other)) == is_equal
    assert not is_same(Stamp(5, TIME), Stamp(6, now))


def test_marks_tell_where_both_are_known() -> None:
    assert is_same(Stamp(5, -1, "ETag a"), Stamp(5, -1, "ETag a"))
    assert is_same(Stamp(5, -1, "ETag a"), Stamp(5, -1, ""))
    assert not is_same(Stamp(5, -1, "ETag a"), Stamp(5, -1, "ETag b"))


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (Stamp(7, TIME), Stamp(7, TIME + 1), "was 7 bytes of {time}.123456789, is 7 bytes of {time}.123456790"),
        (Stamp(7, TIME), Stamp(-1), "was 7 bytes of {time}.123456789, is not there"),
        (Stamp(7, -1, "ETag a"), Stamp(8, -1, ""), "was 7 bytes (ETag a), is 8 bytes"),
        (Stamp(7, 2**62), Stamp(7, 10**18), "was 7 bytes of 2116-"),
    ],
)
def test_a_change_in_words(was: Stamp, now: Stamp, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        assert describe_change(was, now).startswith(words.format(time="2023-11-14 22:13:20"))
    finally:
        monkeypatch.undo()
        time.tzset()


# The pattern of the files of a source, and what lays them.
SOURCES: dict[str, Any] = {
    "": contract.folder,
    "*.parquet": contract.parquet,
    "*.tar": contract.shards,
    "*.arrow": contract.raw,
}


@pytest.mark.parametrize("pattern", SOURCES)
def test_a_moved_or_copied_source_is_the_same_and_a_touched_file_is_not(tmp_path: Path, pattern: str) -> None:
    SOURCES[pattern](tmp_path / "a", contract.pictures())
    files = sorted(path for path in (tmp_path / "a").rglob("*") if path.suffix not in ("", ".index", ".txt"))
    shutil.copytree(tmp_path / "a", tmp_path / "deep" / "b")  # with times

    def opened(folder: Path) -> Any:
        return open_source(f"{folder}/{pattern}")

    def stamps(folder: Path) -> Stamps:
        found = stamps_of(opened(folder))
        assert found is not None
        return found

    was = stamps(tmp_path / "a")
    assert len(was) == len(files)
    now = stamps(tmp_path / "deep" / "b")
    assert list(now.names) == list(was.names)
    assert differences(was, now).tolist() == []
    other = tmp_path / "deep" / "b" / files[-1].relative_to(tmp_path / "a")
    # Whole seconds later: a few nanoseconds may pass for what another file system cuts off.
    os.utime(other, ns=(0, other.stat().st_mtime_ns + 3_000_000_005))
    now = stamps(tmp_path / "deep" / "b")
    assert [now.place(file) for file in differences(was, now).tolist()] == [str(other)]
    source = opened(tmp_path / "a")
    for sample in range(len(source)):
        assert source.name(sample).file == was.place(was.file_of(sample))
    assert pickle.loads(pickle.dumps(was.for_workers())).at(0) == was.at(0)


def test_a_remote_folder_is_listed_and_asked_for_its_marks(tmp_path: Path, memory: Any) -> None:
    source = contract.remote_folder(tmp_path / "a", contract.pictures()).source
    was = stamps_of(source)
    assert was is not None
    assert was.sizes.tolist() == [len(source.read(index).data) for index in range(len(source))]
    assert all(was.marks)
    again = stamps_of(source)
    assert again is not None
    assert differences(was, again).tolist() == []
    name = was.place(2).removeprefix("memory://")
    memory.pipe_file(name, memory.cat_file(name))
    now = stamps_of(source)
    assert now is not None
    assert differences(was, now).tolist() == [2]


def test_sources_without_files_and_files_that_are_gone(tmp_path: Path) -> None:
    images = np.zeros((3, 4, 4, 3), np.uint8)
    for spec in (images, [images[0], images[1]]):
        assert stamps_of(open_source((spec, [0] * len(spec)))) is None
    contract.folder(tmp_path / "a", contract.pictures())
    source: Any = open_source(tmp_path / "a")
    Path(source.name(0).file).unlink()
    found = stamps_of(source)
    assert found is not None
    assert (found.at(0), found.at(1).size > 0) == (Stamp(-1, -1), True)
