"""nvJPEG on a real GPU: its pixels beside the CPU's, a part beside the whole, streams, failures."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.images import PHOTOS, photo
from tests.loader.samples import MemorySource
from variegate import Augmenter, Loader
from variegate import transforms as T
from variegate.decode import read_image
from variegate.decode.gpu import GpuJpegDecoder, decoder_of, is_installed
from variegate.errors import DecodeError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not is_installed(), reason="needs nvImageCodec: pip install 'variegate[gpu]'"),
]

CROP = T.Compose([T.RandomResizedCrop(160, scale=(0.2, 1.0)), T.RandomHorizontalFlip()])


def encoded(name: str = "astronaut", height: int = 240, width: int = 301, mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(photo(height, width, name)).convert(mode).save(stream, "JPEG", **options)
    return stream.getvalue()


def enlarged() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.tile(photo(256, 300), (5, 4, 1))).save(stream, "JPEG", subsampling=2, quality=90)
    return stream.getvalue()


FILES = {
    "4:2:0": encoded(subsampling=2, quality=90),
    "4:2:2": encoded("coffee", subsampling=1, quality=90),
    "4:4:4": encoded("chelsea", subsampling=0, quality=90),
    "progressive": encoded("rocket", progressive=True, quality=90),
    "gray": encoded(mode="L", quality=90),
    "odd": encoded("coffee", 37, 53, subsampling=2, quality=95),
    # Above a million pixels, nvJPEG reads the Huffman code on the GPU.
    "large": enlarged(),
}


@pytest.fixture(scope="module")
def decoder() -> GpuJpegDecoder:
    made = decoder_of("cuda:0", 4)
    assert made is not None, "nvImageCodec is installed but decodes nothing; is nvJPEG's library there?"
    return made


def _off(picture: torch.Tensor | None, expected: np.ndarray) -> np.ndarray:
    assert picture is not None
    assert picture.device == torch.device("cuda:0")
    assert picture.dtype == torch.uint8
    assert tuple(picture.shape) == expected.shape
    return np.abs(picture.cpu().numpy().astype(int) - expected.astype(int))


@pytest.mark.parametrize("name", FILES)
def test_pixels_beside_the_cpus(decoder: GpuJpegDecoder, name: str) -> None:
    off = _off(decoder.decode([(FILES[name], None)])[0], read_image(FILES[name]))
    # Inverse DCT and chroma interpolation round differently: both are at most a level each way before YCbCr becomes
    # RGB, which multiplies chroma by up to 1.772. Wrong channels, matrix or upsampling are tens of levels off.
    assert off.mean() < 1.0
    assert np.quantile(off, 0.999) <= 4


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("box", [(0, 0, 24, 31), (9, 13, 33, 50), (1, 3, 37, 53)])
def test_a_part_is_that_of_the_whole(decoder: GpuJpegDecoder, name: str, box: tuple[int, int, int, int]) -> None:
    whole, part = decoder.decode([(FILES[name], None), (FILES[name], box)])
    assert whole is not None
    top, left, bottom, right = box
    height, width = whole.shape[:2]
    off = _off(part, whole.cpu().numpy()[top:bottom, left:right])
    # Along the part's inner borders chroma may lack its neighbours; a crop reads nothing of the outermost 8 pixels.
    below, after = off.shape[0] - 8 * (bottom < height), off.shape[1] - 8 * (right < width)
    inner = off[8 * (top > 0) : below, 8 * (left > 0) : after]
    assert inner.size
    assert inner.max() == 0


def test_a_picture_does_not_depend_on_its_batch(decoder: GpuJpegDecoder) -> None:
    pieces = [(data, None) for data in FILES.values()]
    alone = [decoder.decode([piece])[0] for piece in pieces]
    for order in (range(len(pieces)), reversed(range(len(pieces)))):
        places = list(order) * 3
        for i, picture in zip(places, decoder.decode([pieces[i] for i in places]), strict=True):
            assert picture is not None
            assert torch.equal(picture, alone[i])  # type: ignore[arg-type]


def test_what_it_cannot_decode_is_none_in_its_place(decoder: GpuJpegDecoder) -> None:
    data = FILES["4:2:0"]
    broken = data.replace(b"\xff\xc4", b"\xff\xc4\x00\x1f\x00" + b"\xff" * 16, 1)
    pictures = decoder.decode([(b"no image", None), (data, None), (broken, None), (data[:200], None), (data, None)])
    assert [picture is None for picture in pictures] == [True, False, True, True, False]


def test_streams_and_threads(decoder: GpuJpegDecoder) -> None:
    """As the loader does it: every thread on a stream of its own, with work queued before and after."""
    pieces = [(data, None) for data in FILES.values()]
    expected = [picture.clone() for picture in decoder.decode(pieces) if picture is not None]
    torch.cuda.synchronize()

    def work(_: int) -> list[torch.Tensor]:
        stream = torch.cuda.Stream("cuda:0")
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            copies = [picture.clone() for picture in decoder.decode(pieces) if picture is not None]
            # The pictures are gone from Python by now, and others may get their memory.
            decoder.decode(pieces[::-1])
        stream.synchronize()
        return copies

    with ThreadPoolExecutor(3) as pool:
        for copies in pool.map(work, range(9)):
            assert all(torch.equal(copy, wanted) for copy, wanted in zip(copies, expected, strict=True))


def test_augmented_beside_the_cpu() -> None:
    # Crops of fewer than 320 pixels to 160, so that the CPU decodes them at full scale as well.
    png = io.BytesIO()
    Image.fromarray(photo(200, 220)).save(png, "PNG")
    files = [encoded(name, 240 + i, 300 - i, quality=90) for i, name in enumerate(PHOTOS * 6)]
    files[3], files[7] = png.getvalue(), encoded(mode="CMYK")
    ids = range(len(files))
    cpu = Augmenter(CROP).decode_and_run(files, ids=ids)
    gpu = Augmenter(CROP, device="cuda:0", decode="gpu").decode_and_run(files, ids=ids)
    assert isinstance(cpu, torch.Tensor)
    assert isinstance(gpu, torch.Tensor)
    off = (gpu.cpu().int() - cpu.int()).abs()
    # As for single pictures; resampling averages it further. A crop one pixel aside is several levels off on average.
    assert off.float().flatten(1).mean(1).max() < 1.0
    # What the CPU decodes in either case is the same to the bit.
    assert off[[3, 7]].max() == 0
    on_host = Augmenter(CROP, device="cuda:0", decode="cpu").decode_and_run(files, ids=ids)
    assert torch.equal(on_host.cpu(), cpu)  # type: ignore[union-attr]


def test_pixels_depend_on_the_file_and_the_crop_alone() -> None:
    files = [encoded(name, 240 + i, 300 - i, quality=90) for i, name in enumerate(PHOTOS * 4)]
    augmenter = Augmenter(CROP, device="cuda:0", decode="gpu")
    together = augmenter.decode_and_run(files, ids=range(16))
    for i in (0, 5, 15):
        assert torch.equal(augmenter.decode_and_run([files[i]], ids=[i])[0], together[i])


def test_bad_files_fail_as_on_the_cpu() -> None:
    augmenter = Augmenter(CROP, device="cuda:0", decode="gpu")
    data = FILES["4:2:0"]
    for bad, reason in ((data[: len(data) // 2], "truncated"), (b"no image", "not an image")):
        with pytest.raises(DecodeError, match=rf"files\[1\]: {reason}"):
            augmenter.decode_and_run([data, bad])


def test_a_loader_of_two_makers() -> None:
    source = MemorySource(96, {17: FILES["4:2:0"][:2000]})
    batches = {
        decode: list(Loader(source, T.RandomResizedCrop(32), 16, "cuda:0", on_error="skip", decode=decode))
        for decode in ("gpu", "cpu", "auto")
    }
    for on_gpu, on_cpu, chosen in zip(*batches.values(), strict=True):
        assert on_gpu.ids.tolist() == on_cpu.ids.tolist() == chosen.ids.tolist()
        assert (on_gpu.images.int() - on_cpu.images.int()).abs().float().mean() < 1.5
        assert torch.equal(chosen.images, on_gpu.images)
