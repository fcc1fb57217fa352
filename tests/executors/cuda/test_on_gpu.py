"""What only a real GPU can show: streams, no waiting, DLPack, rounding, memory that runs out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.images import gray, photo
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter, DeviceMemoryError, Engine, RaggedBatch
from variegate import transforms as T
from variegate.transforms import functional as F

pytestmark = pytest.mark.gpu

FLIP = T.RandomHorizontalFlip()
NORMALIZE = T.Normalize(IMAGENET_MEAN, IMAGENET_STD)
POLICY = T.Compose([FLIP, T.RandAugment(2, 9), NORMALIZE])


def _batch(number: int = 32, height: int = 96, width: int = 128) -> np.ndarray:
    return np.stack([photo(height, width, name) for name in ("astronaut", "coffee")] * (number // 2))


def _augmenter(transform: Any = POLICY, **options: Any) -> Augmenter:
    return Augmenter(transform, device="cuda:0", **options)


@pytest.fixture
def cuda_images() -> torch.Tensor:
    return torch.from_numpy(_batch()).cuda()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_bits_of_the_cpu(dtype: str, layout: str) -> None:
    images, ids = _batch(), np.arange(32)
    options = {"dtype": dtype, "layout": layout}
    on_cpu = Augmenter(POLICY, **options)(images, ids=ids)
    on_gpu = _augmenter(**options)(torch.from_numpy(images).cuda(), ids=ids)
    assert isinstance(on_gpu, torch.Tensor)
    assert on_gpu.device == torch.device("cuda:0")
    assert on_gpu.dtype == getattr(torch, dtype)
    assert torch.equal(on_gpu.cpu(), on_cpu)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_one_image_in_tiles(layout: Any) -> None:
    blurred = T.Compose([T.RandomAffine(20, interpolation="bilinear"), T.Contrast(1.4), T.GaussianBlur(9), NORMALIZE])
    image, options = photo(300, 400), {"seed": 1, "layout": layout}
    made = Engine(["cuda:0"], "thread", transform=blurred, **options).map_image(image, tile=128, id=3)
    np.testing.assert_array_equal(made, Augmenter(blurred, **options)([image], ids=[3])[0].numpy())


def test_every_way_to_give_a_batch(cuda_images: torch.Tensor) -> None:
    expected = _augmenter()(cuda_images, ids=range(32))
    host = cuda_images.cpu()
    planar = cuda_images.permute(0, 3, 1, 2)
    for images in (
        host,
        host.numpy(),
        list(host.numpy()),
        list(host),
        list(cuda_images),
        planar,
        planar.contiguous(),
        RaggedBatch.pack(host, "cuda:0"),
        RaggedBatch.pack(host),
    ):
        assert torch.equal(_augmenter()(images, ids=range(32)), expected)


def test_ragged_results_and_gray_images() -> None:
    images = [photo(40, 50), gray(33, 20), photo(7, 90)]
    aug = T.Compose([T.AutoContrast(), T.Rotate((-20, 20))])
    for out, wanted in zip(_augmenter(aug)(images, ids=[1, 2, 3]), Augmenter(aug)(images, ids=[1, 2, 3]), strict=True):
        assert torch.equal(out.cpu(), wanted)


def test_no_call_waits_for_the_device(cuda_images: torch.Tensor) -> None:
    augmenter = _augmenter()
    for first in range(0, 320, 32):
        augmenter(cuda_images, ids=range(first, first + 32))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        augmenter(cuda_images, ids=range(32))
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_many_batches_in_flight_do_not_touch_each_other(cuda_images: torch.Tensor) -> None:
    """The host runs far ahead; every program has to reach its own kernels."""
    augmenter, on_cpu = _augmenter(), Augmenter(POLICY)
    torch.cuda._sleep(200_000_000)
    outputs = [augmenter(cuda_images, epoch=e, ids=range(32)) for e in range(40)]
    for e, out in enumerate(outputs):
        assert torch.equal(out.cpu(), on_cpu(cuda_images.cpu(), epoch=e, ids=range(32))), e


def test_the_callers_stream_is_kept_to() -> None:
    """Inputs still being made by the caller's stream are waited for, and so are the outputs by what follows there."""
    host = torch.from_numpy(_batch())
    expected = Augmenter(POLICY)(host, ids=range(32))
    augmenter = _augmenter()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        late = torch.zeros(host.shape, dtype=torch.uint8, device="cuda:0")
        torch.cuda._sleep(200_000_000)
        late.copy_(host.pin_memory(), non_blocking=True)
        copied = augmenter(late, ids=range(32)).clone()
        late.zero_()
    stream.synchronize()
    assert torch.equal(copied.cpu(), expected)


def test_dlpack_in_and_out(cuda_images: torch.Tensor) -> None:
    class Foreign:
        """Another library's array: nothing but the protocol."""

        def __dlpack__(self, **options: Any) -> Any:
            return cuda_images.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return cuda_images.__dlpack_device__()

    out = _augmenter()(Foreign(), ids=range(32))
    assert torch.equal(out, _augmenter()(cuda_images, ids=range(32)))
    cupy = pytest.importorskip("cupy")
    assert torch.equal(_augmenter()(cupy.from_dlpack(cuda_images), ids=range(32)), out)
    assert cupy.from_dlpack(out).data.ptr == out.data_ptr()


def test_memory_that_runs_out_is_said_so() -> None:
    augmenter = _augmenter(T.Compose([T.Resize((8192, 8192))]))
    images = [photo(8, 8)] * 64
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (2 << 30) / total))
    try:
        with pytest.raises(DeviceMemoryError, match=r"cuda:0: no room for .* GiB more of which"):
            augmenter(images)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    small = augmenter([photo(8, 8)], ids=[5])
    assert torch.equal(small.cpu(), Augmenter(augmenter.transform)([photo(8, 8)], ids=[5]))


def test_tensors_of_another_device_are_refused() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    with pytest.raises(ValueError, match=r"images: got a tensor on cuda:1; accepted: tensors on cuda:0 or on the CPU"):
        _augmenter()(torch.from_numpy(_batch()).to("cuda:1"))


def test_mixed_lists_are_refused(cuda_images: torch.Tensor) -> None:
    with pytest.raises(
        ValueError, match=r"images\[1\]: got a tensor on cpu among tensors on a GPU; accepted: all on one"
    ):
        _augmenter()([cuda_images[0], cuda_images[1].cpu()])


def test_the_cpu_refuses_cuda_tensors(cuda_images: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="accepted on this device: CPU tensors"):
        Augmenter(POLICY)(cuda_images)


def test_functions_run_on_the_device() -> None:
    img = photo(40, 50)
    for function, args in ((F.rotate, (30.0,)), (F.equalize, ()), (F.resize, ((20, 30),)), (F.gaussian_blur, (5,))):
        out = function(img, *args, device="cuda")  # type: ignore[misc]
        assert isinstance(out, np.ndarray)
        np.testing.assert_array_equal(out, function(img, *args, device="cpu"))  # type: ignore[misc]
