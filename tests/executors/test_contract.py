"""The contract of every executor (see contract.py): the reference's pixels, whatever the batch, threads and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.executors.contract import Device, check, every_device
from tests.images import PHOTOS, Image, gray, photo
from tests.pillow_oracle import run_pillow
from tests.programs import OUTPUTS, SEMANTIC, SIZES, program_of, random_program, random_step, rotate, step
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter
from variegate import transforms as T
from variegate.program.ops import SPECS, Op
from variegate.program.program import Output, Program
from variegate.program.rng import stream_key, stream_keys
from variegate.program.sampling import Sampling

pytestmark = pytest.mark.usefixtures("validated")


@every_device
@pytest.mark.parametrize("op", SEMANTIC, ids=lambda op: op.name)
def test_every_instruction_on_every_size(device: Device, op: Op) -> None:
    """One ragged batch: every size in gray and colour, three times with other arguments; and once in each of the other
    outputs, in which the operation is the same."""
    rng = np.random.default_rng(int(op))
    images = [make(h, w) for h, w in SIZES for make in (photo, gray)]
    rounds = [[[random_step(rng, op, *image.shape[:2])] for image in images] for _ in range(3)]
    every = [chain for chains in rounds for chain in chains]
    check(device, program_of(every, images * 3, OUTPUTS[0]), images * 3, every)
    for chains, output in zip(rounds, OUTPUTS[1:], strict=True):
        check(device, program_of(chains, images, output), images, chains)


@every_device
@pytest.mark.parametrize("seed", range(0, 400, 20))
@pytest.mark.parametrize("geometry", ["composed", "exact"])
def test_exact_chains_are_the_same_bits(device: Device, seed: int, geometry: str) -> None:
    for s in range(seed, seed + 20):
        program, images, chains = random_program(s, SEMANTIC, interpolate=False)
        check(device, program, images, chains, geometry=geometry)


@every_device
@pytest.mark.parametrize("seed", range(1000, 1200, 20))
def test_exact_geometry_is_the_reference_stage_by_stage(device: Device, seed: int) -> None:
    for s in range(seed, seed + 20):
        program, images, chains = random_program(s, SEMANTIC)
        check(device, program, images, chains, geometry="exact")


@every_device
def test_composed_interpolation_stays_close_to_stage_by_stage(device: Device) -> None:
    """Reading once through two small rotations blurs less than reading twice; elsewhere it shows the same picture."""
    img = photo(150, 160)
    program = program_of([[rotate(7.0, flags=1), rotate(-5.0, flags=1)]], [img])
    once = device.run(program, [img], geometry="composed")[0].astype(int)
    twice = device.run(program, [img], geometry="exact")[0].astype(int)
    inner = np.abs(once - twice)[25:-25, 25:-25]
    assert 0 < inner.mean() < 4


@every_device
@pytest.mark.parametrize("seed", range(6))
def test_every_pixel_is_written(device: Device, seed: int) -> None:
    for s in range(seed * 8, seed * 8 + 8):
        program, images, _ = random_program(2000 + s, SEMANTIC, rows=3)
        first = device.run(program, images, poison=0xA5)
        second = device.run(program, images, poison=0x5A)
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


@every_device
def test_thread_counts_agree(device: Device) -> None:
    program, images, _ = random_program(77, SEMANTIC, rows=37)
    expected = device.run(program, images, threads=1)
    for threads in (2, 3, None):
        for a, b in zip(device.run(program, images, threads=threads), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@every_device
def test_rows_do_not_know_their_batch(device: Device) -> None:
    """Alone, in reverse, after other programs have used the same scratch memory: always the same pixels."""
    program, images, chains = random_program(91, SEMANTIC, rows=24)
    ids = program.ids.tolist()
    together = device.run(program, images)
    backwards = program_of(chains[::-1], images[::-1], program.output, ids[::-1], program.key[::-1])
    for a, b in zip(device.run(backwards, images[::-1])[::-1], together, strict=True):
        np.testing.assert_array_equal(a, b)
    for row in range(len(images)):
        alone = program_of([chains[row]], [images[row]], program.output, [ids[row]], program.key[row])
        np.testing.assert_array_equal(device.run(alone, [images[row]])[0], together[row])


@every_device
def test_rows_have_keys_of_their_own(device: Device) -> None:
    """Two copies of one sample in a batch: the noise of each is that which it has alone."""
    noisy = (Op.GAUSSIAN_NOISE, Op.SHOT_NOISE, Op.SALT_AND_PEPPER, Op.ERASE, Op.ROTATE)
    _, images, chains = random_program(92, noisy, rows=12)
    keys = stream_keys(6, 2, np.arange(12, dtype=np.uint32) // 2)
    for output in (Output(), Output(mean=(0.5,), std=(0.25,))):
        program = program_of(chains, images, output, [7] * 12, keys)
        check(device, program, images, chains)
        together = device.run(program, images)
        for row in range(12):
            alone = program_of([chains[row]], [images[row]], output, [7], stream_key(6, 2, row // 2))
            np.testing.assert_array_equal(device.run(alone, [images[row]])[0], together[row])


@every_device
def test_strided_images_are_read_as_they_are(device: Device) -> None:
    base = photo(90, 120)
    views: list[Image] = [base[::2, 3:80:3], base[::-1, ::-1], base.transpose(1, 0, 2), base[..., ::-1], base[..., 1:2]]
    rng = np.random.default_rng(3)
    chains = [[random_step(rng, Op.ROTATE, v.shape[0], v.shape[1], interpolate=False)] for v in views]
    program = program_of(chains, views)
    packed = [np.ascontiguousarray(v) for v in views]
    for a, b in zip(device.run(program, views), oracle.run(program, packed), strict=True):
        np.testing.assert_array_equal(a, b)


@every_device
def test_images_and_program_stay_as_they_were(device: Device) -> None:
    program, images, _ = random_program(5, SEMANTIC, rows=12)
    before = [image.copy() for image in images]
    arrays = {name: getattr(program, name).copy() for name in ("opcode", "args", "flags", "fill", "out_size", "length")}
    luts = program.tables.luts.copy()
    device.run(program, images)
    for image, copy in zip(images, before, strict=True):
        np.testing.assert_array_equal(image, copy)
    for name, copy in arrays.items():
        np.testing.assert_array_equal(getattr(program, name), copy, err_msg=name)
    np.testing.assert_array_equal(program.tables.luts, luts)


@every_device
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda o: f"{'float' if o.is_float else 'uint8'}-{o.layout}")
def test_blended_rows(device: Device, output: Output) -> None:
    images = [photo(33, 65), gray(9, 63), photo(64, 64, "coffee"), photo(1, 7)]
    program = _augmix(images, output, "nearest")
    for a, b in zip(device.run(program, images, poison=0x77), oracle.run(program, images), strict=True):
        np.testing.assert_array_equal(a, b)


def _augmix(images: list[Image], output: Output, interpolation: str) -> Program:
    """AugMix on all but the last image, which is a row of its own with weight 1."""
    mix, count = T.AugMix(severity=8, interpolation=interpolation), len(images)
    shapes = np.array([image.shape for image in images], np.int32)
    sampling = Sampling(shapes, np.arange(count, dtype=np.uint64), stream_key(1, 0), mix.num_slots)
    mix.sample(sampling, np.arange(count - 1), 0)
    sampling.emit(sampling.with_forks(np.arange(count)), Op.HFLIP)
    return sampling.finish(output)


@every_device
def test_erasing_of_a_normalised_blend(device: Device) -> None:
    images = [photo(30, 40), photo(20, 70)]
    transform = T.Compose(
        [T.AugMix(interpolation="nearest"), T.Normalize((0.5,), (0.25,)), T.RandomErasing(1.0, value="random")]
    )
    program = Augmenter(transform).program(images, ids=[1, 2])
    for a, b in zip(device.run(program, images), oracle.run(program, images), strict=True):
        np.testing.assert_array_equal(a, b)


@every_device
@pytest.mark.parametrize(("op", "args"), [(Op.GAUSSIAN_NOISE, (0.0, 0.1, 2)), (Op.SALT_AND_PEPPER, (0.3, 0.5, 2))])
def test_noise_belongs_to_the_sample(device: Device, op: Op, args: tuple[float, ...]) -> None:
    image = np.full((30, 70, 3), 128, np.uint8)
    program = program_of([[step(op, *args)]] * 3, [image] * 3, ids=[7, 8, 7])
    first, other, again = device.run(program, [image] * 3)
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.2
    # Neighbouring pixels draw numbers of their own.
    assert len(np.unique(first[..., 0])) > 1
    assert (first[:, 1:] != first[:, :-1]).mean() > 0.2


# -- the works, against Pillow itself ----------------------------------------------------------------------------------


def _by_pillow(program: Program, row: int, image: Image) -> Image:
    for k, (op, args) in enumerate(program.operations(row)):
        number = 7 if op is Op.RESIZED_CROP else len(SPECS[op].args)
        image = run_pillow(
            op.name,
            image,
            *args[:number].tolist(),
            flags=int(program.flags[row, k]),
            fill=program.fill[row, k].tolist(),
        )
    return image


WORKS: dict[str, tuple[list[Any], tuple[int, int]]] = {
    "W1": ([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.RandAugment(2, 9)], (300, 400)),
    "W2": ([T.RandomHorizontalFlip(), T.RandAugment(2, 9)], (224, 224)),
    "strong": ([T.RandomHorizontalFlip(), T.RandAugment(4, 30)], (160, 200)),
}


@every_device
@pytest.mark.parametrize("work", WORKS)
def test_works_equal_pillow_operation_by_operation(device: Device, work: str) -> None:
    steps, (height, width) = WORKS[work]
    images = [photo(height, width, name) for name in PHOTOS for _ in range(8)]
    images += [gray(height, width) for _ in range(4)]
    transform = T.Compose([*steps, T.Normalize(IMAGENET_MEAN, IMAGENET_STD)])
    program = Augmenter(transform, layout="NHWC").program(images, ids=range(len(images)))
    for row, out in enumerate(device.run(program, images)):
        expected = _by_pillow(program, row, images[row])
        scale, bias = program.output.scale_and_bias(expected.shape[2])
        wanted = expected.astype(np.float32) * scale[: out.shape[2]] + bias[: out.shape[2]]
        np.testing.assert_array_equal(out, wanted, err_msg=str(program.operations(row)))
