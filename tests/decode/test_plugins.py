"""AVIF, HEIC and JPEG XL: the pixels of Pillow with its plugins, turned by EXIF, within limits."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path

import numpy as np
import pillow_heif
import pillow_jxl  # noqa: F401
import pytest
import torch
from PIL import Image, ImageOps

import variegate as vg
from variegate import transforms as T
from variegate.arrays import UInt8Array
from variegate.decode import read_image
from variegate.decode.plugins import jxl_size
from variegate.errors import DecodeError

pillow_heif.register_heif_opener()
SUFFIXES = {"AVIF": ".avif", "HEIF": ".heic", "JXL": ".jxl"}
HEIGHT, WIDTH = 40, 64


def pixels() -> UInt8Array:
    blocks = np.random.default_rng(0).integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
    return blocks.repeat(8, axis=0).repeat(8, axis=1)


def encoded(image: Image.Image, kind: str, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    if kind == "HEIF":
        pillow_heif.from_pillow(image).save(buffer, exif=exif.tobytes())
    else:
        image.save(buffer, kind, exif=exif.tobytes())
    return buffer.getvalue()


@pytest.mark.parametrize("kind", SUFFIXES)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_pixels_are_those_of_pillow(kind: str, mode: str) -> None:
    for orientation in range(1, 9):
        data = encoded(Image.fromarray(pixels()).convert(mode), kind, orientation)
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
        assert np.array_equal(read_image(data), expected), orientation


def test_loaders_read_a_folder_of_them(tmp_path: Path) -> None:
    for kind, suffix in SUFFIXES.items():
        (tmp_path / f"photo{suffix}").write_bytes(encoded(Image.fromarray(pixels()), kind, orientation=6))
    loader = vg.Loader(tmp_path, T.CenterCrop((64, 40)), batch_size=3, shuffle=False)
    [(images, _)] = list(loader)
    expected = [read_image(path) for path in sorted(tmp_path.iterdir())]
    assert images.dtype == torch.uint8
    assert np.array_equal(images.numpy().transpose(0, 2, 3, 1), np.stack(expected))


@pytest.mark.parametrize("kind", SUFFIXES)
def test_limits_hold_before_pixels_are_decoded(kind: str) -> None:
    data = encoded(Image.fromarray(pixels()), kind)
    assert read_image(data, max_pixels=HEIGHT * WIDTH).shape == (HEIGHT, WIDTH, 3)
    with pytest.raises(DecodeError, match=r"64 x 40 pixels by its header, more than the limit of 2,559 \(max_pixels\)"):
        read_image(data, max_pixels=HEIGHT * WIDTH - 1)


@pytest.mark.parametrize("kind", SUFFIXES)
def test_damaged_files_are_named(kind: str) -> None:
    data = encoded(Image.fromarray(pixels()), kind)
    rng = random.Random(0)
    for cut in (12, 20, len(data) // 2, len(data) * 3 // 4):
        with pytest.raises(DecodeError, match=r"^photo: .*(damaged|truncated)"):
            read_image(data[:cut], "photo")
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read_image(bytes(damaged), "photo", max_pixels=1_000_000)
        except DecodeError as error:
            assert str(error).startswith("photo: ")  # noqa: PT017


@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (8, 8), (256, 256), (16, 24), (40, 20), (255, 340), (513, 700), (9000, 3)]
)
def test_size_of_jpeg_xl(height: int, width: int) -> None:
    codestream = encoded(Image.new("L", (width, height)), "JXL")
    boxed = io.BytesIO()
    Image.new("L", (width, height)).save(boxed, "JXL", use_container=True)
    assert jxl_size(codestream) == jxl_size(boxed.getvalue()) == (height, width)


def test_size_of_the_longest_header_of_jpeg_xl() -> None:
    side = 3 | (67_108_864 << 2)  # 30 bits, after a selector of 3
    bits = (3 << 1) | (2 << 3) | (side << 36)  # a height of 3 in 30 bits, and ratio 0
    assert jxl_size(b"\xff\x0a" + bits.to_bytes(9, "little") + bytes(20)) == (3, 67_108_865)


@pytest.mark.parametrize(
    ("kind", "module", "extra"), [("HEIF", "pillow_heif", "heif"), ("JXL", "pillow_jxl.JpegXLImagePlugin", "jxl")]
)
def test_a_missing_package_is_named(kind: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Image.fromarray(pixels()), kind)
    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    with pytest.raises(DecodeError, match=rf"needs {package}: pip install 'variegate\[{extra}\]'"):
        read_image(data)


@pytest.mark.filterwarnings("ignore:.*scaled to 8 bits")
def test_16_bit_gray_of_jpeg_xl_is_scaled() -> None:
    deep = np.arange(HEIGHT * WIDTH, dtype=np.uint16).reshape(HEIGHT, WIDTH) * 25
    buffer = io.BytesIO()
    Image.fromarray(deep).save(buffer, "JXL", lossless=True)
    expected = np.rint(deep / 257).astype(np.uint8)
    assert np.array_equal(read_image(buffer.getvalue(), channels=1)[:, :, 0], expected)
