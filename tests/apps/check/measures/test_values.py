"""Images of more than 8 bits: numbers as they are stored, and looks within the range that they use."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import variegate as vg
from tests.apps.check.files import PHOTO, saved
from tests.decode.test_dicom import dicom
from tests.needed import needs
from variegate.apps.check.findings import CheckResult

pytestmark = [needs("pydicom", "tifffile", "pillow_heif")]
Array = npt.NDArray[Any]
GRAY = np.asarray(PHOTO.convert("L"))
DEEP = (GRAY.astype(np.uint16) * 257)[:, :, None]
SHARE = GRAY / np.float32(255)


def npy(pixels: Array) -> bytes:
    out = io.BytesIO()
    np.save(out, pixels)
    return out.getvalue()


def tiff(pixels: Array, **options: Any) -> bytes:
    import tifffile

    out = io.BytesIO()
    tifffile.imwrite(out, pixels, **options)
    return out.getvalue()


def heic() -> bytes:
    import pillow_heif

    out = io.BytesIO()
    pillow_heif.encode("RGB;16", PHOTO.size, (np.asarray(PHOTO).astype(np.uint16) * 257).tobytes(), out, quality=-1)
    return out.getvalue()


def ct() -> bytes:
    return dicom(GRAY.astype(np.uint16) * 16, BitsStored=12, RescaleIntercept=-1024)


def checked(*images: Array) -> CheckResult:
    return vg.check((list(images), None))


def row_of(data: bytes, tmp_path: Path, suffix: str = "png") -> dict[str, Any]:
    (tmp_path / f"one.{suffix}").write_bytes(data)
    row: dict[str, Any] = vg.check(tmp_path).table.to_pylist()[0]
    return row


@pytest.mark.parametrize(
    ("suffix", "make", "depth", "least", "greatest"),
    [
        ("jpg", lambda: saved("JPEG"), "uint8", None, None),
        ("png", lambda: saved(image=PHOTO.convert("P")), "uint8", None, None),
        ("png", lambda: saved(image=Image.fromarray(DEEP[:, :, 0])), "uint16", DEEP.min(), DEEP.max()),
        ("tif", lambda: tiff(DEEP.repeat(3, 2), photometric="rgb"), "uint16", DEEP.min(), DEEP.max()),
        ("tif", lambda: tiff(SHARE * 3000 - 1000), "float32", SHARE.min() * 3000 - 1000, SHARE.max() * 3000 - 1000),
        ("tif", lambda: tiff(GRAY.astype(np.int16) - 100), "int16", int(GRAY.min()) - 100, int(GRAY.max()) - 100),
        ("npy", lambda: npy(GRAY), "uint8", GRAY.min(), GRAY.max()),
        ("npy", lambda: npy(GRAY.astype(np.int32) * -9), "int32", int(GRAY.max()) * -9, int(GRAY.min()) * -9),
        ("npy", lambda: npy(SHARE.astype(">f8")), "float64", SHARE.min(), SHARE.max()),
        ("heic", heic, "uint10", None, None),
        ("dcm", ct, "int12", int(GRAY.min()) * 16 - 1024, int(GRAY.max()) * 16 - 1024),
    ],
)
def test_depth_and_range_are_as_stored(
    suffix: str, make: Callable[[], bytes], depth: str, least: Any, greatest: Any, tmp_path: Path
) -> None:
    row = row_of(make(), tmp_path, suffix)
    assert (row["error"], row["depth"]) == (None, depth)
    if least is not None:
        assert (row["least"], row["greatest"]) == pytest.approx((float(least), float(greatest)))
    assert (row["low"] is None) == (depth == "uint8")


def test_clipping_is_the_share_at_either_end() -> None:
    image = np.full((10, 10, 3), 700, np.uint16)
    image[:3] = 20
    image[9] = 3000
    image[0, 0, 0] = 3000  # not in all channels
    bytes_ = np.full((10, 10, 3), 90, np.uint8)
    bytes_[:2] = 16
    table = checked(image, bytes_).table.to_pylist()
    assert [(one["clipped_low"], one["clipped_high"]) for one in table] == [(0.29, 0.1), (0.2, 0.8)]
    assert [(one["least"], one["greatest"]) for one in table] == [(20, 3000), (16, 90)]


def test_mean_and_std_are_shares_of_white() -> None:
    result = vg.check(DEEP[None])
    assert result.mean == pytest.approx([DEEP.mean() / 65535] * 3)
    assert result.std == pytest.approx([DEEP.std() / 65535] * 3)
    assert vg.check((SHARE * 3000)[None]).mean == pytest.approx([float(SHARE.mean() * 3000)] * 3)


@pytest.mark.parametrize("scale", [lambda x: x.astype(np.uint16) * 16, lambda x: x * np.float32(9) - np.float32(1000)])
def test_appearance_is_that_of_the_same_images_in_8_bits(scale: Callable[[Array], Array]) -> None:
    """In 12 of 16 bits, and in Hounsfield units: dark, blank and flat images are found among others, and copies."""
    photos = [np.asarray(PHOTO.convert("L").rotate(2 * turn).resize((200, 150)))[20:130, 20:180] for turn in range(6)]
    photos = [((one - one.min()) * (255 / np.ptp(one))).astype(np.uint8) for one in photos]
    photos[1] = photos[1] // 20
    photos[2] = np.full_like(photos[2], 90)
    photos[3] = photos[0].copy()
    photos[4] = photos[4] // 40 + 128
    expected, found = (
        {(one.finding, one.index) for one in checked(*images).findings if one.index is not None}
        for images in (photos, map(scale, photos))
    )
    assert {("dark", 1), ("blank", 2), ("duplicates", 3), ("low_contrast", 4)} <= expected
    assert {one for one in found if one[0] != "near_duplicates"} == {
        one for one in expected if one[0] != "near_duplicates"
    }


def test_other_numbers_that_look_the_same_are_no_duplicates() -> None:
    image = DEEP.copy()
    other = image.copy()
    other[0, 0] ^= 1
    assert checked(image, other, image).counts["duplicates"] == 2


@pytest.mark.parametrize(
    ("images", "begin"),
    [
        (DEEP[None] // 16, "12 of 16 bits are used in 1 uint16 image: the greatest value is"),
        (DEEP[None] // 32, "11 of 16 bits are used in 1 uint16 image"),
        ((SHARE * 3000 - 1000)[None], "the middle one of 1 float32 image has values from"),
        (SHARE[None] / 8, "the middle one of 1 float32 image has values from"),
        (DEEP[None], ""),
        (np.full((2, 9, 9), 5, np.uint16), ""),
        (np.full((2, 9, 9), 5, np.float32), ""),
        (SHARE[None], ""),
        (GRAY[None] // 16, ""),
    ],
)
def test_a_range_that_is_not_black_to_white_has_a_window(images: Array, begin: str) -> None:
    result = vg.check(images)
    lines = [one.why for one in result.findings if one.finding == "value_range"]
    assert len(lines) == bool(begin)
    if begin:
        assert lines[0].startswith(begin)
        assert "begin with T.Window(" in lines[0]


def test_a_bright_pixel_of_a_few_images_hides_no_narrow_range() -> None:
    images = np.repeat(DEEP[None] // 16, 5, 0)
    images[1, 0, 0] = 65535
    (line,) = [one.why for one in vg.check(images).findings if one.finding == "value_range"]
    assert line.startswith("the middle one of 5 uint16 images has values up to")
    assert line.endswith("begin with T.Window(2047.5, 4095)")


def test_nan_is_serious_and_nothing_else_is_no_image(tmp_path: Path) -> None:
    some = SHARE.copy()
    some[:12] = np.nan
    result = checked(SHARE, some, np.full_like(SHARE, np.inf))
    found = {(one.index, one.finding, one.why) for one in result.findings}
    assert (1, "not_finite", "10.000% of it is NaN or infinite") in found
    assert (2, "corrupt", "all of its pixels are NaN or infinite") in found
    assert result.is_serious
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "huge.npy").write_bytes(npy(SHARE.astype(np.float64) * 1e300))
    huge = vg.check(tmp_path / "images", report=str(tmp_path / "report.html"))
    assert huge.counts == {"corrupt": 1, "deep": 1}


def test_many_pixels_at_one_end_are_clipped_unless_all_images_are_so() -> None:
    def clipped(share: float) -> Array:
        image = DEEP // 16 + 1
        image[: int(share * len(image))] = 4095
        return image

    found = [one for one in checked(clipped(0.7), clipped(0.2)).findings if one.finding == "clipped"]
    assert [one.index for one in found] == [0]
    assert "has its greatest value, 4,095; more than 50.0%" in found[0].why
    assert "clipped" not in checked(*(clipped(0.6 + index / 1000) for index in range(24))).counts


def test_depths_of_a_data_set() -> None:
    few = checked(GRAY, GRAY // 2, DEEP)
    assert few.depths == {"uint8": 2, "uint16": 1}
    assert [(one.finding, one.index) for one in few.findings if one.finding in ("deep", "mixed_depths")] == [
        ("deep", 2),
        ("mixed_depths", None),
    ]
    most = checked(GRAY, DEEP, SHARE)
    lines = [one.why for one in most.findings if one.finding in ("deep", "mixed_depths")]
    assert len(lines) == 3
    assert lines[2].startswith("images have numbers of several kinds: 1 of uint8, 1 of uint16, 1 of float32; not uint8")


def test_thumbnails_of_12_bits_are_not_black(tmp_path: Path) -> None:
    images = DEEP[None] // 16
    vg.check(np.repeat(images, 2, 0), report=tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    pictures = re.findall(r"data:image/\w+;base64,([\w+/=]+)", page)
    assert pictures
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[0]))).convert("L").resize((40, 30)))
    expected = np.asarray(PHOTO.convert("L").resize((40, 30))).astype(float)
    assert np.corrcoef(shown.ravel(), expected.ravel())[0, 1] > 0.98
    assert shown.max() > 200
