"""Images of 2 and of 4 to 32 channels: values over all channels, statistics of each, one rendering, and refusals."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.apps.check.measures.test_values import DEEP, GRAY, SHARE, Array, checked, npy, row_of, tiff
from tests.decode.test_dicom import dicom
from tests.needed import needs

pytestmark = [needs("pydicom", "tifffile")]


def bands(gray: Array, count: int, empty: int | None = 1) -> Array:
    """[H, W, count], each channel darker than the one before; ``empty`` is 0 throughout."""
    image = np.stack([gray // (1 + n) if gray.dtype.kind == "u" else gray / (1 + n) for n in range(count)], axis=2)
    if empty is not None:
        image[:, :, empty] = 0
    return image.astype(gray.dtype)


def bands_tiff(image: Array, **options: Any) -> bytes:
    return tiff(image, planarconfig="contig", **{"photometric": "minisblack", **options})


@pytest.mark.parametrize(
    ("suffix", "make", "image", "depth"),
    [
        ("npy", npy, bands(GRAY, 5), "uint8"),
        ("npy", npy, bands(DEEP[:, :, 0], 2), "uint16"),
        ("npy", npy, bands(SHARE, 32), "float32"),
        ("tif", bands_tiff, bands(GRAY, 2), "uint8"),
        ("tif", bands_tiff, bands(GRAY, 6), "uint8"),
        ("tif", lambda image: bands_tiff(image, photometric="rgb", extrasamples=[0]), bands(GRAY, 4), "uint8"),
        (
            "tif",
            lambda image: bands_tiff(image, photometric="rgb", extrasamples=[0]),
            bands(DEEP[:, :, 0], 4),
            "uint16",
        ),
        ("tif", lambda image: bands_tiff(image, compression="deflate"), bands(DEEP[:, :, 0], 13), "uint16"),
        ("tif", bands_tiff, bands(SHARE, 4), "float32"),
    ],
)
def test_values_are_over_all_channels(
    suffix: str, make: Callable[[Array], bytes], image: Array, depth: str, tmp_path: Path
) -> None:
    row = row_of(make(image), tmp_path, suffix)
    white = {"uint8": 255, "uint16": 65535, "float32": 1}[depth]
    assert (row["error"], row["depth"], row["mode"]) == (None, depth, f"{image.shape[2]}-channel")
    assert (row["height"], row["width"]) == image.shape[:2]
    assert (row["least"], row["greatest"]) == (image.min(), image.max())
    assert row["mean"] == pytest.approx(image.mean(axis=(0, 1), dtype=np.float64) / white)
    assert row["std"] == pytest.approx(image.std(axis=(0, 1), dtype=np.float64) / white)
    assert (row["low"], row["high"]) == pytest.approx(np.quantile(image, [0.001, 0.999]), rel=0.02)
    gray = image.mean(axis=2, dtype=np.float64)
    assert (row["black"], row["white"]) == pytest.approx(np.quantile(gray, [0.001, 0.999]), rel=0.02)


@pytest.mark.parametrize("scale", [lambda x: x, lambda x: x.astype(np.uint16) * 16, lambda x: x * np.float32(9)])
def test_appearance_is_that_of_the_gray_images(scale: Callable[[Array], Array]) -> None:
    """Beside an empty and a constant channel."""
    photos = [np.roll(GRAY, 31 * shift, 1)[shift * 7 : 80 + shift * 7] for shift in range(6)]
    photos = [((one - one.min()) * (255.0 / np.ptp(one))).astype(np.uint8) for one in photos]
    photos[1] = photos[1] // 20
    photos[2] = np.full_like(photos[2], 90)
    photos[3] = photos[0].copy()
    photos[4] = photos[0][:, ::-1].copy()
    images = [bands(scale(one), 5) for one in photos]
    for image in images:
        image[:, :, 4] = scale(np.uint8([200]))[0]
    found = {(one.finding, one.index) for one in checked(*images).findings if one.index is not None}
    assert {("dark", 1), ("blank", 2), ("duplicates", 0), ("duplicates", 3), ("near_duplicates", 4)} <= found
    assert not {index for kind, index in found if kind in ("dark", "bright", "blank", "low_contrast")} - {1, 2}


def test_a_note_says_what_is_shown_and_ranges_count_all_channels() -> None:
    result = checked(*[bands(DEEP[:, :, 0] // 16, 4)] * 2)
    assert re.search(
        r"^uint16 images of 4 channels are judged and shown by the mean of the channels, from .* \(black\) to .* "
        r"\(white\), as the middle image uses; pass channels=4 to a Loader$",
        "\n".join(result.notes),
        re.MULTILINE,
    )
    (line,) = [one.why for one in result.findings if one.finding == "value_range"]
    assert line.startswith("12 of 16 bits are used in 2 uint16 images of 4 channels")
    assert line.endswith("begin with T.Window(2047.5, 4095)")
    few = [one.why for one in checked(bands(GRAY // 16, 5)).findings if one.finding == "value_range"]
    assert few[0].endswith("begin with T.Window(7.5, 15)")


def test_other_numbers_of_channels_than_most_images_have(tmp_path: Path) -> None:
    images = [
        GRAY[:, :, None],
        np.repeat(GRAY[:, ::-1, None], 3, 2),
        bands(GRAY[::-1], 4),
        np.full((9, 9), np.nan, np.float32),
    ]
    result = vg.check((images, None), report=tmp_path / "report.html")
    assert [(one.index, one.why) for one in result.findings if one.finding == "mixed_channels"] == [
        (2, "it has 4 channels, and most train images have 1 or 3: no batch has both")
    ]
    assert result.suggested_drop[:2] == ["corrupt", "mixed_channels"]
    assert result.mean == pytest.approx([GRAY.mean() / 255] * 3)
    most = vg.check(([bands(GRAY, 2)] * 2, None), ([bands(GRAY, 2), GRAY[:, :, None]], None))
    (one,) = [one for one in most.findings if one.finding == "mixed_channels"]
    assert (one.split, one.index) == ("test", 1)
    assert one.why == "it has 1 or 3, and most train images have 2 channels: no batch has both"
    assert most.mean is not None
    assert len(most.mean) == 2


def test_refusals_say_what_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = bands(SHARE, 4)
    nan[:, :, 2] = np.nan
    assert row_of(npy(nan), tmp_path, "npy")["error"] == "every pixel is NaN or infinite in a channel"
    error = row_of(npy(np.zeros((9, 9, 33), np.uint8)), tmp_path, "npy")["error"]
    assert error.startswith("got uint8[9, 9, 33]; accepted: ")
    assert error.endswith("[H, W] or [H, W, C] with up to 32 channels; channels last")
    (tmp_path / "one.npy").unlink()
    whole = bands_tiff(bands(GRAY, 6))
    four = bands_tiff(bands(GRAY, 4), photometric="rgb", extrasamples=[0])
    assert row_of(whole[:-900], tmp_path, "tif")["error"]
    monkeypatch.setitem(sys.modules, "tifffile", None)
    for data in (whole, four):
        error = row_of(data, tmp_path, "tif")["error"]
        assert error == "needs tifffile for its channels: pip install 'variegate[tiles]'"


def test_frame_and_window_of_dicom_files(tmp_path: Path) -> None:
    frames = np.stack([GRAY, GRAY[::-1]]).astype(np.int16) * 4
    shape = {"SamplesPerPixel": 1, "PhotometricInterpretation": "MONOCHROME2", "Rows": 120, "Columns": 160}
    source = tmp_path / "scans"
    source.mkdir()
    (source / "a.dcm").write_bytes(dicom(frames, NumberOfFrames=2, **shape))

    def row(**options: Any) -> dict[str, Any]:
        found: dict[str, Any] = vg.check(source, report=tmp_path / "report.html", **options).table.to_pylist()[0]
        return found

    assert "accepted: one, or dicom=vg.Dicom(frame=0 to 1) (--frame)" in row()["error"]
    second = row(frame=1)
    assert (second["depth"], second["least"], second["greatest"]) == ("int16", int(GRAY.min()) * 4, int(GRAY.max()) * 4)
    assert second["pixel_hash"] != row(frame=0)["pixel_hash"]
    windowed = row(frame=1, window="400,400")
    assert (windowed["depth"], windowed["least"], windowed["greatest"]) == ("float32", 0, 1)
    assert windowed["clipped_high"] == pytest.approx(np.mean(GRAY * 4.0 >= 600))
    assert "data:image/" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="window: got 'wide'; accepted: CENTER,WIDTH"):
        vg.check(source, window="wide")
