"""Programs for tests: written out step by step, or drawn at random over every instruction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.images import Image, gray, noise, photo
from tests.ops.examples import EXAMPLES
from tests.oracle.geometry import rotation
from variegate.augmenter.augmenter import Augmenter
from variegate.ops import tone, windows  # noqa: F401  # which declare instructions
from variegate.program.coords import STEP_BITS, WEIGHS_TWICE
from variegate.program.ops import (
    INTERPOLATION_BITS,
    LAYER_PLANES,
    LIGHTNESSES,
    SPECS,
    Kind,
    LayerMode,
    Op,
    PadMode,
)
from variegate.program.pixel_functions import PixelFunction
from variegate.program.program import Output, Program
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling

NAN = math.nan
# Every way a kernel may cut a row: below, at and above blocks of 16 and 64 pixels, and sides too small for a filter.
SIZES = ((1, 1), (1, 7), (7, 1), (3, 3), (2, 2), (9, 63), (33, 64), (17, 65), (20, 129), (64, 1), (97, 61), (223, 225))
LARGEST = 300  # random steps that would lead to a longer side are not taken
UINT8 = Output(layout="NHWC")
OUTPUTS = (
    UINT8,
    Output(layout="NCHW"),
    Output(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4), layout="NCHW"),
    Output(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4), layout="NHWC"),
)


POINT = PixelFunction(lambda r, g, b, m: (g * m, b + m, 255.0 - r), "turn")

# What every device has; JPEGs are tested by themselves.
SEMANTIC = tuple(op for op in SPECS if op < 100 and SPECS[op].kind is not Kind.CODEC)
INTERPOLATING = frozenset(
    (Op.ROTATE, Op.SHEAR_X, Op.SHEAR_Y, Op.TRANSLATE_X, Op.TRANSLATE_Y, Op.AFFINE, Op.PERSPECTIVE, Op.DISPLACE)
)


@dataclass(frozen=True)
class Step:
    """One instruction. ``table`` goes to the side tables; its index becomes the first argument."""

    op: Op
    args: tuple[float, ...] = ()
    flags: int = 0
    fill: tuple[int, int, int] = (0, 0, 0)
    size: tuple[int, int] | None = None
    table: Any = None


def step(op: Op, *args: float, **options: Any) -> Step:
    return Step(op, args, **options)


def crop(top: int, left: int, height: int, width: int, **options: Any) -> Step:
    return Step(Op.CROP, (top, left, height, width), size=(height, width), **options)


def rotate(angle: float, flags: int = 0, fill: tuple[int, int, int] = (0, 0, 0)) -> Step:
    return Step(Op.ROTATE, (angle, NAN, NAN, 0.0), flags, fill)


def resized_crop(box: tuple[float, float, float, float], height: int, width: int, flags: int = 1) -> Step:
    return Step(Op.RESIZED_CROP, (*box, height, width, 0.0), flags, size=(height, width))


def erase(*rectangles: tuple[int, int, int, int], random: bool = False, **options: Any) -> Step:
    return Step(Op.ERASE, (len(rectangles), float(random), 4.0), table=rectangles, **options)


def program_of(
    rows: Sequence[Sequence[Step]],
    images: Sequence[Image],
    output: Output = UINT8,
    ids: Sequence[int] | None = None,
    key: npt.NDArray[np.uint32] | None = None,
) -> Program:
    """One row of steps per image."""
    shapes = np.array([image.shape for image in images], np.int32).reshape(-1, 3)
    numbers = np.array(range(len(images)) if ids is None else ids, np.uint64)
    sampling = Sampling(shapes, numbers, stream_key(5, 0) if key is None else key, 0)
    for row, steps in enumerate(rows):
        for taken in steps:
            emit(sampling, row, taken)
    return sampling.finish(output)


def emit(sampling: Sampling, row: int, taken: Step) -> None:
    args: tuple[float, ...] = taken.args
    if taken.op is Op.LUT:
        args = (sampling.add_curve(taken.table),)
    elif taken.op is Op.COLOR_MATRIX:
        args = (sampling.add_matrix(taken.table),)
    elif taken.op is Op.CONVOLVE_FLOAT:
        count, height, width = np.shape(taken.table)
        args = (sampling.add_filters(np.array(taken.table)), width, height, count)
    elif taken.op in (Op.DISPLACE, Op.OVERLAY):
        args = (sampling.add_grids(taken.table), *args)
    elif taken.op is Op.PIXEL_FUNCTION:
        args = (sampling.add_pixel_function(taken.table), *args)
    elif taken.op is Op.ERASE:
        args = (sampling.add_rectangles(np.array(taken.table, np.int32).reshape(-1, 4)), *args)
    size = None if taken.size is None else np.array([taken.size], np.int32)
    sampling.emit(np.array([row]), taken.op, *args, flags=taken.flags, fill=taken.fill, size=size)


# -- at random ---------------------------------------------------------------------------------------------------------


def random_image(rng: np.random.Generator, size: tuple[int, int] | None = None) -> Image:
    """A photo, a gray photo or noise, of one of SIZES."""
    height, width = SIZES[rng.integers(len(SIZES))] if size is None else size
    kind = rng.integers(3)
    if kind == 0:
        return photo(height, width)
    return gray(height, width) if kind == 1 else noise(height, width, 3, int(rng.integers(1000)))


def random_step(rng: np.random.Generator, op: Op, height: int, width: int, interpolate: bool = True) -> Step:
    """The instruction with random arguments, special ones among them, for an image of that size."""
    red, green, blue = (int(v) for v in rng.integers(0, 256, 3))
    drawn = _ARGUMENTS[op](rng, height, width) if op in _ARGUMENTS else _step_of_example(rng, op, height, width)
    taken = drawn if isinstance(drawn, Step) else Step(op, tuple(float(v) for v in drawn))
    taken = replace(taken, fill=(red, green, blue))
    if op in INTERPOLATING and interpolate:
        # Points exactly on the border are for tests of their own: these angles, shears and halves meet them.
        first = abs(taken.args[0])
        on_border = {
            Op.ROTATE: first % 45 == 0,
            Op.SHEAR_X: first == 1,
            Op.SHEAR_Y: first == 1,
            Op.TRANSLATE_X: first % 1 == 0.5,
            Op.TRANSLATE_Y: first % 1 == 0.5,
        }.get(op, False)
        taken = replace(taken, flags=0 if on_border else int(rng.integers(3)))
    if op in INTERPOLATING:
        # Every third map or so has another border than a color.
        mode = int(rng.integers(2 * len(PadMode)))
        taken = replace(taken, flags=taken.flags | (mode << INTERPOLATION_BITS if mode < len(PadMode) else 0))
    return taken


def has_arguments(op: Op) -> bool:
    """Whether random programs may hold the instruction."""
    return op in _ARGUMENTS or bool(_examples_of(op))


def _examples_of(op: Op) -> list[Any]:
    return [example for examples in EXAMPLES.values() for example in examples if getattr(example, "_op", None) is op]


def _step_of_example(rng: np.random.Generator, op: Op, height: int, width: int) -> Step:
    """The instruction as one of the examples of its class draws it."""
    examples = _examples_of(op)
    if not examples:
        raise LookupError(
            f"Op.{op.name}: no arguments in tests/programs.py, and no class with it in tests/ops/examples"
        )
    transform = examples[int(rng.integers(len(examples)))]
    program = Augmenter(transform, seed=int(rng.integers(2**31))).program([(height, width)], ids=[0])
    slot = int(np.flatnonzero(program.opcode[0] == op)[0])
    size = int(program.out_size[0, slot, 0]), int(program.out_size[0, slot, 1])
    return Step(op, tuple(program.args[0, slot].tolist()), int(program.flags[0, slot]), size=size)


def random_chain(
    rng: np.random.Generator, shape: tuple[int, ...], ops: Sequence[Op], length: int, interpolate: bool = True
) -> list[Step]:
    height, width = shape[:2]
    chain: list[Step] = []
    while len(chain) < length:
        taken = random_step(rng, ops[int(rng.integers(len(ops)))], height, width, interpolate)
        after = taken.size or (height, width)
        if max(after) > LARGEST:
            continue
        chain.append(taken)
        height, width = after
    return chain


def random_program(
    seed: int, ops: Sequence[Op], longest: int = 8, rows: int = 4, interpolate: bool = True
) -> tuple[Program, list[Image], list[list[Step]]]:
    """A ragged batch of random chains, gray and colour, and one of OUTPUTS."""
    rng = np.random.default_rng(seed)
    images = [random_image(rng) for _ in range(rows)]
    chains = [random_chain(rng, i.shape, ops, int(rng.integers(1, longest + 1)), interpolate) for i in images]
    ids = [int(v) for v in rng.integers(0, 2**63, rows)]
    output = OUTPUTS[seed % len(OUTPUTS)]
    return program_of(chains, images, output, ids, stream_key(seed, 1)), images, chains


def _pick(rng: np.random.Generator, *values: float) -> float:
    return float(values[rng.integers(len(values))])


def _crop(rng: np.random.Generator, h: int, w: int) -> Step:
    if rng.random() < 0.5:
        ch, cw = int(rng.integers(1, h + 1)), int(rng.integers(1, w + 1))
        return crop(int(rng.integers(h - ch + 1)), int(rng.integers(w - cw + 1)), ch, cw)
    ch, cw = int(rng.integers(1, h + h // 3 + 2)), int(rng.integers(1, w + w // 3 + 2))
    return crop(int(rng.integers(-5, h + 1)), int(rng.integers(-5, w + 1)), ch, cw)


def _pad(rng: np.random.Generator, h: int, w: int) -> Step:
    left, top, right, bottom = (int(v) for v in rng.integers(0, 10, 4))
    return step(Op.PAD, left, top, right, bottom, flags=int(rng.integers(4)), size=(h + top + bottom, w + left + right))


def _quarter(rng: np.random.Generator, h: int, w: int) -> Step:
    turns = int(rng.integers(1, 4))
    return step(Op.ROT90, turns, size=(w, h) if turns % 2 else (h, w))


def _rotate(rng: np.random.Generator, h: int, w: int) -> Step:
    angle = _pick(rng, 0, 90, 180, 270, -90, 45, rng.uniform(-180, 180), rng.uniform(-30, 30), rng.uniform(-30, 30))
    if rng.random() < 0.5:
        size = (h, w)
        if angle % 180 == 90:
            size = (w, h)
        elif angle % 180:
            size = rotation(angle % 360, h, w, None, True)[1]
        return step(Op.ROTATE, angle, NAN, NAN, 1.0, size=size)
    center = (NAN, NAN) if rng.random() < 0.7 else (rng.uniform(0, w), rng.uniform(0, h))
    return step(Op.ROTATE, angle, *center, 0.0)


def _affine(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    u = rng.uniform
    kinds: list[tuple[float, ...]] = [
        (u(0.5, 2), u(-0.5, 0.5), u(-20, 20), u(-0.5, 0.5), u(0.5, 2), u(-20, 20)),
        (u(0.3, 3), 0.0, u(-9, 9), 0.0, u(0.3, 3), u(-9, 9)),  # pure scale: Pillow's accumulating path
        (-1.0, 0.0, w + 0.25, 0.0, -1.0, h - 0.25),
        (u(100, 400), 3.0, -u(0, 9000), 0.1, 1.0, 0.0),  # beyond what 16.16 fixed point holds
    ]
    return kinds[rng.integers(4)]


def _perspective(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    u = rng.uniform
    linear = (u(0.7, 1.3), u(-0.2, 0.2), u(-9, 9), u(-0.2, 0.2), u(0.7, 1.3), u(-9, 9))
    return (*linear, u(-0.005, 0.005), u(-0.005, 0.005))


def grid(
    nodes: npt.NDArray[np.int16], steps: tuple[float, float], unit: int = 0, weighs_twice: bool = False, **options: Any
) -> Step:
    """``nodes[lines, columns, 2]``, ``steps`` (along y, along x) pixels apart, in 2**(unit - 6) pixels."""
    turn = WEIGHS_TWICE if weighs_twice else 0
    step_y, step_x = (round(2.0**STEP_BITS / apart) for apart in steps)
    return step(Op.DISPLACE, *nodes.shape[:2], turn, step_y, step_x, unit, 0.0, table=nodes, **options)


def _displace(rng: np.random.Generator, h: int, w: int) -> Step:
    apart = float(rng.choice([1, 2, 4, 8, 44.3])), float(rng.choice([1, 3, 4, 4, 7.5]))
    lines, columns = (
        (side - 1) * round(2.0**STEP_BITS / s) // 2**STEP_BITS + 2 for side, s in zip((h, w), apart, strict=True)
    )
    unit = int(rng.integers(-6, 3))
    pixels = rng.normal(0, rng.choice([0.0, 0.4, 5.0]), (lines, columns, 2))
    nodes = np.clip(pixels * 2.0 ** (6 - unit), -32767, 32767).astype(np.int16)
    return grid(nodes, apart, unit, weighs_twice=bool(rng.random() < 0.5))


def _resized(rng: np.random.Generator, h: int, w: int) -> Step:
    ch, cw = int(rng.integers(1, h + 1)), int(rng.integers(1, w + 1))
    box = (int(rng.integers(h - ch + 1)), int(rng.integers(w - cw + 1)), ch, cw)
    if rng.random() < 0.3:
        box = (0, 0, h, w)
    return resized_crop(box, int(rng.integers(1, 71)), int(rng.integers(1, 71)), int(rng.integers(6)))


def _erase(rng: np.random.Generator, h: int, w: int) -> Step:
    count = int(rng.integers(4))
    low, high = [-20, -20, 0, 0], [h + 5, w + 5, 30, 30]
    boxes = rng.integers(low, high, (count, 4)).tolist()
    return erase(*(tuple(box) for box in boxes), random=bool(rng.integers(2)))


def overlay(
    layer: npt.NDArray[np.uint8],
    steps: tuple[float, float],
    strength: float = 1.0,
    mode: LayerMode = LayerMode.OVER,
    place: tuple[int, int] = (0, 0),
    **options: Any,
) -> Step:
    """``layer[planes, lines, columns]``, nodes ``steps`` (along y, along x) pixels apart, from ``place`` on."""
    step_y, step_x = (round(2.0**STEP_BITS / apart) for apart in steps)
    nodes = np.append(layer.reshape(-1), np.zeros(layer.size % 2, np.uint8)).view(np.int16)
    args = (*layer.shape[1:], step_y, step_x, *place, strength)
    return step(Op.OVERLAY, *args, flags=int(mode) + LAYER_PLANES * len(layer), table=nodes, **options)


def random_overlay(rng: np.random.Generator, h: int, w: int) -> Step:
    mode = LayerMode(int(rng.integers(4)))
    if mode is LayerMode.CURVE:
        curve = rng.integers(-600, 40_000, 2 * LIGHTNESSES).clip(0, 32767).astype(np.int16)
        return step(Op.OVERLAY, *[0.0] * 7, flags=int(mode) + LAYER_PLANES, table=curve)
    layer = rng.integers(0, 256, (int(rng.integers(1, 5)), *rng.integers(2, 40, 2)), dtype=np.uint8)
    steps = float(rng.choice([1, 1, 2.5, 9])), float(rng.choice([1, 1, 4, 7.3, 30]))
    place = int(rng.integers(-9, h)), int(rng.integers(-9, w))
    return overlay(
        layer, steps, _pick(rng, 1.0, -1.0, rng.uniform(-1, 1)), mode, place if rng.random() < 0.6 else (0, 0)
    )


def random_kernels(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """One to four of odd sides, some of whose weights are 0, or more than 16 bits hold."""
    sizes = int(rng.integers(1, 5)), *(2 * rng.integers(0, 3, 2) + 1).tolist()
    return rng.normal(0, rng.choice([0.2, 3.0]), sizes) * (rng.random(sizes) < 0.8)


def _factor(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    return (_pick(rng, 0.0, 0.5, 1.0, rng.uniform(0, 2), rng.uniform(0, 3)),)


def _pixels(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    return (_pick(rng, int(rng.integers(-20, 21)), rng.uniform(-9, 9), 2.5, int(rng.integers(-300, 301))),)


def _shear(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    return (_pick(rng, rng.uniform(-0.4, 0.4), 0.0, 1.0),)


def _nothing(rng: np.random.Generator, h: int, w: int) -> tuple[float, ...]:
    return ()


def _matrix(rng: np.random.Generator, h: int, w: int) -> Step:
    # Sixty-fourths, so that sums of products are exact in float32 whatever their order.
    matrix = np.round(rng.uniform(-0.5, 1, (3, 4)) * 64) / 64 * [1, 1, 1, 32]
    return step(Op.COLOR_MATRIX, table=matrix.astype(np.float32))


# A Step, or its arguments as any numbers.
_ARGUMENTS: dict[Op, Callable[[np.random.Generator, int, int], Any]] = {
    Op.HFLIP: _nothing,
    Op.VFLIP: _nothing,
    Op.ROT90: _quarter,
    Op.CROP: _crop,
    Op.PAD: _pad,
    Op.RESIZED_CROP: _resized,
    Op.ROTATE: _rotate,
    Op.SHEAR_X: _shear,
    Op.SHEAR_Y: _shear,
    Op.TRANSLATE_X: _pixels,
    Op.TRANSLATE_Y: _pixels,
    Op.AFFINE: _affine,
    Op.PERSPECTIVE: _perspective,
    Op.DISPLACE: _displace,
    Op.BRIGHTNESS: _factor,
    Op.SATURATION: _factor,
    Op.HUE: lambda rng, h, w: (_pick(rng, 0.0, 0.5, -0.5, rng.uniform(-0.5, 0.5)),),
    Op.GAMMA: lambda rng, h, w: (rng.uniform(0.3, 3), rng.uniform(0.5, 1.5)),
    Op.POSTERIZE: lambda rng, h, w: (rng.integers(9),),
    Op.SOLARIZE: lambda rng, h, w: (_pick(rng, 0, 128, 255, 256, rng.uniform(0, 300)),),
    Op.SOLARIZE_ADD: lambda rng, h, w: (rng.integers(-50, 111), rng.integers(257)),
    Op.INVERT: _nothing,
    Op.GRAYSCALE: _nothing,
    Op.PERMUTE: lambda rng, h, w: tuple(rng.permutation(3)),
    Op.RGB_SHIFT: lambda rng, h, w: tuple(rng.integers(-60, 61, 3)),
    Op.LUT: lambda rng, h, w: step(Op.LUT, table=rng.uniform(0, 255, (3, 256))),
    Op.WINDOW: lambda rng, h, w: (rng.uniform(-20, 280), _pick(rng, 1, 255, rng.uniform(0.1, 500))),
    Op.COLOR_MATRIX: _matrix,
    Op.PIXEL_FUNCTION: lambda rng, h, w: step(Op.PIXEL_FUNCTION, rng.integers(33) / 16, table=POINT),
    Op.CONTRAST: _factor,
    Op.AUTOCONTRAST: _nothing,
    Op.EQUALIZE: _nothing,
    Op.PERCENTILE_STRETCH: lambda rng, h, w: (
        _pick(rng, 0, 1, rng.uniform(0, 40)),
        _pick(rng, 99, rng.uniform(41, 100)),
    ),
    Op.SHARPNESS: _factor,
    Op.GAUSSIAN_BLUR: lambda rng, h, w: (
        *(2 * rng.integers(5, size=2) + 1),
        *rng.uniform(0.1, 3, 2),
        rng.choice([0.0, 0.3, 1.0]),
    ),
    Op.CONVOLVE_FLOAT: lambda rng, h, w: step(Op.CONVOLVE_FLOAT, table=random_kernels(rng)),
    Op.UNSHARP_MASK: lambda rng, h, w: (
        *(2 * rng.integers(1, 4, 2) + 1),
        *rng.uniform(0.3, 3, 2),
        rng.uniform(0, 3),
        rng.integers(12),
    ),
    Op.CLAHE: lambda rng, h, w: (rng.uniform(1, 40), *rng.integers(1, 5, 2)),
    # Mostly narrow, as interpreting a wide window takes seconds.
    Op.MEDIAN: lambda rng, h, w: (_pick(rng, *[3] * 8, 5),),
    Op.MOTION_BLUR: lambda rng, h, w: (2 * rng.integers(6) + 1, rng.uniform(0, 360), rng.uniform(-1, 1)),
    Op.MORPHOLOGY: lambda rng, h, w: (*rng.integers(1, 5, 2), rng.integers(2)),
    Op.ZOOM_BLUR: lambda rng, h, w: (rng.integers(4), rng.uniform(0, 0.3)),
    Op.ABERRATION: lambda rng, h, w: rng.uniform(-0.3, 0.3, 4),
    Op.SCATTER: lambda rng, h, w: (rng.integers(6), rng.integers(4), rng.integers(10)),
    Op.GAUSSIAN_NOISE: lambda rng, h, w: (rng.uniform(-0.1, 0.1), rng.uniform(0, 0.3), rng.integers(10)),
    Op.SALT_AND_PEPPER: lambda rng, h, w: (rng.uniform(0, 0.3), rng.uniform(), rng.integers(10)),
    Op.SHOT_NOISE: lambda rng, h, w: (rng.uniform(0, 9), rng.integers(10)),
    Op.OVERLAY: random_overlay,
    Op.ERASE: _erase,
    Op.JPEG: lambda rng, h, w: (rng.integers(1, 101),),
}
