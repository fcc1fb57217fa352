"""A Program: the instructions for a batch, as arrays.

Axes: R rows, K instruction slots, A = 8 arguments, T tables. A *row* is one image that instructions transform. AugMix
gives a sample several rows and blends them; MixUp blends rows of several samples.
"""

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


# Transforms emit "sampled" programs; lowering turns them into "fused" programs.
STAGES = ("sampled", "fused")

# Longest side of an operation's input and output in pixels. Coordinates are 16.16 fixed-point numbers; larger ones
# would overflow.
MAX_SIDE = 32_767
MAX_CHANNELS = 32


def is_kernel_image(value: Any) -> TypeGuard[ImageArray]:
    """Return True for a C-contiguous array [H, W, 1 or 3] of a ``Depth``'s dtype, with sides from 1 to MAX_SIDE."""
    if type(value) is not np.ndarray or value.ndim != 3 or depth_of(value.dtype) is None:
        return False
    height, width, channels = value.shape
    has_shape = 0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE and channels in (1, 3)
    return has_shape and value.flags.c_contiguous


@dataclass(frozen=True)
class Output:
    """Format of results: ``(x / white - mean) / std`` in ``dtype``; unnormalized, in the images' dtype, if no mean."""

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    dtype: str = "float32"
    layout: str = "NCHW"
    # Operations on the result tensors after the last pass: see ``ops/finish.py``.
    steps: tuple[Any, ...] = ()
    # If True, ``x / 255`` is normalized for every dtype, instead of ``x / white``.
    is_unscaled: bool = False
    # A ``Cast`` of results to uint8, before the steps, if no mean: see ``ToDtype("uint8")``.
    to_uint8: Any = None

    @property
    def is_float(self) -> bool:
        return self.mean is not None

    def scale_and_bias(self, channels: int, depth: Depth = Depth.UINT8) -> tuple[Float32Array, Float32Array]:
        """Return scale and bias, float32[3] each, so that the output is ``x * scale + bias``, rounded twice in float32.

        For images of one channel, all three are equal. Raises ValueError if the output is not normalized, or if
        ``mean`` or ``std`` have neither one nor three numbers.
        """
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
    """Side tables that instructions index."""

    # New values, 0 to 255, of the 256 levels of uint8, [T, 3 or channels, 256]. Deep images interpolate linearly.
    curves: Float64Array = field(default_factory=lambda: np.empty((0, 3, 256)))
    # The same rounded, and tables of other operations, which lowering makes for uint8 images.
    luts: UInt8Array = field(default_factory=lambda: np.empty((0, 3, 256), np.uint8))
    matrices: Float32Array = field(default_factory=lambda: np.empty((0, 3, 4), np.float32))
    kernels: Int16Array = field(default_factory=lambda: np.empty(0, np.int16))  # see lowering/blurs.py
    filters: Float32Array = field(default_factory=lambda: np.empty(0, np.float32))  # weights in row-major order
    rectangles: Int32Array = field(default_factory=lambda: np.empty((0, 4), np.int32))  # top, left, height, width
    # Displacements dx, dy of all grids' nodes in row-major order: see ``coords.py``.
    grids: Int16Array = field(default_factory=lambda: np.empty(0, np.int16))
    pixel_functions: list[PixelFunction] = field(default_factory=list)
    # Fill colors of images of 2 or 4 and more channels, [V, C]: see ``channels.py``.
    colors: Float64Array = field(default_factory=lambda: np.empty((0, 3), np.float64))

    def replace(self, **changes: object) -> Tables:
        """Return a copy with some fields changed, see ``Program.replace``."""
        copied = object.__new__(Tables)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.update(changes)
        return copied


class BlendEntries(NamedTuple):
    """Entries of a Blend, sorted by output, for executors."""

    begins: Any  # int64[outputs + 1]: output n has entries begins[n] up to begins[n + 1]
    row: Any  # int64[E]
    weight: Any  # float32[E]
    box: Any  # int32[E, 4]: top, left, bottom, right; bottom and right may exceed the image
    start: Any  # float32[outputs]
    pastes: Any  # bool[outputs]: True for outputs with several entries, all of weight 1
    alpha_at: Any  # int64[E]: first index in ``alpha`` of the entry's plane, which has its box's size; -1 for no alpha
    alpha: Any  # uint8[...]: 255 for the entry's pixel, 0 for the pixel below


@dataclass
class Blend:
    """Weighted sums of rows, as E entries.

    Output n is ``trunc(start[n] + sum of weight[e] * row[e])``, clipped to 0..255, over the entries with
    ``target[e] == n``, each restricted to its box. An output's first entry is a row of the output's sample. If all of
    several entries have weight 1, they are pasted: their boxes tile the output, or are composited with alpha.
    A start of 0.5 rounds integers to the nearest; nothing is added to floats, and they are not clipped.
    """

    target: Int32Array  # [E]
    weight: Float32Array  # [E]
    row: Int32Array | None = None  # [E]; None: entry e is row e
    box: Int32Array | None = None  # [E, 4]: top, left, bottom, right; None: full images
    start: Float32Array | None = None  # [outputs]; None: 0
    # int64[E]: width in pixels over which the edges of an entry's masks are blended; -1 for entries without alpha.
    # ``alpha``: the concatenated alpha planes, each of its box's size; None until masks are known.
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
    """Outputs mixed from several samples: output n from image n of the batch and its partners."""

    partners: Int32Array  # [outputs, K]: image indices in the batch
    shares: Float32Array  # [outputs, 1 + K]: share of the sample itself, then of its partners
    names: tuple[str | None, ...]  # [outputs]: name of the mixing transform; None for unmixed outputs
    min_visibility: Float32Array  # [outputs]: an object is dropped if pasted ones leave less than this share visible


class Grouping(NamedTuple):
    """Groups of outputs. The outputs of an image are contiguous, ordered by view, then by frame.

    ``counts``: number of views of each group. ``has_axis``: whether views have a separate axis in results. ``frames``:
    number of frames of each clip; None for images. ``is_split``: whether groups are returned separately, even if there
    is only one.
    """

    counts: tuple[int, ...] = (1,)
    has_axis: bool = False
    frames: tuple[int, ...] | None = None
    is_split: bool = True

    @property
    def views(self) -> int:
        """Number of views of an image."""
        return sum(self.counts)

    @property
    def places(self) -> list[tuple[int, int]]:
        """(group, index in the group) of each view."""
        return [(group, place) for group, count in enumerate(self.counts) for place in range(count)]


class ProgramArrays(NamedTuple):
    """Arrays of a Program for native code. Arrays that lowering sets are empty before."""

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
    opcode: Int16Array  # [R, K]: Op codes, NOP after the last
    args: Float64Array  # [R, K, 8]
    flags: Int16Array  # [R, K]: interpolation and border mode of a map, mode of a pad
    fill: UInt8Array  # [R, K, 3]: color of pixels outside the source, or of an erased rectangle
    out_size: Int32Array  # [R, K, 2]: height and width after each instruction
    label: Int16Array  # [R, K]: index into names, -1 for the instruction's name in SPECS
    length: Int32Array  # [R]: number of instructions
    source: Int32Array  # [R]: index in the batch of the row's image
    in_shape: Int32Array  # [R, 3]: height, width, channels of that image
    ids: UInt64Array  # [R]: sample id, part of the counter of random numbers
    key: UInt32Array  # [R, 2]: stream key of (seed, epoch, copy), see ``rng.py``
    output: Output
    tables: Tables
    blend: Blend | None = None
    grouping: Grouping | None = None  # None: one output per image
    mixture: Mixed | None = None
    names: tuple[str, ...] = ()
    depth: Depth = Depth.UINT8  # dtype of the images
    # For samples with boxes, M at most per image. ``dropped_boxes``: True for boxes that transforms dropped.
    # ``min_box``: least shorter side and area of boxes in the final output, in pixels.
    dropped_boxes: BoolArray | None = None  # [R, M]
    min_box: Float64Array | None = None  # [images, 2]
    stage: str = "sampled"
    # Height, width and channels of all results if they are known to be equal.
    result_size: tuple[int, int, int] | None = None
    # Set by lowering.
    window: Int32Array | None = None  # [R, K, 4]: top, left, bottom, right of the part of a map's source that is inside
    pass_of: Int16Array | None = None  # [R, K]: index of the pass that runs the instruction, -1 for unused slots
    num_passes: Int32Array | None = None  # [R]
    passes: Int32Array | None = None  # [R, P, PASS_FIELDS], see ``passes.py``

    @property
    def num_rows(self) -> int:
        return int(self.opcode.shape[0])

    @property
    def channels(self) -> int:
        """Number of channels of the images; 3 if images of 1 and of 3 channels are mixed."""
        return int(self.in_shape[:, 2].max(initial=1))

    @property
    def has_many_channels(self) -> bool:
        """True for images of 2 or 4 to 32 channels, which run as a program per three channels, see ``channels.py``."""
        return self.channels not in (1, 3)

    @property
    def num_outputs(self) -> int:
        return int(self.blend.target.max()) + 1 if self.blend is not None else self.num_rows

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Dtype of the executors' results."""
        return np.dtype(np.float32) if self.output.is_float else self.depth.dtype

    def for_depth(self, depth: Depth) -> Program:
        """Return the program for images of another depth. Raises ValueError if an instruction needs 256 levels."""
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
        """Return height and width of the row's result."""
        n = int(self.length[row])
        size = self.out_size[row, n - 1] if n else self.in_shape[row, :2]
        return int(size[0]), int(size[1])

    def final_sizes(self) -> Int32Array:
        """Return ``final_size`` of all rows, int32[R, 2]."""
        last = self.out_size[np.arange(self.num_rows), self.length - 1]
        return np.where(self.length[:, None] > 0, last, self.in_shape[:, :2])

    def result_shapes(self) -> Int32Array:
        """Return the shapes of all outputs in the output layout, int32[outputs, 3]."""
        number = self.num_outputs
        sizes, channels = self.final_sizes()[:number], self.in_shape[:number, 2:]
        return np.concatenate((channels, sizes) if self.output.layout == "NCHW" else (sizes, channels), axis=1)

    def common_shape(self) -> tuple[int, int, int] | None:
        """Return the common shape of all outputs in the output layout; None if shapes differ or the batch is empty."""
        if self.result_size is None:
            shapes = self.result_shapes()
            return tuple(shapes[0].tolist()) if len(shapes) and (shapes == shapes[0]).all() else None
        height, width, channels = self.result_size
        return (channels, height, width) if self.output.layout == "NCHW" else (height, width, channels)

    def operations(self, row: int) -> list[tuple[Op, Float64Array]]:
        """Return the row's instructions in order, for tests and ``explain``."""
        return [(Op(int(self.opcode[row, k])), self.args[row, k]) for k in range(int(self.length[row]))]

    def arrays(self) -> ProgramArrays:
        """Return the program's arrays without copies."""
        return ProgramArrays(
            self.opcode, self.args, self.flags, self.fill, self.out_size, self.label, self.length, self.in_shape,
            self.ids, self.key,
            _NO_WINDOWS if self.window is None else self.window,
            _NO_PASS_OF if self.pass_of is None else self.pass_of,
            _NO_NUM_PASSES if self.num_passes is None else self.num_passes,
            _NO_PASSES if self.passes is None else self.passes,
        )  # fmt: skip

    def replace(self, **changes: object) -> Program:
        """Return a shallow copy with some fields changed. Ten times faster than ``dataclasses.replace``."""
        copied = object.__new__(Program)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.update(changes)
        return copied


def empty_instructions(rows: int, slots: int) -> dict[str, npt.NDArray[np.generic]]:
    """Allocate the per-instruction arrays of a Program, filled with NOP."""
    return {
        "opcode": np.zeros((rows, slots), np.int16),
        "args": np.zeros((rows, slots, NUM_ARGS), np.float64),
        "flags": np.zeros((rows, slots), np.int16),
        "fill": np.zeros((rows, slots, 3), np.uint8),
        "out_size": np.zeros((rows, slots, 2), np.int32),
        "label": np.full((rows, slots), -1, np.int16),
    }


INSTRUCTION_ARRAYS = tuple(empty_instructions(0, 0))
"""Names of the per-instruction arrays of sampled programs."""

RECORD = np.dtype(
    [
        *(("opcode", np.int64), ("flags", np.int64), ("out_size", np.int64, 2), ("label", np.int64)),
        *(("fill", np.int64, 3), ("args", np.float64, NUM_ARGS)),
    ]
)
"""Dtype of a single instruction."""
