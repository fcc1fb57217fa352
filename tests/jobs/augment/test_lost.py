"""Outputs that were deleted or cut off since: the same command makes again just these, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.jobs.augment.samples import digest, expansion, lay_photos, run_until, threads
from variegate.jobs.augment import Report
from variegate.jobs.output.verify import delete_damaged, verify

LAYOUTS = ("folder", "webdataset", "parquet")
MADE_AGAIN = "outputs of an earlier run are made again: files are missing or have another size"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


def begun(photos: Path, out: Path, at_least: int, **settings: Any) -> Report:
    run = expansion(photos, out, threads(1, ordered=True), **settings)
    return run_until(run, at_least)


def shards(out: Path) -> list[Path]:
    return sorted(out.glob("shard-*"))


def test_deleted_and_cut_files_of_a_complete_run(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    before = digest(out)
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.jpg")}
    (out / "b/deep/x_1.jpg").unlink()
    (out / "b/z_0.jpg").write_bytes((out / "b/z_0.jpg").read_bytes()[:-1])
    with pytest.warns(UserWarning, match=f"^6 {MADE_AGAIN}$"):
        report = expansion(photos, out).run()
    assert (report.repaired, report.written, report.resumed, report.total) == (6, 6, 15, 21)
    assert digest(out) == before
    # Images of other parts were left alone.
    written = {path for path, time in times.items() if path.stat().st_mtime_ns != time}
    assert written == {out / f"b/{name}_{copy}.jpg" for name in ("z", "deep/x") for copy in range(3)}
    assert expansion(photos, out).run().repaired == 0


@pytest.mark.parametrize("layout", ["webdataset", "parquet"])
def test_a_shard_is_made_again_whole(photos: Path, tmp_path: Path, layout: str) -> None:
    out, settings = tmp_path / "out", {"layout": layout, "shard_size": 6}
    expansion(photos, out, **settings).run()
    before = digest(out)
    shards(out)[0].unlink()
    with shards(out)[1].open("ab") as file:
        file.write(b"\0")
    with pytest.warns(UserWarning, match=f"^12 {MADE_AGAIN}$"):
        report = expansion(photos, out, **settings).run()
    assert (report.repaired, report.written, report.resumed) == (12, 12, 9)
    assert digest(out) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_an_interrupted_run(photos: Path, tmp_path: Path, layout: str) -> None:
    out, settings = tmp_path / "out", {"layout": layout, "shard_size": 30, "copies": 60}
    first = begun(photos, out, 130, **settings)
    if layout == "folder":
        (out / "a/1.jpg_3.jpg").unlink()
        (out / "a/1.png_7.jpg").write_bytes(b"")
    else:
        shards(out)[1].unlink()
    with pytest.warns(UserWarning, match=MADE_AGAIN):
        second = expansion(photos, out, **settings).run()
    assert second.repaired > 0
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
    with pytest.warns(UserWarning, match=f"^21 {MADE_AGAIN}"):
        assert expansion(photos, address).run().repaired == 21
    assert {name: fs.cat_file(name) for name in fs.find("/lost/out")} == before
    assert verify(address).problems == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_that_verify_removes_is_made_again(photos: Path, tmp_path: Path, layout: str) -> None:
    out, settings = tmp_path / "out", {"layout": layout, "shard_size": 6}
    expansion(photos, out, **settings).run()
    before = digest(out)
    path = out / "a/2_0.jpg" if layout == "folder" else shards(out)[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert expansion(photos, out, **settings).run().repaired == 0  # its size is right
    assert delete_damaged(out, verify(out)) == [path.relative_to(out).as_posix()]
    with pytest.warns(UserWarning, match="15 outputs" if layout == "folder" else "6 outputs"):
        expansion(photos, out, **settings).run()
    assert digest(out) == before
    assert verify(out).problems == []


# Of a run that has begun, the settings are all that tells it from files of others.
@pytest.mark.parametrize(
    ("name", "is_begun"), [("variegate.json", False), ("classnames.txt", False), ("classnames.txt", True)]
)
def test_files_beside_the_outputs_are_written_again(photos: Path, tmp_path: Path, name: str, is_begun: bool) -> None:
    out, settings = tmp_path / "out", {"layout": "webdataset", "shard_size": 10, "copies": 20}
    expansion(photos, tmp_path / "reference", **settings).run()
    if is_begun:
        begun(photos, out, 20, **settings)
    else:
        expansion(photos, out, **settings).run()
    (out / name).unlink()
    expansion(photos, out, **settings).run()
    assert digest(out) == digest(tmp_path / "reference")


def test_a_lost_checksum_of_the_manifest(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    before = (out / "manifest.sha256").read_bytes()
    (out / "manifest.sha256").write_text("nothing")
    delete_damaged(out, verify(out))
    assert not (out / "manifest.sha256").exists()
    assert expansion(photos, out).run().written == 0
    assert (out / "manifest.sha256").read_bytes() == before
    assert verify(out).problems == []
