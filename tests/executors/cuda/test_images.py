"""Images in every place and order that the kernels read in place: planar, strided, unaligned, ragged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.executors.poison import poisoned_executor
from tests.images import gray, noise, photo
from tests.programs import Step, crop, program_of, resized_crop, rotate, step
from variegate import RaggedBatch
from variegate.executors.cpu import executor as cpu
from variegate.executors.cuda import layout as L
from variegate.executors.cuda.images import DeviceImages, place_packed, place_tensor, place_tensors
from variegate.program.depth import Depth
from variegate.program.lowering import lower
from variegate.program.ops import Op

EXECUTOR = poisoned_executor("cpu")
CHAINS: list[list[Step]] = [
    [step(Op.HFLIP), step(Op.AUTOCONTRAST)],
    [rotate(20.0, flags=1, fill=(1, 2, 3)), step(Op.EQUALIZE)],
    [resized_crop((1.0, 2.5, 8.0, 30.0), 11, 13)],
    [crop(2, 3, 5, 20), step(Op.SHARPNESS, 1.8)],
]


def _equal(placed: DeviceImages, images: list[np.ndarray]) -> None:
    program = program_of(CHAINS, images).for_depth(placed.depth)
    results = EXECUTOR.run(lower(program, measured_once=True), placed)
    assert isinstance(results, list)
    # Deep pixels are summed in another order.
    tolerance = {Depth.UINT8: 0.0, Depth.UINT16: 1.0, Depth.FLOAT32: 1e-5}[placed.depth]
    for out, wanted in zip(results, cpu.run(program, images, 1), strict=True):
        assert out.numpy().dtype == wanted.dtype
        np.testing.assert_allclose(out.numpy(), wanted, rtol=0, atol=tolerance)


def _batch(channels: int) -> torch.Tensor:
    """uint8[4, 9, 37, C]: odd sides, so that most rows begin between words."""
    make = photo if channels == 3 else gray
    return torch.from_numpy(np.stack([make(9, 37), make(9, 37)[::-1], noise(9, 37, channels), make(9, 37)]))


BATCHES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], bool, int]] = {
    "NHWC": (lambda t: t, True, L.INTERLEAVED),
    "NCHW": (lambda t: t.permute(0, 3, 1, 2).contiguous(), False, L.PLANAR),
    "NCHW, channels last in memory": (lambda t: t.permute(0, 3, 1, 2), False, L.INTERLEAVED),
    "NHWC, planar in memory": (lambda t: t.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1), True, L.PLANAR),
    "every second column": (lambda t: torch.stack([t, t], 3).flatten(2, 3)[:, :, ::2], True, L.INTERLEAVED),
    "from an odd address": (lambda t: torch.cat([t.new_zeros(1), t.flatten()])[1:].view_as(t), True, L.INTERLEAVED),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_are_read_where_they_lie(name: str, channels: int) -> None:
    rearrange, is_last, order = BATCHES[name]
    batch = _batch(channels)
    given = rearrange(batch)
    placed = place_tensor(given, is_last)
    assert placed.addresses[0] == given.data_ptr()
    assert placed.format == (L.INTERLEAVED if channels == 1 else order)
    assert placed.shapes.tolist() == [[9, 37, channels]] * 4
    _equal(placed, list(batch.numpy()))


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("name", ["NCHW", "every second column"])
def test_deep_batches_are_read_where_they_lie(name: str, dtype: str) -> None:
    rearrange, is_last, _ = BATCHES[name]
    batch = _batch(3).numpy()
    deep = batch * np.uint16(257) if dtype == "uint16" else batch / np.float32(255)
    given = rearrange(torch.from_numpy(deep))
    placed = place_tensor(given, is_last)
    assert placed.addresses[0] == given.data_ptr()
    assert str(placed.depth) == dtype
    _equal(placed, list(deep))


def test_tensors_of_several_sizes_and_channels() -> None:
    images = [photo(9, 37), gray(20, 31), photo(30, 33), noise(12, 70, 3)]
    _equal(place_tensors([torch.from_numpy(image) for image in images]), images)


def test_one_planar_image_among_others() -> None:
    images = [photo(9, 37), gray(20, 31), photo(30, 33), noise(12, 70, 3)]
    tensors = [torch.from_numpy(image) for image in images]
    tensors[2] = tensors[2].permute(2, 0, 1).contiguous().permute(1, 2, 0)
    placed = place_tensors(tensors)
    assert placed.format == L.PLANAR
    _equal(placed, images)


def test_packed_images() -> None:
    images = [photo(9, 37), gray(20, 31), photo(30, 33), noise(12, 70, 3)]
    for ragged in (
        RaggedBatch.pack(images),
        RaggedBatch(torch.from_numpy(np.concatenate([i.reshape(-1) for i in images])), [i.shape for i in images]),
    ):
        _equal(place_packed(ragged.data, ragged.offsets, ragged.shapes), images)


def test_nothing_outside_an_image_decides_its_pixels() -> None:
    """The words that hold an image's first and last bytes also hold its neighbours'."""
    image = photo(9, 37)
    outputs = []
    for value in (0, 255):
        whole = torch.full((image.size + 9,), value, dtype=torch.uint8)
        whole[3 : 3 + image.size] = torch.from_numpy(image).flatten()
        placed = place_packed(whole, np.array([3]), np.array([image.shape], np.int32))
        program = program_of([[step(Op.EQUALIZE), step(Op.SHARPNESS, 0.3)]], [image])
        stacked = EXECUTOR.run(lower(program, measured_once=True), placed)
        assert isinstance(stacked, torch.Tensor)
        outputs.append(stacked)
    assert torch.equal(*outputs)
