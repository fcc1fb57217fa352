"""FIFOs, devices, loops of links and what cannot be read: named, and never waited for."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import variegate as vg
from tests.data.tars import tar_bytes
from tests.images import photo
from tests.jobs.bounded import fail_after
from variegate import transforms as T
from variegate.cli import main
from variegate.data.opening import open_source
from variegate.errors import PolicyError

FIFO = "a named pipe (FIFO); accepted: regular files, and links to them"
DEVICE = "a device; accepted: regular files, and links to them"


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """What waits for a FIFO fails."""
    with fail_after(60):
        yield


def opened(*places: Path | str) -> list[Any]:
    """Notes of sources, sizes of their samples, and errors."""
    said: list[Any] = []
    for place in map(str, places):
        try:
            source: Any = open_source(place, stream=True if place.endswith("stream.tar") else None)
            said += [f"note: {note}" for note in source.notes()]
            for index in range(len(source.shard(0) if hasattr(source, "shard") else source)):
                try:
                    said.append(len(source.read(index).data))
                except vg.DecodeError as error:
                    said.append(f"bad: {error}")
        except ValueError as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


@pytest.fixture
def jpeg(tmp_path: Path) -> bytes:
    Image.fromarray(photo(20, 30)).save(tmp_path / "one.jpg")
    return (tmp_path / "one.jpg").read_bytes()


def test_in_class_folders(tmp_path: Path, jpeg: bytes) -> None:
    cat = tmp_path / "src/cat"
    (cat / "folder.jpg").mkdir(parents=True)
    (cat / "folder.jpg/in.jpg").write_bytes(jpeg)
    (cat / "good.jpg").write_bytes(jpeg)
    os.mkfifo(cat / "fifo.jpg")
    os.mkfifo(cat / ".hidden.jpg")
    (cat / "zero.jpg").symlink_to("/dev/zero")
    (cat / "loop.jpg").symlink_to("loop.jpg")
    (cat / "gone.jpg").symlink_to("nowhere.jpg")
    (cat / "up").symlink_to("..")
    assert opened(tmp_path / "src") == [
        "note: 2 irregular files: cat/fifo.jpg, cat/zero.jpg",
        f"bad: {cat}/gone.jpg: no such file",
        len(jpeg),
        f"bad: {cat}/loop.jpg: cannot be read (Too many levels of symbolic links)",
        len(jpeg),
    ]


def test_in_a_flat_folder(tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "src").mkdir()
    os.mkfifo(tmp_path / "src/fifo.jpg")
    (tmp_path / "src/stdin.png").symlink_to("/dev/stdin")
    (tmp_path / "src/loop").symlink_to("loop")
    found = opened(tmp_path / "src")
    assert len(found) == 1
    assert "no images (1 other file, " in found[0]
    assert "irregular files: fifo.jpg" in found[0]
    (tmp_path / "src/a.jpg").write_bytes(jpeg)
    assert opened(tmp_path / "src")[-1] == len(jpeg)


def test_given_as_the_source_itself(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a.jpg", "a.tar", "stream.tar", "a.parquet", "plain")]
    for place in places:
        os.mkfifo(place)
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "zero.tar").symlink_to("/dev/zero")
    (tmp_path / "loop.tar").symlink_to("loop.tar")
    chained = f"zip://a.jpg::{tmp_path}/plain"
    assert opened(*places, tmp_path / "zero.jpg", tmp_path / "zero.tar", tmp_path / "loop.tar", chained) == [
        *(f"SourceError: {place}: {FIFO}" for place in places),
        *(f"SourceError: {tmp_path}/zero.{kind}: {DEVICE}" for kind in ("jpg", "tar")),
        f"SourceError: {tmp_path}/loop.tar: cannot be read (Too many levels of symbolic links)",
        f"SourceError: {chained}: {FIFO}",
    ]


def test_beside_shards(tmp_path: Path, jpeg: bytes) -> None:
    """An index that is a FIFO is made anew elsewhere; names of classes that are one are asked for."""
    (tmp_path / "a.tar").write_bytes(tar_bytes([("1.jpg", jpeg), ("1.cls", b"0")]))
    os.mkfifo(tmp_path / "a.tar.index")
    assert opened(tmp_path / "a.tar") == [len(jpeg)]
    os.mkfifo(tmp_path / "classnames.txt")
    assert opened(tmp_path / "a.tar") == [f"SourceError: {tmp_path}/classnames.txt: {FIFO}"]


def test_not_to_be_read_by_this_user(tmp_path: Path, jpeg: bytes) -> None:
    is_root = os.geteuid() == 0
    if is_root:  # whom permissions do not bind
        for folder in (tmp_path, *(f for f in tmp_path.parents if Path(tempfile.gettempdir()) in f.parents)):
            folder.chmod(0o755)
    for name in ("cat/a.jpg", "dog/b.jpg", "eel/c.jpg"):
        (tmp_path / "src" / name).parent.mkdir(parents=True)
        (tmp_path / "src" / name).write_bytes(jpeg)
    (tmp_path / "src/dog/b.jpg").chmod(0)
    (tmp_path / "src/eel").chmod(0)
    if is_root:
        os.seteuid(65534)
    try:
        assert opened(tmp_path / "src") == [
            "note: class folders without images: eel",
            "note: 1 folder without permission to list it: eel (Permission denied)",
            len(jpeg),
            f"bad: {tmp_path}/src/dog/b.jpg: cannot be read (Permission denied)",
        ]
    finally:
        if is_root:
            os.seteuid(0)
        (tmp_path / "src/eel").chmod(0o755)


def augment(folder: Path, workers: str) -> int:
    return main(["augment", f"{folder}/src", f"{folder}/out", "--policy", "none", "--workers", workers])


@pytest.mark.parametrize("workers", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_augment_over_such_a_folder(
    tmp_path: Path, jpeg: bytes, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src/cat").mkdir(parents=True)
    (tmp_path / "src/cat/good.jpg").write_bytes(jpeg)
    os.mkfifo(tmp_path / "src/cat/fifo.jpg")
    (tmp_path / "src/cat/zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "src/cat/gone.jpg").symlink_to("nowhere")
    assert augment(tmp_path, workers) == 0
    said = capsys.readouterr().err
    assert "note: 2 irregular files: cat/fifo.jpg, cat/zero.jpg" in said
    assert "skipped cat/gone.jpg: no such file" in said
    assert [path.name for path in (tmp_path / "out/cat").iterdir()] == ["good_0.jpg"]


def test_a_loader_over_a_fifo_that_came_late(tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "src").mkdir()
    late = tmp_path / "src/a.jpg"
    for path in (late, tmp_path / "src/b.jpg"):
        path.write_bytes(jpeg)
    loader = vg.Loader(tmp_path / "src", T.Resize((8, 8)), batch_size=4, device="cpu", on_error="skip")
    late.unlink()
    os.mkfifo(late)
    (batch,) = loader
    assert len(batch.images) == 1
    assert [str(error) for error in loader.errors] == [f"{late}: {FIFO}"]


def test_a_policy_that_is_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name, kind in (("p.json", "a named pipe"), ("zero.yaml", "a device")):
        with pytest.raises(PolicyError, match=re.escape(f"{tmp_path / name}: got '{kind}")):
            vg.load_policy(tmp_path / name)


def test_a_destination_whose_settings_are_a_fifo(
    tmp_path: Path, jpeg: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.jpg").write_bytes(jpeg)
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out/variegate.json")
    assert augment(tmp_path, "thread") == 1
    assert f"{tmp_path}/out/variegate.json: cannot be read (a named pipe (FIFO)" in capsys.readouterr().err


def test_an_image_beside_a_folder_of_that_name(tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "x.jpg").mkdir()
    (tmp_path / "x.jpg/a.jpg").write_bytes(jpeg)
    source = open_source(tmp_path / "x.jpg")
    assert repr(source) == f"Samples({tmp_path}/x.jpg: 1 sample, 1 class)"
