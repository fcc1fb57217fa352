"""A check that is interrupted resumes, and refuses what it would overwrite. Kills: ``tests/jobs/test_resume.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from variegate.apps.check import scan
from variegate.data.base import Item, SourceError
from variegate.data.samples import Samples
from variegate.events import Progress

IMAGES = 200


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "SAMPLES_A_PART", 16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        path = tmp_path / "images" / ("a", "b")[number % 2] / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 9, 3), dtype=np.uint8)).save(path)
    (tmp_path / "images" / "a" / "010.png").write_bytes(b"nothing")
    return tmp_path / "images"


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
    folder: Path, tmp_path: Path, count_reads: Callable[[], set[int]]
) -> None:
    vg.check(folder, out=tmp_path / "expected.parquet")
    out = tmp_path / "found.parquet"
    interrupt(folder, out, 64)
    assert not out.exists()
    records = sorted(out.with_name(f".{out.name}.partial").rglob("*.parquet"))
    assert len(records) >= 4
    data = bytearray(records[1].read_bytes())  # of samples 16 to 31
    data[len(data) // 3] ^= 1
    records[1].write_bytes(data)
    count_reads()
    result = vg.check(folder, out=out)
    assert result.resumed == 16 * (len(records) - 1)
    assert count_reads() == {*range(16, 32), *range(16 * len(records), IMAGES)}
    assert out.read_bytes() == (tmp_path / "expected.parquet").read_bytes()
    assert not list(tmp_path.glob(".*"))


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
