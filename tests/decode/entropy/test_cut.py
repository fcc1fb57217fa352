"""A crop that is cut out of the coded file has the pixels of the whole picture, or there is none."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from tests.decode.jpegs import KINDS, MUTATIONS, jpeg, mutate
from tests.images import noise, photo
from variegate.decode.entropy.cut import cut_out, key_of_file, pack_file
from variegate.native.structs import JpegRefusal

SUBSAMPLINGS = ("444", "422", "420", "440", "411", "Gray")
SIZES = ((1, 1), (7, 9), (8, 64), (17, 31), (64, 8), (97, 130), (240, 243))


def encode(image: Any, subsampling: str = "420", quality: int = 80) -> bytes:
    if subsampling == "Gray":
        return bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(image[..., :1]), quality, "GRAY", "Gray"))
    return bytes(simplejpeg.encode_jpeg(image, quality, "RGB", subsampling))


def entries_of(data: bytes) -> tuple[int, bytes]:
    """The key of a file and its entries."""
    packed = pack_file(data)
    assert isinstance(packed, bytes), packed
    return key_of_file(data), packed


def check_crops(data: bytes, rng: np.random.Generator, number: int = 8) -> None:
    key, packed = entries_of(data)
    whole = simplejpeg.decode_jpeg(data, "RGB")
    height, width = whole.shape[:2]
    for _ in range(number):
        top, left = int(rng.integers(height)), int(rng.integers(width))
        bottom, right = int(rng.integers(top + 1, height + 1)), int(rng.integers(left + 1, width + 1))
        cut = cut_out(data, key, packed, (top, left, bottom, right))
        assert cut is not None
        part = simplejpeg.decode_jpeg(cut.file, "RGB")
        assert part.shape[:2] == (cut.height, cut.width)
        assert cut.top <= top
        assert cut.left <= left
        mine = part[top - cut.top : bottom - cut.top, left - cut.left : right - cut.left]
        np.testing.assert_array_equal(mine, whole[top:bottom, left:right])


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("quality", [5, 60, 98])
def test_crops_have_the_pixels_of_the_whole(subsampling: str, quality: int) -> None:
    rng = np.random.default_rng(quality)
    for height, width in SIZES:
        check_crops(encode(photo(height, width), subsampling, quality), rng)
        check_crops(encode(noise(height, width), subsampling, quality), rng)


@pytest.mark.parametrize("options", [{"optimize": True}, {"optimize": True, "mode": "L"}, {"subsampling": 1}])
def test_tables_that_lack_a_category_are_completed(options: dict[str, Any]) -> None:
    """Optimised tables have codes for what the file holds; a cut may need others."""
    rng = np.random.default_rng(0)
    for quality in (3, 30, 90):
        check_crops(jpeg(233, 301, quality=quality, **options), rng, 30)


def test_notes_and_profiles_are_left_out() -> None:
    stream = io.BytesIO()
    Image.fromarray(photo(60, 80)).save(stream, "JPEG", icc_profile=bytes(50_000), comment=b"x" * 9000)
    data = stream.getvalue()
    cut = cut_out(data, *entries_of(data), (0, 0, 20, 20))
    assert cut is not None
    assert len(cut.file) < 5000
    check_crops(data, np.random.default_rng(0))


def test_one_box_inside_and_its_neighbourhood() -> None:
    """Units of 16 x 16 pixels, and where a box touches one's end the next, for chroma's upsampling."""
    data = encode(photo(160, 160))
    key, packed = entries_of(data)

    def found(*box: int, divisor: int = 1) -> tuple[int, ...]:
        cut = cut_out(data, key, packed, (box[0], box[1], box[2], box[3]), divisor)
        assert cut is not None
        return cut.top, cut.left, cut.height, cut.width

    assert found(65, 81, 79, 95) == (64, 80, 16, 16)
    assert found(64, 80, 65, 81) == (48, 64, 32, 32)
    assert found(79, 95, 80, 96) == (64, 80, 32, 32)
    assert found(0, 145, 1, 160) == (0, 144, 16, 16)
    # At a quarter the outermost pixel is four, and of one unit alone chroma would be too narrow to be upsampled so.
    assert found(68, 84, 76, 92, divisor=4) == (64, 64, 16, 48)
    assert found(64, 84, 76, 100, divisor=4) == (48, 80, 32, 32)


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("divisor", [2, 4, 8])
def test_crops_at_a_reduced_scale_have_the_pixels_of_the_whole_at_that_scale(subsampling: str, divisor: int) -> None:
    rng = np.random.default_rng(divisor)
    for height, width in ((17, 31), (64, 20), (97, 130), (240, 243)):
        data = encode(photo(height, width), subsampling)
        packed = pack_file(data)
        assert isinstance(packed, bytes)
        key = key_of_file(data)
        sides = -(-height // divisor), -(-width // divisor)
        whole = simplejpeg.decode_jpeg(data, "RGB", min_height=sides[0], min_width=sides[1])
        assert whole.shape[:2] == sides
        for _ in range(12):
            top, left = int(rng.integers(sides[0])), int(rng.integers(sides[1]))
            bottom, right = int(rng.integers(top + 1, sides[0] + 1)), int(rng.integers(left + 1, sides[1] + 1))
            full = top * divisor, left * divisor, min(bottom * divisor, height), min(right * divisor, width)
            cut = cut_out(data, key, packed, full, divisor)
            assert cut is not None
            if min(cut.height, cut.width) <= 8:  # as many pixels at another scale
                continue
            least = -(-cut.height // divisor), -(-cut.width // divisor)
            part = simplejpeg.decode_jpeg(cut.file, "RGB", min_height=least[0], min_width=least[1])
            y, x = cut.top // divisor, cut.left // divisor
            mine = part[top - y : bottom - y, left - x : right - x]
            np.testing.assert_array_equal(mine, whole[top:bottom, left:right])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("progressive", JpegRefusal.NOT_BASELINE),
        ("restarts", JpegRefusal.RESTARTS),
        ("cmyk", JpegRefusal.OTHER_COLORS),
    ],
)
def test_kinds_that_are_decoded_as_ever(kind: str, reason: int) -> None:
    assert pack_file(jpeg(**KINDS[kind])) == reason


def test_twelve_bits_and_several_scans_are_refused() -> None:
    data = bytearray(jpeg())
    scan = data.index(b"\xff\xda")
    data[scan + 4] = 1
    assert pack_file(bytes(data)) == JpegRefusal.SEVERAL_SCANS
    data = bytearray(jpeg())
    data[data.index(b"\xff\xc4") + 1] = 0xCC
    assert isinstance(pack_file(bytes(data)), int)


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_refused(kept: float) -> None:
    data = jpeg(200, 300)
    assert pack_file(data[: int(kept * len(data))]) == JpegRefusal.DAMAGED
    assert pack_file(data[:-2]) == JpegRefusal.DAMAGED
    assert isinstance(pack_file(data + b"more"), bytes)  # the picture has come to its end by then


def test_no_bytes_are_a_file_or_a_refusal() -> None:
    rng = np.random.default_rng(0)
    data = jpeg(40, 50)
    for end in (0, 1, 2, 3, 4, 20, 200):
        assert isinstance(pack_file(data[:end]), int)
    for _ in range(50):
        assert isinstance(pack_file(data[:2] + rng.bytes(400)), int)


@pytest.mark.parametrize("seed", range(6))
def test_odd_and_damaged_files_never_give_other_pixels(seed: int) -> None:
    """What libjpeg and Pillow make of them is what counts, if entry points are found at all."""
    rng = np.random.default_rng(seed)
    kinds = [options for options in KINDS.values() if options.get("mode") != "CMYK"]
    found = 0
    for mutation in MUTATIONS:
        for _ in range(4):
            data = mutate(jpeg(**kinds[int(rng.integers(len(kinds)))]), [mutation], rng)
            packed = pack_file(data)
            try:
                whole = simplejpeg.decode_jpeg(data, "RGB")
            except ValueError:
                continue
            if isinstance(packed, int):
                continue
            height, width = whole.shape[:2]
            box = (height // 3, width // 3, height // 2 + 1, width // 2 + 1)
            cut = cut_out(data, key_of_file(data), packed, box)
            if cut is None:
                continue
            found += 1
            part = simplejpeg.decode_jpeg(cut.file, "RGB", strict=False)
            mine = part[box[0] - cut.top : box[2] - cut.top, box[1] - cut.left : box[3] - cut.left]
            np.testing.assert_array_equal(mine, whole[box[0] : box[2], box[1] : box[3]])
    assert found > 10


def test_damaged_entry_points_are_noticed() -> None:
    data = jpeg(120, 160)
    packed = pack_file(data)
    assert isinstance(packed, bytes)
    key, box = key_of_file(data), (50, 60, 70, 90)
    for place in range(len(packed)):
        for bit in range(8):
            broken = bytearray(packed)
            broken[place] ^= 1 << bit
            assert cut_out(data, key, bytes(broken), box) is None
    other = pack_file(jpeg(121, 160))
    assert isinstance(other, bytes)
    assert cut_out(data, key, other, box) is None  # whole, but of another file
    assert cut_out(data, key, packed[:-1], box) is None
    assert cut_out(data, key, b"", box) is None
    assert cut_out(data, key ^ 1, packed, box) is None
    for wrong in ((0, 0, 121, 10), (5, 5, 5, 9), (-1, 0, 4, 4), (0, 9, 4, 4)):
        assert cut_out(data, key, packed, wrong) is None
