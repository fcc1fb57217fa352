"""A Program: the work on every row of a batch, as plain arrays.

Axes: R rows, K instruction slots, A = 8 arguments, T tables. A *row* is one image being made; AugMix gives a sample
several rows, MixUp joins rows of several samples, by a blend."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from variegate.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    ImageArray,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt32Array,
    UInt64Array,
)
from variegate.program.depth import Depth, depth_of, needs_levels
from variegate.program.ops import NEEDS_LEVELS, NUM_ARGS, SPECS, Op
from variegate.program.passes import PASS_FIELDS

if TYPE_CHECKING:
    from variegate.program.pixel_functions import PixelFunction


# "sampled" is what transforms emit, "fused" what lowering makes of it.
STAGES = ("sampled", "fused")

# Sides of images that go in or come out of an operation. Coordinates are 16.16 fixed-point numbers, so that larger ones
# would wrap around.
MAX_SIDE = 32_767
MAX_CHANNELS = 32


def is_kernel_image(value: Any) -> TypeGuard[ImageArray]:
    """True for an image as kernels read it: a contiguous array [H, W, 1 or 3] of a ``Depth``, sides from 1 to
    MAX_SIDE."""
    if type(value) is not np.ndarray or value.ndim != 3 or depth_of(value.dtype) is None:
        return False
    height, width, channels = value.shape
    has_shape = 0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE and channels in (1, 3)
    return has_shape and value.flags.c_contiguous


@dataclass(frozen=True)
class Output:
    """Format of results. ``mean`` None: the images' own numbers. Else ``(x / white - mean) / std`` in ``dtype``."""

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    dtype: str = "float32"
    layout: str = "NCHW"
    # What is done to results after the last pass, outside of it: see ``ops/finish.py``.
    steps: tuple[Any, ...] = ()
    # ``mean`` and ``std`` are 255ths of those of the images' own numbers, whatever white is.
    is_unscaled: bool = False

    @property
    def is_float(self) -> bool:
        return self.mean is not None

    def scale_and_bias(self, channels: int, depth: Depth = Depth.UINT8) -> tuple[Float32Array, Float32Array]:
        """float32[3] each: the output is ``x * scale + bias``, both roundings in float32. One channel repeats."""
        if self.mean is None or self.std is None:
            raise ValueError("scale_and_bias: this output is not normalized and has no mean and std")
        white = 255.0 if self.is_unscaled else depth.white
        return _scale_and_bias(self.mean, self.std, channels, white)


@lru_cache(maxsize=256)
def _scale_and_bias(
    mean: tuple[float, ...], std: tuple[float, ...], channels: int, white: float
) -> tuple[Float32Array, Float32Array]:
    if len(mean) not in (1, 3) or len(std) not in (1, 3):
        accepted = "one number or three of each, for an image of one or three channels"
        raise ValueError(f"Normalize: mean={mean}, std={std}; accepted: {accepted}")
    means = np.resize(mean, 3).astype(np.float64)
    stds = np.resize(std, 3).astype(np.float64)
    if channels == 1 and len(mean) == 3:
        means = np.full(3, means.mean())
        stds = np.full(3, stds.mean())
    return (1.0 / (white * stds)).astype(np.float32), (-means / stds).astype(np.float32)


@dataclass
class Tables:
    """Side tables that instructions point into by index."""

    luts: UInt8Array = field(default_factory=lambda: np.empty((0, 3, 256), np.uint8))  # [T, colors' channels, 256]
    matrices: Float32Array = field(default_factory=lambda: np.empty((0, 3, 4), np.float32))
    kernels: Int16Array = field(default_factory=lambda: np.empty(0, np.int16))  # see lowering/blurs.py
    filters: Float32Array = field(default_factory=lambda: np.empty(0, np.float32))  # weights, line by line
    rectangles: Int32Array = field(default_factory=lambda: np.empty((0, 4), np.int32))  # top left h w
    # Displacements dx, dy of nodes line by line, grid after grid: see places.py.
    grids: Int16Array = field(default_factory=lambda: np.empty(0, np.int16))
    pixel_functions: list[PixelFunction] = field(default_factory=list)
    # Of images of many channels, [V, C]: see ``program/channels.py``.
    colors: Float64Array = field(default_factory=lambda: np.empty((0, 3), np.float64))

    def replace(self, **changes: object) -> Tables:
        """See ``Program.replace``."""
        copied = object.__new__(Tables)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.update(changes)
        return copied


class BlendEntries(NamedTuple):
    """A Blend's entries by the output they go to, as executors take them."""

    begins: Any  # int64[outputs + 1]: where each output's entries begin
    row: Any  # int64[E]
    weight: Any  # float32[E]
    box: Any  # int32[E, 4]: top, left, bottom, right; bottom and right may lie beyond the image
    start: Any  # float32[outputs]
    pastes: Any  # bool[outputs]: of several entries, all of weight 1
    alpha_at: Any  # int64[E]: where in ``alpha`` the plane of an entry begins, which has its box's size; -1 for none
    alpha: Any  # uint8[...]: 255 shows the entry, 0 what lies below


@dataclass
class Blend:
    """Rows joined into outputs: output n is ``trunc(start[n] + sum of weight[e] * row[e])``, no less than 0 and no more
    than 255, over the entries with ``target[e] == n``, each within its box. The first of them is a row of the output's
    own sample; where all of several have weight 1, their boxes cover the output without overlapping, or lie on it with
    an alpha. None: entry e is row e; whole images; sums that start at 0; no alpha.
    """

    target: Int32Array  # [E]
    weight: Float32Array  # [E]
    row: Int32Array | None = None  # [E]
    box: Int32Array | None = None  # [E, 4]: top, left, bottom, right
    start: Float32Array | None = None  # [outputs]
    # int64[E]: pixels over which the edges of an entry's masks are blended, -1 for one without; and the alpha planes of
    # those with, each of its box's size, entry after entry: None until masks are known.
    feather: Int64Array | None = None
    alpha: UInt8Array | None = None

    @property
    def lacks_alpha(self) -> bool:
        return self.alpha is None and self.feather is not None and bool((self.feather >= 0).any())

    def entries(self) -> BlendEntries:
        number = len(self.target)
        outputs = int(self.target.max(initial=-1)) + 1
        order = np.argsort(self.target, kind="stable")
        counts = np.bincount(self.target, minlength=outputs)
        row = np.arange(number) if self.row is None else self.row
        box = np.tile(np.array([0, 0, MAX_SIDE, MAX_SIDE], np.int32), (number, 1)) if self.box is None else self.box
        start = np.zeros(outputs, np.float32) if self.start is None else self.start
        alpha_at = np.full(number, -1)
        if self.feather is not None and self.alpha is not None:
            areas = np.where(self.feather >= 0, (box[:, 2:] - box[:, :2]).prod(axis=1, dtype=np.int64), 0)
            alpha_at = np.where(self.feather >= 0, np.cumsum(areas) - areas, -1)
        return BlendEntries(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            row[order].astype(np.int64),
            self.weight[order].astype(np.float32),
            np.ascontiguousarray(box[order], np.int32),
            np.ascontiguousarray(start, np.float32),
            (counts > 1) & (np.bincount(self.target, weights=self.weight == 1.0, minlength=outputs) == counts),
            alpha_at[order],
            np.empty(0, np.uint8) if self.alpha is None else self.alpha,
        )


@dataclass(frozen=True)
class Mixed:
    """Outputs joined of several samples: image ``n`` of the batch and its partners, by these shares."""

    partners: Int32Array  # [outputs, K]: images of the batch
    shares: Float32Array  # [outputs, 1 + K]: of the sample itself, then of its partners
    names: tuple[str | None, ...]  # [outputs]: what mixed it; None for what stayed as it was
    min_visibility: Float32Array  # [outputs]: share of its own objects that pasted ones must leave


class Grouping(NamedTuple):
    """Groups of outputs: those of one image one after another, by view, then by frame.

    ``counts``: views of each group; ``has_axis``: they have an axis of their own; ``frames``: how many each clip has,
    None for images; ``is_split``: the groups are handed out one by one, also if there is one.
    """

    counts: tuple[int, ...] = (1,)
    has_axis: bool = False
    frames: tuple[int, ...] | None = None
    is_split: bool = True

    @property
    def views(self) -> int:
        """Of one image."""
        return sum(self.counts)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Group of each view, and its position there."""
        return [(group, place) for group, count in enumerate(self.counts) for place in range(count)]


class ProgramArrays(NamedTuple):
    """A Program's arrays, as compiled kernels take them; those that lowering has not set yet are empty."""

    opcode: Any
    args: Any
    flags: Any
    fill: Any
    out_size: Any
    label: Any
    length: Any
    in_shape: Any
    ids: Any
    key: Any
    window: Any
    pass_of: Any
    num_passes: Any
    passes: Any


_NO_WINDOWS = np.empty((0, 0, 4), np.int32)
_NO_PASS_OF = np.empty((0, 0), np.int16)
_NO_NUM_PASSES = np.empty(0, np.int32)
_NO_PASSES = np.empty((0, 0, PASS_FIELDS), np.int32)


@dataclass
class Program:
    opcode: Int16Array  # [R, K], Op codes, NOP after the last
    args: Float64Array  # [R, K, 8]
    flags: Int16Array  # [R, K]: interpolation and border of a geometry, mode of a pad
    fill: UInt8Array  # [R, K, 3]: color of pixels that fall outside, or of an erased rectangle
    out_size: Int32Array  # [R, K, 2]: height and width after each instruction
    label: Int16Array  # [R, K]: index into names, -1 where the instruction's own name serves
    length: Int32Array  # [R]: instructions in use
    source: Int32Array  # [R]: which image of the batch the row reads
    in_shape: Int32Array  # [R, 3]: height, width, channels of that image
    ids: UInt64Array  # [R]: sample id, the counter of per-pixel noise
    key: UInt32Array  # [R, 2]: stream key of its (seed, epoch, copy)
    output: Output
    tables: Tables
    blend: Blend | None = None
    grouping: Grouping | None = None  # None: every image has one output
    mixture: Mixed | None = None
    names: tuple[str, ...] = ()
    depth: Depth = Depth.UINT8  # of the images
    # Of samples with boxes, M at most of one image: those that transforms dropped, and the side and area that boxes of
    # an output need in the end.
    dropped_boxes: BoolArray | None = None  # [R, M]
    min_box: Float64Array | None = None  # [images, 2]
    stage: str = "sampled"
    # Height, width and channels of every result, if these are known to be alike.
    result_size: tuple[int, int, int] | None = None
    # Set by lowering: the part of a map's source that counts as inside, [R, K, 4] top, left, bottom, right;
    # which fused pass (0, 1, ...) each instruction runs in, -1 for unused slots; the number of passes of a row; and
    # what each pass reads and does, [R, P, PASS_FIELDS], see ``passes``.
    window: Int32Array | None = None
    pass_of: Int16Array | None = None
    num_passes: Int32Array | None = None
    passes: Int32Array | None = None

    @property
    def num_rows(self) -> int:
        return int(self.opcode.shape[0])

    @property
    def channels(self) -> int:
        """Of the images; 3 if some have one."""
        return int(self.in_shape[:, 2].max(initial=1))

    @property
    def has_many_channels(self) -> bool:
        """True if it is run as one program for each three channels: see ``program/channels.py``."""
        return self.channels not in (1, 3)

    @property
    def num_outputs(self) -> int:
        return int(self.blend.target.max()) + 1 if self.blend is not None else self.num_rows

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Of results as executors make them."""
        return np.dtype(np.float32) if self.output.is_float else self.depth.dtype

    def for_depth(self, depth: Depth) -> Program:
        """The program for images of another depth. Raises ValueError if one of its instructions needs 256 levels."""
        if depth is self.depth:
            return self
        if depth.is_deep:
            self._check_levels(depth)
        return self.replace(depth=depth)

    def _check_levels(self, depth: Depth) -> None:
        refused = NEEDS_LEVELS[self.opcode]
        if refused.any():
            label = int(self.label[refused][0])
            opcode = int(self.opcode[refused][0])
            raise needs_levels(self.names[label] if label >= 0 else SPECS[Op(opcode)].name, depth)

    def final_size(self, row: int) -> tuple[int, int]:
        """Height and width of the row's result."""
        n = int(self.length[row])
        size = self.out_size[row, n - 1] if n else self.in_shape[row, :2]
        return int(size[0]), int(size[1])

    def final_sizes(self) -> Int32Array:
        """``final_size`` of every row, int32[R, 2]."""
        last = self.out_size[np.arange(self.num_rows), self.length - 1]
        return np.where(self.length[:, None] > 0, last, self.in_shape[:, :2])

    def result_shapes(self) -> Int32Array:
        """Shapes of all outputs, in the layout in which they leave, int32[outputs, 3]."""
        number = self.num_outputs
        sizes, channels = self.final_sizes()[:number], self.in_shape[:number, 2:]
        return np.concatenate((channels, sizes) if self.output.layout == "NCHW" else (sizes, channels), axis=1)

    def common_shape(self) -> tuple[int, int, int] | None:
        """The shape of every output, in the layout in which it leaves; None if they differ, or there is none."""
        if self.result_size is None:
            shapes = self.result_shapes()
            return tuple(shapes[0].tolist()) if len(shapes) and (shapes == shapes[0]).all() else None
        height, width, channels = self.result_size
        return (channels, height, width) if self.output.layout == "NCHW" else (height, width, channels)

    def operations(self, row: int) -> list[tuple[Op, Float64Array]]:
        """The row's instructions in order, for tests and explain."""
        return [(Op(int(self.opcode[row, k])), self.args[row, k]) for k in range(int(self.length[row]))]

    def arrays(self) -> ProgramArrays:
        """Those of this program, none of them copied."""
        return ProgramArrays(
            self.opcode, self.args, self.flags, self.fill, self.out_size, self.label, self.length, self.in_shape,
            self.ids, self.key,
            _NO_WINDOWS if self.window is None else self.window,
            _NO_PASS_OF if self.pass_of is None else self.pass_of,
            _NO_NUM_PASSES if self.num_passes is None else self.num_passes,
            _NO_PASSES if self.passes is None else self.passes,
        )  # fmt: skip

    def replace(self, **changes: object) -> Program:
        """A copy with some fields changed, ten times a batch; ``dataclasses.replace`` would cost ten times more."""
        copied = object.__new__(Program)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.update(changes)
        return copied


def empty_instructions(rows: int, slots: int) -> dict[str, npt.NDArray[np.generic]]:
    """The per-instruction arrays of a Program, cleared."""
    return {
        "opcode": np.zeros((rows, slots), np.int16),
        "args": np.zeros((rows, slots, NUM_ARGS), np.float64),
        "flags": np.zeros((rows, slots), np.int16),
        "fill": np.zeros((rows, slots, 3), np.uint8),
        "out_size": np.zeros((rows, slots, 2), np.int32),
        "label": np.full((rows, slots), -1, np.int16),
    }


INSTRUCTION_ARRAYS = tuple(empty_instructions(0, 0))
"""Arrays of sampled programs that hold a value per instruction."""

RECORD = np.dtype(
    [
        *(("opcode", np.int64), ("flags", np.int64), ("out_size", np.int64, 2), ("label", np.int64)),
        *(("fill", np.int64, 3), ("args", np.float64, NUM_ARGS)),
    ]
)
"""An instruction on its own."""
