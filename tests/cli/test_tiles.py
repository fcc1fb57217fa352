"""``variegate augment --tile``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

import variegate as vg
from tests.images import photo
from variegate.cli.commands import app
from variegate.jobs.arguments import build_transform
from variegate.jobs.output.manifest import read_manifest

# It needs Python 3.11.
zarr: Any = pytest.importorskip("zarr")

THREADS = ("--devices", "cpu:0,cpu:1", "--workers", "thread", "--threads", "1", "--seed", "3")


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    (folder / "inner").mkdir(parents=True)
    image = photo(90, 130)
    np.save(folder / "a.npy", image)
    tifffile.imwrite(folder / "inner" / "b.tif", image, tile=(32, 32), photometric="rgb")
    zarr.create_array(str(folder / "c.zarr"), shape=image.shape, chunks=(40, 40, 3), dtype="u1")[:] = image
    return folder


def test_a_folder_is_expanded_once(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = run("augment", images, out, "--tile", 48, "--copies", 2, *THREADS)
    assert (code, "written   6" in said) == (0, True), said
    transform = build_transform("randaugment", None)
    readers: dict[str, Any] = {
        "a_{}.npy": np.load,
        "c_{}.zarr": lambda path: zarr.open_array(str(path), mode="r")[:],
        "inner/b_{}.tif": tifffile.imread,
    }
    for index, (name, read) in enumerate(readers.items()):
        for copy in range(2):
            expected = vg.Augmenter(transform, device="cpu", seed=3, layout="NHWC")([photo(90, 130)], [index], 0, copy)
            np.testing.assert_array_equal(read(out / name.format(copy)), expected[0].numpy())
    assert run("verify", out)[0] == 0
    rows = list(read_manifest(out).columns("source", "copy", "height", "width", "operations"))
    assert {(row["source"], row["copy"]) for row in rows} == {
        (name, copy) for name in ("a.npy", "c.zarr", "inner/b.tif") for copy in range(2)
    }
    assert {(row["height"], row["width"]) for row in rows} == {(90, 130)}
    assert all(json.loads(row["operations"]) for row in rows)
    code, said = run("augment", images, out, "--tile", 48, "--copies", 2, *THREADS, "--json")
    assert json.loads(said.splitlines()[-1])["resumed"] == 6
    code, said = run("augment", images, out, "--tile", 64, "--copies", 2, *THREADS)
    assert (code, "holds a run with tile 48, this one has tile 64" in said) == (2, True), said


def test_one_file_and_a_bad_one(images: Path, tmp_path: Path) -> None:
    code, said = run("augment", images / "a.npy", tmp_path / "one", "--tile", 48, *THREADS, "--json")
    assert (code, json.loads(said.splitlines()[-1])["written"]) == (0, 1), said
    np.save(images / "bad.npy", np.zeros((9, 9, 33), np.uint8))
    code, said = run("augment", images, tmp_path / "out", "--tile", 48, *THREADS)
    assert (code, "skipped bad.npy" in said, "written   3" in said) == (0, True, True), said
    code, said = run("augment", images, tmp_path / "other", "--tile", 48, *THREADS, "--on-error", "raise")
    assert (code, "bad.npy: got uint8[9, 9, 33]; accepted" in " ".join(said.split())) == (2, True), said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tile", "64", "--quality", "50"], "--quality: got 50 with --tile, which ignores it"),
        (["--tile", "64", "--layout", "parquet"], "--layout: got 'parquet' with --tile"),
        (["--tile", "100"], "accepted: multiples of 16"),
    ],
)
def test_wrong_options_are_named(images: Path, tmp_path: Path, options: list[str], said: str) -> None:
    code, output = run("augment", images / "inner" / "b.tif", tmp_path / "out", *options)
    assert (code, said in " ".join(output.split())) == (2, True), output


def test_a_place_without_images(tmp_path: Path) -> None:
    code, said = run("augment", tmp_path, tmp_path.parent / "out", "--tile", 48, *THREADS)
    assert (code, "holds no image that is made in tiles" in " ".join(said.split())) == (2, True), said
