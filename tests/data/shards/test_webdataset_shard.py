"""Tar archives: as the standard library reads and writes them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.data.tars import tar_bytes
from tests.jobs.output.contract import CLASSES, records
from variegate.data.shards import Labels, Record, open_shard
from variegate.data.storage import Storage, open_storage
from variegate.data.tar.webdataset import tar_header


def write(storage: Storage, made: list[Record], classes: tuple[str, ...] = CLASSES) -> None:
    with open_shard(storage, "webdataset", 0, Labels(classes=classes)) as shard:
        for record in made:
            shard.add(record)
        shard.commit()


@pytest.mark.parametrize(("name", "size"), [("0.jpg", 0), ("00000007_1.jpg", 12345), ("x" * 100, 8**11 - 1)])
def test_headers_are_the_standard_librarys(name: str, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    assert tar_header(name, size) == info.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(("name", "size"), [("x" * 101, 0), ("é", 0), ("x", 8**11)])
def test_what_does_not_fit_into_a_header(name: str, size: int) -> None:
    with pytest.raises(ValueError, match="accepted: names of up to 100 ASCII characters, less than 8 GiB"):
        tar_header(name, size)


def test_a_shard_is_an_archive_without_times_and_owners(tmp_path: Path) -> None:
    made = records()
    write(open_storage(tmp_path), made)
    members = []
    for record in made:
        metadata = {"id": record.id, "copy": record.copy, "source": record.source, "class": record.class_name}
        members += [
            (f"{record.key}.{record.extension}", record.data),
            (f"{record.key}.cls", str(record.label).encode()),
            (f"{record.key}.json", json.dumps(metadata).encode()),
        ]
    data = (tmp_path / "shard-000000.tar").read_bytes()
    expected = tar_bytes(members)
    assert expected.startswith(data)  # the library fills the last 10 KiB with zeros
    assert set(expected[len(data) :]) <= {0}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {(info.mtime, info.uid, info.gid, info.uname, info.mode) for info in tar} == {(0, 0, 0, "", 0o644)}
    assert not any("." in record.key for record in made)


def test_names_of_sources_that_are_not_utf_8(tmp_path: Path) -> None:
    write(open_storage(tmp_path), [Record(0, 0, b"x", "jpg", 0, "ant", "caf\udce9.jpg", 0)])
    with tarfile.open(tmp_path / "shard-000000.tar") as tar:
        content = tar.extractfile("00000000_0.json")
        assert content is not None
        assert json.loads(content.read())["source"] == "caf\udce9.jpg"
