"""Kernels compiled for uint16 and float32: what the oracle defines for uint8, on pixels of more levels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from native import build
from tests import oracle
from tests.images import Image, noise, photo
from tests.oracle.instruction import deep_pixels
from tests.programs import SEMANTIC, program_of, random_program, step
from variegate.executors.cpu import kernels
from variegate.native.library import data_ptr
from variegate.native.structs import BLEND_CALL, RUN_CALL, Storage, pack_struct
from variegate.program.lowering import lower
from variegate.program.ops import NEEDS_LEVELS, SPECS, Op
from variegate.program.program import Output, Program

LIBRARY = build.OBJECTS / "deep" / "_native.so"
UNSUPPORTED = 2
# The oracle's greatest value: so many levels that float32 tells just as many apart.
WHITE = {"uint16": 65535, "float32": 255 << 16}
TOLERANCE = {"uint16": 1.0, "float32": 1e-5 * WHITE["float32"]}

COPIES = (Op.HFLIP, Op.VFLIP, Op.ROT90, Op.CROP, Op.PAD, Op.ROTATE, Op.AFFINE, Op.PERSPECTIVE, Op.ERASE, Op.PERMUTE)
# All that need no 256 levels.
INSTRUCTIONS = tuple(op for op in SEMANTIC if not NEEDS_LEVELS[op] and SPECS[op].lowered_to is not Op.LUT)

Array = npt.NDArray[Any]
every_element = pytest.mark.parametrize("element", ["uint16", "float32"])
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    deep = ctypes.CDLL(str(build.build(LIBRARY, ["base"], build.DEEP)))
    deep.vg_new_scratch_base.restype = ctypes.c_void_p
    return deep


def call(library: ctypes.CDLL, name: str, fields: Any, **arguments: Any) -> int:
    scratch = library.vg_new_scratch_base()
    packed = pack_struct(fields, scratch=scratch, begin=0, **arguments)
    status: int = library[f"{name}_base"](ctypes.c_void_p(data_ptr(packed)))
    library.vg_free_scratch_base(ctypes.c_void_p(scratch))
    return status


def run(library: ctypes.CDLL, program: Program, images: Sequence[Array], element: str) -> tuple[int, list[Array]]:
    """The library's status, and the results of rows."""
    fused = lower(program, "composed")
    dtype = np.dtype(np.float32 if program.output.is_float else element)
    results = [np.full(tuple(shape), 77, dtype) for shape in fused.result_shapes().tolist()]
    sources, targets = (np.array([data_ptr(array) for array in arrays], np.int64) for arrays in (images, results))
    stored = kernels.result_format(program.output)
    in_levels = np.float32(255 if element == "float32" else 255 / 65535)
    stored = stored._replace(scale=stored.scale * (in_levels if program.output.is_float else 1))
    batch = kernels.pack_batch(fused, sources, targets, stored, False)
    return call(library, f"vg_run_{element}", RUN_CALL, batch=batch.memory, end=fused.num_rows), results


def deepen(images: Sequence[Image], element: str, seed: int) -> tuple[list[Array], list[Array]]:
    """Images of an element, with more than the levels of these, and the same as the oracle reads them.

    Floats are neither very dark nor very bright: only the oracle clips what a resize makes of its first axis.
    """
    white, rng = WHITE[element], np.random.default_rng(seed)
    step = white // 255
    levels = [image * np.int64(step) + rng.integers(step, size=image.shape) for image in images]
    if element == "uint16":
        levels = [np.minimum(image, white) for image in levels]
        return [image.astype(np.uint16) for image in levels], levels
    levels = [white // 3 + image // 3 for image in levels]
    return [(image / white).astype(np.float32) for image in levels], levels


def check(
    library: ctypes.CDLL,
    program: Program,
    images: Sequence[Image],
    element: str,
    seed: int = 0,
    may_differ: float = 0.0,
) -> None:
    """``may_differ``: the share of values that may."""
    deep, levels = deepen(images, element, seed)
    status, results = run(library, program, deep, element)
    assert status == 0
    with deep_pixels(WHITE[element]):
        expected = oracle.run(program, levels)
    for row, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        what = f"row {row}, image {images[row].shape}: {program.operations(row)}"
        if program.output.is_float:
            np.testing.assert_allclose(result, wanted, atol=1e-5, rtol=0, err_msg=what)
            continue
        # Sums of floats may lie beyond black and white.
        scaled = result.astype(np.float64) if element == "uint16" else np.clip(result, 0.0, 1.0) * WHITE[element]
        assert scaled.shape == wanted.shape, what
        assert np.mean(np.abs(scaled - wanted) > TOLERANCE[element]) <= may_differ, what


@every_element
@pytest.mark.parametrize("op", INSTRUCTIONS, ids=lambda op: op.name)
def test_each_operation(library: ctypes.CDLL, op: Op, element: str) -> None:
    # Differences near the threshold of an unsharp mask count in one arithmetic and not in the other.
    may_differ = 1e-4 if op is Op.UNSHARP_MASK and element == "float32" else 0.0
    for seed in range(0, 24, 4):
        program, images, _ = random_program(7000 + 100 * op + seed, [op], longest=1)
        check(library, program, images, element, seed, may_differ)


@every_element
def test_chains_of_copies(library: ctypes.CDLL, element: str) -> None:
    """In every layout, and with Normalize."""
    for seed in range(60):
        program, images, _ = random_program(9000 + seed, COPIES, longest=5, interpolate=False)
        check(library, program, images, element, seed)


@every_element
def test_blends(library: ctypes.CDLL, element: str) -> None:
    """Two images in shares of 0.3 and 0.7; a third one pasted over a part, and by an alpha channel."""
    (first, second), levels = deepen([photo(40, 50), noise(40, 50)], element, 0)
    program = lower(program_of([[], []], [first, second], Output(layout="NHWC")), "composed")
    canvases = np.array([data_ptr(first), data_ptr(second)], np.int64)
    alpha = np.arange(30 * 20, dtype=np.uint8)
    result = [np.zeros_like(first) for _ in range(2)]
    targets = np.array([data_ptr(array) for array in result], np.int64)
    stored = kernels.result_format(program.output)
    batch = kernels.pack_batch(program, canvases, targets, stored, False)
    whole, part = [0, 0, 40, 50], [5, 10, 35, 30]
    status = call(
        library,
        f"vg_blend_{element}",
        BLEND_CALL,
        batch=batch.memory,
        end=2,
        begins=np.array([0, 2, 5], np.int64),
        row=np.array([0, 1, 0, 1, 1], np.int64),
        weight=np.array([0.3, 0.7, 1, 1, 1], np.float32),
        box=np.array([whole, whole, whole, [0, 40, 9, 50], part], np.int32),
        start=np.zeros(2, np.float32),
        pastes=np.array([0, 1], np.uint8),
        alpha_at=np.array([-1, -1, -1, -1, 0], np.int64),
        alpha=alpha,
        canvases=canvases,
        targets=targets,
        storage=int(Storage.BYTES_HWC),
        streams=0,
    )
    assert status == 0
    one, other = (image.astype(np.float64) for image in levels)
    pasted = one.copy()
    pasted[:9, 40:] = other[:9, 40:]
    share = alpha.reshape(30, 20, 1) / 255
    pasted[5:35, 10:30] += share * (other[5:35, 10:30] - pasted[5:35, 10:30])
    to_levels = 1 if element == "uint16" else WHITE[element]
    for found, wanted in zip(result, (0.3 * one + 0.7 * other, pasted), strict=True):
        np.testing.assert_allclose(found * np.float64(to_levels), wanted, atol=TOLERANCE[element], rtol=0)


@every_element
@pytest.mark.parametrize("op", [Op.EQUALIZE, Op.HUE, Op.CLAHE, Op.JPEG], ids=lambda op: op.name)
def test_operations_on_256_levels_are_refused(library: ctypes.CDLL, op: Op, element: str) -> None:
    image = photo(16, 16)
    arguments = {Op.HUE: (0.3,), Op.CLAHE: (2.0, 2.0, 2.0), Op.JPEG: (50.0,)}.get(op, ())
    program = program_of([[step(op, *arguments)]], [image])
    assert run(library, program, deepen([image], element, 0)[0], element)[0] == UNSUPPORTED
