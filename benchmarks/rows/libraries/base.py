"""What a library offers for W2o: for a row, named ways to make the next batch, or the reason why it has none."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, ClassVar

from benchmarks.peers.base import Library, NextBatch
from benchmarks.rows.catalogue import Case

Images = Any  # uint8[N, size, size, 3], or for views the JPEG files


class Absent(Exception):
    """The library has no operation of this meaning; the message says so."""


class RowLibrary(Library):
    """``works_ahead``: a batch may be made while nobody looks, so the first of a run is not counted."""

    works_ahead: ClassVar[bool] = False
    # Rows that it lacks, and why; what differs in meaning where it has them.
    lacks: ClassVar[dict[str, str]] = {}
    differs: ClassVar[dict[str, str]] = {}

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        """Functions of no argument -> the next [batch, 3, out, out], contiguous; ``images`` uint8[N, size, size, 3]."""
        raise NotImplementedError

    def ways(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        """``variants``, or Absent."""
        if case.name in self.lacks:
            raise Absent(self.lacks[case.name])
        return self.variants(case, images, batch)


def in_turn(images: Images, batch: int) -> Iterator[Images]:
    """Batches of ``images``, views of them, for ever."""
    whole = len(images) // batch
    while True:
        for i in range(whole):
            yield images[i * batch : (i + 1) * batch]


def load_library(module: str) -> RowLibrary:
    """The ``LIBRARY`` of ``benchmarks.rows.libraries.<module>``."""
    found: Any = importlib.import_module(f"benchmarks.rows.libraries.{module}").LIBRARY
    assert isinstance(found, RowLibrary)
    return found
