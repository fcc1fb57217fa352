"""What a journal remembers: all that was flushed, nothing that is not whole, in the order of the items."""

from __future__ import annotations

import errno
import json
import os
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.formats.base import SourceError
from variegate.formats.storage import Storage, WriteError, open_storage
from variegate.jobs.output.journal import Journal, remove_journal

NAME = ".variegate/journal"


def rows_of(start: int, stop: int) -> list[dict[str, Any]]:
    """Two rows an item; an item in five has none."""
    items = [item for item in range(start, stop) if item % 5]
    return [{"index": item, "x": "é" * copy} for item in items for copy in (0, 1)]


def texts(start: int, stop: int) -> list[str]:
    return [json.dumps(row) for row in rows_of(start, stop)]


def small(storage: Storage) -> Journal:
    """Items 4-5, 0-1 and 2-3, each flushed."""
    journal = Journal(storage, "plan")
    for start in (4, 0, 2):
        journal.append(start, start + 2, texts(start, start + 2))
        journal.flush()
    return journal


def test_what_was_flushed_is_there_again(storage: Storage) -> None:
    journal = Journal(storage, "plan")
    assert (journal.covered, journal.pending) == ([], 0)
    for start, stop in ((4, 9), (0, 2), (10, 11)):
        journal.append(start, stop, texts(start, stop))
    assert (journal.covered, journal.pending) == ([(0, 2), (4, 9), (10, 11)], 3)
    journal.flush()
    journal.flush()
    assert journal.pending == 0
    journal.append(2, 4, texts(2, 4))
    assert (journal.covered, journal.pending) == ([(0, 9), (10, 11)], 1)
    journal.close()

    journal = Journal(storage, "plan")
    assert journal.covered == [(0, 2), (4, 9), (10, 11)]
    for start, stop in ((9, 10), (2, 4)):
        journal.append(start, stop, texts(start, stop))
    assert list(journal.rows()) == rows_of(0, 11)
    assert list(journal.rows()) == rows_of(0, 11)
    assert journal.pending == 0
    journal.close()

    journal = Journal(storage, "plan")
    assert list(journal.rows()) == rows_of(0, 11)
    journal.close()
    remove_journal(storage)
    assert storage.list(".variegate") in ([], ["tmp/"])
    assert Journal(storage, "other plan").covered == []


@pytest.mark.parametrize(("start", "stop"), [(4, 5), (2, 2), (-1, 1)])
def test_a_range_is_recorded_once(storage: Storage, start: int, stop: int) -> None:
    journal = Journal(storage, "plan")
    journal.append(4, 8, [])
    with pytest.raises(ValueError, match=rf"^items {start} to {stop - 1}: accepted: a range of which nothing is rec"):
        journal.append(start, stop, [])
    assert (journal.covered, journal.pending) == ([(4, 8)], 1)
    journal.close()


def test_another_plan_or_format_is_refused(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    small(storage).close()
    with pytest.raises(
        SourceError, match=r"/\.variegate/journal.*: the run that was begun there had other samples or another plan"
    ):
        Journal(storage, "other")
    monkeypatch.setattr("variegate.jobs.output.journal.FORMAT", 2)
    with pytest.raises(SourceError, match="a journal of format 1, by another version of Variegate; accepted: 2"):
        Journal(storage, "plan")


@pytest.fixture
def folder(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def cut_to(folder: Storage, data: bytes) -> Path:
    path = Path(folder.root) / NAME
    path.write_bytes(data)
    return path


def test_every_length_that_a_torn_journal_may_have(folder: Storage) -> None:
    small(folder).close()
    whole = folder.read(NAME)
    lines = whole.splitlines(keepends=True)
    ends = [sum(map(len, lines[: count + 1])) for count in range(4)]
    expected = [[], [(4, 6)], [(0, 2), (4, 6)], [(0, 6)]]
    for length in range(len(whole) + 1):
        path = cut_to(folder, whole[:length])
        journal = Journal(folder, "plan")
        records = sum(end <= length for end in ends[1:])
        assert journal.covered == expected[records], length
        assert path.read_bytes() == whole[: ends[records]]  # what is torn is cut off, for good
        if length % 8 and length not in ends:
            journal.close()
            continue
        # The run goes on, and what it records is found again.
        for start in (4, 0, 2)[records:]:
            journal.append(start, start + 2, texts(start, start + 2))
        assert list(journal.rows()) == rows_of(0, 6)
        journal.close()
        journal = Journal(folder, "plan")
        assert journal.covered == [(0, 6)]
        journal.close()


@pytest.mark.parametrize("garbage", [b"\0" * 5000, b"x", b"\n\n", b"12345678 {}\n", b"\xff" * 70 + b"\n" + b"\0" * 9])
def test_garbage_at_the_end_is_cut_off(folder: Storage, garbage: bytes) -> None:
    small(folder).close()
    whole = folder.read(NAME)
    path = cut_to(folder, whole + garbage)
    journal = Journal(folder, "plan")
    assert list(journal.rows()) == rows_of(0, 6)
    journal.close()
    assert path.read_bytes() == whole


def test_a_flipped_bit_anywhere(folder: Storage) -> None:
    """In the last line (or that which ends it where it begins) it counts as torn. Before, every byte had been safe, so
    the disk is not to be trusted."""
    small(folder).close()
    whole = folder.read(NAME)
    lines = whole.splitlines(keepends=True)
    last = len(whole) - len(lines[-1])
    for at in range(len(whole)):
        path = cut_to(folder, whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        if at >= last - 1:
            journal = Journal(folder, "plan")
            assert journal.covered == ([(0, 2), (4, 6)] if at >= last else [(4, 6)])
            journal.close()
            assert path.read_bytes() == whole[: last if at >= last else last - len(lines[-2])]
        else:
            with pytest.raises(SourceError) as raised:
                Journal(folder, "plan")
            line = next(number for number in range(1, 4) if at < sum(map(len, lines[:number])))
            assert f"{folder.root}/{NAME}: line {line} is damaged, and line " in str(raised.value)


def test_a_flush_of_several_records_may_be_lost_in_any_part(folder: Storage) -> None:
    """A power failure may keep the second half of what was being written, and lose the first."""
    journal = Journal(folder, "plan")
    for start in (0, 2):
        journal.append(start, start + 2, texts(start, start + 2))
        journal.flush()
    safe = folder.read(NAME)
    for start in (4, 6, 8):
        journal.append(start, start + 2, texts(start, start + 2))
    journal.flush()
    journal.close()
    whole = folder.read(NAME)
    begin = whole.index(b"\n", len(safe)) + 1  # of the second of the three
    path = cut_to(folder, whole[: begin + 3] + bytes(50) + whole[begin + 53 :])
    journal = Journal(folder, "plan")
    assert journal.covered == [(0, 6)]
    journal.append(6, 10, texts(6, 10))
    assert list(journal.rows()) == rows_of(0, 10)
    journal.close()
    assert path.read_bytes().startswith(whole[:begin])
    # The next flush was made when all of that was safe.
    cut_to(folder, folder.read(NAME)[: begin + 1])
    assert Journal(folder, "plan").covered == [(0, 6)]


def test_an_object_that_did_not_arrive_is_sent_again(remote: None, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("memory://bucket/out")
    journal = small(storage)
    journal.append(6, 8, texts(6, 8))

    def fail(*_: Any) -> None:
        raise WriteError(errno.EIO, "the connection broke off", "x")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write", fail)
        with pytest.raises(WriteError):
            journal.flush()
    journal.flush()
    assert storage.list(".variegate") == [f"journal-{number:06}" for number in range(4)]
    journal.close()
    assert list(Journal(storage, "plan").rows()) == rows_of(0, 8)
    whole = storage.read(".variegate/journal-000001")
    for data in (whole[:-1], whole[:20], b"", whole.replace(b"index", b"Index")):
        storage.write(".variegate/journal-000001", data)
        with pytest.raises(SourceError, match=r"^memory://bucket/out/\.variegate/journal-000001: damaged; choose anot"):
            Journal(storage, "plan")


def test_memory_is_by_record_not_by_row(folder: Storage) -> None:
    journal = Journal(folder, "plan")
    row = json.dumps({"file": "x" * 200})
    starts = list(range(0, 20_000, 200))
    random.Random(0).shuffle(starts)
    for start in starts:
        journal.append(start, start + 200, [row] * 200)
        journal.flush()
    journal.close()
    assert os.path.getsize(Path(folder.root) / NAME) > 4_000_000
    tracemalloc.start()
    try:
        journal = Journal(folder, "plan")
        assert sum(1 for _ in journal.rows()) == 20_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000  # a read-ahead of 1 MiB among it
    journal.close()


def test_what_is_invalidated_is_to_be_done_again(storage: Storage) -> None:
    journal = small(storage)
    journal.invalidate(2, 4)
    assert journal.covered == [(0, 2), (4, 6)]
    journal.append(3, 4, texts(3, 4), 1)
    assert (journal.covered, journal.num_missing) == ([(0, 2), (3, 6)], 1)
    journal.flush()
    journal.close()

    journal = Journal(storage, "plan")
    assert (journal.covered, journal.num_missing) == ([(0, 2), (3, 6)], 1)
    assert list(journal.records()) == [(0, 2, rows_of(0, 2)), (3, 4, rows_of(3, 4)), (4, 6, rows_of(4, 6))]
    journal.append(2, 3, texts(2, 3))
    journal.flush()
    journal.close()
    assert list(Journal(storage, "plan").rows()) == rows_of(0, 6)


def test_what_was_invalidated_and_not_made_again_is_still_recorded(storage: Storage) -> None:
    journal = small(storage)
    journal.invalidate(2, 4)
    journal.close()
    assert Journal(storage, "plan").covered == [(0, 6)]


def test_records_are_those_from_before(storage: Storage) -> None:
    journal = small(storage)
    seen = []
    for start, stop, _ in journal.records():
        seen.append((start, stop))
        journal.invalidate(start, stop)
        journal.append(start, start + 1, texts(start, start + 1))
        journal.flush()
    assert seen == [(0, 2), (2, 4), (4, 6)]
    assert journal.covered == [(0, 1), (2, 3), (4, 5)]


@given(st.lists(st.tuples(st.sampled_from(["append", "invalidate", "reopen"]), st.integers(0, 11), st.integers(1, 4))))
def test_covered_is_what_was_recorded_and_not_invalidated(steps: list[tuple[str, int, int]]) -> None:
    storage = open_storage("memory://journals/any")
    remove_journal(storage)
    journal = Journal(storage, "plan")
    there: set[tuple[int, int]] = set()
    written: set[tuple[int, int]] = set()
    for step, start, length in steps:
        stop = start + length
        others = {span for span in there if span[1] <= start or stop <= span[0]}
        if step == "invalidate":
            journal.invalidate(start, stop)
            there = others
        elif step == "reopen":
            journal.flush()
            journal.close()
            journal = Journal(storage, "plan")
            there = set(written)
        elif others == there:
            journal.append(start, stop, [])
            there = there | {(start, stop)}
            written = {span for span in written if span[1] <= start or stop <= span[0]} | {(start, stop)}
        else:
            with pytest.raises(ValueError, match="accepted: a range of which nothing is recorded yet"):
                journal.append(start, stop, [])
        items = sorted(item for begin, end in there for item in range(begin, end))
        assert [item for begin, end in journal.covered for item in range(begin, end)] == items
        assert all(a[1] < b[0] for a, b in pairwise(journal.covered))
    journal.close()
