"""What is done to finished tensors: other kinds of numbers, several crops, functions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T
from variegate.transforms import functional as F

IMAGE = photo(40, 50)
PLANES = torch.from_numpy(IMAGE).permute(2, 0, 1)


@pytest.mark.parametrize(
    ("dtype", "scale", "expected"),
    [
        ("float64", True, lambda x: x.to(torch.float64).mul(1 / 255)),
        ("float64", False, lambda x: x.to(torch.float64)),
        ("int32", False, lambda x: x.to(torch.int32)),
        ("int32", True, lambda x: x.to(torch.int32) << 23),
        ("int64", True, lambda x: x.to(torch.int64) << 55),
        ("int16", True, lambda x: x.to(torch.int16) << 7),
        ("int8", True, lambda x: (x >> 1).to(torch.int8)),
        ("uint8", True, lambda x: x),
    ],
)
def test_kinds_of_numbers_are_torchvisions(dtype: str, scale: bool, expected: Callable[[Any], Any]) -> None:
    for transform in (T.ToDtype(dtype, scale), T.ToDtype(getattr(torch, dtype), scale)):
        out = transform(IMAGE)
        torch.testing.assert_close(out, expected(PLANES), rtol=0, atol=0)
    batch = vg.Augmenter(T.ToDtype(dtype, scale), layout="NHWC")([IMAGE, IMAGE])
    assert batch.dtype == getattr(torch, dtype)
    torch.testing.assert_close(batch[1].permute(2, 0, 1), expected(PLANES), rtol=0, atol=0)


@pytest.mark.parametrize("image_dtype", ["float32", "uint16"])
@pytest.mark.parametrize("dtype", ["uint16", "int16", "int8", "int32", "float64"])
def test_black_and_white_of_deep_images_are_those_of_the_dtype(image_dtype: str, dtype: str) -> None:
    image = np.array([[[0], [1 if image_dtype == "float32" else 65535]]], image_dtype)
    if (image_dtype, dtype) == ("float32", "int32"):
        return  # refused, see below
    out = T.ToDtype(dtype, scale=True)(image)
    assert out.dtype == getattr(torch, dtype)
    # Shifts leave the lowest bits 0, as in torchvision.
    white = 1 if dtype == "float64" else 65535 << 15 if dtype == "int32" else np.iinfo(dtype).max
    assert out.reshape(-1).tolist() == [0, white]


@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_deep_images_are_converted_to_uint8(dtype: str) -> None:
    white = 1 if dtype == "float32" else 65535
    image = (np.array([[[0], [0.5], [1]]]) * white).astype(dtype)
    to_uint8 = T.ToDtype("uint8", scale=True)
    for t in (to_uint8, T.Compose([to_uint8, T.RandomHorizontalFlip(0.0)])):
        for made in (t(image), vg.Augmenter(t)([image])[0], vg.Augmenter(t)([image, image[:, :2]])[0]):
            assert made.dtype == torch.uint8
            assert made.reshape(-1).tolist() == [0, 127, 255]
    assert T.Compose([T.FiveCrop(1), to_uint8])(image).dtype == torch.uint8
    floats = T.Compose([to_uint8, T.ToDtype("float32", scale=False)])(image)
    np.testing.assert_allclose(floats.reshape(-1), [0, 127.5, 255], atol=0.01)
    assert torch.equal(T.Compose([to_uint8, T.Normalize(0.5, 0.5)])(image), T.Normalize(0.5, 0.5)(image))


@pytest.mark.parametrize("vertical", [False, True])
def test_crops_of_uint16_are_those_of_uint8(vertical: bool) -> None:
    crops = T.TenCrop((21, 30), vertical)
    assert torch.equal(crops(IMAGE.astype(np.uint16)).to(torch.uint8), crops(IMAGE))


def test_uint8_in_front_is_nothing() -> None:
    end = [T.Resize(20), T.ToDtype("float32", True), T.Normalize(0.5, 1)]
    t = T.Compose([T.ToImage(), T.ToDtype("uint8", True), *end])
    np.testing.assert_array_equal(t(IMAGE).numpy(), T.Compose([T.Resize(20), T.Normalize(0.5, 1)])(IMAGE).numpy())


def test_normalize_after_float64_has_its_precision() -> None:
    t = T.Compose([T.ToDtype("float64", True), T.Normalize((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))])
    shape = (3, 1, 1)
    mean, std = (torch.tensor(v, dtype=torch.float64).reshape(shape) for v in ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)))
    torch.testing.assert_close(t(IMAGE), (PLANES.to(torch.float64) / 255 - mean) / std, rtol=1e-14, atol=1e-14)
    assert t(gray(9, 8)).shape == (1, 9, 8)


@pytest.mark.parametrize("mirror", [None, False, True])
def test_crops_are_those_of_the_functions(mirror: bool | None) -> None:
    transform = T.FiveCrop((21, 30)) if mirror is None else T.TenCrop((21, 30), mirror)
    expected = F.five_crop(PLANES, (21, 30)) if mirror is None else F.ten_crop(PLANES, (21, 30), mirror)
    np.testing.assert_array_equal(expected[2].numpy(), PLANES[:, 19:, :30].numpy())
    np.testing.assert_array_equal(expected[4].numpy(), PLANES[:, 10:31, 10:40].numpy())
    torch.testing.assert_close(transform(IMAGE), torch.stack(expected))
    t = T.Compose([transform, T.ToDtype("float32", True), T.Normalize(0.5, 0.25)])
    for layout in ("NCHW", "NHWC"):
        out = vg.Augmenter(t, layout=layout)([IMAGE, IMAGE[::-1]])  # type: ignore[arg-type]
        crops = out[0] if layout == "NCHW" else out[0].permute(0, 3, 1, 2)
        torch.testing.assert_close(crops, (torch.stack(expected) / 255 - 0.5) / 0.25, rtol=0, atol=1e-6)


def test_lambda_sees_finished_tensors() -> None:
    exp = T.Lambda(torch.Tensor.exp, torch.Tensor)
    t = T.Compose([T.Normalize(0.5, 0.5), T.Lambda(lambda x: x.mean(dim=(1, 2))), exp])
    one = t(IMAGE)
    torch.testing.assert_close(one, ((PLANES / 255 - 0.5) / 0.5).mean(dim=(1, 2)).exp(), rtol=1e-4, atol=0)
    assert vg.Augmenter(t)([IMAGE, IMAGE]).shape == (2, 3)  # type: ignore[union-attr]
    assert vg.Augmenter(T.Lambda(lambda x: tuple(x.shape)))([IMAGE, photo(7, 9)]) == [(3, 40, 50), (3, 7, 9)]
    assert "float32 CHW -> Lambda(<lambda>) -> Lambda(exp)" in vg.Augmenter(t).explain(3)

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x.double()

    assert T.Compose([T.Lambda(Unhashable()), T.Normalize(0.5, 0.5)])(IMAGE).dtype == torch.float64
    assert pickle.loads(pickle.dumps(T.Lambda(torch.exp))) == T.Lambda(torch.exp)
