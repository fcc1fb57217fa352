"""What decoding takes is known before it begins, bounded for each picture, and shared by threads."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import variegate as vg
from tests.decode.jpegs import jpeg
from tests.images import photo
from variegate import transforms as T
from variegate.decode import header, pillow, read_header, read_image
from variegate.decode import image as jpeg_module
from variegate.decode import limits as memory
from variegate.decode.limits import LARGE, Budget
from variegate.errors import DecodeError
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.formats.objects.dataset import DatasetSource

HUGE = (
    r"13,000 x 13,000 RGBA pixels take about 1\.1\d GB to decode, more than the limit of 1\.00 GB; raise it with max_"
)


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


# -- the estimate --------------------------------------------------------------------------------------------------

MEASURE = """
import gc, io, sys
from pathlib import Path
from PIL import Image
from variegate.decode import PillowFile, is_jpeg, read_header, read_image
from variegate.decode.image import _bytes_needed

def memory(which):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))

Image.init()
for path in sys.argv[1:]:
    for _ in range(2):  # what is loaded for the first file of a kind is not its own
        data = Path(path).read_bytes()
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        image = read_image(data)
        peak = memory("VmHWM") - before
        del image
    header = read_header(data) if is_jpeg(data) else None
    needed = PillowFile(data, path).needed if header is None else _bytes_needed(header, header.height, header.width)
    print(path, needed, peak)
"""


def write_samples(folder: Path) -> list[Path]:
    side = 2400
    y, x = np.mgrid[:side, :side]
    image = Image.fromarray(np.stack([x // 7 % 256, y // 5 % 256, (x + y) // 9 % 256], axis=-1).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    palette = image.quantize(64)
    deep = Image.fromarray((x * 16).astype(np.uint16))
    kinds: dict[str, tuple[Image.Image, str, dict[str, Any]]] = {
        "baseline.jpg": (image, "JPEG", {}),
        "turned.jpg": (image, "JPEG", {"exif": exif}),
        "progressive-420.jpg": (image, "JPEG", {"progressive": True, "subsampling": 2}),
        "progressive-444.jpg": (image, "JPEG", {"progressive": True, "subsampling": 0}),
        "cmyk.jpg": (image.convert("CMYK"), "JPEG", {}),
        "rgb.png": (image, "PNG", {}),
        "rgba-turned.png": (image.convert("RGBA"), "PNG", {"exif": exif}),
        "palette.png": (palette, "PNG", {}),
        "deep.png": (deep, "PNG", {}),
        "palette.gif": (palette, "GIF", {}),
        "rgb.webp": (image, "WEBP", {"quality": 40, "method": 0}),
        "rgb.bmp": (image, "BMP", {}),
        "rgb.ppm": (image, "PPM", {}),
        "raw.tif": (image, "TIFF", {}),
        "packed.tif": (image, "TIFF", {"compression": "tiff_lzw"}),
        "turned.tif": (image, "TIFF", {"compression": "tiff_lzw", "tiffinfo": {274: 6}}),
    }
    for name, (made, kind, options) in kinds.items():
        made.save(folder / name, kind, **options)
    return [folder / name for name in kinds]


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures by Linux's /proc")
def test_the_estimate_is_what_decoding_takes(tmp_path: Path) -> None:
    paths = write_samples(tmp_path)
    # So that the allocator gives back at once what is freed, as one file's is not to count as the next one's.
    frugal = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, *map(str, paths)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | frugal)
    found = [line.split() for line in run.stdout.splitlines()]
    assert [path for path, _, _ in found] == [str(path) for path in paths]
    margin = 6 << 20  # a strip of rows, and what the allocator keeps
    for path, needed, peak in found:
        assert 0.9 * int(needed) - margin < int(peak) < int(needed) + margin, (path, needed, peak)


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


# -- the limit -----------------------------------------------------------------------------------------------------


def test_a_picture_that_takes_too_much_is_refused_on_every_path() -> None:
    huge = png_of(13_000, 13_000, colours=6)
    for read in (
        lambda: read_image(huge, "a.png"),
        lambda: vg.Augmenter(T.CenterCrop(8)).decode_and_run([jpeg(), huge]),
        lambda: list(vg.Loader(DatasetSource([(huge, 0)]), T.CenterCrop(8), device="cpu")),
        lambda: list(vg.Loader(DatasetSource([(huge, 0)]), T.CenterCrop(8), device="cpu", cache="host")),
    ):
        with pytest.raises(DecodeError, match=HUGE):
            read()
    # Raised, it is not the limit that refuses a file without pixels; nor for half as many bytes a pixel.
    for read in (
        lambda: read_image(png_of(10, 10, colours=6), max_decode_bytes=5 << 20),
        lambda: EncodedBatch([huge], max_decode_bytes=1_300_000_000).whole(0),
        lambda: read_image(png_of(13_000, 13_000, colours=0)),
    ):
        with pytest.raises(DecodeError, match=r"truncated|damaged"):
            read()
    with pytest.raises(DecodeError, match=r"75 x 61 JPEG pixels take about 13,725 bytes to decode.*of 10,000 bytes"):
        read_image(jpeg(), max_decode_bytes=10_000)


@pytest.mark.parametrize("options", [{}, {"orientation": 6}, {"progressive": True, "subsampling": 0}, {"mode": "CMYK"}])
def test_photos_of_100_megapixels_are_within_the_limit(options: dict[str, Any]) -> None:
    batch = EncodedBatch([jpeg_of(8660, 11_547, **options)])
    assert sorted(batch.shapes[0].tolist()) == [3, 8660, 11_547]
    larger = jpeg_of(12_500, 14_000, **options)
    if options:
        with pytest.raises(DecodeError, match=r"14,000 x 12,500 .*JPEG pixels take about 1\.\d\d GB"):
            EncodedBatch([larger])
    else:
        EncodedBatch([larger])


def test_each_part_of_a_picture_is_refused_like_the_whole() -> None:
    data = jpeg(orientation=6)
    whole = 2 * 3 * 61 * 75
    for decode in (
        lambda limit: read_image(data, max_decode_bytes=limit),
        lambda limit: jpeg_module.decode_jpeg_box(data, 0, 0, 1, 1, max_decode_bytes=limit),
        lambda limit: jpeg_module.decode_jpeg_scaled(data, 1, 1, max_decode_bytes=limit),
        lambda limit: EncodedBatch([data], max_decode_bytes=limit),
    ):
        decode(whole)
        with pytest.raises(DecodeError, match="max_decode_bytes"):
            decode(whole - 1)


# -- large pictures of a batch -------------------------------------------------------------------------------------


def large_files() -> list[bytes]:
    exif = Image.Exif()
    exif[0x0112] = 6
    made = Image.fromarray(photo(60, 90))
    return [
        encoded(made),
        encoded(made, exif=exif),
        encoded(made, "TIFF", tiffinfo={274: 8}),
        encoded(made, "WEBP", exif=exif, lossless=True),
        encoded(made.quantize(16), "GIF"),
        jpeg(60, 90),
    ]


def test_large_pictures_are_decoded_when_their_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    files = large_files()
    aug = vg.Augmenter(T.Compose([T.RandomCrop(24), T.RandAugment()]))
    expected = aug.decode_and_run(files, ids=range(6))
    assert set(EncodedBatch(files).decoded) == {0, 1, 2, 3, 4}
    monkeypatch.setattr(pillow, "LARGE", 1000)
    batch = EncodedBatch(files)
    assert batch.decoded == {}
    np.testing.assert_array_equal(batch.shapes, [read_image(data).shape for data in files])
    for device in ("cpu", "oracle"):
        made = vg.Augmenter(aug.transform, device=device)
        assert torch.equal(made.decode_and_run(files, ids=range(6)), expected)
    loader = vg.Loader(DatasetSource([(data, 0) for data in files]), aug.transform, 6, device="cpu", shuffle=False)
    assert torch.equal(next(iter(loader))[0], expected)


def test_large_pictures_that_turn_out_to_be_damaged_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow, "LARGE", 1000)
    files = large_files()
    files[0] = files[0][:-2000]
    loader = vg.Loader(
        DatasetSource([(data, i) for i, data in enumerate(files)]), T.CenterCrop(24), 6, device="cpu",
        on_error="skip", shuffle=False,
    )  # fmt: skip
    assert next(iter(loader))[1].tolist() == [1, 2, 3, 4, 5]
    assert "truncated" in loader.errors[0].reason
    with pytest.raises(DecodeError, match=r"files\[0\]: .*truncated"):
        vg.Augmenter(T.CenterCrop(24)).decode_and_run(files)


# -- the budget ----------------------------------------------------------------------------------------------------


def test_threads_wait_for_room() -> None:
    shared = Budget(10 * LARGE)
    lock, taken, most = threading.Lock(), 0, 0

    def decode(amount: int) -> None:
        nonlocal taken, most
        for _ in range(5):
            with shared.room_for(amount):
                with lock:
                    taken += amount
                    most = max(most, taken)
                time.sleep(0.002)
                with lock:
                    taken -= amount

    threads = [threading.Thread(target=decode, args=(LARGE * (1 + i % 7),)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert 7 * LARGE <= most <= 10 * LARGE


def test_what_is_larger_than_the_budget_goes_alone_and_in_turn() -> None:
    shared = Budget(2 * LARGE)
    order: list[str] = []
    started = threading.Event()

    def take(name: str, amount: int) -> None:
        with shared.room_for(amount):
            order.append(name)

    with shared.room_for(LARGE):
        first = threading.Thread(target=take, args=("larger than all", 5 * LARGE))
        first.start()
        while not shared._waiting:
            time.sleep(0.001)
        # It would fit, but has come later.
        second = threading.Thread(target=take, args=("small enough", LARGE))
        second.start()
        while len(shared._waiting) < 2:
            time.sleep(0.001)
        with shared.room_for(LARGE - 1):  # no ticket for what is not large
            started.set()
        assert order == []
    first.join(20)
    second.join(20)
    assert started.is_set()
    assert order == ["larger than all", "small enough"]


def test_room_is_given_back_after_an_error() -> None:
    shared = Budget(LARGE)
    for _ in range(3):
        with pytest.raises(MemoryError), shared.room_for(LARGE):
            raise MemoryError
    assert shared._taken == 0
    assert not shared._waiting


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_threads() -> None:
    with memory.room_for(memory.TOTAL):
        child = os.fork()
        if child == 0:
            with memory.room_for(memory.TOTAL):
                os._exit(7)
        for _ in range(2000):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
    assert done
    assert os.waitstatus_to_exitcode(status) == 7


def test_decoders_ask_for_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def room_for(needed: int) -> Any:
        asked.append(needed)
        return memory.room_for(needed)

    for module in (pillow, jpeg_module):
        monkeypatch.setattr(module, "room_for", room_for)
    for data, needed in {
        jpeg(160, 160, subsampling=0): 3 * 160 * 160,
        jpeg(160, 160, orientation=3): 6 * 160 * 160,
        jpeg(160, 160, progressive=True, subsampling=0): 9 * 160 * 160,
        encoded(Image.fromarray(photo(160, 160))): 7 * 160 * 160 + (4 << 20),
        encoded(Image.fromarray(photo(160, 160)).convert("L")): 4 * 160 * 160 + (4 << 20),
    }.items():
        asked.clear()
        read_image(data)
        assert asked == [needed]
    asked.clear()
    jpeg_module.decode_jpeg_box(jpeg(160, 160, subsampling=0), 0, 0, 30, 30)
    assert asked == [3 * 32 * 160]
    assert header.read_header(jpeg(160, 160)).coefficient_bytes == 0
