"""Side tables while a batch is sampled: what instructions point into is put there, and its place given back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float32Array, Int16Array, Int32Array, RealArray, UInt8Array
from variegate.program.channels import needs_color
from variegate.program.pixel_functions import PixelFunction
from variegate.program.program import Tables

_NONE = Tables()


class TableBuilder:
    """Collects the ``Tables`` of a program, and the names of its operations.

    ``num_channels``: of colors and tables of levels, 3 for gray and color images.
    """

    def __init__(self, num_channels: int = 3) -> None:
        self.num_channels = num_channels
        self._parts: dict[str, list[AnyArray]] = {}
        self._counts: dict[str, int] = {}
        self._pixel_functions: list[PixelFunction] = []
        self._names: list[str] = []
        if num_channels != 3:
            self.add("luts", np.empty((0, num_channels, 256)))
            self.add("colors", np.zeros((1, num_channels)))  # of instructions without a color

    def add(self, table: str, values: npt.ArrayLike) -> int:
        """-> the place of the first of ``values`` in their table."""
        like = getattr(_NONE, table)
        first = self._counts.get(table, 0)
        part = np.ascontiguousarray(values, like.dtype)
        part = part.reshape(-1, *part.shape[part.ndim - like.ndim + 1 :])
        self._parts.setdefault(table, []).append(part)
        self._counts[table] = first + len(part)
        return first

    def adopt_tables(self, other: TableBuilder) -> None:
        """Take the tables of another builder in place of its own."""
        self._parts, self._counts = other._parts, other._counts
        self._pixel_functions, self._names = other._pixel_functions, other._names

    def table_size(self, table: str) -> int:
        """Entries of a side table so far."""
        return self._counts.get(table, 0)

    def joined(self, table: str) -> AnyArray:
        """The entries of a side table that has any."""
        parts = self._parts[table]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def is_empty_but(self, table: str) -> bool:
        """True if no other side table has entries."""
        return not (self._pixel_functions or self._parts.keys() - {table})

    def name_index(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    def add_lut(self, lut: UInt8Array, name: str = "LUT") -> int:
        """uint8[256] or [3, 256] -> its index, for Op.LUT. ``name``: what errors call it.

        Raises ValueError for three tables if images have many channels.
        """
        if lut.ndim == 2 and len(lut) not in (1, self.num_channels):
            raise needs_color(name, self.num_channels)
        return self.add("luts", np.broadcast_to(lut, (self.num_channels, 256)))

    def add_matrix(self, matrix: Float32Array) -> int:
        """float[3, 4] on 0..255 RGB plus offset -> its index, for Op.COLOR_MATRIX."""
        return self.add("matrices", matrix)

    def add_filters(self, kernels: RealArray) -> int:
        """float[M, height, width] -> where their weights begin, for Op.CONVOLVE_FLOAT."""
        return self.add("filters", kernels)

    def add_rectangles(self, rectangles: Int32Array) -> int:
        """int[Q, 4] of top, left, height, width -> index of the first, for Op.ERASE."""
        return self.add("rectangles", rectangles)

    def add_grids(self, displacements: Int16Array) -> int:
        """int16 dx, dy of nodes, line by line -> where they begin, for Op.DISPLACE."""
        return self.add("grids", displacements)

    def add_pixel_function(self, function: PixelFunction) -> int:
        """A pixel function -> its index, for Op.PIXEL_FUNCTION."""
        for index, known in enumerate(self._pixel_functions):
            if known is function:
                return index
        function.check()
        self._pixel_functions.append(function)
        return len(self._pixel_functions) - 1

    def tables(self) -> Tables:
        return Tables(**{name: self.joined(name) for name in self._parts}, pixel_functions=self._pixel_functions)
