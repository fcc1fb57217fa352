"""Findings gathered from columns: what holds for a row, with a number and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variegate.apps.curate.finding import DataFinding

Flags = npt.NDArray[np.bool_]


class Verdicts:
    """Of a table; ``findings`` grows by kind, and within a kind by row."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.findings: list[DataFinding] = []
        self._names: list[pa.ChunkedArray] = [table[name] for name in ("split", "index", "file")]

    def column(self, name: str) -> npt.NDArray[Any]:
        """Numbers as float64, null as NaN; strings and truth as objects, null as None."""
        column = self.table[name]
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        return np.asarray(column.to_pylist(), object)

    def add(
        self,
        finding: str,
        holds: Flags,
        why: Callable[[int], str],
        measure: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """One for every row that ``holds``; ``why``: the sentence, by row."""
        for row in np.flatnonzero(holds).tolist():
            split, index, file = (column[row].as_py() for column in self._names)
            number = None if measure is None else float(measure[row])
            self.findings.append(DataFinding(split, index, file, finding, number, None, why(row)))
