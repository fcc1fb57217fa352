"""Magnitudes of samples, one byte each, and the files that a training records them in."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from variegate.arrays import AnyArray, IndexArray, UInt8Array, UInt64Array
from variegate.io.durable import write_atomically
from variegate.loader.options import ConditionsOfIds

Ids = UInt64Array

FOLDER = "magnitudes"
IDS_NAME = "ids.npy"


class MagnitudeTable:
    """A byte per sample: 0 to 255 for magnitudes from 0 to 1. ``codes`` is replaced, never changed in place, because
    loader threads may still read it."""

    def __init__(self, ids: Ids, codes: UInt8Array | None = None) -> None:
        self.ids = ids
        self.codes = np.zeros(len(ids), np.uint8) if codes is None else codes
        self._order = np.argsort(ids)
        self._sorted = ids[self._order]

    def rows(self, ids: Ids) -> IndexArray:
        """Rows of these samples. Raises LookupError naming a sample that the table lacks."""
        positions = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        missing = self._sorted[positions] != ids
        if missing.any():
            raise LookupError(f"sample {ids[missing][0]} has no magnitude; accepted: samples of the {len(self.ids):,}")
        return self._order[positions]

    def given(self) -> ConditionsOfIds:
        """The magnitudes as conditions of samples."""
        codes = self.codes
        return lambda ids: {"magnitude": codes[self.rows(ids)] / 255.0}

    def write(self, out: Path, epoch: int) -> None:
        """Write magnitudes/ids.npy, uint64 [N], once, and magnitudes/0000.npy, uint8 [N], per epoch. Raises
        WriteError."""
        folder = out / FOLDER
        if not (folder / IDS_NAME).exists():
            write_atomically(folder / IDS_NAME, as_npy(self.ids))
        write_atomically(folder / f"{epoch:04d}.npy", as_npy(self.codes))


class RecordedMagnitudes:
    """Magnitudes that a training with ``adapt="entropy"`` recorded, in the form of ``conditions`` of ``vg.Loader``.

    ``out``: the folder of the training. Raises ValueError.
    """

    def __init__(self, out: str | Path) -> None:
        self._folder = Path(out) / FOLDER
        self._ids = np.asarray(_read_npy(self._folder / IDS_NAME), np.uint64)

    def __call__(self, epoch: int) -> ConditionsOfIds:
        path = self._folder / f"{epoch:04d}.npy"
        codes = _read_npy(path)
        if codes.dtype != np.uint8 or codes.shape != self._ids.shape:
            wanted = f"a byte for each of {len(self._ids):,} samples"
            raise ValueError(f"{path}: has {codes.dtype} {codes.shape}; accepted: {wanted}")
        return MagnitudeTable(self._ids, codes).given()


def _read_npy(path: Path) -> AnyArray:
    try:
        array: AnyArray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path}: no magnitudes of a training with --adapt entropy ({error})") from error
    return array


def as_npy(array: AnyArray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
