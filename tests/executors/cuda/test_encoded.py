"""JPEGs decoded on the device: which rows, which part of the picture, and the same pixels as decoded on the host.

The device's decoder is played by one that decodes whole pictures by simplejpeg and cuts the box out, so that whatever
surrounds it must give the host's pixels to the bit.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
import simplejpeg
import torch
from PIL import Image

from tests.executors.poison import poisoned_executor
from tests.images import photo
from tests.loader.samples import MemorySource
from variegate import Augmenter, Loader
from variegate import transforms as T
from variegate.decode import read_header, read_image
from variegate.decode.gpu import Box
from variegate.errors import DecodeError
from variegate.executors.runners.cuda import CudaRunner
from variegate.executors.runners.encoded_batch import EncodedBatch

# One tile each: the interpreter takes as long for small ones.
EXECUTOR = poisoned_executor("cpu", (64, 64))
CROP = T.Compose([T.RandomResizedCrop(33, scale=(0.05, 1.0)), T.RandomHorizontalFlip()])
# No more rows and operations than it takes: the interpreter is slow.
MIX = T.Compose([T.RandomResizedCrop(33), T.AugMix(mixture_width=2, chain_depth=1)])


class HostDecoder:
    """``spoil``: pixels at the inner borders of a box that come out wrong, as where chroma lacks its neighbours."""

    def __init__(self, spoil: int = 0) -> None:
        self.spoil = spoil
        self.pieces: list[tuple[bytes, Box]] = []

    def decode(self, pieces: Sequence[tuple[bytes, Box]]) -> list[torch.Tensor | None]:
        self.pieces += pieces
        return [self._decode(*piece) for piece in pieces]

    def _decode(self, data: bytes, box: Box) -> torch.Tensor | None:
        try:
            whole = simplejpeg.decode_jpeg(data)
        except ValueError:
            return None
        height, width = whole.shape[:2]
        top, left, bottom, right = box or (0, 0, height, width)
        part = whole[top:bottom, left:right].copy()
        keep = np.zeros(part.shape[:2], bool)
        keep[
            self.spoil * (top > 0) : bottom - top - self.spoil * (bottom < height),
            self.spoil * (left > 0) : right - left - self.spoil * (right < width),
        ] = True
        part[~keep] = 255 - part[~keep]
        return torch.from_numpy(part)


def encoded(format: str = "JPEG", height: int = 57, width: int = 64, mode: str = "RGB", **options: object) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(photo(height, width)).convert(mode).save(stream, format, **options)
    return stream.getvalue()


def turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(exif=exif)


FOR_THE_DEVICE = {
    "4:2:0": encoded(subsampling=2, quality=90),
    "4:4:4": encoded(height=60, width=41, subsampling=0),
    "4:2:2": encoded(height=37, subsampling=1, quality=95),
    "progressive": encoded(height=49, progressive=True),
    "gray": encoded(mode="L"),
    "upright": turned(1),
    "one pixel": encoded(height=1, width=1),
}
FOR_THE_HOST = {
    "png": encoded("PNG", height=40),
    "upside down": turned(3),
    "on its side": turned(6),
    "cmyk": encoded(mode="CMYK"),
    "RGB": encoded(keep_rgb=True, quality=95),
}
FILES = [*FOR_THE_DEVICE.values(), *FOR_THE_HOST.values()]
# A table of more codes than there are.
BROKEN_TABLE = FILES[0].replace(b"\xff\xc4", b"\xff\xc4\x00\x13\x00" + b"\xff" * 16 + b"\xff\xc4", 1)


def run(
    transform: T.Transform,
    files: Sequence[object],
    decoder: HostDecoder | None,
    failures: dict[int, DecodeError] | None = None,
) -> list[torch.Tensor]:
    runner = CudaRunner("cpu", None, "composed", executor=EXECUTOR, decoder=decoder)
    batch = EncodedBatch(files, failures=failures)  # type: ignore[arg-type]
    program = Augmenter(transform).program([tuple(s) for s in batch.shapes.tolist()], ids=range(len(files)))
    return list(runner.decode_and_run(program, batch))


def assert_same(transform: T.Transform, files: Sequence[object], decoder: HostDecoder) -> None:
    expected = Augmenter(transform).decode_and_run(files, ids=range(len(files)))
    for i, (out, wanted) in enumerate(zip(run(transform, files, decoder), expected, strict=True)):
        assert torch.equal(out, wanted), i


def test_the_hosts_pixels_in_the_hosts_order() -> None:
    """Formats, sizes and places mixed: those of the device before, between and after those of the host."""
    files = [FILES[i] for i in np.random.default_rng(0).permutation(len(FILES))] + FILES[:2]
    decoder = HostDecoder()
    outputs = run(CROP, files, decoder)
    for out, wanted in zip(outputs, Augmenter(CROP).decode_and_run(files, ids=range(len(files))), strict=True):
        assert torch.equal(out, wanted)
    assert {data for data, _ in decoder.pieces} == set(FOR_THE_DEVICE.values())


def test_only_the_box_of_the_crop_is_asked_for() -> None:
    files = [bytes(bytearray(FOR_THE_DEVICE["4:2:0"])) for _ in range(12)]  # not known to be the same
    decoder = HostDecoder()
    run(T.RandomResizedCrop(33, scale=(0.05, 0.3)), files, decoder)
    areas = [(b - t) * (r - left) for t, left, b, r in (box for _, box in decoder.pieces if box is not None)]
    assert len(areas) > 6
    assert np.mean(areas) < 0.8 * 57 * 64


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_what_lies_at_the_border_of_a_box_is_not_seen(interpolation: str) -> None:
    crop = T.RandomResizedCrop(20, scale=(0.02, 0.1), interpolation=interpolation)
    decoder = HostDecoder(spoil=8)
    assert_same(crop, [FOR_THE_DEVICE["4:2:0"]] * 8, decoder)
    assert any(box is not None for _, box in decoder.pieces)


def test_pictures_that_are_read_whole() -> None:
    decoder = HostDecoder()
    assert_same(T.Compose([T.RandomHorizontalFlip(), T.AutoContrast()]), FILES, decoder)
    assert [box for _, box in decoder.pieces] == [None] * len(FOR_THE_DEVICE)


def test_rows_of_a_blend_share_one_decoding() -> None:
    decoder = HostDecoder()
    assert_same(MIX, [FILES[0], FILES[-1]], decoder)
    assert [data for data, _ in decoder.pieces] == FILES[:1]


def test_pixels_among_files() -> None:
    files = [photo(40, 50), FILES[0], photo(35, 35), FILES[-1]]
    assert_same(CROP, files, HostDecoder())
    assert_same(CROP, [photo(40, 50)], HostDecoder())
    assert_same(CROP, [FILES[0]], HostDecoder())


def test_what_the_device_refuses_the_host_decodes() -> None:
    class Refuses(HostDecoder):
        def _decode(self, data: bytes, box: Box) -> torch.Tensor | None:
            picture = super()._decode(data, box)
            if data == FILES[0]:
                return None
            return picture[1:] if data == FILES[1] and picture is not None else picture

    decoder = Refuses()
    assert_same(CROP, [*FILES[:3], FILES[-1]], decoder)
    assert_same(MIX, FILES[:2], decoder)


def test_bad_files_fail_as_on_the_host() -> None:
    truncated = FILES[0][: len(FILES[0]) // 2]
    decoder = HostDecoder()
    with pytest.raises(DecodeError, match=r"files\[1\]: truncated"):
        run(CROP, [FILES[0], truncated], decoder)
    assert [data for data, _ in decoder.pieces] == [FILES[0]]  # a GPU would make it gray and say nothing
    with pytest.raises(DecodeError, match=r"files\[1\]: damaged"):
        run(CROP, [FILES[0], BROKEN_TABLE], decoder)
    assert decoder.pieces[-1][0] == BROKEN_TABLE

    files = [FILES[0], truncated, b"no image", FILES[1], BROKEN_TABLE, FILES[-1]]
    noted: dict[int, DecodeError] = {}
    expected_notes: dict[int, DecodeError] = {}
    outputs, expected = run(CROP, files, decoder, noted), run(CROP, files, None, expected_notes)
    assert {i: str(error) for i, error in noted.items()} == {i: str(error) for i, error in expected_notes.items()}
    assert sorted(noted) == [1, 2, 4]
    for i in (0, 3, 5):
        assert torch.equal(outputs[i], expected[i])


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_loader_treats_bad_files_alike(on_error: str) -> None:
    bad = {3: FILES[0][:-100], 6: BROKEN_TABLE}
    transform = T.RandomResizedCrop(32)
    # Made on this thread: the interpreter takes one at a time.
    options = {"batch_size": 5, "on_error": on_error, "prefetch": 0, "device": "cpu"}
    plain = Loader(MemorySource(10, bad), transform, **options)  # type: ignore[arg-type]
    loader = Loader(MemorySource(10, bad), transform, **options)  # type: ignore[arg-type]
    decoder = HostDecoder()
    loader.augmenter._runner = CudaRunner("cpu", None, "composed", executor=EXECUTOR, decoder=decoder)
    for batch, wanted in zip(loader, plain, strict=True):
        assert torch.equal(batch.images, wanted.images)  # type: ignore[arg-type]
        assert batch.ids.tolist() == wanted.ids.tolist()
    assert list(map(str, loader.errors)) == list(map(str, plain.errors))
    assert len(loader.errors) == 2
    assert decoder.pieces


def test_which_jpegs_are_ordinary() -> None:
    for name, data in FOR_THE_DEVICE.items():
        assert read_header(data).is_ordinary, name
    for name in ("cmyk", "RGB"):
        assert not read_header(FOR_THE_HOST[name]).is_ordinary, name
    frame = FILES[0].index(b"\xff\xc0")
    twelve_bits, arithmetic = bytearray(FILES[0]), bytearray(FILES[0])
    twelve_bits[frame + 4] = 12
    arithmetic[frame + 1] = 0xC9
    assert not read_header(bytes(twelve_bits)).is_ordinary
    assert not read_header(bytes(arithmetic)).is_ordinary
    # Adobe's word for it, without the components' names.
    adobe = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
    assert not read_header(FILES[0][:2] + adobe + FILES[0][2:]).is_ordinary
    assert read_header(FILES[0][:2] + adobe[:-1] + b"\x01" + FILES[0][2:]).is_ordinary
    assert read_image(FOR_THE_HOST["RGB"]).shape == (57, 64, 3)


@pytest.mark.parametrize("decodes_here", [True, False])
def test_views_of_a_picture_are_of_one_decode(decodes_here: bool) -> None:
    crop = T.RandomResizedCrop(9, scale=(0.05, 0.3))
    views = T.MultiView([T.RandomResizedCrop(17), crop], counts=[1, 2])
    files = [FOR_THE_DEVICE["4:2:0"], FOR_THE_HOST["png"], FOR_THE_HOST["upside down"]]
    expected = Augmenter(views).decode_and_run(files, ids=range(3))
    decoder = HostDecoder(spoil=8)
    made = run(views, files, decoder if decodes_here else None)
    assert [group.shape for group in made] == [(3, 1, 3, 17, 17), (3, 2, 3, 9, 9)]
    assert all(torch.equal(group, wanted) for group, wanted in zip(made, expected, strict=True))
    assert len(decoder.pieces) == decodes_here
