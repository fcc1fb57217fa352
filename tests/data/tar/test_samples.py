"""Samples of tar shards by index and shard by shard: what is a sample, what is its label, what is no shard."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.data.tars import encoded, indices_of, labelled, read_all, tar_bytes, write_shards, write_tar
from variegate.data.base import SourceError
from variegate.errors import DecodeError


def cases() -> Iterator[Any]:
    for line in Path(__file__).with_name("samples.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            members, classes, samples, notes, *_ = map(str.strip, f"{line}|".split("|"))
            yield pytest.param(members, classes, samples, notes, id=line[:80])


def content_of(member: str, number: int) -> tuple[str, bytes]:
    name, is_text, text = member.partition("=")
    kind = name.lower().rpartition(".")[2].replace("jpg", "jpeg")
    return name, text.replace("\\n", "\n").encode() if is_text else encoded(number, kind)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("members", "classes", "samples", "notes"), cases())
def test_samples_and_their_labels(
    tmp_path: Path, members: str, classes: str, samples: str, notes: str, stream: bool
) -> None:
    contents = [content_of(member, number) for number, member in enumerate(members.split())]
    tar = write_tar(tmp_path / "a.tar", contents)
    names = classes.split(",") if classes else None
    source = vg.open_source(tar, classes=names, stream=stream)
    expected = samples.split(" ; ")
    indices = indices_of(source)
    assert [source.name(index).member for index in indices] == [one.split()[0] for one in expected]
    assert source.ids(np.array(indices)).tolist() == list(range(len(expected)))
    for found, one in zip(read_all(source), expected, strict=True):
        member, label = one.split(maxsplit=1)
        if label.startswith("!"):
            assert str(found).startswith(f"{tar}: {member}: {label[1:]}")
        else:
            assert found == (dict(contents)[member], int(label))
    beginnings = notes.split(" ; ") if notes else []
    for note, beginning in zip(source.notes(), beginnings, strict=True):
        assert note.startswith(beginning)


@pytest.mark.parametrize("tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_every_format(tmp_path: Path, tar_format: int) -> None:
    folder = "deep/" * (20 if tar_format == tarfile.USTAR_FORMAT else 60)
    names = [f"{folder}{'x' * 60}-{number}" for number in range(3)]
    if tar_format == tarfile.PAX_FORMAT:
        names[1] = f"{folder}ünïcode-é"
    members = [(f"{n}.{e}", c) for i, n in enumerate(names) for e, c in (("jpg", encoded(i)), ("cls", b"%d" % i))]
    source = vg.open_source(write_tar(tmp_path / "a.tar", members, tar_format))
    assert [source.name(i).member for i in range(3)] == [f"{name}.jpg" for name in names]
    assert [source.read(i) for i in range(3)] == [(encoded(i), i) for i in range(3)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "zero bytes: the file is empty"),
        (tar_bytes([]), "no images: the archive has no members"),
        (tar_bytes([("a.txt", b"x"), ("b.txt", b"y")]), r"no images in its 2 members; accepted extensions: \.jpg"),
        (b"\x1f\x8b" + bytes(600), "damaged: its gzip compression cannot be read on"),
        (b"BZh" + bytes(600), r"compressed by bzip2 \(unpack it first; of compressed archives, those of gzip are"),
        (b"PK\x03\x04" + bytes(600), "a zip archive, not a tar archive"),
        (b"hello" * 200, "not a tar archive: it begins with no header"),
        (b"hello", r"cut off in the header of its first member \(byte 5\)"),
        (None, "no such file"),
    ],
)
def test_what_is_no_shard_is_said(tmp_path: Path, content: bytes | None, reason: str) -> None:
    good = write_tar(tmp_path / "a.tar", labelled(2))
    bad = tmp_path / "b.tar"
    bad.write_bytes(content or b"")
    if content is None:
        bad.unlink()
    with pytest.raises(SourceError, match=r"b\.tar: " + reason):
        vg.open_source([good, str(bad)])
    if content is None:
        return
    with pytest.raises(SourceError, match=r"no complete sample in 1 shard: .*b\.tar: " + reason):
        vg.open_source([str(bad)], on_error="skip")
    for stream in (False, True):
        found = read_all(vg.open_source([good, str(bad)], on_error="skip", stream=stream))
        assert found[:2] == [(encoded(0), 0), (encoded(1), 1)]
        assert reason.replace("\\", "") in str(found[2])


def test_a_shard_given_twice_is_refused(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 1)
    with pytest.raises(SourceError, match=r"train-00\.tar: given twice"):
        vg.open_source([*shards, *shards])


def test_whether_labels_are_needed_is_known_in_any_order(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 1)
    shards.append(write_tar(tmp_path / "z.tar", [("x.jpg", encoded(1))]))
    with pytest.raises(DecodeError, match="no label: the first sample has one"):
        vg.open_source(shards, stream=True).shard(1).read(0)
    sharded = vg.open_source(shards[1], stream=True)
    assert sharded.shard(0).read(0) == (encoded(1), -1)
    with pytest.raises(IndexError, match="shard: got 1; accepted: 0 to 0"):
        sharded.shard(1)


def test_the_fingerprint_covers_names_sizes_and_labels_and_not_the_place(tmp_path: Path) -> None:
    members = labelled(3)
    here = vg.open_source(write_tar(tmp_path / "a.tar", members)).fingerprint
    (tmp_path / "sub").mkdir()
    assert vg.open_source(write_tar(tmp_path / "sub" / "a.tar", members)).fingerprint == here
    others = [
        [*members[:1], ("0000.cls", b"5"), *members[2:]],
        [("000.jpg", members[0][1]), ("000.cls", b"0"), *members[2:]],
        [("0000.jpg", encoded(5)), *members[1:]],
        members[:4],
    ]
    assert len({vg.open_source(write_tar(tmp_path / "b.tar", other)).fingerprint for other in others}) == 4


def test_a_shard_that_changes_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, 1)
    source = vg.open_source(shard)
    write_tar(Path(shard), labelled(9))
    with pytest.raises(DecodeError, match=r"train-00\.tar: 0001\.jpg: the file has changed since it was listed: "):
        source.read(1)
    os.remove(shard)
    with pytest.raises(DecodeError, match=r"train-00\.tar: 0001\.jpg: no such file"):
        source.read(1)
