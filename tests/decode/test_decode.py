"""Decoding equals Pillow's ``exif_transpose(img).convert("RGB")`` to the bit, and every failure says why."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.decode.pngs import png_16
from variegate.decode import decode_jpeg_box, decode_jpeg_scaled, jpeg_size, read_header, read_image
from variegate.errors import DecodeError


def picture(height: int = 97, width: int = 131, mode: str = "RGB") -> Image.Image:
    """Smooth colours with some texture, so that JPEG's chroma upsampling has something to do."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    rgb = np.stack([x * 2, y * 2.5, 127 + 90 * np.sin(x / 5) * np.cos(y / 7)], axis=-1)
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8)).convert(mode)


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pillow(data: bytes) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def with_orientation(orientation: int, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture(), exif=exif, **options)


JPEGS = {
    "444": {"subsampling": 0},
    "422": {"subsampling": 1},
    "420": {"subsampling": 2},
    "progressive": {"progressive": True},
    "restarts": {"restart_marker_blocks": 3},
    "optimised": {"optimize": True, "quality": 30},
}


@pytest.mark.parametrize("options", JPEGS.values(), ids=JPEGS)
@pytest.mark.parametrize("size", [(97, 131), (1, 1), (1, 17), (64, 8)])
def test_jpeg_equals_pillow_to_the_bit(options: dict[str, Any], size: tuple[int, int]) -> None:
    data = encoded(picture(*size), **options)
    np.testing.assert_array_equal(read_image(data), pillow(data))
    assert jpeg_size(data) == size


@pytest.mark.parametrize("mode", ["L", "CMYK", "1"])
def test_jpeg_of_other_colour_spaces_equals_pillow(mode: str) -> None:
    data = encoded(picture(mode=mode))
    img_HWC = read_image(data)
    assert img_HWC.shape == (97, 131, 3)
    np.testing.assert_array_equal(img_HWC, pillow(data))


@pytest.mark.parametrize("orientation", range(0, 10))
def test_orientation_is_applied(orientation: int) -> None:
    data = with_orientation(orientation)
    np.testing.assert_array_equal(read_image(data), pillow(data))
    assert jpeg_size(data) == pillow(data).shape[:2]


def test_orientation_in_xmp_is_applied() -> None:
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    data = encoded(picture(), xmp=xmp)
    assert jpeg_size(data) == (131, 97)
    np.testing.assert_array_equal(read_image(data), pillow(data))


def test_orientation_of_png_and_cmyk_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    for data in (encoded(picture(), "PNG", exif=exif), encoded(picture(mode="CMYK"), exif=exif)):
        assert read_image(data).shape == (131, 97, 3)
        np.testing.assert_array_equal(read_image(data), pillow(data))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("PNG", "RGB"), ("PNG", "L"), ("PNG", "LA"), ("PNG", "RGBA"), ("PNG", "P"), ("PNG", "1"),
        ("GIF", "P"), ("BMP", "RGB"), ("WEBP", "RGB"), ("WEBP", "RGBA"),
        ("TIFF", "RGB"), ("TIFF", "CMYK"), ("TIFF", "LAB"), ("PPM", "L"),
    ],
)  # fmt: skip
def test_other_formats_equal_pillow(tmp_path: Path, kind: str, mode: str) -> None:
    image = picture(33, 47, "RGB")
    image = (
        image.convert("LAB" if mode == "LAB" else mode) if mode != "LAB" else Image.new("LAB", (47, 33), (120, 90, 60))
    )
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    path = tmp_path / f"a.{kind.lower()}"
    path.write_bytes(encoded(image, kind))
    img_HWC = read_image(path)
    assert img_HWC.dtype == np.uint8
    assert img_HWC.shape == (33, 47, 3)
    assert img_HWC.flags.c_contiguous
    np.testing.assert_array_equal(img_HWC, pillow(path.read_bytes()))


def test_first_frame_of_an_animation() -> None:
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert read_image(data)[0, 0].tolist() == [255, 0, 0]


def test_16_bit_rgb_keeps_its_upper_bits() -> None:
    with pytest.warns(UserWarning, match="16 bits are scaled to 8 bits"):
        assert read_image(png_16(np.array([[[0xABCD, 0x1234, 0x12FF]]]))).tolist() == [[[0xAB, 0x12, 0x12]]]


# -- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_truncated_files_raise_decode_error_and_name_the_file(tmp_path: Path, kind: str, share: float) -> None:
    data = encoded(picture(), kind)
    path = tmp_path / "half.jpg"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DecodeError, match=r"half\.jpg: (truncated|damaged|not an image)") as caught:
        read_image(path)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)


def test_truncated_jpeg_says_where() -> None:
    data = encoded(picture())[:1500]
    with pytest.raises(DecodeError, match="truncated: it ends after 1,500 bytes, in the middle of the picture"):
        read_image(data)
    with pytest.raises(DecodeError, match="truncated"):
        decode_jpeg_box(data, 0, 0, 4, 4)


def test_empty_text_missing_and_folder(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("hello, I am no picture")
    for name, reason in {
        "empty.jpg": "zero bytes: the file is empty",
        "text.jpg": r"not an image: no known format begins with b'hello, I am '",
        "gone.jpg": "no such file",
        ".": "a folder, not a file",
    }.items():
        with pytest.raises(DecodeError) as caught:
            read_image(tmp_path / name)
        assert caught.value.reason == reason
        assert str(caught.value) == f"{tmp_path / name}: {reason}"


def test_pixel_limit_is_checked_before_decoding() -> None:
    jpeg = bytearray(encoded(picture()))
    at = read_header(bytes(jpeg)).height_offset
    jpeg[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(DecodeError, match=r"65,535 x 65,535 pixels by its header, more than the limit of 178,956,970"):
        read_image(bytes(jpeg))
    bomb = encoded(Image.new("1", (20_000, 10_000)), "PNG")
    with pytest.raises(DecodeError, match=r"bomb|limit"):
        read_image(bomb)
    for data in (encoded(picture()), encoded(picture(), "PNG")):
        with pytest.raises(DecodeError, match="limit of 100"):
            read_image(data, max_pixels=100)


def test_jpeg_without_height_is_an_error() -> None:
    jpeg = bytearray(encoded(picture()))
    at = read_header(bytes(jpeg)).height_offset
    jpeg[at : at + 2] = b"\x00\x00"
    with pytest.raises(DecodeError, match="131 x 0 pixels"):
        read_image(bytes(jpeg))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_a_picture_or_a_decode_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(encoded(picture(), ["JPEG", "PNG", "WEBP", "TIFF"][seed % 4]))
    for at in rng.integers(0, len(data) if seed % 8 < 4 else 200, 6):
        data[at] = rng.integers(0, 256)
    with contextlib.suppress(DecodeError):
        assert read_image(bytes(data)).dtype == np.uint8


def test_bytes_that_pillow_passes_over_are_passed_over() -> None:
    data = encoded(picture())
    at = data.rindex(b"\xff\xd9")
    junk = data[:at] + b"\x00" * 5000 + data[at:]
    np.testing.assert_array_equal(read_image(junk), pillow(junk))


# -- less than the whole -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("options", JPEGS.values(), ids=JPEGS)
def test_box_equals_the_same_part_of_the_whole(orientation: int, options: dict[str, Any]) -> None:
    data = with_orientation(orientation, **options)
    whole = read_image(data)
    shown_height, shown_width = whole.shape[:2]
    parts = []
    for top, left, height, width in [(0, 0, 9, 9), (20, 31, 40, 33), (60, 60, 37, 37), (0, 0, *whole.shape[:2])]:
        part, part_top, part_left = decode_jpeg_box(data, np.int64(top), np.int64(left), height, width)
        assert part_top <= top
        assert part_left <= left
        assert part.flags.c_contiguous
        rows = slice(top - part_top, top - part_top + height)
        columns = slice(left - part_left, left - part_left + width)
        np.testing.assert_array_equal(part[rows, columns], whole[top : top + height, left : left + width])
        assert part.shape[0] + part_top <= shown_height
        assert part.shape[1] + part_left <= shown_width
        parts.append(part.size)
    if not options.get("progressive"):
        assert min(parts) < whole.size * 0.75  # at least one of the boxes lies near where the file begins


def test_box_of_a_gray_and_a_cmyk_picture() -> None:
    for mode in ("L", "CMYK"):
        data = encoded(picture(mode=mode))
        part, top, left = decode_jpeg_box(data, 3, 4, 10, 11)
        np.testing.assert_array_equal(part[3 - top : 13 - top, 4 - left : 15 - left], pillow(data)[3:13, 4:15])


@pytest.mark.parametrize("orientation", [1, 6])
def test_scaled_decoding_keeps_at_least_what_was_asked_for(orientation: int) -> None:
    data = with_orientation(orientation)
    height, width = jpeg_size(data)
    shapes = {
        ask: decode_jpeg_scaled(data, *ask).shape[:2]
        for ask in [(height, width), (height // 2 + 1, 10), (height // 2, width // 2), (10, 10), (999, 999)]
    }
    for (least_height, least_width), (got_height, got_width) in shapes.items():
        assert got_height >= min(least_height, height)
        assert got_width >= min(least_width, width)
    assert shapes[height, width] == shapes[999, 999] == shapes[height // 2 + 1, 10] or height % 2
    assert shapes[10, 10] == (-(-height // 8), -(-width // 8))
    assert shapes[height // 2, width // 2] == (-(-height // 2), -(-width // 2))


def test_scaled_decoding_looks_like_the_picture() -> None:
    data = encoded(picture(), quality=95)
    for source in (data, encoded(picture(mode="CMYK"), quality=95)):
        half = decode_jpeg_scaled(source, 40, 40).astype(float)
        reference = np.asarray(
            Image.fromarray(pillow(source)).resize((half.shape[1], half.shape[0]), Image.Resampling.BOX)
        )
        assert np.abs(half - reference).mean() < 6  # DCT scaling is not a box filter, but near it


GARBAGE = (
    b"Exif\0\0garbage Orientation \x01\x12",
    b"Exif\0\0II*\0\xff\xff\xff\xff\x01\x12",
    b"\x01\x12" + bytes(range(40)),
)


@pytest.mark.parametrize("exif", GARBAGE)
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_exif_that_cannot_be_parsed_is_ignored(kind: str, exif: bytes) -> None:
    image = Image.new("RGB", (7, 5), "red")
    options = {"lossless": True} if kind == "WEBP" else {}
    np.testing.assert_array_equal(
        read_image(encoded(image, kind, exif=exif, **options)), read_image(encoded(image, kind, **options))
    )


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "JPEG"])
def test_the_limit_of_pixels_is_ours_and_not_pillows(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 1
    data = encoded(Image.new("RGB", (20, 10), "red"), kind, **({"exif": exif} if kind in ("PNG", "JPEG") else {}))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    assert read_image(data, max_pixels=200).shape == (10, 20, 3)
    assert Image.MAX_IMAGE_PIXELS == 50
    with pytest.raises(DecodeError, match=r"20 x 10 pixels by its header, more than the limit of 199 \(max_pixels\)"):
        read_image(data, max_pixels=199)
