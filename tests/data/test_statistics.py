"""Statistics of data sets: with them, what a Loader delivers has mean 0 and standard deviation 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

import variegate as vg
from tests.decode.test_dicom import dicom
from tests.needed import needs
from variegate import transforms as T
from variegate.data.base import SourceError

pytestmark = [needs("pydicom"), pytest.mark.filterwarnings("ignore:.*scaled to 8 bits", "ignore::UserWarning:pydicom")]
COUNT = 20
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 200, (COUNT, 7, 9, 3), np.uint8)
DEEP = RNG.integers(0, 4096, (COUNT, 7, 9, 1), np.uint16)
BANDS = RNG.integers(0, 30000, (COUNT, 7, 9, 6), np.uint16)
UNITS = (RNG.normal(-300, 700, (COUNT, 7, 9, 1))).astype(np.float32)


def write_files(folder: Path, kind: str) -> Path:
    folder.mkdir()
    for index in range(COUNT):
        path = folder / f"{index:02}.{kind}"
        if kind == "npy":
            np.save(path, DEEP[index])
        elif kind == "png":
            Image.fromarray(DEEP[index, :, :, 0]).save(path)
        elif kind == "jpg":
            Image.fromarray(BYTES[index]).save(path)
        elif kind == "tif":
            tifffile.imwrite(path, UNITS[index, :, :, 0])
        else:
            path.write_bytes(dicom(DEEP[index, :, :, 0], BitsStored=12, RescaleIntercept=-1024))
    return folder


def write_pack(folder: Path, images: Any, **options: Any) -> Path:
    vg.pack((images, [0] * COUNT), folder, format="raw", workers="thread", **options)
    return folder


@pytest.mark.parametrize(
    ("make", "options", "white"),
    [
        (lambda at: BYTES, {}, 255),
        (lambda at: DEEP, {}, 65535),
        (lambda at: DEEP, {"depth": "float32"}, 1),
        (lambda at: DEEP, {"depth": "uint8"}, 255),
        (lambda at: UNITS, {}, 1),
        (lambda at: list(zip(map(Image.fromarray, BYTES), range(COUNT), strict=True)), {}, 255),
        (lambda at: write_files(at, "jpg"), {}, 255),
        (lambda at: write_files(at, "png"), {}, 255),
        (lambda at: write_files(at, "png"), {"depth": "uint16"}, 65535),
        (lambda at: write_files(at, "png"), {"depth": "uint16", "channels": 1}, 65535),
        (lambda at: write_files(at, "npy"), {"depth": "float32"}, 1),
        (lambda at: write_files(at, "tif"), {"depth": "float32"}, 1),
        (lambda at: write_files(at, "dcm"), {"depth": "float32", "channels": 1}, 1),
        (lambda at: write_files(at, "dcm"), {"depth": "uint16", "dicom": vg.Dicom(window=(500, 2000))}, 65535),
        (lambda at: write_pack(at, DEEP, depth="uint16"), {}, 65535),
        (lambda at: write_pack(at, UNITS, depth="float32"), {}, 1),
        (lambda at: write_pack(at, BANDS, depth="uint16"), {}, 65535),
        (lambda at: write_pack(at, DEEP, depth="uint16"), {"depth": "uint8"}, 255),
        (lambda at: write_pack(at, DEEP, depth="uint16"), {"depth": "float32"}, 1),
        (lambda at: write_pack(at, BYTES), {"depth": "uint16"}, 65535),
        (lambda at: write_pack(at, BYTES), {"channels": 3}, 255),
    ],
)
def test_normalized_batches_have_mean_0_and_deviation_1(
    make: Any, options: dict[str, Any], white: float, tmp_path: Path
) -> None:
    source = make(tmp_path / "images")
    opened = source if isinstance(source, (np.ndarray, Path)) else Pairs(source)
    found = vg.dataset_statistics(opened, threads=2, **options)
    assert (found.images, found.pixels, found.white) == (COUNT, COUNT * 63, white)
    own = T.Compose([T.ToDtype("float32", scale=False), T.Normalize(found.own_mean, found.own_std)])
    is_on_scale = max(map(abs, found.mean)) <= 1
    transforms: list[Any] = [own, *([T.Normalize(found.mean, found.std)] if is_on_scale else [])]
    # The stored statistics are of unrounded pixels.
    if isinstance(opened, Path) and (opened / "statistics.json").exists() and options.get("depth") != "uint8":
        transforms.append(T.Normalize("dataset"))
        again = vg.dataset_statistics(opened, **{"channels": len(found.mean), **options})
        np.testing.assert_allclose((found.mean, found.std), (again.mean, again.std), rtol=1e-6)
    for transform in transforms:
        loader = vg.Loader(opened, transform, batch_size=COUNT, device="cpu", **options)
        images = next(iter(loader))[0].double()
        assert images.mean((0, 2, 3)).tolist() == pytest.approx([0.0] * len(found.mean), abs=1e-4)
        assert images.std((0, 2, 3), correction=0).tolist() == pytest.approx([1.0] * len(found.mean), abs=1e-4)


class Pairs:
    """A map-style data set."""

    def __init__(self, pairs: list[Any]) -> None:
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> Any:
        return self._pairs[index]


def test_order_and_threads_change_no_digit() -> None:
    found = vg.dataset_statistics(UNITS, threads=1)
    assert vg.dataset_statistics(UNITS[::-1].copy(), threads=2) == found


def test_pixels_of_nan_do_not_count(tmp_path: Path) -> None:
    images = UNITS.copy()
    images[0, :2] = np.nan
    found = vg.dataset_statistics(images)
    assert vg.dataset_statistics(write_pack(tmp_path / "pack", images, depth="float32")) == found
    assert found.pixels == COUNT * 63 - 18
    assert found.mean[0] == pytest.approx(float(np.nanmean(images, dtype=np.float64)))
    assert found.own_std[0] == pytest.approx(float(np.nanstd(images, dtype=np.float64)))


def test_equal_floats_have_no_deviation(tmp_path: Path) -> None:
    images = np.full((COUNT, 7, 9, 1), 0.1, np.float32)
    assert vg.dataset_statistics(images).std == (0.0,)
    place = write_pack(tmp_path / "pack", images, depth="float32")
    with pytest.raises(SourceError, match="all pixels of a channel are equal"):
        vg.Loader(place, T.Normalize("dataset"), device="cpu")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (BYTES, {"depth": "uint12"}, "depth: got 'uint12'; accepted: 'uint8', 'uint16', 'float32' or None"),
        (BYTES, {"channels": 0}, "channels: got 0"),
        (BYTES, {"dicom": "full"}, "dicom: got 'full'; accepted: a vg.Dicom or None"),
        (([BYTES[0], DEEP[0]], None), {}, "item 1: its pixels are uint16, and uint8 before; accepted: "),
        (([BYTES[0], np.zeros((5, 4, 4), np.uint8)], None), {}, "item 1: it has 4 channels, and 3 before; accepted: "),
        (np.full((2, 4, 4), np.nan, np.float32), {}, "has no pixel with a finite value"),
    ],
)
def test_what_is_refused_is_named(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, SourceError), match=message):
        vg.dataset_statistics(source, **options)
