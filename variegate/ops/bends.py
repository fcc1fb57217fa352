"""Deformations by functions that bend little from node to node: lenses and thin plates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from variegate.checks import integer, one_of
from variegate.ops.arguments import BLACK, Fill, InterpolationName, Number, about_zero, checks
from variegate.ops.base import set_field
from variegate.ops.fields import Lattice, Nodes, add_up, sampled_nodes, smooth_lattice
from variegate.ops.magnitude import Resampled, between, span
from variegate.program.rng import to_normal
from variegate.program.sampling import Floats, Rows, Sampling

Lens = Literal["camera", "fisheye"]

MAX_CONTROL_POINTS = 16


@dataclass(frozen=True)
class OpticalDistortion(Resampled):
    """A lens: bend straight lines about the image's centre (Albumentations' definition and arguments).

    A place at distance r from the centre shows what is ``f`` times as far. ``mode`` "camera": f = 1 + k r^2 + k r^4,
    distances along x in widths and along y in heights of the image; "fisheye": f = 1 + k r^2, in half diagonals. k is
    drawn from ``distort_limit``, a range, or a number d for (-d, d).
    """

    distort_limit: Number = (-0.05, 0.05)
    mode: Lens = "camera"
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    num_slots = 1
    _checks = checks(distort_limit=partial(about_zero, limit=100.0), mode=partial(one_of, choices=get_args(Lens)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        strength = between(self.distort_limit, sampling.uniform(rows, slot)[:, 0])

        def field(at: npt.NDArray[np.intp], size: tuple[int, int]) -> tuple[Lattice, Nodes]:
            return smooth_lattice(size), strength[at, None, None, None] * _lens(size, self.mode)

        sampled_nodes(sampling, rows, field, self.interpolation, self.fill, type(self).__name__)


@lru_cache(maxsize=64)
def _lens(size: tuple[int, int], mode: Lens) -> Floats:
    """Displacements of a lens of strength 1 at the nodes of ``smooth_lattice(size)``."""
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
    """Move control points at random, and all else as a thin plate of metal would bend (Bookstein 1989,
    doi:10.1109/34.24792; Albumentations' definition and arguments).

    ``num_control_points`` by as many points lie over the image (2: its corners and its middle); each moves by normal
    noise along x and along y, whose deviation is drawn from ``scale_range``, in tenths of the sides.
    """

    scale_range: Number = (0.2, 0.4)
    num_control_points: int = 4
    interpolation: InterpolationName = "bilinear"
    fill: Fill = BLACK
    _checks = checks(scale_range=span(0.0, 1.0), num_control_points=partial(integer, low=2, high=MAX_CONTROL_POINTS))

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", 1 + len(_control_points(self.num_control_points)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        scale = between(self.scale_range, sampling.uniform(rows, slot)[:, 0]) / 10.0
        moved = to_normal(sampling.words(rows, slot + 1, self.num_slots - 1)) * scale[:, None, None]

        def field(at: npt.NDArray[np.intp], size: tuple[int, int]) -> tuple[Lattice, Nodes]:
            over = smooth_lattice(size)
            sides = np.array([size[1], size[0]], np.float64)
            nodes = np.empty((len(at), over.lines, over.columns, 2))
            add_up(_plates(size, self.num_control_points), moved[at] * sides, nodes.reshape(len(at), -1, 2))
            return over, nodes

        sampled_nodes(sampling, rows, field, self.interpolation, self.fill, type(self).__name__)


def _control_points(number: int) -> Floats:
    """[P, 2] of x, y in sides of the image."""
    if number == 2:
        return np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]], np.float64)
    along = np.linspace(0.0, 1.0, number)
    return np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)


@lru_cache(maxsize=64)
def _plates(size: tuple[int, int], number: int) -> Floats:
    """[P, nodes]: how far each node of ``smooth_lattice(size)`` follows each control point."""
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
    # So that the last bits of the solution, which processors may round differently, are none of the pixels'.
    return np.ascontiguousarray((np.rint(bent @ weights * 2.0**20) * 2.0**-20).T)


def _bending(places: Floats, points: Floats) -> Floats:
    """r^2 log r^2 of every distance."""
    squared = ((places[:, None] - points) ** 2).sum(axis=-1)
    return np.asarray(squared * np.log(squared + 1e-6))
