"""Images of uint16 and float32 written by ``augment``."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile

import variegate as vg
from tests.data.annotated.test_masks import put as put_masks
from tests.images import noise
from tests.jobs.augment.samples import SCANS, digest, expansion, lay_scans, rows, threads
from tests.jobs.augment.test_annotated import expansion as annotated_expansion
from variegate import transforms as T
from variegate.data.objects.arrays import open_arrays
from variegate.decode.image import read_mask
from variegate.jobs.augment import Expansion, Plan, plan_for
from variegate.jobs.augment.replay import replay
from variegate.program.depth import Depth

POLICY = T.Compose([T.RandomCrop(16), T.RandomRotation(10), T.RandomAutocontrast()])

LARGE = T.Compose([T.RandomRotation(9), T.AutoContrast(), T.GaussianBlur(5), T.GaussianNoise()])


def written(out: Path, source: Any, **settings: Any) -> list[dict[str, Any]]:
    plan = plan_for(source, POLICY, 2, seed=7, **settings)
    assert Expansion(plan, out, threads(2)).run().written == 2 * len(source)
    return rows(out)


def pixels_of(data: bytes, format: str) -> Any:
    if format == "npy":
        return np.load(io.BytesIO(data))
    return tifffile.imread(io.BytesIO(data)) if format == "tif" else np.asarray(PIL.Image.open(io.BytesIO(data)))


CASES: dict[str, tuple[Depth, dict[str, Any]]] = {
    "gray PNG": (Depth.UINT16, {"format": "png", "channels": 1}),
    "gray TIFF": (Depth.UINT16, {"format": "tif", "channels": 1}),
    "color TIFF": (Depth.UINT16, {"format": "tif"}),
    "floats in TIFF": (Depth.FLOAT32, {"format": "tif"}),
    "gray floats in TIFF": (Depth.FLOAT32, {"format": "tif", "channels": 1}),
    "NumPy": (Depth.FLOAT32, {"format": "npy"}),
}


@pytest.mark.parametrize(("depth", "settings"), CASES.values(), ids=list(CASES))
def test_files_hold_the_pixels_of_an_augmenter(tmp_path: Path, depth: Depth, settings: dict[str, Any]) -> None:
    place = lay_scans(tmp_path / "scans")
    out = tmp_path / "out"
    made = written(out, vg.open_source(str(place)), depth=depth, place=str(place), **settings)
    for number, row in enumerate(made):
        scan = SCANS[row["source"]].astype(depth.dtype) / (1 if depth is Depth.UINT16 else np.float32(65535))
        image = np.repeat(scan[..., None], settings.get("channels", 3), 2).astype(depth.dtype)
        expected = vg.Augmenter(POLICY, seed=7, layout="NHWC")([image], ids=[row["id"]], copy=row["copy"])[0].numpy()
        found = pixels_of((out / row["file"]).read_bytes(), settings["format"])
        assert found.dtype == depth.dtype
        np.testing.assert_array_equal(found, expected.reshape(found.shape))
        if number < 2:
            assert replay(out, number).is_same


@pytest.mark.parametrize(("layout", "format"), [("webdataset", "tif"), ("parquet", "tif"), ("parquet", "npy")])
def test_shards_are_read_again(tmp_path: Path, layout: Any, format: Any) -> None:
    place = lay_scans(tmp_path / "scans")
    for name, more in (("files", {}), ("shards", {"layout": layout})):
        written(tmp_path / name, vg.open_source(str(place)), depth=Depth.UINT16, format=format, **more)
    files, shards = (
        next(iter(vg.Loader(str(tmp_path / name), batch_size=8, shuffle=False, device="cpu", depth="uint16"))).images
        for name in ("files", "shards")
    )
    np.testing.assert_array_equal(files, shards)


def test_masks_follow_deep_images(tmp_path: Path) -> None:
    put_masks(tmp_path / "8")
    put_masks(tmp_path / "16")
    for path in sorted((tmp_path / "16" / "images").rglob("*.*")):
        levels = np.asarray(PIL.Image.open(path).convert("L")).astype(np.uint16) * np.uint16(257)
        path.unlink()
        PIL.Image.fromarray(levels).save(path.with_suffix(".png"))
    made = {}
    for name, options in (("8", {"format": "tif"}), ("16", {"format": "tif", "depth": Depth.UINT16})):
        annotated_expansion(tmp_path / name, "masks", tmp_path / f"out{name}", **options).run()
        made[name] = [
            read_mask((tmp_path / f"out{name}" / row["mask_file"]).read_bytes(), "")
            for row in rows(tmp_path / f"out{name}")
        ]
        assert {tifffile.imread(path).dtype for path in (tmp_path / f"out{name}").rglob("*.tif")} == {
            np.dtype(f"uint{name}")
        }
    for mask, other in zip(made["8"], made["16"], strict=True):
        np.testing.assert_array_equal(mask, other)


def test_samples_of_another_kind_are_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "a.npy", noise(20, 20).astype(np.float32))
    plan = plan_for(vg.open_source(str(tmp_path / "in")), POLICY, format="tif", depth=Depth.UINT16)
    Expansion(plan, tmp_path / "out", threads(1)).run()
    assert "its pixels are float32; accepted with depth='uint16'" in rows(tmp_path / "out")[0]["reason"]
    noted = expansion(lay_scans(tmp_path / "scans"), tmp_path / "8 bits", threads(1))
    with pytest.warns(UserWarning, match="pixels of 16 bits are scaled to 8 bits"):
        noted.run()


def test_devices_change_no_byte(tmp_path: Path) -> None:
    place = lay_scans(tmp_path / "scans")
    for number in (1, 3):
        settings: dict[str, Any] = {"depth": Depth.FLOAT32, "format": "npy", "policy": "3-augment"}
        expansion(place, tmp_path / str(number), threads(number), **settings).run()
    assert digest(tmp_path / "1") == digest(tmp_path / "3")


@pytest.mark.parametrize("kind", ["<u2", ">u2", "<f4", ">f4"])
@pytest.mark.parametrize("form", ["npy", "tiles.tif", "deflated.tif", "strips.tif"])
def test_one_large_image_in_bands(tmp_path: Path, form: str, kind: str) -> None:
    image = (np.random.default_rng(2).random((150, 203, 3)) * (65_535 if "u" in kind else 1.5)).astype(kind)
    path, out = tmp_path / f"in.{form}", tmp_path / f"out.{form}"
    tiled: dict[str, Any] = {"tile": (32, 48)} if form != "strips.tif" else {"rowsperstrip": 7}
    if form == "npy":
        np.save(path, image)
    else:
        compression = "zlib" if form == "deflated.tif" else None
        tifffile.imwrite(path, image, photometric="rgb", byteorder=kind[0], compression=compression, **tiled)
    engine = threads(2, transform=LARGE, layout="NHWC", seed=7)
    assert engine.map_image(str(path), out=str(out), tile=64) is None
    native = image.astype(image.dtype.newbyteorder("="))
    expected = vg.Augmenter(LARGE, seed=7, layout="NHWC")([native], ids=[0])[0].numpy()
    made = np.load(out) if form == "npy" else tifffile.imread(out)
    assert made.dtype == native.dtype
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(engine.map_image(image, tile=48), expected)


@pytest.mark.process
def test_one_large_image_by_processes_and_channels() -> None:
    image = np.random.default_rng(2).integers(0, 65_536, (90, 70, 5), np.uint16)
    expected = vg.Augmenter(LARGE)([image], ids=[0])[0].numpy()
    engine = vg.Engine(["cpu:0"], "process", transform=LARGE, num_threads=2)
    np.testing.assert_array_equal(engine.map_image(image, tile=32), expected)


def test_images_that_bands_refuse() -> None:
    image = np.zeros((20, 20, 3), np.uint16)
    with pytest.raises(ValueError, match="JPEG: got images of uint16, and is defined on 256 levels"):
        threads(1, transform=T.JPEG((50, 60))).map_image(image)
    with pytest.raises(
        ValueError, match=re.escape("got int16[20, 20, 3]; accepted: uint8, uint16 or float32 [H, W, C]")
    ):
        threads(1, transform=LARGE).map_image(image.astype(np.int16))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "8 bits": ({}, "format: got 'jpg', which holds no images of uint16; accepted for them: png, tif, npy"),
    "color in PNG": (
        {"format": "png"},
        "format: got 'png', which holds no color of uint16; accepted: 'png' with channels=1, which reads gray",
    ),
    "floats in PNG": (
        {"format": "png", "channels": 1, "depth": Depth.FLOAT32},
        "format: got 'png', which holds no images of float32; accepted for them: tif, npy",
    ),
    "levels": (
        {"format": "tif", "transform": T.RandomChoice([T.JPEG((50, 90)), T.Identity()])},
        "JPEG: got images of uint16, and is defined on 256 levels; accepted: uint8 images",
    ),
    "NumPy in tar": (
        {"format": "npy", "layout": "webdataset"},
        "format: got 'npy' with layout='webdataset', which is not read again; accepted: tif, or another layout",
    ),
}


@pytest.mark.parametrize(("settings", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refused_before_anything_is_read(settings: dict[str, Any], message: str) -> None:
    images = np.zeros((2, 8, 8, 1), np.uint16)
    with pytest.raises(ValueError, match=re.escape(message)):
        Plan(open_arrays(images), **{"transform": POLICY, "depth": Depth.UINT16, **settings})
