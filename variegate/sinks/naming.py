"""Names of outputs: stable, readable, and never the same for two sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol

from variegate.data.sources.base import Source


def output_stems(paths: Sequence[str]) -> list[str]:
    """Paths of sources -> where their outputs go, without copy number and extension; all different.

    ``cat/a.jpg`` gives ``cat/a``. Where several sources of a folder would share that (``a.jpg`` beside ``a.png``, or
    ``A.jpg``, which is the same name on some file systems), each of them keeps its extension: ``cat/a.jpg``. Should
    that meet yet another name, the index of the source is added. A pure function of the listing.
    """
    level = [0] * len(paths)
    while True:
        names = [_name(path, index, level[index]) for index, path in enumerate(paths)]
        count = Counter(name.casefold() for name in names)
        clashing = [index for index, name in enumerate(names) if count[name.casefold()] > 1]
        # Level 2 ends in the source's own index, so members of a clash can always move until none is left.
        movable = [index for index in clashing if level[index] < 2]
        if not movable:
            return names
        for index in movable:
            level[index] += 1


def output_path(stem: str, copy: int, extension: str) -> str:
    """``cat/a``, 3, ``jpg`` -> ``cat/a_3.jpg``. Different (stem, copy) never meet: the last ``_`` ends the stem."""
    return f"{stem}_{copy}.{extension}"


def _name(path: str, index: int, level: int) -> str:
    if level == 0:
        return str(PurePosixPath(path).with_suffix(""))
    return path if level == 1 else f"{path}~{index}"


class OutputNames(Protocol):
    """Where the outputs of each sample go in class folders. Picklable."""

    def stem(self, index: int, label: Any) -> str:
        """For ``output_path``. ``label``: as the source gives it; sources that list their files do not look at it."""
        ...


def names_for(source: Source) -> OutputNames:
    """Names of any source's outputs, all different, and none outside of the root.

    Of a folder's images, ``output_stems``; of others ``<class>/<index, 8 digits or more>``, or where a sample has no
    class, ``<index>``.
    """
    raise NotImplementedError
