"""Batches and users' functions on the CUDA path, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.executors.interpreter import tl, triton
from tests.executors.poison import poisoned_executor, run_poisoned
from tests.images import gray, photo
from tests.oracle.philox import philox4x32
from tests.point_functions import ELEMENTARY, EXACT, random_function
from tests.programs import program_of, step
from variegate import Augmenter, RaggedBatch
from variegate import math as vm
from variegate import transforms as T
from variegate.executors import cpu
from variegate.executors.cuda.kernels.values import words
from variegate.executors.cuda.pixel_functions import PixelFunctions, compiled
from variegate.executors.runners.cuda import CudaRunner
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.images import as_tensor, check_tensor, check_tensors, with_wanted_channels
from variegate.jobs.output.files import encode_image
from variegate.program.ops import Op
from variegate.program.pixel_functions import PixelFunction
from variegate.transforms import Transform

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "on_a_gpu.py"
EXECUTOR = poisoned_executor("cpu")
RUNNER = CudaRunner("cpu", None, "composed", executor=EXECUTOR)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transform, "registry", dict(Transform.registry))


def _compare(transform: Transform, images: Any, off: int = 0) -> None:
    """The runner on what a user gives, beside the CPU."""
    augmenter = Augmenter(transform)
    expected = augmenter(images, ids=range(len(images)))
    batch = RUNNER.take(images)
    results = RUNNER.run(augmenter.program([tuple(s) for s in batch.shapes.tolist()], ids=range(len(images))), batch)
    for out, wanted in zip(results, expected, strict=True):
        assert (out.int() - wanted.int()).abs().max() <= off


def test_batches_of_the_host() -> None:
    flip_and_stretch = T.Compose([T.RandomHorizontalFlip(), T.AutoContrast()])
    same = np.stack([photo(20, 30), photo(20, 30, "coffee")])
    for images in (same, list(same), torch.from_numpy(same), [photo(20, 30), gray(9, 9)], RaggedBatch.pack(list(same))):
        _compare(flip_and_stretch, images)
    _compare(flip_and_stretch, [photo(20, 30), gray(9, 9)[..., 0]])


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_batches_of_deep_images(dtype: str) -> None:
    """Of one size or several, gray among color, with and without Normalize, and as a Loader gives them."""
    same = np.stack([photo(20, 30), photo(20, 30, "coffee")])
    deep = same * np.uint16(257) if dtype == "uint16" else same / np.float32(255)
    steps = [T.RandomHorizontalFlip(), T.RandomCrop(16), T.AutoContrast()]
    ragged = [deep[0], deep[1][:17, :, :1]]
    for images, last in (
        (deep, []),
        (ragged, []),
        (deep, [T.Normalize(0.5, 0.25)]),
        (deep, [T.ToDtype("uint8", True)]),
    ):
        augmenter = Augmenter(T.Compose([*steps, *last]))
        expected = augmenter(images, ids=[0, 1])
        encoded = EncodedBatch(list(images))
        program = augmenter.program(images, ids=[0, 1])
        for results in (RUNNER.run(program, RUNNER.take(images)), RUNNER.decode_and_run(program, encoded)):
            for out, wanted in zip(with_wanted_channels(results, program.output), expected, strict=True):
                torch.testing.assert_close(out, wanted, rtol=0, atol=0)


def test_batches_of_several_dtypes_are_refused() -> None:
    images = [np.zeros((9, 9, 3), np.uint16), np.zeros((9, 9, 3), np.float32)]
    with pytest.raises(
        ValueError, match=r"images\[1\]: got an image of float32 in a batch of uint16; accepted: images of"
    ):
        RUNNER.take(images)


def test_encoded_images() -> None:
    files = [encode_image(photo(90, 120), "png"), encode_image(photo(61, 50), "jpg")]
    transform = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip()])
    augmenter = Augmenter(transform)
    expected = augmenter.decode_and_run(files, ids=[0, 1])
    batch = EncodedBatch(files)
    program = augmenter.program([tuple(s) for s in batch.shapes.tolist()], ids=[0, 1])
    assert torch.equal(RUNNER.decode_and_run(program, batch), expected)


def _check_points(functions: list[PixelFunction]) -> None:
    """To the bit the CPU's pixels, of a program that has all of the functions."""
    images = [photo(9, 40), gray(5, 33), photo(7, 20, "coffee")]
    rows = [[step(Op.PIXEL_FUNCTION, 0.75, table=function)] for function in functions for _ in images]
    program = program_of(rows, images * len(functions))
    results = run_poisoned(EXECUTOR, program, images * len(functions))
    expected = cpu.run(program, images * len(functions), 1)
    for number, (out, wanted) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_array_equal(out, wanted, err_msg=functions[number // len(images)].name)


def test_point_functions_are_the_same_on_both_devices() -> None:
    def of_two(function: Any) -> Any:
        return lambda r, g, b, m: (function(r, g), function(g, m), function(m, 3) + b)

    def of_one(function: Any) -> Any:
        return lambda r, g, b, m: (function(r), 99 * function(m * g), 9 * function(b))

    _check_points([PixelFunction(of_two(function), name) for name, function in EXACT.items()])
    _check_points([PixelFunction(of_one(function), name) for name, function in ELEMENTARY.items()])


@pytest.mark.parametrize("first", range(0, 40, 10))
@pytest.mark.random
def test_random_point_functions(first: int) -> None:
    _check_points([random_function(seed) for seed in range(first, first + 10)])


def test_nan_and_infinities_are_those_of_the_cpu() -> None:
    _check_points([PixelFunction(lambda r, g, b, m: (vm.log(-1 - r), 1 / (g - g), -1 / (b - b)), "nothing")])
    _check_points([PixelFunction(lambda r, g, b, m: (float("nan"), float("inf"), float("-inf")), "constants")])


def test_the_operation_of_the_example() -> None:
    vibrance = runpy.run_path(str(EXAMPLE))["Vibrance"]
    _compare(vibrance(), np.stack([photo(20, 30), photo(20, 30, "coffee")]))
    _compare(T.Compose([vibrance(0.7), T.Equalize()]), np.stack([photo(20, 30)]))


def test_a_compiled_function_is_refused() -> None:
    class Fade(T.CustomOp):
        point = ctypes.CFUNCTYPE(None)(lambda: None)

    with pytest.raises(ValueError, match=r"Fade: its pixel function is compiled for CPUs and cannot run on a CUDA"):
        _compare(Fade(), [photo(9, 9)])


def test_functions_have_names_and_keys_of_their_own() -> None:
    """Triton keeps machine code by the text of what a kernel was compiled with, and calls functions by their names."""
    records = [PixelFunction(lambda r, g, b, m, n=n: (r * n, g, b), "scaled").record for n in (2, 3, 3)]
    names = [compiled(record).fn.__name__ for record in records]
    assert names[0] != names[1] == names[2]

    class Compiled:
        def __init__(self, cache_key: str) -> None:
            self.cache_key = cache_key

        def __repr__(self) -> str:
            return "the same name"

    first, second = (PixelFunctions([Compiled(key)]) for key in ("a", "b"))
    assert str(first) != str(second)
    assert first.cache_key != second.cache_key


@triton.jit
def _store_words(pixels, slot, id_low, id_high, key_low, key_high, out, N: tl.constexpr):
    pixel = tl.load(pixels + tl.arange(0, N))
    zero = tl.full([], 0, tl.uint32)
    w0, w1, w2, w3 = words(
        pixel,
        zero + slot.to(tl.uint32),
        zero + id_low.to(tl.uint32),
        zero + id_high.to(tl.uint32),
        zero + key_low.to(tl.uint32),
        zero + key_high.to(tl.uint32),
    )
    at = out + 4 * tl.arange(0, N)
    tl.store(at, w0.to(tl.int32))
    tl.store(at + 1, w1.to(tl.int32))
    tl.store(at + 2, w2.to(tl.int32))
    tl.store(at + 3, w3.to(tl.int32))


@pytest.mark.parametrize("numbers", [(0, 0, 0, 0, 0), (7, 0x89ABCDEF, 0x01234567, 0xDEADBEEF, 0xFFFFFFFF)])
def test_random_words_are_the_hosts(numbers: tuple[int, ...]) -> None:
    pixels = torch.tensor([0, 1, 2, 12345, 1 << 30, 5, 6, 7], dtype=torch.int32)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    out = torch.zeros(8, 4, dtype=torch.int32, device=device)
    _store_words[(1,)](pixels.to(device), *numbers, out, N=8)
    slot, low, high, *key = numbers
    expected = philox4x32([[int(p), slot, low, high] for p in pixels], key)
    np.testing.assert_array_equal(out.cpu().numpy().view(np.uint32), expected)


def test_tensors_are_checked_by_shape_and_dtype() -> None:
    assert check_tensor(torch.zeros(2, 3, 5, 3, dtype=torch.uint8))
    assert check_tensor(torch.zeros(2, 4, 5, 1, dtype=torch.uint8))
    assert not check_tensor(torch.zeros(2, 3, 5, 4, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"images: got dtype float64; accepted: uint8, uint16 or float32 \[N, H"):
        check_tensor(torch.zeros(2, 3, 5, 4).double())
    for shape in ((2, 34, 5, 34), (3, 4, 5), (2, 0, 5, 3)):
        with pytest.raises(ValueError, match=r"images: got shape \(.*\); accepted: \[N, H, W, C\] or \[N, C, H, W\]"):
            check_tensor(torch.zeros(shape, dtype=torch.uint8))
    assert [t.shape for t in check_tensors([torch.zeros(2, 5, dtype=torch.uint8)])] == [(2, 5, 1)]
    first = torch.arange(30, dtype=torch.uint8).reshape(3, 2, 5)
    assert torch.equal(check_tensors([first])[0], first.permute(1, 2, 0))
    with pytest.raises(ValueError, match=r"images\[1\]: got shape \(40, 50, 60\)"):
        check_tensors([torch.zeros(2, 5, 3, dtype=torch.uint8), torch.zeros(40, 50, 60, dtype=torch.uint8)])
    with pytest.raises(TypeError, match=r"images\[0\]: got dtype int32"):
        check_tensors([torch.zeros(2, 5, 3, dtype=torch.int32)])


def test_dlpack_is_taken_without_a_copy() -> None:
    tensor = torch.from_numpy(photo(9, 9))

    class Foreign:
        def __dlpack__(self, **options: Any) -> Any:
            return tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return tensor.__dlpack_device__()

    taken = as_tensor(Foreign())
    assert taken is not None
    assert taken.data_ptr() == tensor.data_ptr()
    same = Augmenter(T.Invert())([Foreign()], ids=[0])
    assert torch.equal(same, Augmenter(T.Invert())([tensor], ids=[0]))
    assert as_tensor("no array") is None
