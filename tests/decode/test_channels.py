"""Files of many channels: NumPy's, TIFFs, and alpha where it is asked for."""

from __future__ import annotations

import io
import sys
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tifffile
from PIL import Image

from tests.images import noise
from variegate.decode import image_size, read_image
from variegate.errors import DecodeError


def npy(array: npt.NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def tiff(image: npt.NDArray[Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, image, photometric="minisblack", **options)
    return stream.getvalue()


@pytest.mark.parametrize("shape", [(7, 9), (7, 9, 1), (7, 9, 3), (7, 9, 5), (40, 9, 32)])
def test_numpy_files(shape: tuple[int, ...]) -> None:
    image = noise(*(*shape, 1)[:3])
    np.testing.assert_array_equal(read_image(npy(image.reshape(shape))), image)


@pytest.mark.parametrize("options", [{"planarconfig": "contig"}, {"planarconfig": "contig", "compression": "zlib"}])
def test_tiffs_of_five_channels(options: dict[str, Any]) -> None:
    image = noise(17, 23, 5)
    np.testing.assert_array_equal(read_image(tiff(image, **options)), image)
    planes = tiff(np.ascontiguousarray(image.transpose(2, 0, 1)), planarconfig="separate")
    np.testing.assert_array_equal(read_image(planes), image)


def test_alpha_where_it_is_asked_for() -> None:
    image = noise(9, 8, 4)
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    np.testing.assert_array_equal(read_image(stream.getvalue()), image[..., :3])
    np.testing.assert_array_equal(read_image(stream.getvalue(), channels=4), image)
    stream = io.BytesIO()
    Image.fromarray(image[..., :3]).save(stream, "PNG")
    made = read_image(stream.getvalue(), channels=4)
    np.testing.assert_array_equal(made, np.dstack([image[..., :3], np.full((9, 8), 255, np.uint8)]))
    stream = io.BytesIO()
    Image.fromarray(image[..., :3]).save(stream, "JPEG")
    made = read_image(stream.getvalue(), channels=4)
    np.testing.assert_array_equal(made[..., :3], read_image(stream.getvalue()))
    assert (made[..., 3] == 255).all()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (npy(noise(8, 8, 5))[:-1], "truncated: it ends after"),
        (npy(noise(8, 8, 5))[:20], "damaged: a NumPy file whose header"),
        (npy(np.zeros((8, 8, 5), np.float32)), r"got float32\[8, 8, 5\]; accepted: uint8"),
        (npy(np.zeros((8, 8, 5), np.int16)), r"got int16\[8, 8, 5\]; accepted: uint8"),
        (npy(np.zeros((8, 8, 33), np.uint8)), r"got uint8\[8, 8, 33\]"),
        (npy(np.zeros((2, 8, 8, 3), np.uint8)), r"got uint8\[2, 8, 8, 3\]"),
        (npy(np.zeros((3, 8, 8), np.uint8)), "channels last"),
        (npy(np.zeros((0, 8, 5), np.uint8)), "its header says 8 x 0"),
        (npy(noise(8, 8, 5)).replace(b"(8, 8, 5)", b"(True,-8)"), "its header says -8 x 1"),
        (npy(np.asfortranarray(noise(8, 8, 5))), "Fortran"),
        (npy(np.array([[{}]], object), allow_pickle=True), r"got object\[1, 1\]"),
        (tiff(noise(17, 23, 5), planarconfig="contig")[:200], "damaged|truncated"),
        (tiff(np.zeros((17, 23, 5), np.float32), planarconfig="contig"), "got float32"),
    ],
)
def test_bad_files(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=rf"^a: .*{reason}"):
        read_image(data, "a")


def numpy_header(shape: str) -> bytes:
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(400)


@pytest.mark.parametrize("shape", ["(5,5,3", f"(5,5,{'-' * 9000}3), }}", "(5,5,3), }" + " " * 5000])
def test_bad_numpy_headers(shape: str) -> None:
    with pytest.raises(DecodeError, match=r"^a: damaged: a NumPy file whose header cannot be read"):
        read_image(numpy_header(shape), "a")


def bomb(image: npt.NDArray[Any], num_bytes: int, compression: int = 8) -> bytes:
    """A TIFF whose only strip has ``num_bytes`` when it is decompressed, by deflate or PackBits."""
    made = tiff(image, planarconfig="contig", compression="zlib", rowsperstrip=len(image))
    strip = zlib.compress(bytes(num_bytes), 9) if compression == 8 else b"\x9d\0" * (num_bytes // 100)
    with tifffile.TiffFile(io.BytesIO(made)) as file:
        tags = file.pages[0].tags
        places = {tags[273].valueoffset: len(made), tags[279].valueoffset: len(strip)}
        kinds = [tags[273].dtype, tags[279].dtype]
        compressed = tags[259].valueoffset
    assert {int(kind) for kind in kinds} <= {3, 4}
    changed = bytearray(made + strip)
    for (place, value), kind in zip(places.items(), kinds, strict=True):
        size = 2 if kind == 3 else 4
        changed[place : place + size] = value.to_bytes(size, "little")
    changed[compressed : compressed + 2] = compression.to_bytes(2, "little")
    return bytes(changed)


@pytest.mark.parametrize("compression", [8, 32773])
def test_strips_do_not_inflate_beyond_their_pixels(compression: int) -> None:
    image = noise(10, 10, 5)
    assert (read_image(bomb(image, 500, compression)) == 0).all()
    with pytest.raises(DecodeError, match="a strip or tile of more bytes than it has pixels; accepted: 500 bytes"):
        read_image(bomb(image, 4_000_000, compression), "a")


def test_tiles_are_not_larger_than_the_limit() -> None:
    data = tiff(noise(16, 16, 5), planarconfig="contig", compression="zlib", tile=(800, 800))
    assert read_image(data).shape == (16, 16, 5)
    with pytest.raises(DecodeError, match=r"a: 800 x 800 pixels of 5 channels .* limit of 10,000 \(max_pixels\)"):
        read_image(data, "a", max_pixels=10_000)


def test_other_compressions_are_refused() -> None:
    data = tiff(noise(16, 16, 5), planarconfig="contig", compression="lzma")
    with pytest.raises(
        DecodeError, match="a: its compression is LZMA; accepted for its channels: none, LZW, deflate, PackBits"
    ):
        read_image(data, "a")


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_size_of_a_turned_tiff(orientation: int) -> None:
    stream = io.BytesIO()
    tags = [(274, "H", 1, orientation, True)]
    tifffile.imwrite(stream, noise(20, 40, 3), photometric="rgb", extratags=tags)
    assert image_size(stream.getvalue()) == read_image(stream.getvalue()).shape[:2]


def test_limits_and_other_numbers() -> None:
    five = npy(noise(8, 8, 5))
    read_image(five, max_pixels=128)
    with pytest.raises(DecodeError, match="8 x 8 pixels of 5 channels by its header, more than the limit of 127"):
        read_image(five, max_pixels=127)
    with pytest.raises(DecodeError, match=r"it has 5 channels; accepted: 4 \(channels=4\)"):
        read_image(five, channels=4)
    stream = io.BytesIO()
    Image.fromarray(noise(8, 8, 3)).save(stream, "JPEG")
    with pytest.raises(DecodeError, match=r"a file of three channels at most; accepted: 5 \(channels=5\)"):
        read_image(stream.getvalue(), channels=5)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tiff(noise(8, 8, 5), planarconfig="contig")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(DecodeError, match=r"needs tifffile .*: pip install 'variegate\[tiles\]'"):
        read_image(data)


@pytest.mark.filterwarnings("ignore:.*scaled to 8 bits")
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_color_of_16_bits_in_planes_is_scaled(compression: str | None) -> None:
    image = np.random.default_rng(0).integers(0, 65536, (20, 30, 3), np.uint16)
    planes = np.ascontiguousarray(image.transpose(2, 0, 1))
    stream = io.BytesIO()
    tifffile.imwrite(stream, planes, photometric="rgb", planarconfig="separate", compression=compression)
    assert np.array_equal(read_image(stream.getvalue()), np.rint(image / 257).astype(np.uint8))
