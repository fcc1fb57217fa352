"""One image at a time: by its own way, with the draws, instructions and pixels of a batch of one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import PIL.Image
import pytest
import torch

import variegate as vg
from tests import oracle
from tests.images import Image, gray, noise, photo
from tests.ops.examples import EXAMPLES, POLICIES
from tests.programs import SEMANTIC, random_program
from variegate import transforms as T
from variegate.executors import cpu
from variegate.executors.cpu import memory
from variegate.executors.runners.images import with_wanted_channels
from variegate.program.ops import Op
from variegate.program.program import INSTRUCTION_ARRAYS, Program
from variegate.program.scalar_draw import ScalarDraw
from variegate.transforms import functional as F

EVERY = {**EXAMPLES, **{f"policy {i}": [t] for i, t in enumerate(POLICIES)}}
SIZES = ((1, 1), (3, 2), (17, 31), (16, 64), (65, 15), (40, 63), (113, 97))


def images_of(seed: int, number: int) -> list[Image]:
    generator = np.random.default_rng(seed)
    made: list[Image] = []
    for i in range(number):
        height, width = SIZES[i] if i < len(SIZES) else generator.integers(1, 90, 2).tolist()
        made.append((noise, gray)[int(generator.integers(2))](height, width))
    return made


def by_batch(augmenter: vg.Augmenter, image: Image, **call: Any) -> tuple[Program, Any]:
    """The program and the result of a batch of one, by the way that batches go."""
    program = augmenter.program([image], **call)
    result = augmenter._runner.run(program, augmenter._runner.take([image]))
    return program, with_wanted_channels(result, program.output)


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_of_one_is_drawn_and_made_as_any_batch(name: str) -> None:
    images = images_of(crc32(name.encode()), 8)
    for (i, image), t in product(enumerate(images), EVERY[name]):
        geometry, layout = ("exact", "composed")[i % 2], ("NCHW", "NHWC")[i % 3 == 0]
        augmenter = vg.Augmenter(t, num_threads=1, geometry=geometry, layout=layout, seed=5)  # type: ignore[arg-type]
        call: dict[str, Any] = {"ids": [i << 40 | i], "epoch": i % 4, "copy": i % 3, "conditions": {"label": [i % 5]}}
        refused = refusal(lambda: by_batch(augmenter, image, **call))  # noqa: B023
        assert refused == refusal(lambda: augmenter([image], **call))  # noqa: B023
        if refused:
            continue
        _, expected = by_batch(augmenter, image, **call)
        result = augmenter([image], **call)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)  # type: ignore[union-attr]
        assert torch.equal(result, expected)  # type: ignore[arg-type]


def test_programs_of_every_instruction_run_as_in_a_batch() -> None:
    """Random instructions, side tables included, and more of them than a desk has room for."""
    for seed in range(120):
        program, images, _ = random_program(seed, SEMANTIC)
        for row in range(min(2, program.num_rows)):
            image = images[int(program.source[row])].reshape(program.in_shape[row])
            one = written(program, row)
            expected = cpu.run(only(program, row), [image], 1)[0]
            np.testing.assert_array_equal(cpu.run_one(one, np.ascontiguousarray(image), program.output), expected)


def test_calls_without_enough_memory_are_repeated() -> None:
    """Results of other sizes than the last one, and more weights than a new workspace has room for."""
    blur = vg.pipeline(lambda img: F.motion_blur(img, 101, 30.0))
    turn = T.RandomChoice([T.CenterCrop(9), T.Pad(3), T.RandomHorizontalFlip()])
    image = noise(60, 70)

    def results(transform: T.Transform) -> list[Any]:
        augmenter = vg.Augmenter(transform, num_threads=1)
        return [augmenter([image], ids=[i]) for i in range(20)]

    for transform in (blur, turn):
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(results, transform).result()
        for i, result in enumerate(made):
            _, expected = by_batch(vg.Augmenter(transform, num_threads=1), image, ids=[i])
            assert torch.equal(result, expected)


def only(program: Program, row: int) -> Program:
    names = (*INSTRUCTION_ARRAYS, "length", "in_shape", "ids", "key")
    arrays = {name: getattr(program, name)[row : row + 1].copy() for name in names}
    return program.replace(**arrays, source=np.zeros(1, np.int32), blend=None)


def written(program: Program, row: int) -> ScalarDraw:
    height, width, channels = program.in_shape[row].tolist()
    one = ScalarDraw((height, width, channels), int(program.ids[row]), tuple(program.key[row].tolist()))  # type: ignore[arg-type]
    for k in range(int(program.length[row])):
        one.add(
            Op(int(program.opcode[row, k])),
            *program.args[row, k].tolist(),
            flags=int(program.flags[row, k]),
            fill=program.fill[row, k].tolist(),
            size=tuple(program.out_size[row, k].tolist()),
        )
    for curve in program.tables.curves:
        one.tables.add_curve(curve)
    for matrix in program.tables.matrices:
        one.tables.add_matrix(matrix)
    if len(program.tables.filters):
        one.tables.add_filters(program.tables.filters)
    if len(program.tables.grids):
        one.tables.add_grids(program.tables.grids)
    if len(program.tables.rectangles):
        one.tables.add_rectangles(program.tables.rectangles)
    for point in program.tables.pixel_functions:
        one.tables.add_pixel_function(point)
    return one


def test_read_only_and_scattered_arrays_of_a_program_are_taken() -> None:
    program, images, _ = random_program(7, SEMANTIC)
    expected = cpu.run(program, images, 1)
    arrays = {}
    for name in (*INSTRUCTION_ARRAYS, "length", "in_shape", "ids", "key"):
        scattered = np.repeat(getattr(program, name), 2, axis=0)[::2]
        scattered.flags.writeable = False
        arrays[name] = scattered
    for a, b in zip(cpu.run(program.replace(**arrays), images, 1), expected, strict=True):
        np.testing.assert_array_equal(a, b)


PIPELINE = T.Compose(
    [
        T.RandomResizedCrop((33, 41)),
        T.RandomHorizontalFlip(),
        T.RandAugment(2, 9),
        T.ColorJitter(0.4, 0.4, 0.4),
        T.GaussianBlur((3, 7)),
        T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
        T.RandomErasing(0.5),
    ]
)


def test_threads_do_not_meet_at_a_desk() -> None:
    """Several threads, each with images of all sizes; what one makes is what it would make alone."""
    images = images_of(3, 40)
    one = vg.as_transform(PIPELINE)

    def work(i: int) -> tuple[torch.Tensor, Image, Image]:
        image = images[i % len(images)]
        return one(image, id=i), F.rotate(image, float(i), "bilinear"), F.gaussian_blur(image, 5, 0.5 + i % 7)

    alone = [work(i) for i in range(120)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(120)))
    for a, b in zip(alone, together, strict=True):
        assert torch.equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])
        np.testing.assert_array_equal(a[2], b[2])


def test_scratch_grows_under_a_desk() -> None:
    """A batch between two single images leaves the thread with a larger scratch; the desk goes on with that."""
    small, large = noise(9, 11), noise(300, 280)
    blur = T.Compose([T.GaussianBlur(9, 2.0), T.RandomResizedCrop(64)])
    expected = [F.equalize(image, device="oracle") for image in (small, large)]
    for image, result in zip((small, large), expected, strict=True):
        np.testing.assert_array_equal(F.equalize(image), result)
        vg.Augmenter(blur, num_threads=1)([image, image])
        np.testing.assert_array_equal(F.equalize(image), result)


def test_results_are_written_in_full_and_never_again() -> None:
    """Into memory that held something else; a later call leaves an earlier result alone."""
    image, kept = photo(), []
    for level in (0.0, 0.5, 1.0, 1.5):
        kept.append((level, F.adjust_brightness(image, level)))
        memory.RESULTS.take(image.size)[:] = 0xA5
    for level, result in kept:
        np.testing.assert_array_equal(result, F.adjust_brightness(image, level, device="oracle"))


KINDS = {
    "pil": lambda image: PIL.Image.fromarray(image if image.shape[2:] != (1,) else image[..., 0]),
    "array": lambda image: image,
    "read-only": lambda image: np.frombuffer(image.tobytes(), np.uint8).reshape(image.shape),
    "scattered": lambda image: np.repeat(image, 2, axis=1)[:, ::2],
    "tensor": lambda image: torch.from_numpy(image.transpose(2, 0, 1).copy()),
}


def test_every_kind_of_image_gives_the_same() -> None:
    one = vg.as_transform(PIPELINE, seed=2)
    for i, image in enumerate(images_of(11, 12)):
        expected = vg.Augmenter(PIPELINE, seed=2)([image, image], ids=[i, i])[0]
        for name, kind in KINDS.items():
            assert torch.equal(one(kind(image), id=i), expected), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_other_dtypes_are_those_of_a_batch(dtype: Any) -> None:
    image = noise(40, 50)
    expected = vg.Augmenter(PIPELINE, dtype=dtype)([image, image], ids=[4, 4])[0]
    assert torch.equal(vg.as_transform(PIPELINE, dtype=dtype)(image, id=4), expected)


def test_a_class_that_draws_anew_is_asked_as_it_says() -> None:
    """Of a transform that says one thing twice, a subclass may say it once."""

    class Always(T.RandomHorizontalFlip):
        def sample(self, sampling: Any, rows: Any, slot: int) -> None:
            sampling.emit(rows, Op.VFLIP)

    class Twice(T.Brightness):
        def emit_at(self, image: Any, value: Any, slot: int) -> None:
            super().emit_at(image, value * 2, slot)

    image = noise(8, 9)
    for t in (Always(p=0.0), T.Compose([Twice(0.5), Always(p=0.0)])):
        result = vg.Augmenter(t)([image])[0]
        expected = oracle.run(vg.Augmenter(t, layout="NHWC").program([image]), [image])[0]
        np.testing.assert_array_equal(result.permute(1, 2, 0).numpy(), expected)
    for name in ("Always", "Twice"):
        T.Transform.registry.pop(name)


def test_nothing_stays_of_the_image_before() -> None:
    """A program without instructions, after one whose first pass reads a JPEG."""
    image = photo(24, 31)
    normalize = T.Normalize((0.5,), (0.25,))
    before = normalize(image)
    F.jpeg(image, 30)
    np.testing.assert_array_equal(normalize(image), before)
