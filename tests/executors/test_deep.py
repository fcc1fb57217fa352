"""Images of uint16 and float32: what the oracle defines, on pixels of more than 256 levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as PILImage

import variegate as vg
from tests import oracle
from tests.executors.contract import Device, every_device
from tests.images import Image, noise, photo
from tests.oracle.instruction import deep_pixels
from tests.programs import SEMANTIC, program_of, random_program, step
from variegate import transforms as T
from variegate.executors import cpu
from variegate.program.depth import Depth
from variegate.program.ops import NEEDS_LEVELS, SPECS, Op
from variegate.program.program import Blend, Output, Program

# The oracle's greatest value: so many levels that float32 tells just as many apart.
WHITE = {Depth.UINT16: 65535, Depth.FLOAT32: 255 << 16}
TOLERANCE = {Depth.UINT16: 1.0, Depth.FLOAT32: 1e-5 * WHITE[Depth.FLOAT32]}

COPIES = (Op.HFLIP, Op.VFLIP, Op.ROT90, Op.CROP, Op.PAD, Op.ROTATE, Op.AFFINE, Op.PERSPECTIVE, Op.ERASE, Op.PERMUTE)
# All that need no 256 levels.
INSTRUCTIONS = tuple(op for op in SEMANTIC if not NEEDS_LEVELS[op])
# Of these, values on either side of a threshold or of a step differ by more than the tolerance; the share that may.
STEPS = {Op.UNSHARP_MASK: 1e-4, Op.POSTERIZE: 1e-4, Op.EQUALIZE: 1e-4, Op.SOLARIZE: 1e-4, Op.SOLARIZE_ADD: 1e-4}

Array = npt.NDArray[Any]
every_depth = pytest.mark.parametrize("depth", WHITE, ids=str)


def deepen(images: Sequence[Image], depth: Depth, seed: int) -> tuple[list[Array], list[Array]]:
    """Images of a depth, with more than the levels of these, and the same as the oracle reads them.

    Floats are neither very dark nor very bright: only the oracle clips what an interpolation makes of them.
    """
    white, rng = WHITE[depth], np.random.default_rng(seed)
    unit = white // 255
    levels = [image * np.int64(unit) + rng.integers(unit, size=image.shape) for image in images]
    if depth is Depth.UINT16:
        levels = [np.minimum(image, white) for image in levels]
        return [image.astype(np.uint16) for image in levels], levels
    levels = [white // 3 + image // 3 for image in levels]
    return [(image / white).astype(np.float32) for image in levels], levels


def check(
    device: Device,
    program: Program,
    images: Sequence[Image],
    depth: Depth,
    seed: int = 0,
    may_differ: float = 0.0,
    units: float = 1.0,
) -> None:
    """``may_differ``: the share of values that differ by more than ``units``, of 65,535 or of 1e-5."""
    deep, levels = deepen(images, depth, seed)
    program = program.for_depth(depth)
    # Windows are in the image's own numbers.
    is_window = (program.opcode == Op.WINDOW)[..., None]
    program = program.replace(args=np.where(is_window, program.args * (depth.white / 255), program.args))
    results = device.run(program, deep)
    with deep_pixels(WHITE[depth]):
        expected = oracle.run(program, levels)
    for row, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        what = f"row {row}: {program.operations(row)}"
        assert result.shape == wanted.shape, what
        if program.output.is_float:
            unit = 1.01e-5 if depth is Depth.FLOAT32 else 1.01 / 65535
            apart, tolerance = np.abs(result - wanted), units * unit / min(program.output.std or (1.0,))
        else:
            # Sums of floats may lie beyond black and white.
            scaled = np.clip(result.astype(np.float64) * (WHITE[depth] / depth.white), 0, WHITE[depth])
            apart, tolerance = np.abs(scaled - wanted), units * TOLERANCE[depth]
        assert np.mean(apart > tolerance) <= may_differ, f"{what}: {apart.max()}"


@every_device
@every_depth
@pytest.mark.parametrize("op", INSTRUCTIONS, ids=lambda op: op.name)
def test_each_operation(op: Op, depth: Depth, device: Device) -> None:
    for seed in range(0, 12, 4):
        program, images, _ = random_program(7000 + 100 * op + seed, [op], longest=1)
        check(device, program, images, depth, seed, STEPS.get(op, 0.0))


@every_device
@every_depth
def test_chains_of_copies(depth: Depth, device: Device) -> None:
    """In every layout, and with Normalize."""
    for seed in range(40):
        program, images, _ = random_program(9000 + seed, COPIES, longest=5, interpolate=False)
        check(device, program, images, depth, seed)


@every_device
@every_depth
@pytest.mark.parametrize(
    ("statistic", "units"), [(Op.CONTRAST, 3.0), (Op.AUTOCONTRAST, 3.0), (Op.PERCENTILE_STRETCH, 8.0)]
)
def test_what_statistics_see(statistic: Op, units: float, depth: Depth, device: Device) -> None:
    """The image as operations in the same pass leave it: a crop that lies partly outside, values, other statistics."""
    image = photo(40, 50)
    before = [
        [step(Op.CROP, -5, 10, 30, 60, size=(30, 60), fill=(255, 30, 0))],
        [step(Op.INVERT), step(Op.BRIGHTNESS, 0.5)],
        [step(Op.AUTOCONTRAST), step(Op.HFLIP), step(Op.CONTRAST, 0.4)],
    ]
    chains = [[*steps, step(statistic, 1.7, 80), step(Op.INVERT)] for steps in before]
    # Each operation truncates, and what follows multiplies the difference.
    check(device, program_of(chains, [image] * 3, Output(layout="NHWC")), [image] * 3, depth, units=units)


@every_device
@every_depth
def test_an_interpolated_map_after_values(depth: Depth, device: Device) -> None:
    image = photo(40, 50)
    steps = [step(Op.BRIGHTNESS, 0.8), step(Op.INVERT), step(Op.AFFINE, 1.1, 0.2, -3, 0.1, 0.9, 2, flags=1)]
    check(device, program_of([steps], [image], Output(layout="NHWC")), [image], depth)


@every_device
@every_depth
@pytest.mark.parametrize("output", [Output(layout="NHWC"), Output(mean=(0.5,), std=(0.25,))], ids=["plain", "float"])
def test_blends(depth: Depth, output: Output, device: Device) -> None:
    check_blends(device, depth, output)


def check_blends(device: Device, depth: Depth, output: Output) -> None:
    """Two images in shares of 0.3 and 0.7; beside each other, with the second once more by an alpha channel."""
    images = [photo(40, 50), noise(40, 50)]
    whole = [0, 0, 40, 50]
    blend = Blend(
        target=np.array([0, 0, 1, 1, 1], np.int32),
        weight=np.array([0.3, 0.7, 1, 1, 1], np.float32),
        row=np.array([0, 1, 0, 1, 1], np.int32),
        box=np.array([whole, whole, [0, 0, 40, 30], [0, 30, 40, 50], [5, 10, 35, 30]], np.int32),
        start=np.array([0.5, 0], np.float32),
        feather=np.array([-1, -1, -1, -1, 0], np.int64),
        alpha=np.arange(30 * 20, dtype=np.uint8),
    )
    check(device, program_of([[step(Op.INVERT)], []], images, output).replace(blend=blend), images, depth)


def test_pixels_on_a_threshold_are_not_below_it() -> None:
    """However they were scaled; as those of uint8."""
    levels = np.arange(256, dtype=np.uint8)[None, :, None]
    scaled = [levels / np.float32(255), levels * (np.float32(1) / np.float32(255)), levels * np.uint16(257)]
    wholes = [1.0, 1.0, 65535.0]
    for threshold in range(256):
        steps = [step(Op.SOLARIZE, threshold)], [step(Op.SOLARIZE_ADD, 50, threshold)]
        wanted = cpu.run(program_of(steps, [levels] * 2, Output(layout="NHWC")), [levels] * 2, num_threads=1)
        for image, whole in zip(scaled, wholes, strict=True):
            depth = Depth.UINT16 if whole > 1 else Depth.FLOAT32
            program = program_of(steps, [levels] * 2, Output(layout="NHWC")).for_depth(depth)
            for made, expected in zip(cpu.run(program, [image] * 2, num_threads=1), wanted, strict=True):
                np.testing.assert_allclose(made / whole, expected / 255.0, atol=1e-6)


BLURS = (T.GaussianBlur(5), T.MotionBlur(), T.Defocus(), T.ZoomBlur(), T.Convolve([[0.25, 0.5, 0.25]]), T.Resize(9))


@pytest.mark.parametrize("transform", BLURS, ids=lambda transform: type(transform).__name__)
def test_blurs_keep_floats_beyond_black_and_white(transform: Any) -> None:
    for value in (-2.0, 3.0):
        image = np.full((12, 14, 3), value, np.float32)
        np.testing.assert_allclose(vg.Augmenter(transform, seed=0)([image], ids=[0])[0], value, rtol=1e-3)


def test_blends_keep_floats_beyond_black_and_white() -> None:
    images = [np.full((12, 14, 3), value, np.float32) for value in (2.0, 3.0)]
    blend = Blend(
        target=np.array([0, 0], np.int32),
        weight=np.array([0.25, 0.75], np.float32),
        row=np.array([0, 1], np.int32),
    )
    program = program_of([[], []], images, Output(layout="NHWC")).replace(blend=blend).for_depth(Depth.FLOAT32)
    np.testing.assert_allclose(cpu.run(program, images, num_threads=1)[0], 2.75, rtol=1e-6)


@pytest.mark.parametrize("side", [2, 7])
def test_sharpness_clips_the_border_as_well(side: int) -> None:
    for value, expected in ((2.0, 1.0), (-1.0, 0.0), (0.5, 0.5)):
        image = np.full((side, side, 3), value, np.float32)
        program = program_of([[step(Op.SHARPNESS, 1.5)]], [image], Output(layout="NHWC")).for_depth(Depth.FLOAT32)
        assert np.unique(cpu.run(program, [image], num_threads=1)[0]).tolist() == [expected]


@every_depth
@pytest.mark.parametrize("op", [op for op in SPECS if NEEDS_LEVELS[op]], ids=lambda op: op.name)
def test_instructions_on_256_levels_are_refused(op: Op, depth: Depth) -> None:
    program, _, _ = random_program(7, [op], longest=1)
    message = f"{SPECS[op].name}: got images of {depth}, and is defined on 256 levels; accepted: uint8 images"
    with pytest.raises(ValueError, match=f"^{message}$"):
        program.for_depth(depth)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(50, 100), (100, 50), (130, 70)], ids=str)
def test_a_resize_spreads_infinity_as_far_as_pillow_does(size: tuple[int, int], channels: int) -> None:
    """Weights of 0 do not spread it further, in vectors of several outputs, and along axes that keep their size."""
    image = np.zeros((100, 100, channels), np.float32)
    image[50, 50] = np.inf
    for interpolation in (PILImage.Resampling.BILINEAR, PILImage.Resampling.BICUBIC, PILImage.Resampling.BOX):
        resize = T.Resize(size, interpolation=interpolation.name.lower())
        result = vg.Augmenter(resize, layout="NHWC", device="cpu")([image])[0].numpy()
        expected = np.asarray(PILImage.fromarray(image[:, :, 0]).resize(size[::-1], interpolation))
        assert np.array_equal(np.isfinite(result), np.repeat(np.isfinite(expected)[:, :, None], channels, axis=2))
