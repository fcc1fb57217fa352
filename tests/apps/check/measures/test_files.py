"""What is known of a file besides its pixels, for every kind that is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.apps.check.files import PHOTO, bomb, saved
from variegate.apps.check.sample import FileFacts
from variegate.decode import read_image


def facts_of(data: bytes) -> tuple[FileFacts, npt.NDArray[np.uint8] | None]:
    facts = FileFacts()
    return facts, facts.read(data, "a file", lambda image: image)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "MPO"])
def test_pixels_are_those_that_readers_get(kind: str) -> None:
    more = {"save_all": True, "append_images": [PHOTO.rotate(90)]} if kind in ("GIF", "TIFF", "MPO") else {}
    data = saved(kind, **more)
    facts, image = facts_of(data)
    assert image is not None
    np.testing.assert_array_equal(image, read_image(data))
    assert facts.kind == ("JPEG" if kind == "MPO" else kind)
    assert (facts.height, facts.width, facts.orientation) == (120, 160, 1)
    assert not facts.is_truncated
    assert facts.error is None
    assert facts.warning is None


@pytest.mark.filterwarnings("ignore:.*16 or 32 bits of gray")
@pytest.mark.parametrize(
    ("kind", "mode"),
    [("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "P"), ("PNG", "LA"), ("PNG", "RGBA"), ("PNG", "1"), ("TIFF", "F")],
)
def test_the_mode_is_as_stored(kind: str, mode: str) -> None:
    image = PHOTO.convert("L").convert(mode) if mode == "F" else PHOTO.convert(mode)
    assert facts_of(saved(kind, image))[0].mode == mode


@pytest.mark.filterwarnings("ignore:.*16 or 32 bits of gray")
def test_deep_gray() -> None:
    deep = Image.fromarray(np.arange(300, dtype=np.uint16).reshape(15, 20) * 200)
    assert facts_of(saved("PNG", deep))[0].mode == "I;16"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_turned_image(kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    facts, image = facts_of(saved(kind, exif=exif))
    assert image is not None
    assert facts.orientation == 6
    assert (facts.height, facts.width) == image.shape[:2] == (160, 120)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
@pytest.mark.parametrize("left", [0.5, 0.9])
def test_cut_off(kind: str, left: float) -> None:
    data = saved(kind)
    facts, _ = facts_of(data[: int(len(data) * left)])
    assert facts.is_truncated, facts


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_what_follows_the_end_of_a_jpeg_is_not_missing() -> None:
    """Films behind the photos of phones, and padding; the thumbnail within has an end of its own."""
    thumbnail = b"Exif\0\0" + saved("JPEG", PHOTO.resize((40, 30)))
    data = saved("JPEG", exif=thumbnail)
    for rest in (bytes(4096), b"....ftypmp42" * 400):
        facts, image = facts_of(data + rest)
        assert image is not None
        assert not facts.is_truncated
        assert facts_of(data[:-200] + rest)[0].is_truncated
    assert facts_of(data[: len(data) * 2 // 3])[0].is_truncated


def test_a_compressed_tiff_that_is_cut_off_has_lost_its_directory() -> None:
    data = saved("TIFF", compression="tiff_lzw")
    assert facts_of(data[: len(data) // 2])[0].is_truncated


@pytest.mark.parametrize("options", [{}, {"progressive": True}], ids=["sequential", "progressive"])
def test_a_cut_off_jpeg_with_an_end_is_filled_with_gray_and_truncated(options: dict[str, Any]) -> None:
    data = saved("JPEG", **options)
    facts, image = facts_of(data[: len(data) // 2] + b"\xff\xd9")
    assert image is not None
    assert image.shape == (120, 160, 3)
    assert facts.is_truncated
    assert facts.error is None
    assert facts.warning is not None


@pytest.mark.parametrize("lost", [1, 2])
def test_a_jpeg_without_its_last_bytes(lost: int) -> None:
    assert facts_of(saved("JPEG")[:-lost])[0].is_truncated


@pytest.mark.parametrize("more", [b"\0" * 32, b"\r\n"])
def test_bytes_behind_the_end_are_no_truncation(more: bytes) -> None:
    for kind in ("JPEG", "PNG", "GIF"):
        assert not facts_of(saved(kind) + more)[0].is_truncated


def test_damage_within_is_not_truncation() -> None:
    data = bytearray(saved("JPEG", progressive=True, quality=95))
    middle = len(data) // 2
    data[middle : middle + 40] = b"\x5a\xa5" * 20
    facts, image = facts_of(bytes(data))
    assert image is not None
    assert facts.warning is not None
    assert facts.warning.startswith("Corrupt JPEG data")
    assert not facts.is_truncated


@pytest.mark.parametrize("data", [b"", b"hello, this is no image", b"<html></html>"])
def test_what_is_no_image(data: bytes) -> None:
    facts, image = facts_of(data)
    assert image is None
    assert facts.error
    assert not facts.is_truncated


def test_a_bomb_is_refused_by_its_header() -> None:
    facts, image = facts_of(bomb())
    assert image is None
    assert "limit" in (facts.error or "")
