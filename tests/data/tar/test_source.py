"""Tar shards by index: what is a sample, what is its label, and what an index may be trusted with."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from tests.children import start_python
from tests.data.tars import as_json, encoded, labelled, tar_bytes, write_shards, write_tar
from variegate.data.base import Source, SourceError
from variegate.data.tar import index as tar_listing
from variegate.data.tar.webdataset import open_tar as open_webdataset
from variegate.errors import DecodeError
from variegate.io.location import Location


def test_samples_labels_names_and_ids(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, count=3, samples=4)
    source = open_webdataset(shards[::-1])
    assert isinstance(source, Source)
    assert len(source) == 12
    assert not source.is_remote
    assert source.classes == ()
    assert source.notes() == []
    for index in range(12):
        assert source.read(index) == (encoded(index % 8), index % 10)
        assert source.name(index) == (shards[index // 4], f"{index:04d}.jpg")
    assert source.ids(np.array([0, 5, 11])).tolist() == [0, (1 << 32) | 1, (2 << 32) | 3]
    assert source.ids(np.arange(12)).dtype == np.uint64
    with pytest.raises(IndexError, match="index: got 12; accepted: 0 to 11"):
        source.read(12)


@pytest.mark.parametrize("tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_every_format(tmp_path: Path, tar_format: int) -> None:
    folder = "deep/" * (20 if tar_format == tarfile.USTAR_FORMAT else 60)
    names = [f"{folder}{'x' * 60}-{number}" for number in range(3)]
    if tar_format == tarfile.PAX_FORMAT:
        names[1] = f"{folder}ünïcode-é"
    members = [(f"{n}.{e}", c) for i, n in enumerate(names) for e, c in (("jpg", encoded(i)), ("cls", b"%d" % i))]
    source = open_webdataset([write_tar(tmp_path / "a.tar", members, tar_format)])
    assert [source.name(i).member for i in range(3)] == [f"{name}.jpg" for name in names]
    assert [source.read(i) for i in range(3)] == [(encoded(i), i) for i in range(3)]


def test_keys_end_at_the_first_dot_of_the_base_name(tmp_path: Path) -> None:
    members = [
        *(("a.b/1.jpg", encoded(0)), ("a.b/1.cls", b"1"), ("c/1.JPEG", encoded(1)), ("c/1.CLS", b"2\n")),
        *(("c/._1.jpg", b"resource fork"), (".hidden.jpg", b"no"), ("readme", b"no"), ("c/2.txt", b"no image")),
        *(("./3.seg.png", encoded(2, "png")), ("./3.jpg", encoded(3)), ("./3.json", as_json({"label": 3}))),
        *(("4.left.webp", encoded(4, "webp")), ("4.right.webp", encoded(5, "webp")), ("4.cls", b"4")),
    ]
    source = open_webdataset([write_tar(tmp_path / "a.tar", members)])
    assert [source.name(i).member for i in range(4)] == ["a.b/1.jpg", "c/1.JPEG", "./3.jpg", "4.left.webp"]
    assert [source.read(i).label for i in range(4)] == [1, 2, 3, 4]
    assert source.read(2).data == encoded(3)
    many, none = source.notes()
    assert many.startswith("2 samples have several images, of which one is taken (the first such:")
    assert many.endswith("a.tar: ./3); members whose names are the same up to the first dot are one sample")
    assert none.endswith("a.tar: c/2)")
    assert none.startswith("1 keys without an image are skipped")


@pytest.mark.parametrize(
    ("member", "content", "classes", "label"),
    [
        ("cls", b" 7\n", None, 7),
        ("cls", b"cat", ("ant", "cat"), 1),
        ("cls", b"0", ("ant", "cat"), 0),
        ("json", as_json({"label": 3}), None, 3),
        ("json", as_json({"width": 8, "cls": 4}), None, 4),
        ("json", as_json({"class": "cat"}), ("ant", "cat"), 1),
        ("json", as_json({"class": 5, "label": 6}), None, 6),
    ],
)
def test_labels(tmp_path: Path, member: str, content: bytes, classes: tuple[str, ...] | None, label: int) -> None:
    tar = write_tar(tmp_path / "a.tar", [("0.jpg", encoded(0)), (f"0.{member}", content)])
    source = open_webdataset([tar], classes=classes)
    assert source.read(0) == (encoded(0), label)
    assert source.classes == (classes or ())


@pytest.mark.parametrize(
    ("member", "content", "classes", "reason"),
    [
        ("cls", b"cat", None, r"label in 0001\.cls: 'cat' is no number; accepted: a whole number, or the name of a"),
        (
            "cls",
            b"cow",
            ("cat", "ant"),
            r"label in 0001\.cls: 'cow' is none of the classes \(cat, ant, \.\.\.\); accept",
        ),
        ("cls", b"2", ("cat", "ant"), r"label 2; accepted: 0 to 1 for the 2 classes given, or -1 for none"),
        ("cls", b"", None, r"label in 0001\.cls: empty; accepted: a whole number"),
        ("cls", b"9" * 30, None, r"label in 0001\.cls: 9{30} is too large; accepted"),
        ("json", b"{", None, r"label in 0001\.json: not JSON \(.*\); accepted under label, cls, class: a whole number"),
        ("json", as_json({"label": 1.5}), None, r"label in 0001\.json: label is 1\.5; accepted under label"),
        ("json", as_json({"label": True}), None, r"label in 0001\.json: label is true; accepted under label"),
        ("json", as_json({"caption": "x"}), None, r"no label: the first sample has one, so each needs a \.cls member"),
    ],
)
def test_a_wrong_label_is_an_error_of_its_sample(
    tmp_path: Path, member: str, content: bytes, classes: tuple[str, ...] | None, reason: str
) -> None:
    members = [*labelled(1), ("0001.jpg", encoded(1)), (f"0001.{member}", content), ("0002.jpg", encoded(2))]
    tar = write_tar(tmp_path / "a.tar", [*members, ("0002.cls", b"1")])
    source = open_webdataset([tar], classes=classes)
    assert (source.read(0).label, source.read(2).label) == (0, 1)
    with pytest.raises(DecodeError, match=r"a\.tar: 0001\.jpg: " + reason):
        source.read(1)
    assert source.notes()[-1].startswith("1 samples cannot be used for their labels; ")


def test_without_any_label_all_are_minus_one(tmp_path: Path) -> None:
    source = open_webdataset([write_tar(tmp_path / "a.tar", [(f"{i}.png", encoded(i, "png")) for i in range(3)])])
    assert [source.read(i).label for i in range(3)] == [-1, -1, -1]
    assert source.notes() == ["no labels: no sample has a .cls or .json member with one; all labels are -1"]


def test_some_labels_where_the_first_has_none_are_reported(tmp_path: Path) -> None:
    source = open_webdataset([write_tar(tmp_path / "a.tar", [("x.jpg", encoded(1)), *labelled(2)])])
    assert [source.read(i).label for i in range(3)] == [-1, 0, 1]
    assert source.notes() == ["1 of 3 samples have no label"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "zero bytes: the file is empty"),
        (tar_bytes([]), "no images: the archive has no members"),
        (tar_bytes([("a.txt", b"x"), ("b.txt", b"y")]), r"no images among its 2 members; accepted extensions: \.jpg"),
        (b"\x1f\x8b" + bytes(600), "damaged: its gzip compression cannot be read on"),
        (
            b"BZh" + bytes(600),
            r"compressed by bzip2 \(unpack it first; of compressed archives, those of gzip are",
        ),
        (b"PK\x03\x04" + bytes(600), "a zip archive, not a tar archive"),
        (b"hello" * 200, "not a tar archive: it begins with no header"),
        (b"hello", r"cut off in the header of its first member \(byte 5\)"),
    ],
)
def test_what_is_no_shard_is_said(tmp_path: Path, content: bytes, reason: str) -> None:
    good = write_tar(tmp_path / "a.tar", labelled(2))
    bad = tmp_path / "b.tar"
    bad.write_bytes(content)
    with pytest.raises(SourceError, match=r"b\.tar: " + reason):
        open_webdataset([good, str(bad)])
    with pytest.raises(SourceError, match=r"not one whole sample in 1 shards: .*b\.tar: " + reason):
        open_webdataset([str(bad)], on_error="skip")
    source = open_webdataset([good, str(bad)], on_error="skip")
    assert len(source) == 3
    with pytest.raises(DecodeError, match=reason):
        source.read(2)


def test_arguments_are_checked(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 1)
    with pytest.raises(SourceError, match="on_error: got 'ignore'; accepted: 'raise', 'skip'"):
        open_webdataset(shards, on_error="ignore")
    with pytest.raises(SourceError, match="no shards given"):
        open_webdataset([])
    with pytest.raises(SourceError, match=r"train-00\.tar: given twice"):
        open_webdataset([*shards, *shards])
    with pytest.raises(SourceError, match=r"gone\.tar: no such file"):
        open_webdataset([str(tmp_path / "gone.tar")])


def test_the_fingerprint_covers_names_sizes_and_labels_and_not_the_place(tmp_path: Path) -> None:
    members = labelled(3)
    here = open_webdataset([write_tar(tmp_path / "a.tar", members)]).fingerprint
    (tmp_path / "sub").mkdir()
    assert open_webdataset([write_tar(tmp_path / "sub" / "a.tar", members)]).fingerprint == here
    others = [
        [*members[:1], ("0000.cls", b"5"), *members[2:]],
        [("000.jpg", members[0][1]), ("000.cls", b"0"), *members[2:]],
        [("0000.jpg", encoded(5)), *members[1:]],
        members[:4],
    ]
    assert len({open_webdataset([write_tar(tmp_path / "b.tar", other)]).fingerprint for other in others}) == 4


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards that were walked over, instead of found in an index."""
    walked: list[str] = []
    original = tar_listing.index_shard  # type: ignore[attr-defined]

    def index_shard(shard: Location, *arguments: object) -> object:
        walked.append(shard.address())
        return original(shard, *arguments)

    monkeypatch.setattr(tar_listing, "index_shard", index_shard)
    return walked


def test_the_index_is_kept_beside_the_shard_and_used(tmp_path: Path, walks: list[str], cache: Path) -> None:
    shards = write_shards(tmp_path, 2)
    first = open_webdataset(shards)
    assert sorted(os.listdir(tmp_path)) == sorted(f"train-0{i}.tar{s}" for i in (0, 1) for s in ("", ".index"))
    assert sorted(walks) == shards
    second = open_webdataset(shards)
    assert len(walks) == 2
    assert second.fingerprint == first.fingerprint
    assert [second.read(i) for i in range(8)] == [first.read(i) for i in range(8)]
    assert not any(cache.iterdir())
    open_webdataset(shards, cache_dir=tmp_path / "elsewhere")
    assert len(walks) == 4
    assert len(list((tmp_path / "elsewhere").rglob("*.index"))) == 2


def test_an_index_that_is_old_is_made_anew(tmp_path: Path, walks: list[str]) -> None:
    (shard,) = write_shards(tmp_path, 1)
    assert len(open_webdataset([shard])) == 4
    write_tar(Path(shard), labelled(6))
    assert len(open_webdataset([shard])) == 6
    os.utime(shard, ns=(1, 1))
    open_webdataset([shard])
    assert len(walks) == 3


def test_a_damaged_index_is_made_anew(tmp_path: Path, walks: list[str]) -> None:
    (shard,) = write_shards(tmp_path, 1)
    good = open_webdataset([shard])
    index = Path(shard + ".index")
    whole = index.read_bytes()
    flipped = [bytes([*whole[:i], whole[i] ^ 16, *whole[i + 1 :]]) for i in range(0, len(whole), 31)]
    damaged = [b"", whole[:10], whole[:-1], whole + b"x", whole.replace(b"index 5", b"index 4"), *flipped]
    for data in damaged:
        index.write_bytes(data)
        again = open_webdataset([shard])
        assert [again.read(i) for i in range(4)] == [good.read(i) for i in range(4)]
        assert index.read_bytes() == whole
    assert len(walks) == 1 + len(damaged)


def test_where_nothing_can_be_written_beside_the_shard_the_cache_is_used(
    tmp_path: Path, walks: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shard,) = write_shards(tmp_path, 1)
    # A folder in its place refuses the file to anybody, where permissions do not hold for an administrator.
    (tmp_path / "train-00.tar.index").mkdir()
    assert open_webdataset([shard]).notes() == []
    assert open_webdataset([shard]).notes() == []
    assert len(walks) == 1
    assert len(list(cache.rglob("*-train-00.tar.index"))) == 1
    assert not list(tmp_path.glob(".*"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "file"))
    (note,) = open_webdataset([shard]).notes()
    assert note.startswith("the index could not be written, and is made at every start: ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path, cache: Path) -> None:
    (shard,) = write_shards(tmp_path, 1)
    tmp_path.chmod(0o555)
    try:
        assert len(open_webdataset([shard])) == 4
    finally:
        tmp_path.chmod(0o755)
    assert len(list(cache.rglob("*.index"))) == 1


@pytest.mark.process
def test_two_processes_index_the_same_shards_at_once(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 6, samples=20)
    script = (
        "import sys; from variegate.data.tar.webdataset import open_tar as open_webdataset\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(open_webdataset(sys.argv[1:]).fingerprint)"
    )
    running = [start_python(script, *shards, stdin=PIPE, stdout=PIPE, text=True) for _ in range(2)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    prints = {process.communicate()[0].strip() for process in running}
    assert prints == {open_webdataset(shards).fingerprint}
    assert len(os.listdir(tmp_path)) == 12


def test_a_shard_that_changes_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, 1)
    source = open_webdataset([shard])
    write_tar(Path(shard), labelled(9))
    with pytest.raises(DecodeError, match=r"train-00\.tar: 0001\.jpg: the file has changed since it was listed: "):
        source.read(1)
    os.remove(shard)
    with pytest.raises(DecodeError, match=r"train-00\.tar: 0001\.jpg: no such file"):
        source.read(1)
