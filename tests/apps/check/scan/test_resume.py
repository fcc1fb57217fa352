"""A check that is interrupted goes on, and ends with the same bytes as one that is not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from tests.children import start_python
from variegate.apps.check import scan
from variegate.data.base import Item, SourceError
from variegate.data.samples import Samples
from variegate.events import Progress

IMAGES = 200


@pytest.fixture(autouse=True)
def _record_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_SECONDS_A_RECORD", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        path = tmp_path / "images" / ("a", "b")[number % 2] / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 9, 3), dtype=np.uint8)).save(path)
    (tmp_path / "images" / "a" / "010.png").write_bytes(b"nothing")
    return tmp_path / "images"


@pytest.fixture
def expected(folder: Path, tmp_path: Path) -> bytes:
    vg.check(folder, out=tmp_path / "expected.parquet")
    return (tmp_path / "expected.parquet").read_bytes()


class Stopping:
    """``on_event`` that sets ``stop`` when so many images are done."""

    def __init__(self, after: int) -> None:
        self.stop, self._after = Event(), after

    def __call__(self, event: Progress) -> None:
        if event.done >= self._after:
            self.stop.set()


def interrupt(folder: Path, out: Path, after: int) -> None:
    stopping = Stopping(after)
    with pytest.raises(KeyboardInterrupt):
        vg.check(folder, out=out, on_event=stopping, stop=stopping.stop, threads=2)


def journal_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.partial") / "journal"


@pytest.fixture
def count_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[int]]:
    reads: set[int] = set()
    read = Samples.read

    def counted(self: Samples, index: int) -> Item:
        reads.add(index)
        return read(self, index)

    monkeypatch.setattr(Samples, "read", counted)

    def taken() -> set[int]:
        some = set(reads)
        reads.clear()
        return some

    return taken


def test_nothing_recorded_is_read_again_and_the_bytes_are_the_same(
    folder: Path, tmp_path: Path, expected: bytes, count_reads: Callable[[], set[int]]
) -> None:
    out = tmp_path / "found.parquet"
    interrupt(folder, out, 64)
    assert not out.exists()
    assert journal_of(out).exists()
    count_reads()
    result = vg.check(folder, out=out)
    assert result.resumed >= 64
    assert count_reads() == set(range(result.resumed, IMAGES))
    assert out.read_bytes() == expected
    assert not journal_of(out).parent.exists()


@pytest.mark.parametrize("kept", [0.01, 0.3, 0.999])
def test_a_record_that_is_not_whole_is_not_believed(folder: Path, tmp_path: Path, expected: bytes, kept: float) -> None:
    out = tmp_path / "found.parquet"
    interrupt(folder, out, 100)
    journal = journal_of(out)
    data = journal.read_bytes()
    journal.write_bytes(data[: int(len(data) * kept)])
    assert vg.check(folder, out=out).resumed < 100 + 16 * 8
    assert out.read_bytes() == expected


def test_damage_within_a_record_ends_what_is_believed(folder: Path, tmp_path: Path, expected: bytes) -> None:
    out = tmp_path / "found.parquet"
    interrupt(folder, out, 100)
    journal = journal_of(out)
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    assert 0 < vg.check(folder, out=out).resumed < 100
    assert out.read_bytes() == expected


def test_images_that_have_changed_are_looked_at_anew(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.parquet"
    interrupt(folder, out, 100)
    Image.new("RGB", (5, 5)).save(folder / "b" / "001.png")
    result = vg.check(folder, out=out)
    assert result.resumed == 0
    assert any("changed" in text for text in result.notes)
    row = result.table.filter(np.array(result.table["file"]) == "b/001.png").to_pylist()[0]
    assert row["height"] == 5


def test_two_at_once_are_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.parquet"
    refused: list[str] = []

    def again(event: Progress) -> None:
        if event.done and not refused:
            with pytest.raises(SourceError, match="another run") as error:
                vg.check(folder, out=out)
            refused.append(str(error.value))

    vg.check(folder, out=out, on_event=again)
    assert refused
    assert str(out) in refused[0]


def test_other_files_are_not_overwritten(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.parquet"
    out.write_bytes(b"a thesis")
    with pytest.raises(SourceError, match=r"found\.parquet"):
        vg.check(folder, out=out)
    assert out.read_bytes() == b"a thesis"
    out.unlink()
    for _ in range(2):
        vg.check(folder, out=out)
    assert len(pq.read_table(out)) == IMAGES


def test_findings_do_not_lie_among_the_files_they_are_of(folder: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    images = [{"bytes": path.read_bytes(), "path": path.name} for path in sorted(folder.rglob("*.png"))]
    pq.write_table(pa.table({"image": images}), shards / "train.parquet")
    with pytest.raises(SourceError, match="would lie among the files"):
        vg.check(shards, out=shards / "found.parquet")
    vg.check(folder, out=folder / "found.parquet")  # one folder of images among others: no class comes of it
    before = (folder / "found.parquet").read_bytes()
    vg.check(folder, out=folder / "found.parquet")
    assert (folder / "found.parquet").read_bytes() == before


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_kill_9(folder: Path, tmp_path: Path, expected: bytes) -> None:
    out = tmp_path / "found.parquet"
    script = (
        "import sys, time, variegate as vg\n"
        "from variegate.apps.check import scan\n"
        "scan._SECONDS_A_RECORD = 0.0\n"
        "def slowly(event):\n"
        "    time.sleep(0.02)\n"
        f"vg.check({str(folder)!r}, out={str(out)!r}, on_event=slowly, threads=1)\n"
    )
    run = start_python(script)
    journal = journal_of(out)
    deadline = time.monotonic() + 60
    while not journal.exists() or journal.stat().st_size < 10_000:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert not out.exists()
    result = vg.check(folder, out=out)
    assert 0 < result.resumed < IMAGES
    assert out.read_bytes() == expected
