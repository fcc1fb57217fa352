"""The columns of a check's table that duplicates are found by, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.curate.finding import READ, SPLITS
from variegate.apps.curate.measures.fingerprint import SIGNATURE_BYTES

HASH_BYTES = 16
TRAIN, TEST = 0, 1  # places in SPLITS; what is beside either, two further on


@dataclass(frozen=True)
class Fingerprints:
    """Of the n images of a table that have one. ``splits`` uint8: places in ``SPLITS``; ``labels``: a number for each
    name of a class, the same in all splits, -1 where it is not known; ``sides``: the shorter one, in pixels."""

    splits: npt.NDArray[np.uint8]
    indices: npt.NDArray[np.int64]
    files: pa.ChunkedArray
    labels: npt.NDArray[np.int64]
    classes: list[str]
    pixels: npt.NDArray[np.uint64]  # [n, 2]
    looks: npt.NDArray[np.uint64]
    signatures: npt.NDArray[np.uint8]  # [n, SIGNATURE_BYTES]
    sides: npt.NDArray[np.int64]

    @property
    def halves(self) -> npt.NDArray[np.uint8]:
        """``TRAIN`` or ``TEST``, also of what is beside these."""
        return self.splits & np.uint8(1)

    @property
    def are_read(self) -> npt.NDArray[np.bool_]:
        return self.splits < len(READ)


def read_fingerprints(table: pa.Table) -> Fingerprints:
    """Raises ValueError for a signature that is not of this version's length."""
    if table["pixel_hash"].null_count:
        table = table.filter(pc.is_valid(table["pixel_hash"]))
    names = pc.if_else(
        pc.less(table["label"], 0),
        pa.scalar(None, pa.string()),
        pc.coalesce(table["class"], table["label"].cast("string")),
    )
    encoded = names.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return Fingerprints(
        splits=pc.index_in(table["split"], pa.array(SPLITS)).to_numpy().astype(np.uint8),
        indices=table["index"].to_numpy().astype(np.int64),
        files=table["file"],
        labels=encoded.indices.fill_null(-1).to_numpy().astype(np.int64),
        classes=encoded.dictionary.to_pylist(),
        pixels=_bytes_of(table["pixel_hash"], HASH_BYTES).view(np.uint64),
        looks=table["look_hash"].to_numpy().astype(np.uint64),
        signatures=_bytes_of(table["signature"], SIGNATURE_BYTES),
        sides=pc.min_element_wise(table["height"], table["width"]).fill_null(0).to_numpy().astype(np.int64),
    )


def _bytes_of(column: pa.ChunkedArray, length: int) -> npt.NDArray[np.uint8]:
    """Of binary(length), or of binary whose values all have that length -> uint8 [n, length]"""
    found = np.empty((len(column), length), np.uint8)
    begin = 0
    for chunk in column.chunks:
        end = begin + len(chunk)
        if pa.types.is_fixed_size_binary(chunk.type):
            found[begin:end] = np.frombuffer(chunk.buffers()[1], np.uint8).reshape(-1, length)[chunk.offset :][
                : len(chunk)
            ]
        elif len(chunk):
            starts = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset :][: len(chunk) + 1]
            if np.any(np.diff(starts) != length):
                raise ValueError(f"the table has signatures that are not of {length} bytes: another version made it")
            found[begin:end] = np.frombuffer(chunk.buffers()[2], np.uint8)[starts[0] : starts[-1]].reshape(-1, length)
        begin = end
    return found
