"""Real files that are damaged, from disk through ``vg.Loader``: each ends in one clear message, and none in more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variegate as vg
from tests.data.tars import encoded, labelled, tar_bytes
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.errors import DecodeError

CROP = T.RandomResizedCrop(16)


def load(source: Any, **options: Any) -> vg.Loader:
    return vg.Loader(source, CROP, **({"batch_size": 4, "device": "cpu", "shuffle": False, "num_threads": 2} | options))


def loaded(loader: vg.Loader) -> int:
    return sum(int((~batch.padding).sum()) for batch in loader)


def folder(root: Path, number: int = 6) -> Path:
    for i in range(number):
        (root / f"class{i % 2}").mkdir(parents=True, exist_ok=True)
        (root / f"class{i % 2}" / f"{i}.jpg").write_bytes(encoded(i))
    return root


DAMAGED = {
    "truncated": (lambda data: data[:-30], r"truncated: it ends after [\d,]+ bytes, in the middle of the picture"),
    "cut in its header": (lambda data: data[:60], r"truncated: it ends after 60 bytes, before the picture begins"),
    "empty": (lambda data: b"", r"zero bytes: the file is empty"),
    "text": (lambda data: b"<html>404</html>", r"not an image: no known format begins with b'<html>404</h'"),
    "a PNG cut off": (lambda data: encoded(3, "png")[:200], r"truncated"),
    "a PNG of zeros": (lambda data: encoded(3, "png")[:40] + bytes(500), r"damaged|truncated"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_in_a_folder(kind: str, tmp_path: Path) -> None:
    damage, reason = DAMAGED[kind]
    bad = folder(tmp_path) / "class1" / "3.jpg"
    bad.write_bytes(damage(bad.read_bytes()))
    with pytest.raises(DecodeError, match=rf"^{re.escape(str(bad))}: ({reason})"):
        loaded(load(tmp_path))
    loader = load(tmp_path, on_error="skip")
    assert loaded(loader) == 5
    (failure,) = loader.errors
    assert failure.file == str(bad)
    assert re.match(reason, failure.reason)
    replacing = load(tmp_path, on_error="replace")
    assert sum(len(batch.labels) for batch in replacing) == 6
    assert [failure.file for failure in replacing.errors] == [str(bad)]


def test_a_file_that_is_gone_since_it_was_listed(tmp_path: Path) -> None:
    loader = load(folder(tmp_path), on_error="skip")
    (tmp_path / "class0" / "2.jpg").unlink()
    assert loaded(loader) == 5
    assert str(loader.errors[0]) == f"{tmp_path / 'class0' / '2.jpg'}: no such file"


def test_a_folder_without_any_image(tmp_path: Path) -> None:
    (tmp_path / "class0").mkdir()
    with pytest.raises(SourceError, match=rf"^{re.escape(str(tmp_path))}: no images \(no other files\)"):
        load(tmp_path)
    with pytest.raises(SourceError, match=r"missing: no such file or folder"):
        load(tmp_path / "missing")


@pytest.mark.parametrize("stream", [False, True])
def test_a_shard_cut_off_in_the_middle(stream: bool, tmp_path: Path) -> None:
    whole = tar_bytes(labelled(6))
    shard = tmp_path / "train-0.tar"
    cut = whole.index(encoded(4)) + 100
    shard.write_bytes(whole[:cut])
    message = r"train-0\.tar: .*cut off"

    def source(on_error: str) -> Any:
        return vg.open_source(str(shard), stream=stream, on_error=on_error)

    with pytest.raises((SourceError, DecodeError), match=message):
        loaded(load(source("raise")))
    loader = load(source("skip"), on_error="skip")
    assert loaded(loader) == 4
    (failure,) = loader.errors
    assert failure.file.endswith("train-0.tar")
    assert failure.member == "0004.jpg"
    assert "cut off" in failure.reason


def test_a_path_is_opened_as_on_error_says(tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(tar_bytes(labelled(6))[:-9000])
    with pytest.raises(SourceError, match=r"t\.tar: cut off .*on_error=\"skip\""):
        load(str(tmp_path / "t.tar"))
    with pytest.warns(UserWarning, match="cut off"):
        loader = load(str(tmp_path / "t.tar"), on_error="skip")
    assert 0 < loaded(loader) < 6
    assert len(loader.errors) == 1


def test_a_zero_byte_shard_among_good_ones(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar_bytes(labelled(3)))
    (tmp_path / "b.tar").write_bytes(b"")
    with pytest.raises(SourceError, match=r"b\.tar: .*zero bytes|b\.tar: .*empty"):
        load(str(tmp_path / "*.tar"))
    with pytest.warns(UserWarning, match=r"b\.tar"):
        loader = load(str(tmp_path / "*.tar"), on_error="skip")
    assert loaded(loader) == 3
    assert loader.errors[0].file.endswith("b.tar")


def test_a_damaged_member_of_a_shard_is_named(tmp_path: Path) -> None:
    members = labelled(3)
    members[2] = ("0001.jpg", encoded(1)[:300])
    (tmp_path / "t.tar").write_bytes(tar_bytes(members))
    for stream in (False, True):
        loader = load(vg.open_source(tmp_path / "t.tar", stream=stream), on_error="skip")
        assert loaded(loader) == 2
        assert str(loader.errors[0]).startswith(f"{tmp_path / 't.tar'}: 0001.jpg: truncated")


def parquet(path: Path, images: list[bytes | None], column: str = "image") -> Path:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = pa.array([{"bytes": data, "path": f"{i}.jpg"} for i, data in enumerate(images)], kind)
    pq.write_table(pa.table({column: rows if column == "image" else list(range(len(images)))}), path)
    return path


def test_rows_of_parquet_that_hold_no_image(tmp_path: Path) -> None:
    path = parquet(tmp_path / "train.parquet", [encoded(0), encoded(1)[:300], None, b""])
    with pytest.warns(UserWarning, match="every label is -1"):
        loader = load(path, on_error="skip")
    assert loaded(loader) == 1
    assert [failure.member for failure in loader.errors] == ["row 1", "row 2", "row 3"]


def test_a_parquet_file_cut_off(tmp_path: Path) -> None:
    path = parquet(tmp_path / "train.parquet", [encoded(0), encoded(1)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match=r"train\.parquet: "):
        load(path)
