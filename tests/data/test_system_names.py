"""What systems leave in folders and archives is no class and no sample."""

from __future__ import annotations

import io
import shutil
import warnings
from pathlib import Path

import fsspec
import numpy as np
import pytest
from PIL import Image

from tests.data.tars import indices_of, write_tar
from variegate.data.base import SourceError
from variegate.data.opening import open_source

LEFT = (
    "__MACOSX/cat/._0.png",
    "__MACOSX/cat/0.png",
    ".ipynb_checkpoints/0-checkpoint.png",
    "cat/.ipynb_checkpoints/0-checkpoint.png",
    "cat/@eaDir/0.png",
    "@eaDir/0.png",
    ".AppleDouble/0.png",
    "$RECYCLE.BIN/0.png",
    "cat/._0.png",
)


def picture() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def put(folder: Path) -> None:
    for name in ("cat/0.png", "dog/1.png", *LEFT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture())
    for name in ("Thumbs.db", "cat/Thumbs.db", "desktop.ini"):
        (folder / name).write_bytes(b"")


def tar(path: Path, names: tuple[str, ...]) -> None:
    write_tar(path, [(name, picture()) for name in names])


def test_folders(tmp_path: Path) -> None:
    put(tmp_path)
    source = open_source(tmp_path)
    assert source.classes == ("cat", "dog")
    assert source.paths() == ["cat/0.png", "dog/1.png"]
    assert source.notes() == []


def test_addresses() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("cat/0.png", "dog/1.png", "cat/Thumbs.db", *LEFT):
        memory.pipe_file(f"/system_names/{name}", picture())
    source = open_source("memory://system_names")
    assert source.paths() == ["cat/0.png", "dog/1.png"]
    assert source.notes() == []


@pytest.mark.parametrize("stream", [False, True])
def test_archives(tmp_path: Path, stream: bool) -> None:
    tar(tmp_path / "a.tar", ("./cat/0.png", *LEFT, "./dog/1.png"))
    source = open_source(tmp_path / "a.tar", stream=stream)
    assert [source.name(index).member for index in indices_of(source)] == ["./cat/0.png", "./dog/1.png"]


def test_shards_by_folder_and_by_pattern(tmp_path: Path) -> None:
    for name in ("a.tar", "b/c.tar", "__MACOSX/a.tar", "b/@eaDir/c.tar"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        tar(tmp_path / name, ("0.png",))
    (tmp_path / "Thumbs.db").write_bytes(b"")
    assert len(open_source(str(tmp_path / "**/*.tar"))) == 2
    assert len(open_source(str(tmp_path / "__MACOSX/*.tar"))) == 1  # as it was typed
    (tmp_path / "b/c.tar").rename(tmp_path / "c.tar")
    shutil.rmtree(tmp_path / "b")
    assert len(open_source(tmp_path)) == 2


def test_masks(tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        for name in ("0.png", "@eaDir/0.png", "._0.png"):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / folder / name)
    assert open_source(tmp_path, annotations="masks").paths() == ["images/0.png"]


def test_an_index_leaves_no_file_open(tmp_path: Path) -> None:
    tar(tmp_path / "a.tar", ("0.png",))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        open_source(tmp_path / "a.tar").read(0)
    assert [str(one.message) for one in caught] == []


def test_images_of_other_kinds_are_counted(tmp_path: Path) -> None:
    for name in ("cat/0.avif", "cat/1.AVIF", "dog/2.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    expected = r"no images \(2 \.avif files, which are not supported, 1 other files\)"
    with pytest.raises(SourceError, match=expected):
        open_source(tmp_path)
