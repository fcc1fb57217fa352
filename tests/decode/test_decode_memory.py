"""Images of too many pixels are refused by their headers, whatever part of them is asked for."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import variegate as vg
from tests.decode.jpegs import jpeg
from tests.images import photo
from variegate import transforms as T
from variegate.data.objects.dataset import open_dataset
from variegate.decode import decode_jpeg_box, decode_jpeg_scaled, pillow, read_header, read_image
from variegate.decode.limits import MAX_PIXELS
from variegate.errors import DecodeError
from variegate.executors.runners.encoded_batch import EncodedBatch

SIDE = 15_000
REFUSED = rf"15,000 x 15,000 pixels.* by its header, more than the limit of {MAX_PIXELS:,} \(max_pixels\)"


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def png_of(height: int, width: int, colours: int) -> bytes:
    """A PNG that says how large it is and holds next to nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, colours, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def jpeg_of(height: int, width: int, **options: Any) -> bytes:
    data = bytearray(jpeg(**options))
    at = read_header(bytes(data)).height_offset
    data[at : at + 4] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return bytes(data)


def tiff_of(height: int, width: int, tile: int = 0, samples: int = 1) -> bytes:
    """A deflated TIFF of one strip, or of tiles."""
    data = zlib.compress(b"")
    tags = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 277: samples}
    tags |= {322: tile, 323: tile, 324: 8, 325: len(data)} if tile else {273: 8, 278: height, 279: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, tags[tag]) for tag in sorted(tags))
    offset = struct.pack("<I", 8 + len(data))
    return b"II*\0" + offset + data + struct.pack("<H", len(tags)) + entries + bytes(4)


def webp_of(height: int, width: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + sides + bytes(20)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bombs() -> dict[str, bytes]:
    """Small files of 225 million pixels by their headers."""
    numpy_header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (SIDE, SIDE, 3)}
    np.lib.format.write_array_header_1_0(numpy_header, shape)
    gif = bytearray(encoded(Image.fromarray(photo(8, 8)).quantize(16), "GIF"))
    gif[6:10] = struct.pack("<HH", SIDE, SIDE)
    bitmap = bytearray(encoded(Image.fromarray(photo(8, 8)), "BMP"))
    bitmap[18:26] = struct.pack("<ii", SIDE, SIDE)
    return {
        "a.jpg": jpeg_of(SIDE, SIDE),
        "progressive.jpg": jpeg_of(SIDE, SIDE, progressive=True),
        "cmyk.jpg": jpeg_of(SIDE, SIDE, mode="CMYK"),
        "turned.jpg": jpeg_of(SIDE, SIDE, orientation=6),
        "a.png": png_of(SIDE, SIDE, colours=6),
        "a.gif": bytes(gif),
        "a.bmp": bytes(bitmap),
        "a.ppm": b"P6 15000 15000 255\n" + bytes(100),
        "a.webp": webp_of(SIDE, SIDE),
        "a.tif": tiff_of(SIDE, SIDE),
        "tile.tif": tiff_of(8, 8, tile=SIDE),
        "channels.tif": tiff_of(SIDE, SIDE, samples=5),
        "a.npy": numpy_header.getvalue(),
    }


@pytest.mark.parametrize("name", bombs())
def test_a_bomb_is_refused_by_its_header(name: str) -> None:
    if name == "channels.tif":
        pytest.importorskip("tifffile")
    with pytest.raises(DecodeError, match=rf"^{name}: {REFUSED}"):
        read_image(bombs()[name], name)


MEASURE = """
import sys
from pathlib import Path
from PIL import Image
from variegate.decode import read_image
from variegate.errors import DecodeError

def memory(which):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))

def read(path):
    try:
        read_image(path)
    except DecodeError as error:
        return str(error)

Image.init()
for path in sys.argv[1:]:
    read(path)  # what is loaded for the first file of a kind is not its own
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    assert "max_pixels" in read(path), path
    print(path, memory("VmHWM") - before)
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures by Linux's /proc")
def test_no_pixel_of_a_bomb_is_allocated(tmp_path: Path) -> None:
    pytest.importorskip("tifffile")
    for name, data in bombs().items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in bombs()]
    run = subprocess.run([sys.executable, "-c", MEASURE, *paths], capture_output=True, text=True, check=True)
    found = dict(line.split() for line in run.stdout.splitlines())
    assert list(found) == paths
    assert max(map(int, found.values())) < 8 << 20


def test_every_path_refuses() -> None:
    huge = bombs()["a.png"]
    for read in (
        lambda: vg.Augmenter(T.CenterCrop(8)).decode_and_run([jpeg(), huge]),
        lambda: list(vg.Loader(open_dataset([(huge, 0)]), T.CenterCrop(8), device="cpu")),
        lambda: list(vg.Loader(open_dataset([(huge, 0)]), T.CenterCrop(8), device="cpu", cache="host")),
    ):
        with pytest.raises(DecodeError, match=REFUSED):
            read()
    # Below the limit, it is not the limit that refuses a file without pixels.
    for read in (
        lambda: read_image(png_of(10, 10, colours=6), max_pixels=100),
        lambda: EncodedBatch([huge], max_pixels=SIDE * SIDE).whole(0),
        lambda: read_image(png_of(13_000, 13_000, colours=0)),
    ):
        with pytest.raises(DecodeError, match=r"truncated|damaged"):
            read()


def test_each_part_of_a_picture_is_refused_like_the_whole() -> None:
    data = jpeg(orientation=6)
    whole = 61 * 75
    for decode in (
        lambda limit: read_image(data, max_pixels=limit),
        lambda limit: decode_jpeg_box(data, 0, 0, 1, 1, max_pixels=limit),
        lambda limit: decode_jpeg_scaled(data, 1, 1, max_pixels=limit),
        lambda limit: EncodedBatch([data], max_pixels=limit),
    ):
        decode(whole)
        with pytest.raises(DecodeError, match="max_pixels"):
            decode(whole - 1)


@pytest.mark.parametrize("options", [{}, {"orientation": 6}, {"progressive": True, "subsampling": 0}, {"mode": "CMYK"}])
def test_photos_up_to_the_limit_are_accepted(options: dict[str, Any]) -> None:
    batch = EncodedBatch([jpeg_of(12_780, 14_000, **options)])
    assert sorted(batch.shapes[0].tolist()) == [3, 12_780, 14_000]


# -- strips --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGB"), ("PNG", "P"), ("PNG", "LA"), ("TIFF", "CMYK"), ("WEBP", "RGB")]
)
def test_strips_make_the_whole(monkeypatch: pytest.MonkeyPatch, orientation: int, kind: str, mode: str) -> None:
    monkeypatch.setattr(pillow, "_STRIP", 700)
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(photo(61, 75)).convert(mode), kind, exif=exif)
    img_HWC = read_image(data)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    np.testing.assert_array_equal(img_HWC, np.asarray(expected))
    assert img_HWC.flags.c_contiguous
    assert img_HWC.flags.writeable
