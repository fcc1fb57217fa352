"""Image files in a folder, each written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from variegate.sinks.encode import check_format, encode_image
from variegate.sinks.naming import output_path


class FolderSink:
    """Writes ``root/<stem>_<copy>.<format>``; safe to call from many threads."""

    def __init__(self, root: str | os.PathLike[str], format: str = "jpg", quality: int = 95) -> None:
        check_format(format, quality)
        self.root = Path(root)
        self.format = format
        self.quality = quality

    def path_for(self, stem: str, copy: int) -> str:
        """Where that output goes, relative to the root, with forward slashes."""
        return output_path(stem, copy, self.format)

    def write(self, img_HWC: npt.NDArray[np.uint8], stem: str, copy: int) -> str:
        """Encode and write one picture -> its path relative to the root. Raises OSError, or ValueError as encoding."""
        relative = self.path_for(stem, copy)
        try:
            data = encode_image(img_HWC, self.format, self.quality)
        except ValueError as error:
            raise ValueError(f"{relative}: {error}") from error
        write_atomically(self.root / relative, data)
        return relative


def write_atomically(path: Path, data: bytes) -> None:
    """Write under a temporary name beside ``path``, then rename: a reader sees the old file, or the whole new one.

    The temporary name begins with a dot, which listings pass over, and is always the same, so that a killed run
    leaves at most one per thread, which the next run replaces.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
