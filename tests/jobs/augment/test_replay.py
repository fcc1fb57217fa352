"""Any output made again from its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.augment.samples import expansion, lay_photos, rows
from variegate.data.base import SourceError
from variegate.data.storage import open_storage
from variegate.jobs.augment.replay import replay
from variegate.jobs.engine import Engine
from variegate.jobs.output.manifest import read_manifest, write_manifest
from variegate.jobs.output.verify import verify


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


@pytest.mark.parametrize("layout", ["folder", "parquet"])
def test_every_row_gives_the_same_file(photos: Path, tmp_path: Path, layout: str) -> None:
    out = tmp_path / "out"
    expansion(photos, out, layout=layout, policy="augmix", epoch=3).run()
    for number, row in enumerate(rows(out)):
        made = replay(out / "manifest.parquet", number)
        assert made.is_same
        assert made.row["source"] == row["source"]
        if layout == "folder":
            assert made.data == (out / row["file"]).read_bytes()


def test_a_row_is_made_again_by_what_made_it(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out, Engine(["cpu"], "thread"), policy="augmix").run()
    assert all(replay(out, number).is_same for number in range(0, len(rows(out)), 5))


def test_a_source_that_moved_is_told(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    moved = photos.rename(tmp_path / "moved")
    with pytest.raises(SourceError, match="photos"):
        replay(out / "manifest.parquet", 0)
    assert replay(out / "manifest.parquet", 0, str(moved)).is_same


def test_a_changed_image_is_not_the_same(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    (photos / "a/1.jpg").write_bytes((photos / "b/x.jpg").read_bytes())
    assert not replay(out / "manifest.parquet", 0).is_same
    assert replay(out / "manifest.parquet", 3).is_same


def test_other_samples_and_missing_outputs_are_named(photos: Path, tmp_path: Path) -> None:
    (photos / "a/2.jpg").write_bytes(b"")
    out = tmp_path / "out"
    expansion(photos, out).run()
    with pytest.raises(SourceError, match=r"manifest\.parquet: row 6: a/2.jpg was not made: zero bytes"):
        replay(out / "manifest.parquet", 6)
    with pytest.raises(SourceError, match="row: got 21; accepted: 0 to 20"):
        replay(out / "manifest.parquet", 21)
    (photos / "a/2.jpg").unlink()
    with pytest.raises(SourceError, match="holds other samples"):
        replay(out / "manifest.parquet", 0)


def test_a_manifest_that_says_anything_is_named(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    storage, manifest = open_storage(out), read_manifest(out)
    listed = list(manifest.rows())
    for change, what in (
        ({"transform": {"type": 7}}, "transform.type: got 7"),
        ({"epoch": -1}, "epoch: got -1"),
        ({"executor": "moon"}, "device: got 'moon'"),
        ({"fingerprint": "other"}, "photos: holds other samples than .*manifest.parquet was made of"),
    ):
        write_manifest(storage, listed, manifest.settings | change)
        with pytest.raises(SourceError, match=what) as caught:
            replay(out, 0)
        assert "manifest.parquet" in str(caught.value)
    write_manifest(storage, [listed[0] | {"index": 99, "file": "../x.jpg"}, *listed[1:]], manifest.settings)
    with pytest.raises(SourceError, match=r"manifest\.parquet: damaged: row 0 is of sample 99, copy 0"):
        replay(out, 0)
    write_manifest(storage, [listed[0] | {"file": "../../x.jpg"}, *listed[1:]], manifest.settings)
    assert ("../../x.jpg", "missing") in [(one.file, one.kind) for one in verify(out).problems]
