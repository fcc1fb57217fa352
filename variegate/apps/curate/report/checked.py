"""What a report is made from, and where in it an image is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.curate.finding import READ, SPLITS, DataFinding
from variegate.formats.base import Source, StreamSource

Place = tuple[str, int]  # split, index


class Checked(Protocol):
    """The result of a check, as far as a report shows it.

    ``table``: of ``SCHEMA``, a row per image. ``sources``: by split. ``mean``, ``std``: by channel over the pixels of
    the train images, None where none decodes. ``thresholds``: what images were judged by.
    """

    @property
    def table(self) -> pa.Table: ...
    @property
    def findings(self) -> Sequence[DataFinding]: ...
    @property
    def sources(self) -> Mapping[str, Source | StreamSource]: ...
    @property
    def mean(self) -> tuple[float, ...] | None: ...
    @property
    def std(self) -> tuple[float, ...] | None: ...
    @property
    def thresholds(self) -> Any: ...


class CheckedRows:
    """The table of a check, asked by image and by split."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        splits = table["split"]
        self._rows: dict[str, npt.NDArray[np.int64]] = {
            split: np.flatnonzero(pc.equal(splits, split).to_numpy()).astype(np.int64) for split in SPLITS
        }
        index = table["index"].to_numpy()
        self._order: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        for split, rows in self._rows.items():
            order = np.argsort(index[rows], kind="stable")
            self._order[split] = index[rows][order], rows[order]

    @property
    def splits(self) -> list[str]:
        """Those that have images."""
        return [split for split in SPLITS if len(self._rows[split])]

    @property
    def charted(self) -> list[str]:
        """Those of them that loaders read."""
        return [split for split in self.splits if split in READ]

    def count(self, split: str) -> int:
        return len(self._rows[split])

    def of(self, split: str, column: str) -> pa.ChunkedArray:
        return self.table[column].take(pa.array(self._rows[split]))

    def at(self, place: Place, column: str) -> Any:
        """Of one image; None where the table has no row of it."""
        indices, rows = self._order[place[0]]
        found = int(np.searchsorted(indices, place[1]))
        if found == len(indices) or indices[found] != place[1]:
            return None
        return self.table[column][int(rows[found])].as_py()

    def numbers(self, split: str, column: str) -> npt.NDArray[np.float64]:
        """Of the images that have one."""
        values = self.of(split, column).drop_null()
        return values.to_numpy().astype(np.float64)
