"""Contact sheets: a preview of a policy, or of one operation."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from variegate.apps.preview import sheet as layout
from variegate.apps.preview.choosing import Annotations, Choice, choose_images
from variegate.apps.preview.rows import sample_rows, sweep_of, sweep_rows, sweepable
from variegate.data.filtered import SourceWithExclusions
from variegate.decode.depth import read_in
from variegate.decode.dicom import Dicom
from variegate.errors import DecodeError
from variegate.io.addresses import check_is_local
from variegate.io.durable import write_atomically
from variegate.jobs.arguments import build_transform, parse_size
from variegate.policies.views import MultiView
from variegate.program.depth import Depth

__all__ = ["Annotations", "Sheet", "check_out", "policy_sheet", "sweep_sheet", "sweepable"]

# By the end of a file's name: Pillow's format, and how to write text in it that stays sharp.
_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("PNG", {"compress_level": 6}),
    ".jpg": ("JPEG", {"quality": 92, "subsampling": 0}),
    ".jpeg": ("JPEG", {"quality": 92, "subsampling": 0}),
    ".webp": ("WEBP", {"quality": 92}),
}


def check_out(path: Path) -> None:
    """Known before the work is done. Raises ValueError for a name that no sheet can be written under."""
    check_is_local("out", path)
    if path.suffix.lower() not in _FORMATS or path.is_dir():
        raise ValueError(f"out: got {path}; accepted: a file that ends in {', '.join(_FORMATS)}")


@dataclass(frozen=True)
class Sheet:
    """A drawn sheet, the number of its images, and files skipped because they do not decode.

    ``source_notes``: problems of annotations.
    """

    picture: Image.Image
    num_images: int
    bad: list[DecodeError]
    source_notes: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write it, whole or not at all: PNG, JPEG or WebP, by the end of its name. Raises ValueError for others."""
        check_out(path)
        name, options = _FORMATS[path.suffix.lower()]
        buffer = io.BytesIO()
        self.picture.save(buffer, name, **options)
        write_atomically(path, buffer.getvalue())


def policy_sheet(
    source: str | Path | SourceWithExclusions,
    policy: str,
    *,
    size: str = "none",
    images: int = 4,
    samples: int | None = None,
    seed: int = 0,
    epoch: int = 0,
    cell: int | None = None,
    annotations: Any = None,
    depth: Depth = Depth.UINT8,
    dicom: Dicom | None = None,
) -> Sheet:
    """A row for every image: itself, then its augmented copies as ``augment`` with the same arguments writes them.

    ``images``: number of rows. ``samples``: number of copies; None for six, or for as many as make six views. ``cell``:
    side of the pictures' squares in pixels; None for what fits on a screen, 112 to 224. ``annotations``: see
    ``open_source``, or ``Annotations`` with options for the targets to keep; masks, boxes and key points are drawn over
    the pictures. ``depth``, ``dicom``: how images are read, as by a Loader.
    """
    transform = build_transform(policy, parse_size(size))
    if samples is None:
        views = 1
        if isinstance(transform, MultiView):
            views = sum(transform.counts or (1,) * len(transform.transforms))
        samples = max(1, layout.MOST_VIEWS // views)
    with read_in(depth, set(), dicom):
        choice = choose_images(source, images, annotations)
        rows = sample_rows(choice, transform, range(samples), seed, epoch)
    crop = "" if parse_size(size) is None else f", after RandomResizedCrop({size})"
    return _drawn(rows, f"Policy {policy}{crop}", [f"Seed {seed}, epoch {epoch}."], cell, choice)


def sweep_sheet(
    source: str | Path | SourceWithExclusions,
    operation: str,
    *,
    images: int = 4,
    steps: int = 6,
    seed: int = 0,
    cell: int | None = None,
    annotations: Any = None,
    depth: Depth = Depth.UINT8,
    dicom: Dicom | None = None,
) -> Sheet:
    """A row for every image: itself, then one operation from one end of its range to the other."""
    sweep = sweep_of(operation, steps)
    with read_in(depth, set(), dicom):
        choice = choose_images(source, images, annotations)
    notes = [f"Over {sweep.source}; the argument is under each picture."]
    return _drawn(sweep_rows(choice, sweep, seed), f"Operation {sweep.name}", notes, cell, choice)


def _drawn(rows: list[list[layout.Cell]], title: str, notes: list[str], cell: int | None, choice: Choice) -> Sheet:
    lines = [line for row in rows for line in layout.lines_of(row)]
    sizes = layout.fitting_sizes(lines) if cell is None else (cell, max(cell, layout.NARROWEST_COLUMN))
    picture = layout.draw_sheet(lines, title, notes, *sizes)
    return Sheet(picture, len(rows), choice.bad, choice.notes)
