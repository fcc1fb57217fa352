"""Every kernel in Triton's interpreter: the CPU executor's pixels, for every instruction and for random programs.

Small images, as interpreting is slow; on a GPU the whole contract runs (see contract.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.executors import test_deep as deep
from tests.executors.contract import Device, check
from tests.executors.poison import poisoned_executor, run_poisoned
from tests.images import Image, gray, noise, photo
from tests.programs import (
    OUTPUTS,
    SEMANTIC,
    Step,
    crop,
    grid,
    program_of,
    random_chain,
    random_kernels,
    random_step,
    rotate,
    step,
)
from variegate.executors.cpu import executor as cpu
from variegate.executors.cuda import layout
from variegate.program.depth import Depth
from variegate.program.ops import Interpolation, Op
from variegate.program.program import Output, Program
from variegate.program.rng import stream_key

pytestmark = pytest.mark.usefixtures("validated")

# Below and above the sides of a tile, and too small for a filter. A launch has as many tiles for each image as for its
# largest: an image of two tiles either way would take four for all.
SMALL = ((1, 1), (1, 7), (7, 1), (3, 3), (17, 63), (9, 65))
# More than one tile for the largest, and no more: the interpreter takes as long for small ones.
EXECUTOR = poisoned_executor("cpu", (16, 64))
DEVICE = Device("cuda", lambda program, images, **options: run_poisoned(EXECUTOR, program, images, **options))


def check_against_cpu(program: Program, images: Sequence[Image], chains: Sequence[Sequence[Step]]) -> None:
    """Equal to the bit: sums in the CPU executor's own order, even where they are not in the reference's."""
    results = run_poisoned(EXECUTOR, program, images)
    expected = [result.copy() for result in cpu.run(program, images, 1)]
    for chain, out, wanted in zip(chains, results, expected, strict=True):
        what = ", ".join(f"{s.op.name}{s.args} {s.flags}" for s in chain)
        assert out.shape == wanted.shape, what
        assert out.dtype == wanted.dtype, what
        np.testing.assert_array_equal(out, wanted, err_msg=what)


@pytest.mark.parametrize("op", SEMANTIC, ids=lambda op: op.name)
def test_every_instruction(op: Op) -> None:
    """A ragged batch of every size, gray and colour in turns, other ones for the next instruction: every other image
    against the CPU, the rest in uint8 against the reference."""
    rng = np.random.default_rng(int(op))
    images = [(photo, gray)[(number + int(op)) // 2 % 2](*size) for number, size in enumerate(SMALL)]
    chains = [[random_step(rng, op, *image.shape[:2])] for image in images]
    one, other = (slice(int(op) % 2, None, 2), slice(1 - int(op) % 2, None, 2))
    output = OUTPUTS[int(op) % len(OUTPUTS)]
    check_against_cpu(program_of(chains[one], images[one], output), images[one], chains[one])
    check(DEVICE, program_of(chains[other], images[other]), images[other], chains[other])


@pytest.mark.parametrize("flags", [1, 2])
def test_chains_with_grids(flags: int) -> None:
    """Maps before and after grids, affine and in perspective; gathered at once."""
    rng, size = np.random.default_rng(flags), (21, 40)
    lens = step(Op.PERSPECTIVE, 1.05, 0.02, -1, -0.03, 0.97, 1, 4e-4, -3e-4, flags=flags, fill=(9, 8, 7))
    bent = [
        grid(rng.normal(0, 100, (5, 6, 2)).astype(np.int16), (8.0, 9.5), flags=flags, fill=(40, n, 90)) for n in (1, 2)
    ]
    nodes = rng.normal(0, 100, (5, 6, 2)).astype(np.int16)
    twice = grid(nodes, (8.0, 9.5), weighs_twice=True, flags=flags, fill=(40, 200, 90))
    turned = rotate(9.0, flags, (1, 2, 3))
    chains = [[turned, lens, bent[0], step(Op.INVERT), turned, bent[1], lens], [lens, bent[0]], [step(Op.HFLIP), *bent]]
    chains += [[step(Op.VFLIP), twice, lens], [step(Op.INVERT), twice]]
    images = [photo(*size), gray(*size), photo(*size), photo(*size), gray(*size)]
    check_against_cpu(program_of(chains, images), images, chains)


def test_the_last_map_outside_of_which_a_pixel_lies_gives_its_fill() -> None:
    maps = [
        rotate(33.0, fill=(255, 0, 9)),
        step(Op.TRANSLATE_X, 9.0, fill=(1, 2, 3)),
        step(Op.SHEAR_X, 0.4, fill=(9, 200, 7)),
    ]
    images = [photo(17, 40), photo(21, 33)]
    chains = [maps, maps[::-1]]
    check_against_cpu(program_of(chains, images), images, chains)


def test_statistics_on_both_sides_of_a_crop() -> None:
    """Measured at once, they would both see the image before the crop."""
    images = [photo(40, 50), photo(30, 33)]
    beyond = crop(-3, 4, 12, 15, fill=(255, 0, 9))
    chains = [
        [step(Op.AUTOCONTRAST), crop(3, 4, 9, 11), step(Op.EQUALIZE)],
        [step(Op.EQUALIZE), beyond, step(Op.AUTOCONTRAST), step(Op.EQUALIZE)],
    ]
    program = program_of(chains, images)
    check_against_cpu(program, images, chains)
    check(DEVICE, program, images, chains)


def _random(seed: int, ops: Sequence[Op], interpolate: bool) -> tuple[Program, list[Image], list[list[Step]]]:
    """As programs.random_program, but small."""
    rng = np.random.default_rng(seed)
    sizes = [(int(rng.integers(1, 40)), int(rng.integers(1, 80))) for _ in range(3)]
    images = [photo(*sizes[0]), gray(*sizes[1]), noise(*sizes[2], 3, seed)]
    chains = [random_chain(rng, i.shape, ops, int(rng.integers(1, 7)), interpolate) for i in images]
    ids = [int(v) for v in rng.integers(0, 2**63, 3)]
    return program_of(chains, images, OUTPUTS[seed % len(OUTPUTS)], ids, stream_key(seed, 1)), images, chains


def _is_small(chains: Sequence[Sequence[Step]]) -> bool:
    """Whether interpreting takes seconds, not minutes: no large results, no large kernels."""
    sizes = [s.size or (1, 1) for chain in chains for s in chain]
    kernels = [max(s.args[:2]) for chain in chains for s in chain if s.op is Op.GAUSSIAN_BLUR]
    return max(max(size) for size in sizes) <= 130 and max(kernels, default=0) <= 7


# Large resizes and blurs are among the first: half a minute each in the interpreter.
@pytest.mark.parametrize(
    "seed", [*(pytest.param(n, marks=pytest.mark.slow) for n in (*range(0, 48, 8), 56, 64, 72)), 48]
)
@pytest.mark.random
def test_random_programs(seed: int) -> None:
    for s in range(seed, seed + 8):
        program, images, chains = _random(s, SEMANTIC, interpolate=s % 4 < 2)
        if _is_small(chains):
            check_against_cpu(program, images, chains)


@pytest.mark.parametrize("seed", [2000, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2004, 2024, 4))])
@pytest.mark.random
def test_exact_geometry_is_the_reference_stage_by_stage(seed: int) -> None:
    for s in range(seed, seed + 4):
        program, images, chains = _random(s, SEMANTIC, interpolate=True)
        if _is_small(chains):
            check(DEVICE, program, images, chains, geometry="exact")


def test_hue_of_a_grid_of_colours() -> None:
    """Both ends of every channel, in every sextant."""
    levels = np.arange(0, 256, 17, dtype=np.uint8)
    colours = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(64, 64, 3)
    chains = [[step(Op.HUE, factor)] for factor in (0.0, 0.3, -0.4)]
    check(DEVICE, program_of(chains, [colours] * 3), [colours] * 3, chains)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_results_in_every_dtype(dtype: str, layout: str) -> None:
    images = [photo(9, 70), photo(9, 70)]
    chains = [[step(Op.HFLIP)], [step(Op.EQUALIZE)]]
    program = program_of(chains, images, Output((0.4, 0.5, 0.6), (0.2, 0.3, 0.4), dtype, layout))
    for out, wanted in zip(run_poisoned(EXECUTOR, program, images), cpu.run(program, images, 1), strict=True):
        if dtype == "bfloat16":
            # The interpreter cuts the lower half off where a GPU rounds; see test_on_gpu.py.
            expected = (wanted.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        else:
            expected = wanted.astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(out.astype(np.float32), expected)


@pytest.mark.parametrize("block", [(2, 32), (16, 8), (16, 64)])
def test_tiles_of_any_size_make_the_same_image(block: tuple[int, int]) -> None:
    images = [photo(21, 43), gray(10, 70)]
    chains = [
        [step(Op.AUTOCONTRAST), step(Op.SHARPNESS, 1.7), step(Op.EQUALIZE)],
        [step(Op.SHEAR_X, 0.3, fill=(9, 9, 9)), step(Op.CONTRAST, 0.4), step(Op.INVERT)],
    ]
    program = program_of(chains, images)
    results = run_poisoned(poisoned_executor("cpu", block), program, images)
    for out, wanted in zip(results, cpu.run(program, images, 1), strict=True):
        np.testing.assert_array_equal(out, wanted)


def test_blurs_are_the_references_to_the_bit() -> None:
    chains = [
        [step(Op.GAUSSIAN_BLUR, 5, 3, 1.1, 0.2)],
        [step(Op.GAUSSIAN_BLUR, 11, 1, 90.0, 1.0), step(Op.INVERT)],
        [step(Op.GAUSSIAN_BLUR, 7, 9, 1e-6, 2.0)],
        [step(Op.HFLIP), step(Op.MOTION_BLUR, 5, 33.0, -0.7)],
        [step(Op.MOTION_BLUR, 9, 90.0, 1.0)],
    ]
    images = [noise(17, 31), gray(3, 2), noise(1, 9), noise(12, 33), gray(1, 1)]
    check(DEVICE, program_of(chains, images), images, chains)


def test_filters_are_the_references_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    chains = [[step(Op.HFLIP), step(Op.CONVOLVE_FLOAT, table=random_kernels(rng)), step(Op.INVERT)] for _ in range(3)]
    chains += [[step(Op.UNSHARP_MASK, 5, 3, 1.0, 0.7, 1.6, 4.0)], [step(Op.UNSHARP_MASK, 3, 3, 1.0, 1.0, 0.0, 0.0)]]
    chains += [[step(Op.MEDIAN, 7)]]
    images = [noise(17, 31), gray(3, 2), noise(9, 33, 3, 4), noise(12, 33), gray(5, 9), noise(12, 9)]
    check(DEVICE, program_of(chains, images), images, chains)


@pytest.mark.parametrize("poison", [0x00, 0xFF])
def test_results_do_not_depend_on_what_lay_in_memory(poison: int) -> None:
    images = [photo(20, 70), gray(33, 20)]
    chains = [
        [step(Op.RESIZED_CROP, 1.5, 2.5, 15, 40, 9, 30, 0.0, flags=1, size=(9, 30)), step(Op.EQUALIZE)],
        [step(Op.GAUSSIAN_BLUR, 3, 3, 1.0, 1.0), step(Op.CONTRAST, 1.8), step(Op.SHARPNESS, 0.1)],
    ]
    program = program_of(chains, images)
    for out, wanted in zip(
        run_poisoned(EXECUTOR, program, images, poison=poison), cpu.run(program, images, 1), strict=True
    ):
        np.testing.assert_array_equal(out, wanted)


def test_a_sharpness_sees_its_source_plainly_or_through_what_comes_before() -> None:
    """Flips and crops keep a pixel's neighbours; what shows a border of the fill, turns or has tables does not."""
    plain = [[], [step(Op.HFLIP)], [step(Op.VFLIP)], [crop(2, 3, 9, 11)]]
    mapped = [[crop(-2, 3, 9, 40, fill=(9, 99, 199))], [step(Op.INVERT)], [rotate(90.0)], [rotate(33.0)]]
    chains = [[*before, step(Op.SHARPNESS, 1.9)] for before in plain + mapped]
    images = [noise(17, 31) if number % 3 else gray(12, 33) for number in range(len(chains))]
    check(DEVICE, program_of(chains, images), images, chains)


def test_rows_beyond_the_second_axis_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ROWS_SIDE_BY_SIDE", 2)
    images = [photo(5, 9 + number) for number in range(5)]
    chains = [[step(Op.HFLIP), step(Op.EQUALIZE)] for _ in images]
    check(DEVICE, program_of(chains, images), images, chains)


def _deep_cases() -> Iterator[Any]:
    """Every instruction and depth; the quick ones have each instruction once, and each depth in turns."""
    for number, op in enumerate(deep.INSTRUCTIONS):
        for depth in deep.WHITE:
            is_quick = (number % 2 == 0) == (depth is Depth.UINT16)
            yield pytest.param(op, depth, id=f"{op.name}-{depth}", marks=[] if is_quick else [pytest.mark.slow])


@pytest.mark.parametrize(("op", "depth"), list(_deep_cases()))
def test_every_instruction_of_deep_images(op: Op, depth: Depth) -> None:
    """Gray and color, more than one tile, in one of the outputs."""
    rng = np.random.default_rng(int(op))
    images = [photo(9, 63), (photo, gray)[int(op) % 2](17, 65), gray(1, 7)]
    if op in (Op.MEDIAN, Op.CONVOLVE_FLOAT, Op.RESIZED_CROP):
        images = images[:1]  # of many reads per pixel
    chains = [[step(op, 3) if op is Op.MEDIAN else random_step(rng, op, *image.shape[:2])] for image in images]
    output = OUTPUTS[int(op) % len(OUTPUTS)]
    deep.check(DEVICE, program_of(chains, images, output), images, depth, int(op), may_differ=2e-3)


def _stretched(image: deep.Array, low: float, high: float, depth: Depth) -> deep.Array:
    """PercentileStretch by sorting, in float32."""
    result = image.astype(np.float32)
    for c in range(image.shape[2]):
        channel = result[..., c]
        values = np.sort(channel[~np.isnan(channel)])
        if values.size:
            first = values[int(values.size * low // 100)]
            last = values[-1 - int(values.size * (100 - high) // 100)]
            if first < last:
                channel[...] = np.float32(depth.white) / (last - first) * (channel - first)
    clipped = np.clip(np.nan_to_num(result, nan=0.0), 0, depth.white)
    return clipped.astype(image.dtype)


def _hard_images(depth: Depth) -> list[deep.Array]:
    """One pixel, constants, extremes, values with equal upper digits; of floats also NaN."""
    rng = np.random.default_rng(5)
    if depth is Depth.UINT16:
        edges = np.array([0, 1, 255, 256, 257, 511, 65_280, 65_534, 65_535], np.uint16)
        spread = rng.integers(30_000, 33_000, (9, 65, 3)).astype(np.uint16)
    else:
        edges = np.array(
            [np.nan, np.copysign(np.nan, -1), -np.inf, -3e38, -1, -1e-45, -0.0, 0, 1e-45, 0.5, 1, 3e38, np.inf],
            np.float32,
        )
        spread = rng.normal(0.5, 1, (9, 65, 3)).astype(np.float32)
        spread[rng.random(spread.shape) < 0.2] = np.nan
    sizes = (1, 1, 1), (1, 1, 3), (9, 70, 1), (17, 7, 3)
    images = [edges[:1].reshape(1, 1, 1), np.full((5, 3, 3), edges[-2]), np.full((3, 3, 1), edges[0])]
    return [*images, spread, np.sort(spread[..., :1], axis=1), *(rng.choice(edges, size) for size in sizes)]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
@deep.every_depth
def test_percentiles_of_deep_images_are_exact(depth: Depth) -> None:
    """Of an image, of what a crop makes of it, partly outside, and of the image that another pass has written."""
    images = _hard_images(depth)
    ends = [(0, 100), (1, 99), (37.5, 38), (0, 0.5), (99, 100), (49, 51), (2.5, 90)]
    befores: list[list[Step]] = [[], [crop(-1, -2, 9, 60, fill=(255, 0, 9))], [step(Op.SOLARIZE, 180)]]
    rows = [(image, before, *ends[n % len(ends)]) for n, (image, before) in enumerate(product(images, befores))]
    batch = [image for image, *_ in rows]
    inputs = cpu.run(_deep_program([before for _, before, *_ in rows], batch, depth), batch, 1)
    chains = [[*before, step(Op.PERCENTILE_STRETCH, low, high)] for _, before, low, high in rows]
    results = run_poisoned(EXECUTOR, _deep_program(chains, batch, depth), batch)
    for result, read, (_, before, low, high) in zip(results, inputs, rows, strict=True):
        expected = _stretched(read, low, high, depth)
        np.testing.assert_array_equal(result, expected, err_msg=f"{read.shape} {before} {low} {high}")


def _deep_program(chains: Sequence[Sequence[Step]], images: Sequence[deep.Array], depth: Depth) -> Program:
    return program_of(chains, images, Output(layout="NHWC")).for_depth(depth)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:overflow:RuntimeWarning")
@deep.every_depth
def test_statistics_in_one_batch(depth: Depth) -> None:
    """Each row has another statistic, and its own passes."""
    spread = _hard_images(depth)[3]
    stretch, extremes, invert = step(Op.PERCENTILE_STRETCH, 5, 80), step(Op.AUTOCONTRAST), step(Op.INVERT)
    chains = [[stretch, stretch], [extremes], [step(Op.EQUALIZE), stretch], [invert], [extremes, stretch]]
    images = [spread, spread[:, :9], spread[:2], spread[..., :1], spread[3:]]
    program = _deep_program(chains, images, depth)
    results = run_poisoned(EXECUTOR, program, images)
    for result, expected in zip(results, cpu.run(program, images, 1), strict=True):
        np.testing.assert_array_equal(result, expected)


@deep.every_depth
def test_chains_of_deep_images(depth: Depth) -> None:
    """Images between passes; statistics of the image that operations and maps before them made."""
    beyond = crop(-3, 4, 30, 40, fill=(255, 0, 9))
    map_ = step(Op.AFFINE, 1.1, 0.2, -3, 0.1, 0.9, 2, flags=1, fill=(40, 9, 200))
    chains = [
        [step(Op.BRIGHTNESS, 0.7), map_, step(Op.INVERT), step(Op.SHARPNESS, 1.3)],
        [beyond, step(Op.AUTOCONTRAST), step(Op.HFLIP), step(Op.CONTRAST, 0.4)],
        [step(Op.INVERT), beyond, step(Op.CONTRAST, 1.4)],
        [step(Op.AUTOCONTRAST), step(Op.SATURATION, 0.5), crop(2, 3, 20, 30), step(Op.POSTERIZE, 3)],
    ]
    images = [photo(35, 41), photo(35, 41), gray(35, 70), noise(35, 41)]
    # Every operation truncates, and later ones multiply the differences.
    deep.check(DEVICE, program_of(chains, images), images, depth, may_differ=1e-3, units=4.0)


@deep.every_depth
@pytest.mark.parametrize("size", [(9, 12), (7, 9)], ids=["columns first", "lines first"])
def test_resizes_of_deep_images_clip_once(depth: Depth, size: tuple[int, int]) -> None:
    """Of black and white pixels, by filters whose sums along the first axis lie beyond both."""
    images = [(noise(11, 8, channels) > 128) * np.uint8(255) for channels in (1, 3)]
    filters = Interpolation.BICUBIC, Interpolation.LANCZOS
    chains = [[step(Op.RESIZED_CROP, 0, 0, 11, 8, *size, 0.0, flags=int(kind), size=size)] for kind in filters]
    deep.check(DEVICE, program_of(chains, images, Output(layout="NHWC")), images, depth)


@deep.every_depth
def test_blends_of_deep_images(depth: Depth) -> None:
    deep.check_blends(DEVICE, depth, OUTPUTS[0])
