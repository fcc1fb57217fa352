"""PIL images read where Pillow keeps them: the pixels are Pillow's own, and what lies otherwise is left to Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from variegate.decode import pixels_of_pil
from variegate.decode.memory import rgb_of, unpack_rgb
from variegate.errors import DecodeError

# Around the 16 pixels that the kernel takes at once; a row, a column; the most that is in one piece.
SIZES = [(1, 1), (3, 2), (1, 15), (16, 1), (1, 17), (4, 8), (3, 11), (17, 31), (64, 65), (224, 224), (2048, 2047)]

tells = pytest.mark.skipif(not hasattr(Image.Image, "__arrow_c_array__"), reason="Pillow >= 11.2 says where pixels are")


def noise(*size: int, mode: str = "RGB") -> Image.Image:
    values = np.random.default_rng(size).integers(0, 256, (*size, len(mode)), dtype=np.uint8)
    return Image.fromarray(values.squeeze(-1) if mode == "L" else values, mode)


@tells
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_are_those_that_pillow_exports(size: tuple[int, int]) -> None:
    image = noise(*size)
    pixels = rgb_of(image)
    assert pixels is not None
    np.testing.assert_array_equal(pixels, np.array(image))
    assert pixels.shape == (*size, 3)
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable


@tells
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (1, 16), (3, 7), (5, 13)], ids=str)
def test_nothing_beside_the_result_is_written(size: tuple[int, int]) -> None:
    image, number = noise(*size), 3 * size[0] * size[1]
    memory = np.full(number + 128, 0xA5, np.uint8)
    _, capsule = image.__arrow_c_array__()
    assert unpack_rgb(capsule, memory[64 : 64 + number].reshape(*size, 3))
    np.testing.assert_array_equal(memory[64 : 64 + number], np.array(image).reshape(-1))
    assert (memory[:64] == 0xA5).all()
    assert (memory[64 + number :] == 0xA5).all()


@tells
@pytest.mark.parametrize("image", [noise(4, 4).convert("L"), noise(4, 5), noise(4, 4).convert("I")])
def test_arrays_of_another_form_are_not_read(image: Image.Image) -> None:
    _, capsule = image.__arrow_c_array__()
    assert not unpack_rgb(capsule, np.empty((4, 4, 3), np.uint8))


@tells
def test_pixels_outlive_the_image_and_are_not_shared_with_it() -> None:
    image = noise(31, 17)
    expected = np.array(image)
    pixels = rgb_of(image)
    image.paste((0, 0, 0), (0, 0, 17, 31))
    np.testing.assert_array_equal(pixels, expected)
    del image
    np.testing.assert_array_equal(pixels, expected)


def borrowed() -> Image.Image:
    if not hasattr(Image, "fromarrow"):
        pytest.skip("Pillow >= 11.2 borrows memory for RGB")
    return Image.fromarrow(noise(5, 7), "RGB", (7, 5))


def aligned() -> Image.Image:
    Image.core.set_alignment(16)  # type: ignore[attr-defined]
    return noise(5, 7)


def mapped(mode: str) -> Callable[[], Image.Image]:
    """Where some versions of Pillow crash when they are asked."""
    return lambda: Image.frombuffer(mode, (5, 3), bytes(range(15 * len(mode))), "raw", mode, 0, 1)


OTHERS = {"several pieces": lambda: noise(2100, 2100), "borrowed": borrowed, "gaps between aligned rows": aligned}
OTHERS |= {f"mapped {mode}": mapped(mode) for mode in ("L", "RGBX", "RGBA", "CMYK")}


@pytest.mark.parametrize("name", OTHERS)
def test_memory_that_is_not_known_is_left_to_pillow(name: str) -> None:
    try:
        image = OTHERS[name]()
        assert rgb_of(image) is None
        kind = "L" if image.mode == "L" else "RGB"
        expected = np.array(image.convert(kind)).reshape(image.height, image.width, len(kind))
        np.testing.assert_array_equal(pixels_of_pil(image, "image"), expected)
    finally:
        Image.core.set_alignment(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_pillow_that_does_not_tell(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Image.Image, "__arrow_c_array__", raising=False)
    image = noise(17, 31, mode=mode)
    assert rgb_of(image) is None
    pixels = pixels_of_pil(image, "image")
    np.testing.assert_array_equal(pixels, np.array(image).reshape(17, 31, len(mode)))
    assert pixels.flags.writeable


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "P", "PA", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"])
def test_other_modes_are_converted_by_pillow(mode: str) -> None:
    first = noise(17, 31).convert("LA" if mode == "La" else "L" if mode in ("1", "PA") else "RGB")
    image = first.convert("P").convert("PA") if mode == "PA" else first if mode == "LAB" else first.convert(mode)
    if mode == "LAB":
        image = Image.merge("LAB", first.split())
    gray = mode in ("1", "L", "LA", "La")
    plain = image.convert("LA") if mode == "La" else image
    expected = np.array(plain.convert("L" if gray else "RGB")).reshape(17, 31, 1 if gray else 3)
    np.testing.assert_array_equal(pixels_of_pil(image, "image"), expected)


@tells
def test_an_opened_file_is_decoded_once_it_is_asked_for() -> None:
    file = io.BytesIO()
    noise(40, 50).save(file, "PNG")
    pixels = rgb_of(Image.open(io.BytesIO(file.getvalue())))
    np.testing.assert_array_equal(pixels, np.array(Image.open(file)))
    with pytest.raises(DecodeError):
        pixels_of_pil(Image.open(io.BytesIO(file.getvalue()[:2000])), "image")
    closed = noise(4, 4)
    closed.close()
    with pytest.raises(DecodeError, match="a closed PIL image"):
        pixels_of_pil(closed, "image")
