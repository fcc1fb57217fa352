"""Magnitudes of samples as bytes, the files that an epoch's are kept in, and what a training has recorded."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.io.durable import write_atomically
from variegate.loader.options import ConditionsOfIds

Ids = npt.NDArray[np.uint64]

FOLDER, IDS_NAME, LOG_NAME = "magnitudes", "ids.npy", "log.jsonl"


class MagnitudeTable:
    """A byte for each sample, 0 to 255 for magnitudes from 0 to 1. ``codes``: replaced, never changed in place."""

    def __init__(self, ids: Ids, codes: npt.NDArray[np.uint8] | None = None) -> None:
        self.ids = ids
        self.codes = np.zeros(len(ids), np.uint8) if codes is None else codes
        self._order = np.argsort(ids)
        self._sorted = ids[self._order]

    def rows(self, ids: Ids) -> npt.NDArray[np.intp]:
        """Rows of these samples. Raises LookupError naming one that is not."""
        place = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        if (missing := self._sorted[place] != ids).any():
            raise LookupError(f"sample {ids[missing][0]} has no magnitude; accepted: samples of the {len(self.ids):,}")
        return self._order[place]

    def given(self) -> ConditionsOfIds:
        codes = self.codes
        return lambda ids: {"magnitude": codes[self.rows(ids)] / 255.0}

    def write(self, out: Path, epoch: int) -> None:
        """magnitudes/ids.npy, uint64[N], once; magnitudes/0000.npy, uint8[N], for each epoch. Raises WriteError."""
        folder = out / FOLDER
        if not (folder / IDS_NAME).exists():
            write_atomically(folder / IDS_NAME, as_npy(self.ids))
        write_atomically(folder / f"{epoch:04d}.npy", as_npy(self.codes))


class RecordedMagnitudes:
    """Magnitudes of another training, by its folder or log, as ``vg.Loader`` takes ``conditions``. Raises
    ValueError."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._out = self.path.parent if self.path.name == LOG_NAME else self.path
        self._ids: Ids | None = None
        self._same: dict[int, float] = {}
        if (self._out / FOLDER / IDS_NAME).exists():
            self._ids = np.asarray(_read_npy(self._out / FOLDER / IDS_NAME), np.uint64)
            self.epochs = sum(1 for _ in (self._out / FOLDER).glob("[0-9]*.npy"))
        else:
            self._same = _magnitudes_in(self._out / LOG_NAME, self.path)
            self.epochs = len(self._same)

    @property
    def is_same_for_all(self) -> bool:
        return self._ids is None

    def table(self, epoch: int) -> MagnitudeTable:
        """Of an epoch in which each sample has its own."""
        assert self._ids is not None
        path = self._out / FOLDER / f"{epoch:04d}.npy"
        if not path.exists():
            raise self._missing(epoch)
        codes = _read_npy(path)
        if codes.dtype != np.uint8 or codes.shape != self._ids.shape:
            raise ValueError(
                f"{path}: has {codes.dtype} {codes.shape}; accepted: a byte for each of {len(self._ids):,}"
            )
        return MagnitudeTable(self._ids, codes)

    def __call__(self, epoch: int) -> ConditionsOfIds:
        if not self.is_same_for_all:
            return self.table(epoch).given()
        if epoch not in self._same:
            raise self._missing(epoch)
        return same_for_all(self._same[epoch])

    def check(self, epochs: int, ids: Ids) -> None:
        """Raises ValueError where it has not so many epochs, or not these samples."""
        if epochs > self.epochs:
            raise self._missing(self.epochs)
        if not self.is_same_for_all:
            try:
                self.table(0).rows(ids)
            except LookupError as error:
                raise ValueError(f"adapt_from: {self.path} is of other images ({error})") from error

    def fingerprint(self, epochs: int) -> str:
        """Of what it says of the first epochs."""
        found = hashlib.sha256()
        for epoch in range(epochs):
            one = self.table(epoch).codes.tobytes() if not self.is_same_for_all else repr(self._same[epoch]).encode()
            found.update(one)
        return found.hexdigest()[:12]

    def _missing(self, epoch: int) -> ValueError:
        return ValueError(
            f"adapt_from: {self.path} has the magnitudes of {self.epochs} epochs, not of epoch {epoch}; accepted: as "
            "many epochs as it has, or a longer training's log"
        )


def same_for_all(magnitude: float) -> ConditionsOfIds:
    return lambda ids: {"magnitude": np.full(len(ids), magnitude)}


def _magnitudes_in(log: Path, given: Path) -> dict[int, float]:
    """By epoch. Raises ValueError for a log without any."""
    found: dict[int, float] = {}
    try:
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if "step" in line and "magnitude" in line:
                found.setdefault(int(line["epoch"]), float(line["magnitude"]))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"adapt_from: {given}: no log of a training ({error})") from error
    if not found or sorted(found) != list(range(len(found))):
        accepted = "the folder, or the log.jsonl, of a training with --adapt gap or entropy"
        raise ValueError(f"adapt_from: {given}: has no magnitudes; accepted: {accepted}")
    return found


def _read_npy(path: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"adapt_from: {path}: no file of magnitudes ({error})") from error
    return array


def as_npy(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
