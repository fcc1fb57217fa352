"""What is odd about the file of an image: whether it decodes, what it holds, and what its name says."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.curate.finding import READ
from variegate.apps.curate.judging.verdicts import Verdicts

# What a name may end in, by Pillow's name of the kind. MPO: several JPEGs in one file, as cameras write them.
_EXTENSIONS = {
    "JPEG": {".jpg", ".jpeg", ".jpe", ".jfif"},
    "MPO": {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"},
    "PNG": {".png"},
    "GIF": {".gif"},
    "BMP": {".bmp", ".dib"},
    "PPM": {".ppm", ".pgm", ".pbm", ".pnm"},
    "WEBP": {".webp"},
    "TIFF": {".tif", ".tiff"},
}
_KNOWN = set().union(*_EXTENSIONS.values())
_LONGEST = max(map(len, _KNOWN))
_USUAL_MODES = {"RGB", "L"}
_TURNS = {
    2: "mirrored",
    3: "turned by 180 degrees",
    4: "mirrored upside down",
    5: "mirrored and turned by 90 degrees",
    6: "turned by 90 degrees",
    7: "mirrored and turned by 270 degrees",
    8: "turned by 270 degrees",
}


def file_findings(verdicts: Verdicts) -> None:
    """corrupt, truncated, damaged, empty, wrong_extension, unusual_mode, exif_turned.

    A file has the first of empty, truncated, corrupt, damaged that holds.
    """
    table, sizes, turns = verdicts.table, verdicts.column("bytes"), verdicts.column("orientation")
    is_empty = (sizes == 0) | (verdicts.column("height") == 0) | (verdicts.column("width") == 0)
    is_truncated = table["is_truncated"].fill_null(False).to_numpy(zero_copy_only=False) & ~is_empty
    is_whole = ~is_empty & ~is_truncated
    has_error, has_warning = (table[name].is_valid().to_numpy(zero_copy_only=False) for name in ("error", "warning"))

    def said(row: int) -> str:
        return str(
            table["error"][row].as_py() or table["warning"][row].as_py() or "the file ends before its image does"
        )

    verdicts.add("corrupt", has_error & is_whole, said)
    verdicts.add("truncated", is_truncated, said, sizes)
    verdicts.add("damaged", has_warning & ~has_error & is_whole, said)
    verdicts.add("empty", is_empty, lambda row: "it has no pixels" if sizes[row] else "the file has no bytes", sizes)
    _extensions(verdicts)
    _modes(verdicts)
    verdicts.add(
        "exif_turned",
        turns > 1,
        lambda row: f"its EXIF orientation is {turns[row]:.0f}: shown {_TURNS.get(int(turns[row]), 'otherwise')}",
        turns,
    )


def _extensions(verdicts: Verdicts) -> None:
    """Of a name without a known extension nothing is said."""
    tails, tail_of = _coded(pc.utf8_lower(pc.utf8_slice_codeunits(verdicts.table["file"], -_LONGEST)))
    kinds, kind_of = _coded(verdicts.table["kind"])
    endings = [os.path.splitext(f"name{tail}")[1] for tail in tails]
    is_wrong = np.array(
        [
            [kind in _EXTENSIONS and ending in _KNOWN and ending not in _EXTENSIONS[kind] for ending in [*endings, ""]]
            for kind in [*kinds, ""]
        ]
    )
    verdicts.add(
        "wrong_extension",
        is_wrong[kind_of, tail_of],
        lambda row: f"holds a {kinds[kind_of[row]]} image, not {endings[tail_of[row]]}",
    )


def _modes(verdicts: Verdicts) -> None:
    """A mode that more than half of the images have that loaders read is the usual one of the set."""
    modes, mode_of = _coded(verdicts.table["mode"])
    is_read = pc.is_in(verdicts.table["split"], pa.array(READ)).to_numpy()
    counts = np.bincount(mode_of[is_read & (mode_of >= 0)], minlength=len(modes))
    is_unusual = [mode not in _USUAL_MODES and 2 * counts[i] <= counts.sum() for i, mode in enumerate(modes)]
    verdicts.add(
        "unusual_mode",
        np.array([*is_unusual, False])[mode_of],
        lambda row: f"its pixels are {modes[mode_of[row]]}, which become RGB",
    )


def _coded(column: pa.ChunkedArray) -> tuple[list[str], npt.NDArray[np.int64]]:
    """-> (the different values, which of them a row has; -1: null)."""
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    return coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy().astype(np.int64)
