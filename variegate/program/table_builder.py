"""Side tables while a batch is sampled: what instructions point into is put there, and its place given back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.program.custom import PointFunction
from variegate.program.program import Tables


class TableBuilder:
    """Collects the ``Tables`` of a program."""

    def _start_tables(self) -> None:
        self._luts: list[npt.NDArray[np.uint8]] = []
        self._matrices: list[npt.NDArray[np.float32]] = []
        self._filters: list[npt.NDArray[np.float32]] = []
        self._rectangles: list[npt.NDArray[np.int32]] = []
        self._displacements: list[npt.NDArray[np.int16]] = []
        self._points: list[PointFunction] = []
        self._num_weights = self._num_rectangles = self._num_displacements = 0

    def add_lut(self, lut: npt.NDArray[np.uint8]) -> int:
        """uint8[256] or [3, 256] -> its index, for Op.LUT."""
        self._luts.append(np.broadcast_to(np.asarray(lut, np.uint8), (3, 256)))
        return len(self._luts) - 1

    def add_matrix(self, matrix: npt.NDArray[np.float32]) -> int:
        """float[3, 4] on 0..255 RGB plus offset -> its index, for Op.COLOR_MATRIX."""
        self._matrices.append(np.asarray(matrix, np.float32).reshape(3, 4))
        return len(self._matrices) - 1

    def add_filters(self, kernels: npt.NDArray[np.floating]) -> int:
        """float[M, height, width] -> where their weights begin, for Op.FILTER."""
        first = self._num_weights
        self._filters.append(np.asarray(kernels, np.float32).reshape(-1))
        self._num_weights += len(self._filters[-1])
        return first

    def add_rectangles(self, rectangles: npt.NDArray[np.int32]) -> int:
        """int[Q, 4] of top, left, height, width -> index of the first, for Op.ERASE."""
        first = self._num_rectangles
        self._rectangles.append(np.asarray(rectangles, np.int32).reshape(-1, 4))
        self._num_rectangles += len(self._rectangles[-1])
        return first

    def add_grids(self, displacements: npt.NDArray[np.int16]) -> int:
        """int16 dx, dy of nodes, line by line -> where they begin, for Op.DISPLACE."""
        first = self._num_displacements
        self._displacements.append(np.asarray(displacements, np.int16).reshape(-1))
        self._num_displacements += len(self._displacements[-1])
        return first

    def add_point(self, function: PointFunction) -> int:
        """A compiled point function -> its index, for Op.POINT."""
        for index, known in enumerate(self._points):
            if known is function:
                return index
        self._points.append(function)
        return len(self._points) - 1

    def tables(self) -> Tables:
        return Tables(
            luts=np.stack(self._luts) if self._luts else np.empty((0, 3, 256), np.uint8),
            matrices=np.stack(self._matrices) if self._matrices else np.empty((0, 3, 4), np.float32),
            filters=np.concatenate(self._filters) if self._filters else np.empty(0, np.float32),
            rectangles=np.concatenate(self._rectangles) if self._rectangles else np.empty((0, 4), np.int32),
            grids=np.concatenate(self._displacements) if self._displacements else np.empty(0, np.int16),
            points=self._points,
        )
