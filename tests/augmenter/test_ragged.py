"""Images of several sizes in one buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.images import gray, photo
from variegate import Augmenter, RaggedBatch
from variegate import transforms as T

IMAGES = [photo(7, 5), gray(3, 11), photo(20, 30)]


def test_images_come_back() -> None:
    batch = RaggedBatch.pack(IMAGES)
    assert len(batch) == 3
    for i, image in enumerate(IMAGES):
        np.testing.assert_array_equal(batch[i].numpy(), image)
        assert batch[i].data_ptr() % 16 == batch.data.data_ptr() % 16


def test_images_one_right_after_another() -> None:
    data = torch.from_numpy(np.concatenate([image.reshape(-1) for image in IMAGES]))
    batch = RaggedBatch(data, [image.shape for image in IMAGES])
    assert batch.data is data
    assert batch.offsets.tolist() == [0, 105, 138]
    for i, image in enumerate(IMAGES):
        np.testing.assert_array_equal(batch[i].numpy(), image)


def test_it_is_a_batch_for_any_device() -> None:
    aug = Augmenter(T.Compose([T.Equalize(), T.RandomHorizontalFlip()]))
    for device in ("cpu", "oracle"):
        again = Augmenter(aug.transform, device=device)(RaggedBatch.pack(IMAGES), ids=[4, 5, 6])
        assert all(torch.equal(a, b) for a, b in zip(again, aug(IMAGES, ids=[4, 5, 6]), strict=True))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="device: got 'cuda', but "):
        RaggedBatch.pack(IMAGES, "cuda")


BYTES = torch.zeros(100, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (BYTES.float(), [[2, 2, 3]]),
            TypeError,
            r"data: got torch.float32\[100\]; accepted: a torch.uint8 tensor of one",
        ),
        ((BYTES.view(10, 10), [[2, 2, 3]]), TypeError, r"data: got torch.uint8\[10, 10\]"),
        ((np.zeros(9, np.uint8), [[2, 2, 3]]), TypeError, "data: got ndarray"),
        ((BYTES[::2], [[2, 2, 3]]), ValueError, "data: got a tensor with gaps; accepted: a contiguous one"),
        ((BYTES, [2, 2, 3]), ValueError, r"shapes: got int64\[3\]; accepted: int\[N, 3\]: height, width, channels"),
        (
            (BYTES, [[2, 2, 3], [1, 1, 33]]),
            ValueError,
            r"shapes\[1\]: got \[1, 1, 33\]; accepted: sides of 1 to 32,767",
        ),
        ((BYTES, [[0, 2, 3]]), ValueError, r"shapes\[0\]: got \[0, 2, 3\]"),
        (
            (BYTES, [[2, 2, 3]] * 9),
            ValueError,
            r"offsets\[8\]: image \[2, 2, 3\] from byte 96 on; accepted: .* 100 bytes",
        ),
        ((BYTES, [[2, 2, 3]], [-1]), ValueError, r"offsets\[0\]: image \[2, 2, 3\] from byte -1 on"),
        ((BYTES, [[2, 2, 3]], [0, 1]), ValueError, r"offsets: got shape \(2,\); accepted: one per image, 1 here"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RaggedBatch(*arguments)
