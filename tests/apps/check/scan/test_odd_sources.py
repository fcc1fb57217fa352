"""Whatever a source holds, every sample has a row, and the pass goes on."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from tests.apps.check.files import PHOTO, bomb, saved
from tests.data.tars import Members, write_tar
from variegate.apps.check.checking import Checking
from variegate.apps.check.findings import CheckResult
from variegate.data.base import SourceError
from variegate.options.datasets import CheckingOptions

PIXELS = np.asarray(PHOTO)


def rows(result: CheckResult) -> dict[str, dict[str, Any]]:
    return {row["file"]: row for row in result.table.to_pylist()}


def test_every_kind_of_odd_file_has_its_row(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    (folder / "a").mkdir(parents=True)
    jpeg = saved("JPEG", quality=95)
    files = {
        "good.png": saved(),
        "empty.png": b"",
        "cut.jpg": jpeg[: len(jpeg) // 2],
        "gray.jpg": jpeg[: len(jpeg) // 2] + b"\xff\xd9",
        "text.jpg": b"not found\n",
        "bomb.png": bomb(),
        "deep.png": saved(image=Image.fromarray(np.full((4, 5), 40_000, np.uint16))),
        "new\nline.png": saved(),
        os.fsdecode(b"latin-\xe9.png"): saved(),
    }
    for name, data in files.items():
        (folder / "a" / name).write_bytes(data)
    (folder / "a" / "nowhere.png").symlink_to("gone.png")
    (folder / "a" / "circle").symlink_to(folder, target_is_directory=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "a" / "pipe.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = vg.check(folder, out=tmp_path / "found.parquet")
    found = rows(result)
    assert len(found) == result.images == len(files) + 1
    errors = {name: row["error"] for name, row in found.items() if row["error"]}
    assert sorted(errors) == ["a/bomb.png", "a/cut.jpg", "a/empty.png", "a/nowhere.png", "a/text.jpg"]
    assert "limit" in errors["a/bomb.png"]
    assert "no such file" in errors["a/nowhere.png"]
    assert {name for name, row in found.items() if row["is_truncated"]} == {"a/cut.jpg", "a/gray.jpg"}
    assert found["a/empty.png"]["bytes"] == 0
    assert found["a/nowhere.png"]["bytes"] is None
    assert found["a/deep.png"]["mode"] == "I;16"
    assert {"a/new\\nline.png", "a/latin-\\udce9.png"} <= found.keys()
    assert found["a/good.png"]["pixel_hash"] == found["a/new\\nline.png"]["pixel_hash"]
    assert found["a/gray.jpg"]["pixel_hash"] is not None
    assert any("pipe.png" in text for text in result.notes)
    kinds = {(one.file, one.finding) for one in result.findings}
    assert {("a/text.jpg", "corrupt"), ("a/bomb.png", "corrupt"), ("a/nowhere.png", "corrupt")} <= kinds
    assert {("a/empty.png", "empty"), ("a/cut.jpg", "truncated"), ("a/gray.jpg", "truncated")} <= kinds
    assert not {("a/empty.png", "corrupt"), ("a/gray.jpg", "corrupt")} & kinds
    assert result.is_serious
    assert pq.read_table(tmp_path / "found.parquet").equals(result.table)


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(saved())
    checking = Checking(tmp_path, None, CheckingOptions())
    (tmp_path / "b.png").unlink()
    found = rows(checking.run())
    assert found["b.png"]["error"] == "no such file"
    assert found["c.png"]["error"] is None


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no image"):
        vg.check(tmp_path)


def test_nothing_but_broken_images(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"not found")
    (tmp_path / "two.png").write_bytes(b"")
    result = vg.check(tmp_path, report=tmp_path / "report.html")
    assert result.counts == {"corrupt": 1, "empty": 1}
    assert result.mean is None
    assert "one.png" in (tmp_path / "report.html").read_text()


def test_one_image(tmp_path: Path) -> None:
    (tmp_path / "one.jpg").write_bytes(saved("JPEG"))
    result = vg.check(tmp_path / "one.jpg")
    assert [row["file"] for row in result.table.to_pylist()] == ["one.jpg"]


def test_arrays_and_test_images() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 12, 10, 3), dtype=np.uint8)
    gray = images[:5, :, :, :1]
    result = vg.check((images, [number % 4 for number in range(40)]), gray)
    assert result.splits == {"train": 40, "test": 5}
    assert result.class_sizes == {"0": 10, "1": 10, "2": 10, "3": 10}
    table = result.table.to_pylist()
    assert [row["mode"] for row in table] == ["RGB"] * 40 + ["L"] * 5
    assert table[40]["index"] == 0
    assert (table[3]["kind"], table[3]["bytes"], table[3]["label"]) == (None, 360, 3)
    assert result.mean is not None
    assert result.std is not None
    np.testing.assert_allclose(result.mean, images.mean(axis=(0, 1, 2)) / 255, atol=1e-9)
    np.testing.assert_allclose(result.std, images.std(axis=(0, 1, 2)) / 255, atol=1e-9)


def write_images(path: Path, number: int) -> None:
    members: Members = []
    for index in range(number):
        image = Image.fromarray(PIXELS + np.uint8(index))
        members += [(f"{index:03}.png", saved(image=image)), (f"{index:03}.cls", str(index % 3).encode())]
    write_tar(path, members)


def test_shards_are_checked_by_index(tmp_path: Path) -> None:
    for shard, number in enumerate((40, 3, 21)):
        write_images(tmp_path / f"train-{shard}.tar", number)
    by_index = vg.check(vg.open_source(tmp_path, stream=False))
    sharded = vg.check(vg.open_source(tmp_path, stream=True))
    assert sharded.table.equals(by_index.table)
    assert sharded.images == 64
    assert sharded.table["file"][43].as_py() == "train-2.tar: 000.png"


def test_a_shard_that_is_cut_off(tmp_path: Path) -> None:
    write_images(tmp_path / "train.tar", 20)
    data = (tmp_path / "train.tar").read_bytes()
    (tmp_path / "train.tar").write_bytes(data[: len(data) // 2])
    for stream in (True, False):
        result = vg.check(vg.open_source(tmp_path / "train.tar", stream=stream, on_error="skip"))
        good = [row for row in result.table.to_pylist() if not row["error"]]
        assert 5 < len(good) < 12


def test_names_that_several_images_share(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write_images(tmp_path / folder / "train.tar", 3)
    result = vg.check([tmp_path / "x" / "train.tar", tmp_path / "y" / "train.tar"])
    assert any(": 3 names (" in text for text in result.notes)


def test_rows_of_parquet_without_an_image(tmp_path: Path) -> None:
    images = [{"bytes": saved(), "path": None}, {"bytes": b"", "path": None}, {"bytes": b"junk", "path": None}]
    pq.write_table(pa.table({"image": images, "label": [0, 1, 1]}), tmp_path / "train.parquet")
    table = vg.check(tmp_path / "train.parquet").table.to_pylist()
    assert [row["error"] is None for row in table] == [True, False, False]
    assert [row["label"] for row in table] == [0, 1, 1]
    assert table[0]["file"] == "train.parquet: row 0"


class Broken:
    """A data set of somebody's, with a fault of its own in one sample."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        if index == 1:
            raise KeyError("column gone")
        return Image.fromarray(PIXELS), index


def test_whatever_a_data_set_raises_is_the_samples_error() -> None:
    table = vg.check(Broken()).table.to_pylist()
    assert [row["error"] is None for row in table] == [True, False, True]
    assert "column gone" in table[1]["error"]


@pytest.mark.parametrize("kind", ["files", "npy", "array"])
def test_images_of_16_bits_have_one_finding(tmp_path: Path, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 65536, (3, 20, 30), np.uint16)
    for number, image in enumerate(pixels):
        if kind == "files":
            Image.fromarray(image).save(tmp_path / f"{number}.png")
        elif kind == "npy":
            np.save(tmp_path / f"{number}.npy", image)
    result = vg.check(pixels if kind == "array" else tmp_path)
    found = [one for one in result.findings if one.finding in ("deep", "unusual_mode", "corrupt", "blank")]
    assert [(one.finding, one.index) for one in found] == [("deep", None)]
    assert found[0].why == "3 images of uint16: files are read in 8 bits unless depth='uint16' or 'float32' is given"
