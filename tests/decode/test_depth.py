"""Pixels of more than 8 bits: scaled over their full range with one note for a source, or refused."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from variegate import transforms as T
from variegate.data.objects.dataset import open_dataset
from variegate.decode import read_image
from variegate.decode.image import read_mask
from variegate.errors import DecodeError
from variegate.transforms import functional as F

tifffile = pytest.importorskip("tifffile")

VALUES = np.array([[0, 128, 129, 257], [300, 30000, 65406, 65535]] * 2, np.uint16)
SCALED = np.rint(VALUES * (255 / 65535)).astype(np.uint8)
NOTE = "16 bits are scaled to 8 bits"
NOTHING = T.Pad(0)


def saved(image: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def tiff(pixels: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, pixels, **options)
    return stream.getvalue()


def npy(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, pixels)
    return stream.getvalue()


FILES = {
    "png": saved(Image.fromarray(VALUES), "PNG"),
    "tiff, I;16": saved(Image.fromarray(VALUES), "TIFF"),
    "tiff, I;16B": tiff(VALUES, byteorder=">", photometric="minisblack"),
    "pgm, I": saved(Image.fromarray(VALUES.astype(np.int32)), "PPM"),
    "npy": npy(VALUES),
    "npy, big-endian": npy(VALUES.astype(">u2")),
}


@pytest.mark.parametrize("data", FILES.values(), ids=list(FILES))
def test_16_bit_gray_files_are_scaled_over_their_full_range(data: bytes) -> None:
    with pytest.warns(UserWarning, match=f"deep: pixels of {NOTE}") as notes:
        made = read_image(data, "deep")
    assert len(notes) == 1
    np.testing.assert_array_equal(made, np.broadcast_to(SCALED[..., None], made.shape))


@pytest.mark.parametrize("data", FILES.values(), ids=list(FILES))
def test_one_channel_of_16_bit_gray(data: bytes) -> None:
    with pytest.warns(UserWarning, match=NOTE):
        np.testing.assert_array_equal(read_image(data, channels=1), SCALED[..., None])


def test_gray_files_have_one_channel_and_color_files_do_not() -> None:
    gray = np.arange(64, dtype=np.uint8).reshape(8, 8)
    np.testing.assert_array_equal(read_image(saved(Image.fromarray(gray), "PNG"), channels=1), gray[..., None])
    for kind in ("PNG", "JPEG", "TIFF"):
        with pytest.raises(DecodeError, match=r"it has RGB pixels; accepted: gray \(channels=1\)"):
            read_image(saved(Image.new("RGB", (8, 8)), kind), channels=1)


def test_a_12_bit_tiff_is_white_at_4095() -> None:
    def tag(number: int, kind: int, value: int) -> bytes:
        return b"".join(part.to_bytes(size, "little") for part, size in ((number, 2), (kind, 2), (1, 4), (value, 4)))

    tags = [(256, 3, 2), (257, 3, 1), (258, 3, 12), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 3, 1)]
    tags += [(279, 4, 3)]
    entries = b"".join(tag(*one) for one in tags)
    pixels = b"\xff\xf0\x00"  # 4095 and 0
    head = b"II*\0" + (12).to_bytes(4, "little") + pixels + b"\0"
    data = head + len(tags).to_bytes(2, "little") + entries + bytes(4)
    with pytest.warns(UserWarning, match=NOTE):
        assert read_image(data)[0, :, 0].tolist() == [255, 0]


def test_a_tiff_whose_white_is_0_is_inverted() -> None:
    data = tiff(np.full((2, 2), 100, np.uint16), photometric="miniswhite")
    with pytest.warns(UserWarning, match=NOTE):
        assert (read_image(data) == 255).all()
    assert (read_image(tiff(np.full((2, 2), 100, np.uint8), photometric="miniswhite")) == 155).all()


def test_16_bit_color_keeps_its_upper_bits_and_says_so() -> None:
    color = np.dstack([VALUES, VALUES.T, VALUES])
    with pytest.warns(UserWarning, match=NOTE):
        made = read_image(tiff(color, photometric="rgb"))
    assert np.abs(made.astype(int) - np.rint(color * (255 / 65535))).max() <= 1
    five = np.dstack([VALUES] * 5)
    with pytest.warns(UserWarning, match=NOTE):
        np.testing.assert_array_equal(
            read_image(tiff(five, photometric="minisblack", planarconfig="contig")), np.dstack([SCALED] * 5)
        )


REFUSED = {
    "float tiff": saved(Image.fromarray(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)), "TIFF"),
    "int32 tiff": saved(Image.fromarray(VALUES.astype(np.int32)), "TIFF"),
    "int16 tiff": tiff(VALUES.astype(np.int16)),
    "float npy": npy(VALUES / 65535),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=list(REFUSED))
def test_floats_and_integers_of_unknown_range_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^deep: (its pixels are|got) .*accepted: "):
        read_image(data, "deep")


FLOATS = VALUES.astype(np.float32) - 300
IN_PIL = {
    "I;16": Image.fromarray(VALUES),
    "I;16B": Image.frombytes("I;16B", VALUES.shape[::-1], VALUES.astype(">u2").tobytes()),
    "F": Image.fromarray(FLOATS),
    "I": Image.fromarray(VALUES.astype(np.int32) - 300),
}


@pytest.mark.parametrize("mode", IN_PIL)
def test_pil_images_in_memory_keep_their_depth(mode: str) -> None:
    image = IN_PIL[mode]
    functions = {
        "images[0]": lambda: vg.Augmenter(NOTHING)([image, image])[0, 0],
        "image": lambda: NOTHING(image)[0],
        "img": lambda: F.pad(image, 0),
    }
    for name, function in functions.items():
        if mode == "I":
            message = re.escape(f"{name}: its pixels are int32 (mode I); accepted: uint8, uint16 or float32")
            with pytest.raises(DecodeError, match=message):
                function()
        else:
            np.testing.assert_array_equal(np.asarray(function()), FLOATS if mode == "F" else VALUES)


DEPTHS: dict[tuple[str, str | None], np.ndarray | None] = {
    ("I;16", None): SCALED,
    ("I;16", "uint8"): SCALED,
    ("I;16B", "uint16"): VALUES,
    ("I;16", "float32"): VALUES / np.float32(65535),
    ("F", "float32"): FLOATS,
    ("I", "float32"): FLOATS,
    ("F", None): None,
    ("I", "uint8"): None,
    ("I", "uint16"): None,
}


@pytest.mark.filterwarnings("ignore:.*scaled to 8 bits")
@pytest.mark.parametrize(("mode", "depth"), DEPTHS)
def test_pil_images_of_data_sets(mode: str, depth: Any) -> None:
    loader = vg.Loader(open_dataset([(IN_PIL[mode], 0)] * 2), NOTHING, batch_size=2, device="cpu", depth=depth)
    wanted = DEPTHS[mode, depth]
    if wanted is None:
        with pytest.raises(DecodeError, match=r"item \d: its pixels are .*; accepted"):
            next(iter(loader))
    else:
        np.testing.assert_array_equal(next(iter(loader))[0][0, 0], wanted)


def test_one_note_for_a_folder(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(FILES["png"])
    with pytest.warns(UserWarning, match=NOTE) as notes:
        batches = list(vg.Loader(tmp_path, NOTHING, batch_size=2, device="cpu"))
    texts = [str(note.message) for note in notes]
    assert len(texts) == 1
    assert re.search(rf"{NOTE}.*the first: .*\.png", texts[0])
    np.testing.assert_array_equal(batches[0][0][0, 0], SCALED)


def test_masks_are_class_indices_and_never_scaled() -> None:
    np.testing.assert_array_equal(read_mask(FILES["png"], "mask"), VALUES)


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_an_unspecified_channel_is_refused_and_read_by_channels(depth: Any) -> None:
    scene = np.dstack([VALUES.astype(depth)] * 4)
    data = tiff(scene, photometric="rgb", extrasamples=["unspecified"])
    with pytest.raises(DecodeError, match="it has 4 channels, of which the last is unspecified; pass channels=4"):
        read_image(data)
    alpha = tiff(scene.astype(np.uint8), photometric="rgb", extrasamples=["unassalpha"])
    assert read_image(alpha).shape == (4, 4, 3)
    if depth is np.uint8:
        np.testing.assert_array_equal(read_image(data, channels=4), scene)
    else:
        with pytest.warns(UserWarning, match=NOTE):
            np.testing.assert_array_equal(read_image(data, channels=4), np.dstack([SCALED] * 4))
