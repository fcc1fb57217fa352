"""Deformations of images by displacement fields."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from variegate.arrays import Float32Array, IndexArray, Int16Array
from variegate.checks import Refusal, refused
from variegate.ops.arguments import (
    BLACK,
    ArgumentError,
    Fill,
    InterpolationName,
    Number,
    PaddingMode,
    ShareRange,
    axes,
)
from variegate.ops.base import TypicalRange, set_field
from variegate.ops.fields import (
    Lattice,
    Nodes,
    add_up,
    blurred_deviation,
    emit_grids,
    emit_noise,
    lattice,
    rounded,
    sampled_nodes,
    smooth_lattice,
    units_for,
)
from variegate.ops.magnitude import Resampled, between
from variegate.ops.schema import Argument, Around, Range
from variegate.program.coords import NODE_BITS
from variegate.program.program import MAX_SIDE
from variegate.program.rng import to_normal, to_unit
from variegate.program.sampling import Floats, Rows, Sampling

# Largest displacement in pixels: the longest side of an image.
_LARGEST = 32_767.0
_ACCEPTED = "float [height, width, 2] of finite pixels (dx, dy), up to 32,767"


@dataclass(frozen=True)
class Flow:
    """Displacements float32 [height, width, 2] in pixels, along x and along y; immutable."""

    height: int
    width: int
    numbers: bytes

    def array(self) -> Float32Array:
        return np.frombuffer(self.numbers, "<f4").reshape(self.height, self.width, 2)

    def grid(self) -> tuple[Int16Array, float, float]:
        """Return a grid with a node per pixel, padded at its end, its unit (``program/coords.py``), and the greatest
        displacement in pixels."""
        return _grid(self)

    def described(self) -> dict[str, Any]:
        """Return a JSON-compatible description."""
        return {"shape": [self.height, self.width, 2], "float32": base64.b64encode(self.numbers).decode("ascii")}

    def __repr__(self) -> str:
        return f"<flow for {self.height}x{self.width} pixels>"


@lru_cache(maxsize=32)
def _grid(flow: Flow) -> tuple[Int16Array, float, float]:
    dense = np.pad(flow.array().astype(np.float64), ((0, 1), (0, 1), (0, 0)), mode="edge")
    farthest = float(np.abs(dense).max())
    unit = float(units_for(farthest))
    return rounded(dense * 2.0 ** (NODE_BITS - unit)), unit, farthest


def flow_of(array: Any) -> Flow | None:
    """Convert an array [height, width, 2] of any library to a ``Flow``; None for other values."""
    try:
        pixels = np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
        with np.errstate(over="ignore"):  # overflow to infinity is refused below
            numbers = pixels.astype("<f4") if pixels.dtype.kind in "fiu" else None
    except (TypeError, ValueError, AttributeError):
        return None
    if numbers is None or numbers.ndim != 3 or numbers.shape[2] != 2 or not numbers.size:
        return None
    if max(numbers.shape[:2]) > MAX_SIDE or not bool((np.abs(numbers) <= _LARGEST).all()):
        return None
    return Flow(numbers.shape[0], numbers.shape[1], numbers.tobytes())


class FlowArgument(Argument):
    """Argument that accepts a ``Flow``, an array, or the description of ``Flow.described``."""

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> Flow:
        flow = value if isinstance(value, Flow) else None
        if flow is None:
            flow = _from_description(value) if isinstance(value, Mapping) else flow_of(value)
        if flow is None:
            raise error(name, tuple(value.shape) if hasattr(value, "shape") else value, _ACCEPTED)
        return flow

    def describe(self) -> str:
        return _ACCEPTED


def _from_description(value: Mapping[str, Any]) -> Flow | None:
    try:
        shape = tuple(value["shape"])
        numbers = np.frombuffer(base64.b64decode(value["float32"], validate=True), "<f4")
        return flow_of(numbers.reshape(shape)) if len(shape) == 3 else None
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None


MAX_GRID_STEPS = 256
# Largest standard deviation of a blur, in pixels.
MAX_SIGMA = 1000.0


def _both(value: Any) -> tuple[float, float]:
    values = value if isinstance(value, tuple) else (value,)
    return values[0], values[-1]


@dataclass(frozen=True)
class ElasticTransform(Resampled):
    """Distort the image elastically, by smooth random displacements (Simard et al. 2003).

    Args:
        alpha: strength. Displacements are noise uniform in (-1, 1), blurred, times ``alpha / 2`` pixels. A number, or a
            pair for x and y.
        sigma: standard deviation of the Gaussian blur in pixels. A number, or a pair for x and y.

    The definition is torchvision's. So is the blend with ``fill`` along the border: ``w * (w * image) + (1 - w) *
    fill``, with the bilinear weight w of the image. Noise is drawn at nodes that are closer than ``sigma`` pixels, and
    interpolated linearly. Standard deviation and correlation agree with torchvision's to 5 %. With ``sigma=5`` the
    standard deviation is ``0.0163 * alpha`` pixels. Paper: doi:10.1109/ICDAR.2003.1227801.
    """

    alpha: Annotated[float | Sequence[float], axes()] = 50.0
    sigma: Annotated[float | Sequence[float], axes(0.0, MAX_SIGMA)] = 5.0
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 2
    _typical_range = TypicalRange(0.0, 300.0, 0.0, lambda alpha: ElasticTransform(alpha))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        sigmas = _both(self.sigma)
        # torchvision's kernels have int(8 sigma + 1) pixels, or one more, along both axes. The first sigma is for
        # displacements along x, the second for displacements along y.
        radii = [int(8 * sigma + 1) // 2 for sigma in sigmas]
        blurred = [math.prod(blurred_deviation(sigma, radius) for sigma in sigmas) for radius in radii]
        deviation = np.abs(_both(self.alpha)) * (0.5 * np.array(blurred) / math.sqrt(3.0))
        deviations = np.broadcast_to(deviation, (len(rows), 2))
        name = type(self).__name__
        emit_noise(sampling, rows, slot + 1, sigmas, deviations, self._flags, self.fill, name, weighs_twice=True)


@dataclass(frozen=True)
class GridDistortion(Resampled):
    """Stretch and squeeze the columns and rows of a grid (Albumentations' definition and arguments).

    Args:
        num_steps: number of strips along x and along y. Remaining pixels form a further strip.
        distort_limit: range of ``distort``, which is drawn for each strip. A strip shows ``1 + distort`` times its
            extent of the source. A pair, or a number d, up to 1, for (-d, d).
        normalized: scale the strips so that together they cover exactly the image.
    """

    num_steps: Annotated[int, Range(1, MAX_GRID_STEPS)] = 5
    distort_limit: Annotated[Number, Around(0, -1.0, 1.0)] = (-0.3, 0.3)
    interpolation: InterpolationName = "bilinear"
    normalized: bool = True
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _typical_range = TypicalRange(0.0, 0.9, 0.0, lambda limit: GridDistortion(distort_limit=limit))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", (self.num_steps + 2) // 2)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = to_unit(sampling.words(rows, slot, self.num_slots).reshape(len(rows), 4 * self.num_slots))

        def field(at: IndexArray, size: tuple[int, int]) -> tuple[Lattice, Nodes]:
            steps = min(self.num_steps, *size)
            extents = 1.0 + between(self.distort_limit, unit[at])
            height, width = size
            over = lattice(size, (float(height // steps), float(width // steps)))
            nodes = np.empty((len(at), over.lines, over.columns, 2))
            nodes[..., 0] = self._strips(extents[:, : steps + 1], width, over.columns)[:, None]
            nodes[..., 1] = self._strips(extents[:, steps + 1 : 2 * steps + 2], height, over.lines)[:, :, None]
            return over, nodes

        sampled_nodes(sampling, rows, field, self._flags, self.fill, type(self).__name__)

    def _strips(self, extents: Floats, side: int, nodes: int) -> Floats:
        """Return displacements at the borders of strips, [R, nodes]. The image's end truncates the last strip."""
        steps = extents.shape[1] - 1
        step = side // steps
        rest = min(side, (steps + 1) * step) - steps * step
        extents = extents.copy()
        if self.normalized:
            extents[:, -1] *= rest / step
            extents *= (side / step) / np.maximum(extents.sum(axis=1, keepdims=True), 1e-6)
        # The last strip's displacement is proportional to its remaining part.
        if rest:
            extents[:, -1] *= step / rest
        borders = np.zeros((len(extents), max(steps + 2, nodes)))
        borders[:, 1 : steps + 2] = np.cumsum((extents - 1.0) * step, axis=1)
        borders[:, steps + 2 :] = borders[:, steps + 1 : steps + 2]
        return borders[:, :nodes]


@dataclass(frozen=True)
class OpticalFlowWarp(Resampled):
    """Warp the image by a given optical flow, or by a smooth random flow.

    Args:
        flow: float [H, W, 2] in pixels along x and y, as OpenCV's flows: output (x, y) shows the image at (x, y) +
            flow[y, x]. Images must have the size of the flow. Its precision is 2**-12 pixels, or 2**-15 of its greatest
            value. None draws blurred Gaussian noise.
        magnitude: without ``flow``: standard deviation of the displacement along each axis, in pixels, a number or a
            range.
        scale: without ``flow``: standard deviation of the noise's Gaussian blur, in pixels.
    """

    flow: Annotated[Any, FlowArgument()] | None = None
    magnitude: Annotated[Number, Range(0.0, 1000.0)] = (0.5, 2.0)
    scale: Annotated[float, Range(0.0, MAX_SIGMA)] = 16.0
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 2
    _weighs_twice: ClassVar[bool] = False
    _typical_range = TypicalRange(0.0, 12.0, 0.0, lambda pixels: OpticalFlowWarp(magnitude=pixels))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        name = type(self).__name__
        if self.flow is None:
            deviation = between(self.magnitude, sampling.uniform(rows, slot)[:, 0])
            deviations = np.repeat(deviation[:, None], 2, axis=1)
            sigmas = (self.scale, self.scale)
            emit_noise(sampling, rows, slot + 1, sigmas, deviations, self._flags, self.fill, name)
        elif len(rows):
            emit_flow(self, sampling, rows, self.flow, self._flags, self.fill, name)

    def to_dict(self) -> dict[str, Any]:
        described = super().to_dict()
        if self.flow is not None:
            described["flow"] = self.flow.described()
        return described


class ElasticFlow(OpticalFlowWarp, abstract=True):
    """A warp by a given flow that blends with the fill like torchvision's ``elastic``, see ``WEIGHS_TWICE``."""

    _weighs_twice = True


def emit_flow(owner: Any, sampling: Sampling, rows: Rows, flow: Flow, flags: int, fill: Any, name: str | None) -> None:
    """Displace ``rows`` by ``flow``. Raises ArgumentError for images of another size."""
    sizes = sampling.size[rows]
    others = sizes[(sizes != (flow.height, flow.width)).any(axis=1)]
    if len(others):
        given = f"a flow for {flow.height}x{flow.width} pixels"
        raise ArgumentError(owner, "flow", given, "one of the image's size, {}x{}".format(*others[0].tolist()))
    grid, unit, farthest = flow.grid()
    over, first = lattice((flow.height, flow.width), 1.0), sampling.add_grids(grid)
    emit_grids(sampling, rows, over, first, unit, farthest, flags, fill, name, owner._weighs_twice)


Lens = Literal["camera", "fisheye"]

MAX_CONTROL_POINTS = 16


@dataclass(frozen=True)
class OpticalDistortion(Resampled):
    """Bend straight lines about the image's center, as a lens does (Albumentations' definition and arguments).

    A pixel at distance r from the center shows the source at distance ``f * r`` in the same direction.

    Args:
        distort_limit: range of k: a pair, or a number d for (-d, d).
        mode: "camera": f = 1 + k r^2 + k r^4, with x in widths and y in heights of the image. "fisheye": f = 1 + k r^2,
            with r in half diagonals.

    Displacements are interpolated between nodes a 32nd of each side apart: to 0.02 pixels at k = 0.05 and 224 px.
    """

    distort_limit: Annotated[Number, Around(0, -100.0, 100.0)] = (-0.05, 0.05)
    mode: Lens = "camera"
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    num_slots = 1
    _typical_range = TypicalRange(-0.6, 0.6, 0.0, lambda limit: OpticalDistortion((limit, limit)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        strength = between(self.distort_limit, sampling.uniform(rows, slot)[:, 0])

        def field(at: IndexArray, size: tuple[int, int]) -> tuple[Lattice, Nodes]:
            return smooth_lattice(size), strength[at, None, None, None] * _lens(size, self.mode)

        sampled_nodes(sampling, rows, field, self._flags, self.fill, type(self).__name__)


@lru_cache(maxsize=64)
def _lens(size: tuple[int, int], mode: Lens) -> Floats:
    """Return displacements of a lens of strength 1 at the nodes of ``smooth_lattice(size)``, in pixels."""
    height, width = size
    along, down = smooth_lattice(size).places()
    x, y = along - (width - 1) / 2, down[:, None] - (height - 1) / 2
    if mode == "camera":
        squared = (x / width) ** 2 + (y / height) ** 2
        squared += squared**2
    else:
        squared = (x**2 + y**2) / (width**2 / 4 + height**2 / 4)
    return np.stack([x * squared, y * squared], axis=-1)


@dataclass(frozen=True)
class ThinPlateSpline(Resampled):
    """Move control points at random and bend the image between them like a thin metal plate.

    ``num_control_points`` by ``num_control_points`` points cover the image (2: its corners and its center). Each moves
    by normal noise along x and y. Its standard deviation is drawn from ``scale_range``, in tenths of the sides.
    Definition and arguments are Albumentations' (Bookstein 1989, doi:10.1109/34.24792). Displacements are interpolated
    between nodes a 32nd of each side apart. The error at 224 px is 0.03 pixels on average, and up to 0.4 next to a
    control point.
    """

    scale_range: ShareRange = (0.2, 0.4)
    num_control_points: Annotated[int, Range(2, MAX_CONTROL_POINTS)] = 4
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    padding_mode: PaddingMode = "constant"
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda scale: ThinPlateSpline(scale))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + len(_control_points(self.num_control_points)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        scale = between(self.scale_range, sampling.uniform(rows, slot)[:, 0]) / 10.0
        moved = to_normal(sampling.words(rows, slot + 1, self.num_slots - 1)) * scale[:, None, None]

        def field(at: IndexArray, size: tuple[int, int]) -> tuple[Lattice, Nodes]:
            over = smooth_lattice(size)
            sides = np.array([size[1], size[0]], np.float64)
            nodes = add_up(_plates(size, self.num_control_points), moved[at] * sides)
            return over, nodes.reshape(len(at), over.lines, over.columns, 2)

        sampled_nodes(sampling, rows, field, self._flags, self.fill, type(self).__name__)


def _control_points(number: int) -> Floats:
    """Return P control points as x, y in fractions of the image's sides, float64[P, 2]."""
    if number == 2:
        return np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]], np.float64)
    along = np.linspace(0.0, 1.0, number)
    return np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)


@lru_cache(maxsize=64)
def _plates(size: tuple[int, int], number: int) -> Floats:
    """Return the weight of each control point at each node of ``smooth_lattice(size)``, float64[P, nodes]."""
    points = _control_points(number)
    count = len(points)
    system = np.zeros((count + 3, count + 3))
    system[:count, :count] = _bending(points, points)
    system[:count, count], system[:count, count + 1 :] = 1.0, points
    system[count:, :count] = system[:count, count:].T
    along, down = smooth_lattice(size).places()
    places = np.stack(np.meshgrid(along / size[1], down / size[0]), axis=-1).reshape(-1, 2)
    bent = np.concatenate([_bending(places, points), np.ones((len(places), 1)), places], axis=1)
    weights = np.linalg.solve(system, np.eye(count + 3, count))
    # Rounded, because processors may differ in the last bits of the solution, and pixels must not depend on it.
    return np.ascontiguousarray((np.rint(bent @ weights * 2.0**20) * 2.0**-20).T)


def _bending(places: Floats, points: Floats) -> Floats:
    """Return the thin plate kernel ``r^2 log r^2`` of all distances between ``places`` and ``points``."""
    squared = ((places[:, None] - points) ** 2).sum(axis=-1)
    return np.asarray(squared * np.log(squared + 1e-6))
