"""Outputs that were deleted, cut off or damaged since: the same command makes again just these, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs.augment.samples import digest, expansion, lay_photos, run_until, threads
from variegate.jobs.output.verify import delete_damaged, verify

MADE_AGAIN = "outputs of an earlier run again: files are missing or have another size"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


@pytest.mark.parametrize("layout", ["folder", "webdataset", "parquet"])
def test_what_is_lost_or_damaged_is_made_again(photos: Path, tmp_path: Path, layout: str) -> None:
    out, settings = tmp_path / "out", {"layout": layout, "shard_size": 3}
    expansion(photos, out, **settings).run()
    before = digest(out)
    outputs = sorted(out.rglob("*.jpg") if layout == "folder" else out.glob("shard-*"))[-3:]
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.*")}
    flipped = bytearray(outputs[1].read_bytes())
    flipped[len(flipped) // 2] ^= 1
    outputs[0].unlink()
    outputs[1].write_bytes(flipped)
    outputs[2].write_bytes(outputs[2].read_bytes()[:-1])
    found = verify(out)
    assert {problem.file: problem.kind for problem in found.problems} == {
        path.relative_to(out).as_posix(): kind
        for path, kind in zip(outputs, ("missing", "damaged", "damaged"), strict=True)
    }
    delete_damaged(out, found)
    with pytest.warns(UserWarning, match=f"^writing [69] {MADE_AGAIN}$"):
        report = expansion(photos, out, **settings).run()
    assert report.written == report.repaired == 21 - report.resumed
    assert digest(out) == before
    written = {path for path, time in times.items() if path.name[0] not in "vmc" and path.stat().st_mtime_ns != time}
    assert len(written) == (report.written if layout == "folder" else report.written // 3)  # other parts were left
    assert expansion(photos, out, **settings).run().repaired == 0
    assert verify(out).problems == []


@pytest.mark.parametrize("layout", ["folder", "webdataset", "parquet"])
def test_of_an_interrupted_run(photos: Path, tmp_path: Path, layout: str) -> None:
    out, settings = tmp_path / "out", {"layout": layout, "shard_size": 30, "copies": 60}
    first = run_until(expansion(photos, out, threads(1, ordered=True), **settings), 130)
    sorted(out.rglob("*.jpg") if layout == "folder" else out.glob("shard-*"))[1].unlink()
    with pytest.warns(UserWarning, match=MADE_AGAIN):
        second = expansion(photos, out, **settings).run()
    assert second.resumed == first.written - second.repaired
    assert second.written + second.resumed == 420
    expansion(photos, tmp_path / "reference", **settings).run()
    assert digest(out) == digest(tmp_path / "reference")


def test_an_address(photos: Path) -> None:
    import fsspec

    address = "memory://lost/out"
    fs: Any = fsspec.filesystem("memory")
    expansion(photos, address).run()
    before = {name: fs.cat_file(name) for name in fs.find("/lost/out")}
    fs.rm_file("/lost/out/a/2_0.jpg")
    fs.pipe_file("/lost/out/b/x_1.jpg", b"cut")
    fs.rm("/lost/out/b/deep", recursive=True)
    with pytest.warns(UserWarning, match=f"^writing 21 {MADE_AGAIN}"):
        assert expansion(photos, address).run().repaired == 21
    assert {name: fs.cat_file(name) for name in fs.find("/lost/out")} == before
    assert verify(address).problems == []


@pytest.mark.parametrize("name", ["variegate.json", "classnames.txt", "manifest.sha256"])
def test_files_of_the_whole_run_are_written_again(photos: Path, tmp_path: Path, name: str) -> None:
    out, settings = tmp_path / "out", {"layout": "webdataset", "shard_size": 10}
    expansion(photos, out, **settings).run()
    before = digest(out)
    (out / name).unlink()
    assert expansion(photos, out, **settings).run().written == 0
    assert digest(out) == before
