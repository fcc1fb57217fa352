"""Side tables of a batch during sampling: transforms add entries and pass their indices to instructions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float32Array, Int16Array, Int32Array, RealArray
from variegate.program.channels import needs_color
from variegate.program.pixel_functions import PixelFunction
from variegate.program.program import Tables

_NONE = Tables()


class TableBuilder:
    """Collects the ``Tables`` of a program, and the names of its operations.

    ``num_channels``: length of colors and number of lookup tables per LUT; 3 for gray and color images.
    """

    def __init__(self, num_channels: int = 3) -> None:
        self.num_channels = num_channels
        self._parts: dict[str, list[AnyArray]] = {}
        self._counts: dict[str, int] = {}
        self._pixel_functions: list[PixelFunction] = []
        self._names: list[str] = []
        if num_channels != 3:
            self.add("curves", np.empty((0, num_channels, 256)))
            self.add("colors", np.zeros((1, num_channels)))  # color 0, black, for instructions without a color

    def add(self, table: str, values: npt.ArrayLike) -> int:
        """Append ``values`` to a table. Returns the index of the first."""
        like = getattr(_NONE, table)
        first = self._counts.get(table, 0)
        part = np.ascontiguousarray(values, like.dtype)
        part = part.reshape(-1, *part.shape[part.ndim - like.ndim + 1 :])
        self._parts.setdefault(table, []).append(part)
        self._counts[table] = first + len(part)
        return first

    def adopt_tables(self, other: TableBuilder) -> None:
        """Replace the tables by the tables of another builder."""
        self._parts, self._counts = other._parts, other._counts
        self._pixel_functions, self._names = other._pixel_functions, other._names

    def table_size(self, table: str) -> int:
        """Return the number of entries of a side table."""
        return self._counts.get(table, 0)

    def joined(self, table: str) -> AnyArray:
        """Return the entries of a non-empty side table."""
        parts = self._parts[table]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def is_empty_but(self, table: str) -> bool:
        """Return whether all side tables except ``table`` are empty."""
        return not (self._pixel_functions or self._parts.keys() - {table})

    def name_index(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    def add_curve(self, curve: RealArray, name: str = "LUT") -> int:
        """Add a curve of values 0..255, [256] or [3, 256], for Op.LUT. Returns its index. ``name``: its name in errors.

        Raises ValueError for three curves if images have 2 or 4 and more channels.
        """
        if curve.ndim == 2 and len(curve) not in (1, self.num_channels):
            raise needs_color(name, self.num_channels)
        return self.add("curves", np.broadcast_to(curve, (self.num_channels, 256)))

    def add_matrix(self, matrix: Float32Array) -> int:
        """Add a color matrix, float[3, 4] on RGB values in 0..255 and 1, for Op.COLOR_MATRIX. Returns its index."""
        return self.add("matrices", matrix)

    def add_filters(self, kernels: RealArray) -> int:
        """Add kernels float[M, height, width] for Op.CONVOLVE_FLOAT. Returns the index of the first weight."""
        return self.add("filters", kernels)

    def add_rectangles(self, rectangles: Int32Array) -> int:
        """Add rectangles int[Q, 4] of top, left, height, width for Op.ERASE. Returns the index of the first."""
        return self.add("rectangles", rectangles)

    def add_grids(self, displacements: Int16Array) -> int:
        """Add displacements dx, dy of nodes, int16 in row-major order, for Op.DISPLACE. Returns the first index."""
        return self.add("grids", displacements)

    def add_pixel_function(self, function: PixelFunction) -> int:
        """Add a pixel function for Op.PIXEL_FUNCTION, unless present. Returns its index.

        Raises ValueError if recording the function fails.
        """
        for index, known in enumerate(self._pixel_functions):
            if known is function:
                return index
        function.check()
        self._pixel_functions.append(function)
        return len(self._pixel_functions) - 1

    def tables(self) -> Tables:
        return Tables(**{name: self.joined(name) for name in self._parts}, pixel_functions=self._pixel_functions)
