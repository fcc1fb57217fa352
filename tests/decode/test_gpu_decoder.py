"""nvImageCodec: asked for where it is not, and, where its package is, run on the host by its libjpeg-turbo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.images import photo
from variegate import Augmenter, Loader
from variegate import transforms as T
from variegate.decode import gpu, read_image
from variegate.decode.gpu import GpuJpegDecoder, check_decode, is_installed
from variegate.jobs.output.files import encode_image

needs_package = pytest.mark.skipif(not is_installed(), reason="needs nvImageCodec: " + gpu.INSTALL)
FILES = [encode_image(photo(61, 50 + i), "jpg") for i in range(5)]


def test_decoders_that_are_not_there() -> None:
    images = [photo(20, 20)]
    for make in (
        lambda decode: Augmenter(T.Invert(), decode=decode),
        lambda decode: Loader((images, [0]), T.Invert(), device="cpu", decode=decode),
    ):
        with pytest.raises(
            ValueError, match=r"decode: got 'gpus'; accepted: one of 'auto', 'cpu', 'gpu'; did you mean 'gpu'"
        ):
            make("gpus")
        with pytest.raises(ValueError, match=r"decode: got 'gpu' on device 'cpu'; accepted there: .*variegate\[gpu\]"):
            make("gpu")
    for decode in ("auto", "cpu"):
        assert Augmenter(T.Invert(), decode=decode).decode == decode


def test_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "is_installed", lambda: False)
    with pytest.raises(ValueError, match=r"needs nvImageCodec: pip install 'variegate\[gpu\]'; accepted without it"):
        check_decode("gpu", "cuda:0")
    check_decode("auto", "cuda:0")
    monkeypatch.setattr(gpu, "is_installed", lambda: True)
    check_decode("gpu", "cuda:0")


@needs_package
def test_boxes_and_failures() -> None:
    decoder = GpuJpegDecoder(torch.device("cpu"), 2)
    gray = encode_image(photo(30, 40), "jpg")
    pieces = [(FILES[0], None), (b"no image", None), (FILES[1], (10, 4, 33, 50)), (FILES[2][:300], None), (gray, None)]
    pictures = decoder.decode(pieces)
    assert [picture is None for picture in pictures] == [False, True, False, True, False]
    expected = [read_image(FILES[0]), read_image(FILES[1])[10:33, 4:50], read_image(gray)]
    for picture, wanted in zip((p for p in pictures if p is not None), expected, strict=True):
        np.testing.assert_array_equal(picture.numpy(), wanted)
    assert decoder.decode([]) == []
    assert decoder.decode([(b"", None)]) == [None]
    assert decoder.works()


@needs_package
def test_several_threads_at_once() -> None:
    decoder = GpuJpegDecoder(torch.device("cpu"), 1)
    expected = [read_image(data) for data in FILES]

    def work(_: int) -> None:
        for picture, wanted in zip(decoder.decode([(data, None) for data in FILES]), expected, strict=True):
            assert picture is not None
            np.testing.assert_array_equal(picture.numpy(), wanted)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(12)))
    assert 1 <= len(decoder._idle) <= 3
