"""``Augmenter.decode_and_run``: as decoding whole images and augmenting them, with less decoding."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.images import photo
from variegate import transforms as T
from variegate.decode import decode_jpeg, decode_jpeg_box, decode_jpeg_scaled, read_image
from variegate.errors import DecodeError
from variegate.executors.batches import share_out
from variegate.executors.runners import encoded_batch
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.policies import AugMix

CROP = T.RandomResizedCrop(64)
POLICY = T.Compose([CROP, T.RandomHorizontalFlip(), T.RandAugment()])


def encoded(format: str = "JPEG", height: int = 120, width: int = 160, mode: str = "RGB", **options: object) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(photo(height, width)).convert(mode).save(stream, format, **options)
    return stream.getvalue()


def turned(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(exif=exif)


FILES = {
    "4:2:0": encoded(subsampling=2, quality=90),
    "4:4:4": encoded(subsampling=0, quality=90),
    "4:2:2": encoded(subsampling=1, quality=90),
    "progressive": encoded(progressive=True),
    "gray": encoded(mode="L"),
    "cmyk": encoded(mode="CMYK"),
    "upside down": turned(3),
    "on its side": turned(6),
    "png": encoded("PNG"),
    "one pixel": encoded(height=1, width=1),
}


def whole(files: Sequence[bytes]) -> list[np.ndarray]:
    return [read_image(data) for data in files]


@pytest.mark.parametrize("transform", [CROP, POLICY, T.Resize((64, 64)), T.Compose([CROP, T.AugMix()])])
@pytest.mark.parametrize("name", FILES)
def test_equals_decoding_first(name: str, transform: T.Transform) -> None:
    files = [FILES[name]] * 24
    aug = vg.Augmenter(transform, seed=7)
    ids = list(range(24))
    assert torch.equal(aug.decode_and_run(files, ids=ids), aug(whole(files), ids=ids))


def test_equals_the_reference_whatever_the_threads() -> None:
    files = list(FILES.values()) * 3
    ids = list(range(len(files)))
    expected = vg.Augmenter(POLICY, device="oracle").decode_and_run(files, ids=ids)
    for threads in (1, 3):
        assert torch.equal(vg.Augmenter(POLICY, num_threads=threads).decode_and_run(files, ids=ids), expected)


@pytest.mark.parametrize("orientation", [1, 6])
def test_small_outputs_of_large_pictures_are_exact(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    files = [encoded(height=420, width=500, quality=95, exif=exif, subsampling=kind) for kind in (0, 1, 2)]
    pictures, ids = whole(files), list(range(3))
    for size in (96, 48, 12, 1):
        aug = vg.Augmenter(T.Compose([T.RandomResizedCrop(size, scale=(0.3, 1.0)), T.RandomHorizontalFlip()]))
        for epoch in range(4):
            expected = aug(pictures, ids=ids, epoch=epoch)
            assert torch.equal(aug.decode_and_run(files, ids=ids, epoch=epoch), expected)


@pytest.mark.parametrize("flip", [0.0, 1.0])
def test_large_crops_are_decoded_at_a_scale_where_that_is_asked_for(flip: float) -> None:
    data = encoded(height=420, width=500, quality=95)
    crop = T.Compose([T.RandomResizedCrop(48, scale=(0.5, 1.0)), T.RandomHorizontalFlip(flip)])
    aug = vg.Augmenter(crop, fast_decode=True)
    ids = list(range(16))
    scaled, full = aug.decode_and_run([data] * 16, ids=ids), aug(whole([data] * 16), ids=ids)
    off = (scaled.float() - full.float()).abs()
    # Two good reductions of one picture: close everywhere on average, and the same crop (a wrong one is tens off).
    assert 0.0 < off.mean() < 3.0
    assert off.flatten(1).mean(1).max() < 6.0


def test_rows_of_a_blend_share_one_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    decode = encoded_batch.decode_jpeg_box  # type: ignore[attr-defined]
    monkeypatch.setattr(encoded_batch, "decode_jpeg_box", lambda *a, **k: calls.append(a) or decode(*a, **k))
    aug = vg.Augmenter(T.Compose([CROP, T.AugMix()]), num_threads=1)
    aug.decode_and_run([FILES["4:2:0"]] * 5, ids=range(5))
    assert len(calls) == 5


@pytest.mark.parametrize("bad", [b"", b"not an image", FILES["4:2:0"][:300]])
def test_a_bad_file_is_named(bad: bytes) -> None:
    with pytest.raises(DecodeError, match=r"files\[1\]"):
        vg.Augmenter(CROP).decode_and_run([FILES["4:2:0"], bad])


def test_only_bytes_are_taken() -> None:
    with pytest.raises(TypeError, match=r"files\[0\]: got str; accepted: the bytes"):
        vg.Augmenter(CROP).decode_and_run(["photo.jpg"])


@pytest.mark.parametrize("device", ["cpu", "oracle"])
@pytest.mark.parametrize(
    ("pixels", "error", "words"),
    [
        (np.zeros((30, 20, 33), np.uint8), ValueError, r"got shape \(30, 20, 33\)"),
        (np.zeros((30, 20, 1000), np.uint8), ValueError, r"got shape \(30, 20, 1000\)"),
        (np.zeros((30, 0, 3), np.uint8), ValueError, r"got shape \(30, 0, 3\).*no side empty"),
        (np.zeros(30, np.uint8), ValueError, r"got shape \(30,\)"),
        (np.zeros((30, 20, 3)), TypeError, "got dtype float64"),
        (np.zeros((30, 20, 3), np.int16), TypeError, "got dtype int16"),
        (np.zeros((30, 20, 3), np.bool_), TypeError, "got dtype bool"),
        (torch.zeros(30, 20, 3).double(), TypeError, "got dtype float64"),
        (np.zeros((1, 32_768, 3), np.uint8), ValueError, "sides of at most 32,767 pixels"),
    ],
)
def test_pixels_are_checked_as_in_calls(device: str, pixels: Any, error: type[Exception], words: str) -> None:
    aug = vg.Augmenter(T.CenterCrop(1), device=device)
    with pytest.raises(error, match=words):
        aug([pixels])
    for files in ([FILES["4:2:0"], pixels], [photo(30, 20), pixels]):
        with pytest.raises(error, match=rf"files\[1\]: .*{words}"):
            aug.decode_and_run(files)
    with pytest.raises(error, match=rf"a/b.npy: .*{words}"):
        EncodedBatch([pixels], lambda _: "a/b.npy", {})


def test_pixels_are_taken_as_in_calls() -> None:
    image = photo(120, 160)
    views = [
        image[:, ::-1],
        image[::2, ::3],
        image[:, :, ::-1],
        image[:, :, 0],
        image[:, :, :1],
        np.asfortranarray(image),
    ]
    aug = vg.Augmenter(T.Compose([T.CenterCrop(32), T.RandomHorizontalFlip(), T.Rotate(30)]))
    for view in views:
        expected = aug([view, view], ids=[1, 2])
        for given in (view, torch.from_numpy(view.copy())):
            assert torch.equal(aug.decode_and_run([given, given], ids=[1, 2]), expected)
    mixed = aug.decode_and_run([views[0], FILES["png"], FILES["4:2:0"]], ids=[1, 2, 3])
    assert torch.equal(mixed, aug([views[0], *whole([FILES["png"], FILES["4:2:0"]])], ids=[1, 2, 3]))


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1, 0, 1.5, 1e8, True, False, "9", np.nan, np.True_])
def test_limits_are_positive_integers(limit: Any) -> None:
    data = FILES["4:2:0"]
    for use in (
        lambda: EncodedBatch([], max_pixels=limit),
        lambda: read_image(data, max_pixels=limit),
        lambda: read_image(FILES["png"], max_pixels=limit),
        lambda: decode_jpeg(data, max_pixels=limit),
        lambda: decode_jpeg_scaled(data, 8, 8, max_pixels=limit),
        lambda: decode_jpeg_box(data, 0, 0, 8, 8, max_pixels=limit),
        lambda: vg.Loader((photo(8, 8)[None], [0]), max_pixels=limit, device="cpu"),
    ):
        with pytest.raises(
            ValueError, match=rf"^max_pixels: got .*{limit}.*; accepted: a positive integer, or None for"
        ):
            use()
    assert read_image(data, max_pixels=np.int64(10**6)).shape == (120, 160, 3)  # type: ignore[arg-type]


def test_no_thread_writes_after_an_error_was_raised() -> None:
    """The memory of a batch goes back to a pool when it is given up, and the next batch takes it."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work(rows: np.ndarray) -> None:
        if 0 in rows:
            begun.wait(20)
            threading.Timer(0.2, may_end.set).start()
            raise ValueError("the first row")
        if not begun.is_set():
            begun.set()
            may_end.wait(20)
            ended.set()

    with pytest.raises(ValueError, match="the first row"):
        share_out(work, 64, 2)
    assert ended.is_set()


def test_a_picture_that_several_rows_read_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(source: bytes, name: str, *rest: Any) -> Any:
        calls.append(name)
        return read_image(source, name, *rest)

    monkeypatch.setattr("variegate.executors.runners.encoded_batch.read_image", counted)
    transform = T.Compose([AugMix(), T.CenterCrop(16)])
    files = [encoded(height=40 + number) for number in range(4)]
    fused = vg.Augmenter(transform, num_threads=1).decode_and_run(files, ids=range(4))
    assert sorted(calls) == [f"files[{i}]" for i in range(4)]
    plain = vg.Augmenter(transform, num_threads=1)([read_image(file) for file in files], ids=range(4))
    assert torch.equal(fused, plain)


@pytest.mark.parametrize("files", [None, b"\xff\xd8\xff", {0: b""}, np.zeros((20, 30, 3), np.uint8), "a.jpg"])
def test_files_are_a_list(files: Any) -> None:
    with pytest.raises(TypeError, match=r"files: got \w+; accepted: a list, of the bytes of image files or of images"):
        vg.Augmenter(T.Identity()).decode_and_run(files)
