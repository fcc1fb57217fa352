"""Indexes of whole data sets: kept, joined, damaged, and used by a loader without a change to any pixel."""

from __future__ import annotations

import gc
import json
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.decode.jpegs import KINDS, jpeg
from variegate import transforms as T
from variegate.cli import main
from variegate.data.indexing import index_source
from variegate.decode.entropy import index as indexes
from variegate.decode.entropy.cut import key_of_file
from variegate.decode.entropy.index import DamagedIndexError, EntropyIndex
from variegate.loader import Loader

BOX = (10, 20, 30, 40)
CROP = T.Compose([T.RandomResizedCrop(32, scale=(0.05, 0.5)), T.RandAugment(1, 5)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """JPEGs of all kinds, other files, and one that is damaged."""
    place = tmp_path / "images" / "one"
    place.mkdir(parents=True)
    for number, options in enumerate(KINDS.values()):
        (place / f"{number:02}.jpg").write_bytes(jpeg(160, 200 + number, **options))
    return tmp_path / "images"


def test_keys_are_xxh64() -> None:
    """From the specification's test vectors, with seed 0."""
    assert key_of_file(b"") == 0xEF46DB3751D8E999
    assert key_of_file(b"abc") == 0x44BC2CF5AD770999
    long = bytes(range(101))
    assert key_of_file(long) != key_of_file(long[:-1] + b"\0")
    assert len({key_of_file(long[:size]) for size in range(102)}) == 102


def test_what_is_saved_is_known_by_others(tmp_path: Path) -> None:
    path, files = tmp_path / "folder" / "an index", [jpeg(90, 100 + i) for i in range(5)]
    index = EntropyIndex(path)
    assert [index.add(data)[0] for data in files] == [None] * 5
    assert index.add(jpeg(progressive=True))[0] == "progressive or arithmetic"
    assert index.cut_out(files[0], BOX) is not None
    index.save()
    again = EntropyIndex(path)
    assert len(again) == len(index) == 6
    assert again.summary()["indexed"] == 5
    assert all(again.cut_out(data, BOX) is not None for data in files)
    assert again.cut_out(jpeg(91, 100), BOX) is None


def test_threads_may_save_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = EntropyIndex(tmp_path / "index")
    index.add(jpeg())
    write, both = indexes.add_to, threading.Barrier(2, timeout=60)

    def write_at_once(*what: Any) -> None:
        both.wait()
        write(*what)

    monkeypatch.setattr(indexes, "add_to", write_at_once)
    with ThreadPoolExecutor(2) as pool:
        for saved in [pool.submit(index.save) for _ in range(2)]:
            saved.result()
    assert (len(index), index.added_bytes, len(EntropyIndex(index.path))) == (1, 0, 1)


def test_writers_add_to_what_others_wrote(tmp_path: Path) -> None:
    files = [jpeg(90, 100 + i) for i in range(8)]
    writers = [EntropyIndex(tmp_path / "index") for _ in range(4)]
    for number, data in enumerate(files):
        writers[number % 4].add(data)
    threads = [threading.Thread(target=writer.save) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = EntropyIndex(tmp_path / "index")
    assert all(index.cut_out(data, BOX) is not None for data in files)


@pytest.mark.parametrize("damage", ["cut", "longer", "keys", "head", "another"])
def test_a_damaged_index_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "index"
    index = EntropyIndex(path)
    index.add(jpeg(90, 100))
    index.save()
    whole = bytearray(path.read_bytes())
    if damage == "cut":
        del whole[-3:]
    elif damage == "longer":
        whole += b"1"
    elif damage == "keys":
        whole[131] ^= 4
    elif damage == "head":
        whole[30] ^= 1
    else:
        whole = bytearray(jpeg())
    path.write_bytes(whole)
    with pytest.raises(DamagedIndexError, match="is not a complete index of JPEG files"):
        EntropyIndex(path)
    with pytest.raises(ValueError, match="is not a complete index"):
        Loader(([np.zeros((4, 4, 3), np.uint8)], [0]), index=path)
    assert index_source(([np.zeros((4, 4, 3), np.uint8)], [0]), path).left_out == {"pixels, not a file": 1}


def test_a_loader_gives_the_same_pixels_with_an_index(folder: Path, tmp_path: Path) -> None:
    found = index_source(folder, tmp_path / "index")
    assert (found.images, found.indexed) == (len(KINDS), 12)
    for transform in (CROP, T.MultiView([CROP, T.RandomResizedCrop(17, (0.01, 0.02))], counts=[1, 2])):
        for copies in (1, 2):
            options = {"batch_size": 4, "device": "cpu", "num_threads": 2, "copies": copies}
            plain = Loader(folder, transform, **options)  # type: ignore[arg-type]
            indexed = Loader(folder, transform, index=tmp_path / "index", **options)  # type: ignore[arg-type]
            for one, other in zip(plain, indexed, strict=True):
                pairs = zip(one.images, other.images, strict=True)
                assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


def test_an_index_grows_beside_the_epochs(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "grown"
    loader = Loader(folder, CROP, batch_size=4, device="cpu", index=path)
    loader = pickle.loads(pickle.dumps(loader))
    list(loader)
    deadline = time.monotonic() + 60
    index = loader._pipeline.index
    assert index is not None
    while len(index) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    list(loader)
    assert index.summary()["indexed"] >= 8
    del loader, index
    while not path.exists() and time.monotonic() < deadline:
        gc.collect()
    assert EntropyIndex(path).summary()["indexed"] >= 8


@pytest.mark.parametrize("wrong", ["atuo", "", 3, True])
def test_what_is_no_index_is_refused(folder: Path, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"index: got .*; accepted: 'auto', a path, or None"):
        Loader(folder, index=wrong)  # type: ignore[arg-type]


def test_the_command(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "cache"))
    (folder / "one" / "broken.jpg").write_bytes(jpeg(80, 80)[:900])
    (folder / "one" / "zero.jpg").write_bytes(b"")
    assert main(["index", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["images"] == len(KINDS) + 2
    assert said["indexed"] == 12
    assert said["left_out"]["restart markers"] == 1
    assert said["left_out"]["damaged"] >= 1
    assert Path(said["path"]).parent == tmp_path / "cache" / "jpeg-indexes"
    loader = Loader(folder, CROP, device="cpu", index="auto", on_error="skip")
    assert loader._pipeline.index is not None
    assert loader._pipeline.index.summary()["indexed"] == 12
    assert main(["index", str(folder)]) == 0
    assert f"12 of {len(KINDS) + 2} images" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert main(["index", str(folder), "--out", str(tmp_path / "locked" / "index")]) == 1


def test_vg_sources_of_every_kind(folder: Path, tmp_path: Path) -> None:
    arrays = vg.open_source(([np.zeros((9, 9, 3), np.uint8)] * 3, [0, 1, 2]))
    found = index_source(arrays, tmp_path / "none")
    assert (found.images, found.indexed, found.left_out) == (3, 0, {"pixels, not a file": 3})
    assert not (tmp_path / "none").exists()
