"""What is odd about the file of an image: whether it decodes, what it holds, and what its name says."""

from __future__ import annotations

import os

import numpy as np

from variegate.curation.judging.verdicts import Verdicts

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
    """corrupt, truncated, damaged, empty, wrong_extension, unusual_mode, exif_turned."""
    errors, sizes = verdicts.column("error"), verdicts.column("bytes")
    has_error = np.asarray([one is not None for one in errors], bool)
    is_empty = sizes == 0
    is_truncated = np.asarray([one is True for one in verdicts.column("is_truncated")], bool) & ~is_empty
    verdicts.add("corrupt", has_error & ~is_empty & ~is_truncated, lambda row: str(errors[row]))
    verdicts.add(
        "truncated", is_truncated, lambda row: str(errors[row] or "the file ends before its image does"), sizes
    )
    warnings = verdicts.column("warning")
    is_damaged = np.asarray([one is not None for one in warnings], bool) & ~has_error & ~is_truncated & ~is_empty
    verdicts.add("damaged", is_damaged, lambda row: str(warnings[row]))
    verdicts.add("empty", is_empty, lambda row: "the file has no bytes", sizes)
    _extensions(verdicts)
    _modes(verdicts)
    turns = verdicts.column("orientation")
    verdicts.add(
        "exif_turned",
        np.isfinite(turns) & (turns > 1),
        lambda row: f"its EXIF orientation is {turns[row]:.0f}: shown {_TURNS.get(int(turns[row]), 'otherwise')}",
        turns,
    )


def _extensions(verdicts: Verdicts) -> None:
    kinds = verdicts.column("kind")
    endings = [os.path.splitext(str(file).rpartition(": ")[2])[1].lower() for file in verdicts.column("file")]
    is_wrong = [
        kind in _EXTENSIONS and ending in _KNOWN and ending not in _EXTENSIONS[kind]
        for kind, ending in zip(kinds, endings, strict=True)
    ]
    verdicts.add(
        "wrong_extension", np.asarray(is_wrong, bool), lambda row: f"holds a {kinds[row]} image, not {endings[row]}"
    )


def _modes(verdicts: Verdicts) -> None:
    """A mode that half of the images have is the usual one of the set."""
    modes = verdicts.column("mode")
    known = [mode for mode in modes if mode is not None]
    usual = _USUAL_MODES | {mode for mode in set(known) if 2 * known.count(mode) > len(known)}
    is_unusual = [mode is not None and mode not in usual for mode in modes]
    verdicts.add(
        "unusual_mode", np.asarray(is_unusual, bool), lambda row: f"its pixels are {modes[row]}, which become RGB"
    )
