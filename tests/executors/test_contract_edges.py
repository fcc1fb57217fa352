"""The corners of the executors' contract: inputs that random programs seldom meet, each of which has gone wrong."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.children import run_python
from tests.executors.contract import Device, check, every_device
from tests.images import gray, noise, photo
from tests.programs import NAN, Step, crop, erase, program_of, resized_crop, rotate, step
from variegate.executors.runners.devices import get_executor
from variegate.program.coords import MAX_COORD
from variegate.program.ops import INTERPOLATION_BITS, Op, PadMode

pytestmark = pytest.mark.usefixtures("validated")

ROOT = Path(__file__).parents[2]
PERSPECTIVE = (1.0, 0.05, 0.0, 0.02, 1.0, 0.0, 0.001, 0.001)
SEPIA = np.array([[0.25, 0.75, 0.125, 0], [0.25, 0.5, 0.125, 8], [0.25, 0.5, 0.125, 0]], np.float32)
MIXING = [
    step(Op.SATURATION, 0.2),
    step(Op.HUE, 0.3),
    step(Op.GRAYSCALE),
    step(Op.PERMUTE, 2, 0, 1),
    step(Op.COLOR_MATRIX, table=SEPIA),
]


@every_device
@pytest.mark.parametrize("mixing", MIXING, ids=lambda s: s.op.name)
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_colours_mixed_before_a_real_map(device: Device, mixing: Step, flags: int) -> None:
    """What an interpolating map reads goes through a table per channel, which cannot mix channels."""
    img = photo(40, 50)
    for warp in (
        step(Op.PERSPECTIVE, *PERSPECTIVE, flags=flags),
        step(Op.AFFINE, 700, 3, -900, 0.1, 1, 0, flags=flags),
    ):
        chain = [mixing, warp]
        check(device, program_of([chain], [img]), [img], [chain])


@every_device
@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize(
    "box", [(0, -9, 5, 4), (-9, 0, 4, 5), (3, 50, 2, 2), (40, 3, 2, 2), (2, -3, 4, 3), (0, 0, 0, 5)]
)
def test_a_rectangle_outside_the_image_erases_nothing(
    device: Device, box: tuple[int, int, int, int], random: bool
) -> None:
    img = photo(40, 50)
    program = program_of([[erase(box, random=random, fill=(9, 200, 1))]], [img])
    np.testing.assert_array_equal(device.run(program, [img])[0], img)


@every_device
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_a_horizon_through_pixel_centres_is_outside(device: Device, flags: int) -> None:
    """At x = 2.5 the denominator is exactly 0."""
    img = photo(20, 30)
    chain = [step(Op.PERSPECTIVE, 1, 0, 0, 0, 1, 0, -0.4, 0, flags=flags, fill=(7, 8, 9))]
    program = program_of([chain], [img])
    check(device, program, [img], [chain])
    np.testing.assert_array_equal(device.run(program, [img])[0][:, 2], np.tile([7, 8, 9], (20, 1)))


def test_results_beyond_16_bits_are_refused() -> None:
    """16.16 fixed point ends at 32,768."""
    with pytest.raises(ValueError, match=r"Pad to 2x80000; accepted: sides of at most 32,767"):
        program_of([[step(Op.PAD, 40_000, 0, 0, 0, size=(2, 80_000))]], [noise(2, 400)])


# Where 16.16 numbers, int32, coordinates (MAX_COORD) and int64 end, and beyond all of them.
LIMITS = (2.0**15, 2.0**31, 2.0**45, MAX_COORD, 2.0**47, 2.0**62, 2.0**63, 1e300)


@every_device
@pytest.mark.parametrize("mode", PadMode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_maps_to_the_limits_of_coordinates(device: Device, flags: int, mode: PadMode) -> None:
    """A wrong limit once showed wrong pixels at every processor level, and no ordinary map came near it."""
    options = {"flags": flags | mode << INTERPOLATION_BITS, "fill": (7, 80, 200)}
    chains = []
    for limit in LIMITS:
        for far in (limit, -limit, limit - 1, 1 - limit, limit - 20, limit / 20):
            chains += [
                [step(Op.AFFINE, 1, 0, far, 0, 1, 0, **options)],
                [step(Op.AFFINE, 1, 0, 0, 0, 1, far, **options)],
                # From within the image to the limit, along a line and along a column.
                [step(Op.AFFINE, far, 0, 3, 0, 1, 0, **options)],
                [step(Op.AFFINE, 1, far, -7 * far, 0.25, 1, 2, **options)],
                [step(Op.PERSPECTIVE, 1, 0, far, 0, 1, 0, 0.01, 0.02, **options)],
                # Coordinates come back into the image: far from it before the division.
                [step(Op.PERSPECTIVE, far, 0, 0, 0, far, 0, 0, far / 16, **options)],
            ]
    images = [photo(17, 21) if n % 2 else gray(9, 33) for n in range(len(chains))]
    check(device, program_of(chains, images), images, chains, geometry="exact")


@every_device
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_chains_that_return_from_the_limits_of_coordinates(device: Device, flags: int) -> None:
    """Run one after another, the second map only sees what the first one left; nothing overflows between them."""
    chains = []
    for limit in LIMITS:
        for first, second in ((limit, -limit), (-limit, limit), (limit, 0.0)):
            there = step(Op.AFFINE, 1, 0, first, 0, 1, first, flags=flags, fill=(1, 2, 3))
            back = step(Op.AFFINE, 1, 0, second, 0, 1, second, flags=flags, fill=(255, 0, 9))
            chains += [[there, back], [there, step(Op.INVERT), back, step(Op.HFLIP)]]
    images = [photo(17, 21) for _ in chains]
    check(device, program_of(chains, images), images, chains, geometry="exact")
    check(device, program_of(chains, images), images, chains, geometry="composed")


@every_device
def test_crops_far_outside_are_all_fill(device: Device) -> None:
    img = photo(40, 50)
    for offset in (40_000, 65_536 + 3, -40_000):
        chain = [rotate(20.0), crop(-5, offset, 30, 30, fill=(1, 2, 3))]
        check(device, program_of([chain], [img]), [img], [chain])


@pytest.mark.process
@pytest.mark.parametrize("name", ["cpu"])
@pytest.mark.parametrize("flags", [1, 2])
def test_resizes_to_a_few_pixels(name: str, flags: int) -> None:
    """The weights of a tiny output need room. In a process whose scratch memory nothing has grown."""
    code = f"""
        import numpy as np
        from tests.executors.contract import DEVICES, check
        from tests.images import noise
        from tests.programs import program_of, resized_crop
        device = next(d for d in DEVICES if d.name == "{name}")
        for side in (225, 500, 1500):
            img = noise(side, side)
            for size in (1, 2, 3, 5, 8):
                chain = [resized_crop((0, 0, side, side), size, size, {flags})]
                check(device, program_of([chain], [img]), [img], [chain])
    """
    run = run_python(textwrap.dedent(code))
    assert run.returncode == 0, run.stderr[-2000:]


ON_THE_BORDER = {
    "turn by -90": Step(Op.ROTATE, (-90.0, NAN, NAN, 0.0)),
    "turn by 90": Step(Op.ROTATE, (90.0, NAN, NAN, 0.0)),
    "shear by 1 along x": step(Op.SHEAR_X, 1.0),
    "shear by -1 along y": step(Op.SHEAR_Y, -1.0),
    "half a pixel right": step(Op.TRANSLATE_X, 0.5),
    "half a pixel left": step(Op.TRANSLATE_X, -0.5),
    "half a pixel up": step(Op.TRANSLATE_Y, -0.5),
}


@every_device
@pytest.mark.parametrize("flags", [1, 2])
@pytest.mark.parametrize("warp", ON_THE_BORDER)
@pytest.mark.parametrize("first", [step(Op.HFLIP), step(Op.VFLIP), rotate(180.0)], ids=["hflip", "vflip", "half turn"])
def test_points_exactly_on_the_border_after_a_flip(device: Device, first: Step, warp: str, flags: int) -> None:
    """Inside is [0, W): a flip folded into the map must not make it (0, W], which trades a line of pixels for fill."""
    base = ON_THE_BORDER[warp]
    for size in ((20, 129), (33, 64), (17, 65)):
        img = photo(*size)
        chain = [first, Step(base.op, base.args, flags, (255, 0, 255))]
        program = program_of([chain], [img])
        expected = oracle.run(program, [img])[0]
        for geometry in ("composed", "exact"):
            out = device.run(program, [img], geometry=geometry)[0]
            np.testing.assert_array_equal(out, expected, err_msg=f"{warp} on {size}, {geometry}")


@every_device
def test_resized_boxes_with_fractions(device: Device) -> None:
    img = photo(40, 50)
    for flags in (0, 1, 2):
        for box in ((0.3, 0.7, 20.1, 30.7), (1.1, 2.2, 38.9, 47.8), (0.0, 0.5, 40.0, 1.0)):
            chain = [resized_crop(box, 33, 17, flags)]
            check(device, program_of([chain], [img]), [img], [chain])


@pytest.mark.parametrize("name", ["oracle", "cpu"])
def test_images_the_program_was_not_sampled_for_are_refused(name: str) -> None:
    """A compiled executor would read beyond the end of a smaller image."""
    program = program_of([[step(Op.HFLIP)]], [photo(20, 30)])
    run = oracle.run if name == "oracle" else get_executor(name)
    for wrong in (photo(10, 10), photo(30, 20), photo(20, 30)[..., :1]):
        with pytest.raises(ValueError, match=r"row 0: .*sampled for uint8\[20, 30, 3\]"):
            run(program, [wrong])
    with pytest.raises((ValueError, TypeError), match="float32"):
        run(program, [photo(20, 30).astype(np.float32)])


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_works_in_a_forked_child_of_a_process_that_used_it() -> None:
    """torch's DataLoader forks its workers on Linux; the parent's threads do not exist there."""
    code = """
        import os, signal
        import numpy as np
        from tests.executors.contract import DEVICES
        from tests.programs import SEMANTIC, random_program
        from variegate.executors.cpu import run
        program, images, _ = random_program(3, SEMANTIC, rows=30)
        expected = run(program, images, 2)
        if os.fork() == 0:
            signal.alarm(8)
            same = all((a == b).all() for a, b in zip(run(program, images, 2), expected))
            os._exit(0 if same else 1)
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    run = run_python(textwrap.dedent(code))
    # The shell's view of a negative code: the child was stopped by its alarm.
    assert run.returncode == 0, f"child ended with {run.returncode} (242: it hung) {run.stderr[-500:]}"
