"""Shards by index and in epochs: the same samples, and never a wrong one, wherever an archive is cut or damaged."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.data.tars import (
    Members,
    as_json,
    encoded,
    indices_of,
    labelled,
    read_all,
    tar_bytes,
    write_shards,
    write_tar,
)
from variegate.data.base import Item, SourceError
from variegate.data.opening import open_source
from variegate.data.tar.walk import FileReader, TarDamage, TarWalk
from variegate.errors import DecodeError
from variegate.io.files import open_regular


def everything(*shards: str) -> list[Item | DecodeError]:
    return read_all(open_source(shards, on_error="skip"))


def assert_same(shards: list[str], classes: tuple[str, ...] | None = None) -> list[Item | DecodeError]:
    """By index and in shards: the same ids, names, bytes, labels and errors."""
    source = open_source(shards, classes=classes, on_error="skip")
    sharded = open_source(shards, classes=classes, on_error="skip", stream=True)
    indices = indices_of(sharded)
    assert sharded.ids(np.array(indices)).tolist() == source.ids(np.arange(len(source))).tolist()
    assert [sharded.name(index) for index in indices] == [source.name(index) for index in range(len(source))]
    assert list(map(str, read_all(sharded))) == list(map(str, read_all(source)))
    return read_all(sharded)


def test_shards_give_what_an_index_gives(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 3)
    shards.append(write_tar(tmp_path / "bad.tar", [("x.jpg", encoded(1)), ("y.jpg", encoded(2)), ("y.cls", b"dog")]))
    shards.append(write_tar(tmp_path / "none.tar", []))
    classes = ("ant", "bee", "cat", "dog", *"efghij")
    assert_same(shards, classes)
    sharded = open_source(shards, classes=classes, on_error="skip", stream=True)
    other = open_source(shards, on_error="skip", stream=True)
    assert pickle.loads(pickle.dumps(sharded)).fingerprint == sharded.fingerprint != other.fingerprint


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    (plain,) = write_shards(tmp_path, 1)
    packed = tmp_path / "a.tar.gz"
    data = gzip.compress(Path(plain).read_bytes())
    expected = everything(plain)
    packed.write_bytes(data)
    assert everything(str(packed)) == expected
    for length in range(97, len(data), 97):
        packed.write_bytes(data[:length])
        with pytest.raises(SourceError, match="cut off: its gzip compression ends too early"):
            open_source([str(packed)])
        (lost,) = read_all(open_source([str(packed)], on_error="skip", stream=True))
        assert "cut off: its gzip compression ends too early" in str(lost)


SAMPLES: dict[str, Members] = {
    "labels": [m for i in range(3) for m in ((f"{i}.cls", b"%d" % i), (f"{i}.jpg", encoded(i)))],
    "labels after": [m for i in range(3) for m in ((f"{i}.jpg", encoded(i)), (f"{i}.json", as_json({"cls": i})))],
    "no labels": [(f"{i}.jpg", encoded(i)) for i in range(3)],
}


@pytest.mark.parametrize(
    ("layout", "tar_format"),
    [
        ("labels", tarfile.GNU_FORMAT),
        ("labels after", tarfile.PAX_FORMAT),
        ("no labels", tarfile.PAX_FORMAT),
    ],
)
def test_wherever_an_archive_is_cut_no_sample_is_wrong(tmp_path: Path, layout: str, tar_format: int) -> None:
    # Names too long for a plain header, so that cuts fall into extended ones as well.
    folder = "f" * 40 + "/" + "g" * 70 + "/"
    whole = tar_bytes([(folder + name, content) for name, content in SAMPLES[layout]], tar_format)
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        ends = [member.offset_data + member.size for member in tar]
    per_sample = 1 if layout == "no labels" else 2
    sample_ends = ends[per_sample - 1 :: per_sample]
    truth = [(encoded(i), -1 if layout == "no labels" else i) for i in range(3)]
    last_end = -(-ends[-1] // 512) * 512
    path = tmp_path / "a.tar"
    boundaries = range(0, last_end + 1025, 512)
    for cut in sorted({cut + shift for cut in boundaries for shift in (0, 1, 90, 130, 257, 511)} | set(ends)):
        path.write_bytes(whole[:cut])
        try:
            items = everything(str(path))
        except SourceError:
            items = []
        good = [item for item in items if isinstance(item, Item)]
        complete = sum(end <= cut for end in sample_ends)
        # The label of the very first sample may be cut off so cleanly that nothing tells of it.
        if layout == "labels after" and complete == 0 and good:
            assert good == [(encoded(0), -1)]
            assert ends[0] <= cut <= -(-ends[0] // 512) * 512
            continue
        assert good == truth[: len(good)], cut
        assert complete - 1 <= len(good) <= complete, cut
        if len(good) < complete:
            # Without a label, a cut in the header of the next member leaves open whether that is this one's label.
            assert layout == "no labels"
        assert len(items) - len(good) <= 1, cut
        if good:
            assert_same([str(path)])
            if "cut off" in str(items[-1]):
                with pytest.raises(SourceError, match=r"a\.tar: cut off in the .*: on_error=\"skip\" uses them"):
                    open_source([str(path)])
        else:
            with pytest.raises(SourceError):
                open_source([str(path)], on_error="skip")


def test_a_cut_is_told_with_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "train-03.tar"
    members = labelled(3)
    whole = tar_bytes(members)
    begin = whole.index(members[4][1])
    path.write_bytes(whole[: begin + 100])
    size = f"byte 100 of {len(members[4][1]):,}"
    with pytest.raises(SourceError) as raised:
        open_source([str(path)])
    assert str(raised.value) == (
        f"{path}: cut off in the middle of member 0002.jpg ({size}); 2 complete samples before it: "
        'on_error="skip" uses them, and counts the one that is lost as an error'
    )
    source = open_source([str(path)], on_error="skip")
    assert len(source) == 3
    assert source.notes() == [
        f"{path}: cut off in the middle of member 0002.jpg ({size}); 2 complete samples before it"
    ]
    with pytest.raises(DecodeError) as lost:
        source.read(2)
    assert str(lost.value) == f"{path}: 0002.jpg: the archive is cut off in the middle of member 0002.jpg ({size})"
    assert source.name(2) == (str(path), "0002.jpg")


def test_an_archive_without_an_end_mark_is_accepted_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(labelled(2)).rstrip(b"\0"))
    source = open_source([str(path)])
    assert [source.read(i).label for i in range(2)] == [0, 1]
    assert source.notes() == [f"no mark of the end, perhaps cut off between two members: {path}"]


def test_damage_in_the_middle_ends_the_shard(tmp_path: Path) -> None:
    members = labelled(4)
    data = bytearray(tar_bytes(members))
    at = bytes(data).index(b"0002.jpg")
    data[at + 130] ^= 1
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    items = assert_same([str(path)])
    assert items[:2] == [(encoded(0), 0), (encoded(1), 1)]
    reason = f"the archive is damaged at byte {at:,}: there is no header of a member after 0001.cls"
    assert list(map(str, items[2:])) == [f"{path}: {reason}"]


def test_links_folders_sparse_files_and_names_that_lead_out(tmp_path: Path) -> None:
    """Names are names alone: nothing is followed, and nothing outside the archive is opened."""
    path = tmp_path / "a.tar"
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    kinds = {"d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE, "f": tarfile.FIFOTYPE}
    names = ("0.jpg", "/etc/passwd.jpg", "../secret.jpg")
    with tarfile.open(path, "w") as tar:
        for name, kind in kinds.items():
            info = tarfile.TarInfo(f"{name}.jpg")
            info.type, info.linkname = kind, str(tmp_path / "secret.jpg")
            tar.addfile(info)
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(encoded(0))
            tar.addfile(info, io.BytesIO(encoded(0)))
        sparse = tarfile.TarInfo("s.jpg")
        sparse.type = tarfile.GNUTYPE_SPARSE
        tar.addfile(sparse)
    items = assert_same([str(path)])
    assert items[:-1] == [(encoded(0), -1)] * len(names)
    assert "member s.jpg is stored as a sparse file, which is not read; write it without --sparse" in str(items[-1])
    assert "skipped 2 links in archives" in open_source(path, on_error="skip").notes()


def test_random_damage_never_raises_anything_else(tmp_path: Path) -> None:
    whole = tar_bytes(labelled(3), tarfile.PAX_FORMAT)
    rng = np.random.default_rng(1)
    for _ in range(200):
        data = np.frombuffer(whole, np.uint8).copy()
        places = rng.integers(0, len(data), 8)
        data[places] = rng.integers(0, 256, 8)
        path = tmp_path / "a.tar"
        path.write_bytes(data.tobytes())
        with open_regular(path) as file:
            walk = TarWalk(FileReader(file, len(data), "a.tar"))
            with contextlib.suppress(TarDamage):
                while walk.next() is not None:
                    walk.content()


@pytest.mark.parametrize("kind", [b"x", b"L", b"g", b"S"])
def test_headers_that_extend_others_without_end(tmp_path: Path, kind: bytes) -> None:
    """One after another, of any size, and with a size that leads back."""
    header = tarfile.TarInfo("a.jpg")
    header.type = kind
    block = header.tobuf(tarfile.USTAR_FORMAT)
    path = tmp_path / "a.tar"
    for size in (b"0", b"77777777777", b"00000000001"):
        large = bytearray(block)
        large[124:136] = size.rjust(11, b"0") + b"\0"
        large[148:156] = b"%06o\0 " % (sum(large) - sum(large[148:156]) + 256)
        path.write_bytes(bytes(large) * 3000)
        with pytest.raises(SourceError, match=r"a\.tar: (damaged|not a tar|cut off|member a\.jpg is stored)"):
            open_source([str(path)])
    good = tar_bytes(labelled(1))
    path.write_bytes(good.rstrip(b"\0") + bytes(-len(good.rstrip(b"\0")) % 512) + _pax({"size": "-5000"}) + good)
    items = everything(str(path))
    assert items[0] == (encoded(0), 0)
    assert "damaged at byte" in str(items[1])


def _pax(records: dict[str, str]) -> bytes:
    info = tarfile.TarInfo("b.jpg")
    info.pax_headers = records
    return info.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize("stream", [False, True])
def test_members_of_any_size_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    shard = write_tar(tmp_path / "a.tar", [("1.jpg", b"x" * 5000), ("1.cls", b"1"), *labelled(1, 2)])
    monkeypatch.setattr("variegate.data.tar.walk.MOST_BYTES", 4096)
    first, second = read_all(open_source(shard, stream=stream))
    assert str(first) == f"{shard}: 1.jpg: 5,000 bytes; at most 4 KiB are read"
    assert second == (encoded(2), 2)
