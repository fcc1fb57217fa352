"""The contract of every executor (see contract.py): the reference's pixels, whatever the batch, threads and memory."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.children import run_python
from tests.executors.contract import CPU, DEVICES, Device, assert_equal, check, check_chains, every_device
from tests.executors.corners import CORNERS, EXTREMES, color_grid
from tests.images import PHOTOS, Image, gray, noise, photo
from tests.pillow_oracle import run_pillow
from tests.programs import (
    OUTPUTS,
    SIZES,
    grid,
    program_of,
    random_program,
    random_step,
    rotate,
    step,
)
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter
from variegate import transforms as T
from variegate.executors.runners.devices import get_executor
from variegate.program.lowering import lower
from variegate.program.ops import SPECS, Op
from variegate.program.program import Output, Program
from variegate.program.rng import stream_key, stream_keys

pytestmark = pytest.mark.usefixtures("validated")

# -- the reference's pixels --------------------------------------------------------------------------------------------

EVERY_OP = [pytest.param(device, op, id=f"{device.name}-{op.name}", marks=device.marks)
            for device in DEVICES for op in device.ops]  # fmt: skip


@pytest.mark.parametrize(("device", "op"), EVERY_OP)
def test_every_instruction_on_every_size(device: Device, op: Op) -> None:
    """One ragged batch: every size in gray and color, three times with other arguments; and once in each of the other
    outputs, in which the operation is the same."""
    rng = np.random.default_rng(int(op))
    images = [make(h, w) for h, w in SIZES for make in (photo, gray)]
    rounds = [[[random_step(rng, op, *image.shape[:2])] for image in images] for _ in range(3)]
    check_chains(device, [chain for chains in rounds for chain in chains], images * 3, OUTPUTS[0])
    for chains, output in zip(rounds, OUTPUTS[1:], strict=True):
        check_chains(device, chains, images, output)


@every_device
@pytest.mark.parametrize("name", EXTREMES)
def test_arguments_at_their_ends_on_every_size(device: Device, name: str) -> None:
    images = [make(h, w) for h, w in (*SIZES, (5, 300)) for make in (noise, gray)]
    check_chains(device, [[EXTREMES[name]] for _ in images], images)


@every_device
@pytest.mark.parametrize("name", CORNERS)
def test_corners(device: Device, name: str) -> None:
    make, geometries = CORNERS[name]
    chains, images = zip(*make(), strict=True)
    for geometry in geometries:
        check_chains(device, chains, images, geometry=geometry)
    if name == "noisy rows":
        for layout in ("NCHW", "NHWC"):
            check_chains(device, chains, images, Output((0.5,), (0.25,), layout=layout))


@pytest.mark.slow
@pytest.mark.parametrize("red", range(0, 256, 32))
def test_every_hue(red: int) -> None:
    """All colors of a red, with shifts of which the hues of all colors, together, reach every place."""
    for n in range(red, red + 32):
        colors = color_grid(np.array([n]), np.arange(256))
        chains = [[step(Op.HUE, (shift + 0.5) / 255)] for shift in (0, (37 * n + 1) % 256)]
        check_chains(CPU, chains, [colors])


def _half_of(firsts: range) -> list[Any]:
    """The others are slow."""
    return [pytest.param(first, marks=pytest.mark.slow) if n % 2 else first for n, first in enumerate(firsts)]


@every_device
@pytest.mark.parametrize("first", _half_of(range(0, 400, 40)))
def test_random_programs_composed(device: Device, first: int) -> None:
    for seed in range(first, first + 40):
        program, images, chains = random_program(seed, device.ops, interpolate=False)
        check(device, program, images, chains, geometry="composed")


@every_device
@pytest.mark.parametrize("first", _half_of(range(1000, 1300, 30)))
def test_random_programs_stage_by_stage(device: Device, first: int) -> None:
    for seed in range(first, first + 30):
        program, images, chains = random_program(seed, device.ops)
        check(device, program, images, chains, geometry="exact")


def by_pillow(program: Program, row: int, image: Image) -> Image:
    for k, (op, args) in enumerate(program.operations(row)):
        number = 7 if op is Op.RESIZED_CROP else len(SPECS[op].args)
        flags, fill = int(program.flags[row, k]), program.fill[row, k].tolist()
        image = run_pillow(op.name, image, *args[:number].tolist(), flags=flags, fill=fill)
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
        expected = by_pillow(program, row, images[row])
        scale, bias = program.output.scale_and_bias(expected.shape[2])
        wanted = expected.astype(np.float32) * scale[: out.shape[2]] + bias[: out.shape[2]]
        np.testing.assert_array_equal(out, wanted, err_msg=str(program.operations(row)))


# -- composed maps -----------------------------------------------------------------------------------------------------


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
@pytest.mark.parametrize("flags", [1, 2], ids=["bilinear", "bicubic"])
def test_every_map_of_a_chain_has_its_own_outside(device: Device, flags: int) -> None:
    """20.25 pixels to the left, then 30.25 to the right: whole pixels in all, so that the source's own are read. What
    the first map shifted in has its color, what the second did, that of the second."""
    img = noise(9, 70)
    left = step(Op.TRANSLATE_X, -20.25, flags=flags, fill=(1, 2, 3))
    right = step(Op.TRANSLATE_X, 30.25, flags=flags, fill=(9, 8, 7))
    program = program_of([[left, right]], [img])
    assert lower(program).num_passes.tolist() == [1]
    out = device.run(program, [img], geometry="composed")[0]
    assert (out[:, :30] == (9, 8, 7)).all()
    # x = 30 lies a quarter of a pixel within the second map's border.
    np.testing.assert_array_equal(out[:, 30:], img[:, 20:60])
    out = device.run(program_of([[right, left]], [img]), [img], geometry="composed")[0]
    assert (out[:, :10] == (9, 8, 7)).all()
    np.testing.assert_array_equal(out[:, 10:50], img[:, :40])
    assert (out[:, 50:] == (1, 2, 3)).all()


@every_device
def test_pixels_that_leave_show_the_fill_of_the_grid_at_which_they_left(device: Device) -> None:
    img = np.full((61, 90, 3), 50, np.uint8)
    away = grid(np.full((5, 7, 2), 30 * 64, np.int16), (16.0, 16.0), flags=1, fill=(10, 20, 30))
    back = step(Op.TRANSLATE_X, -40.5, flags=1, fill=(200, 210, 220))
    out = device.run(program_of([[away, step(Op.INVERT), back]], [img]), [img])[0]
    assert (out[:, -40:] == (200, 210, 220)).all()
    assert (out[:31, :19] == 205).all()
    assert (out[35:, :45] == (245, 235, 225)).all()


# -- whatever the batch, the threads and the memory --------------------------------------------------------------------


@every_device
def test_every_pixel_is_written(device: Device) -> None:
    for seed in range(2000, 2048):
        program, images, _ = random_program(seed, device.ops, rows=3)
        assert_equal(device.run(program, images, poison=0xA5), device.run(program, images, poison=0x5A))


@every_device
def test_thread_counts_agree(device: Device) -> None:
    program, images, _ = random_program(77, device.ops, rows=37)
    expected = device.run(program, images, threads=1)
    for threads in (2, 3, None):
        assert_equal(device.run(program, images, threads=threads), expected)


@every_device
def test_rows_do_not_know_their_batch(device: Device) -> None:
    """Alone, in reverse, after other programs have used the same scratch memory: always the same pixels."""
    program, images, chains = random_program(91, device.ops, rows=24)
    ids = program.ids.tolist()
    together = device.run(program, images)
    backwards = program_of(chains[::-1], images[::-1], program.output, ids[::-1], program.key[::-1])
    assert_equal(device.run(backwards, images[::-1])[::-1], together)
    for row, image in enumerate(images):
        alone = program_of([chains[row]], [image], program.output, [ids[row]], program.key[row])
        assert_equal(device.run(alone, [image]), together[row : row + 1])


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
        for row, image in enumerate(images):
            alone = program_of([chains[row]], [image], output, [7], stream_key(6, 2, row // 2))
            assert_equal(device.run(alone, [image]), together[row : row + 1])


@every_device
@pytest.mark.parametrize(("op", "args"), [(Op.GAUSSIAN_NOISE, (0.0, 0.1, 2)), (Op.SALT_AND_PEPPER, (0.3, 0.5, 2))])
def test_noise_belongs_to_the_sample(device: Device, op: Op, args: tuple[float, ...]) -> None:
    image = np.full((30, 70, 3), 128, np.uint8)
    program = program_of([[step(op, *args)]] * 3, [image] * 3, ids=[7, 8, 7])
    first, other, again = device.run(program, [image] * 3)
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.2
    # Neighboring pixels draw numbers of their own.
    assert (first[:, 1:] != first[:, :-1]).mean() > 0.2


@every_device
def test_strided_images_are_read_as_they_are(device: Device) -> None:
    base = photo(90, 120)
    views: list[Image] = [base[::2, 3:80:3], base[::-1, ::-1], base.transpose(1, 0, 2), base[..., ::-1], base[..., 1:2]]
    rng = np.random.default_rng(3)
    chains = [[random_step(rng, Op.ROTATE, view.shape[0], view.shape[1], interpolate=False)] for view in views]
    program = program_of(chains, views)
    packed = [np.ascontiguousarray(view) for view in views]
    assert_equal(device.run(program, views), oracle.run(program, packed))


@every_device
def test_images_and_program_stay_as_they_were(device: Device) -> None:
    program, images, _ = random_program(5, device.ops, rows=12)
    before = [image.copy() for image in images]
    names = ("opcode", "args", "flags", "fill", "out_size", "length")
    arrays = [getattr(program, name).copy() for name in names]
    curves = program.tables.curves.copy()
    device.run(program, images)
    assert_equal(images, before)
    assert_equal([getattr(program, name) for name in names], arrays)
    np.testing.assert_array_equal(program.tables.curves, curves)


# Each starts from nothing, in a process of its own.
ALONE = {
    # The weights of a tiny output need room, in scratch memory that nothing has grown.
    "small resizes": """
        from tests.executors.contract import CPU, check_chains
        from tests.images import noise
        from tests.programs import resized_crop
        for side in (225, 500, 1500):
            chains = [[resized_crop((0, 0, side, side), n, n, flags)] for n in (1, 2, 3, 5, 8) for flags in (1, 2)]
            check_chains(CPU, chains, [noise(side, side)])
    """,
    # torch's DataLoader forks its workers on Linux; the parent's threads do not exist there.
    "a forked child": """
        import os, signal
        from tests.programs import SEMANTIC, random_program
        from variegate.executors.cpu import run
        program, images, _ = random_program(3, SEMANTIC, rows=30)
        expected = run(program, images, 2)
        if os.fork() == 0:
            signal.alarm(8)
            same = all((a == b).all() for a, b in zip(run(program, images, 2), expected))
            os._exit(0 if same else 1)
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
}


@pytest.mark.process
@pytest.mark.parametrize("name", ALONE)
def test_in_a_process_of_its_own(name: str) -> None:
    if "fork" in name and not hasattr(os, "fork"):
        pytest.skip("this platform cannot fork")
    run = run_python(textwrap.dedent(ALONE[name]))
    # The shell's view of a negative code: the child was stopped by its alarm.
    assert run.returncode == 0, f"ended with {run.returncode} (242: the child hung) {run.stderr[-2000:]}"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [oracle.run, get_executor("cpu")], ids=["oracle", "cpu"])
def test_images_the_program_was_not_sampled_for_are_refused(run: Callable[..., Any]) -> None:
    """A compiled executor would read beyond the end of a smaller image."""
    program = program_of([[step(Op.HFLIP)]], [photo(20, 30)])
    for wrong in (photo(10, 10), photo(30, 20), photo(20, 30)[..., :1]):
        with pytest.raises(ValueError, match=r"row 0: .*sampled for uint8\[20, 30, 3\]"):
            run(program, [wrong])
    with pytest.raises((ValueError, TypeError), match="float32"):
        run(program, [photo(20, 30).astype(np.float32)])


def test_results_beyond_16_bits_are_refused() -> None:
    """16.16 fixed point ends at 32,768."""
    with pytest.raises(ValueError, match=r"Pad to 2x80000; accepted: sides of at most 32,767"):
        program_of([[step(Op.PAD, 40_000, 0, 0, 0, size=(2, 80_000))]], [noise(2, 400)])
