"""Contact sheets: what a policy, or one operation, does to images."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from variegate.engine.recipe import build_transform, parse_size
from variegate.errors import DecodeError
from variegate.preview.samples import choose_images, sample_rows
from variegate.preview.sheet import draw_sheet
from variegate.preview.sweep import sweep_of, sweep_rows, sweepable
from variegate.sinks.atomic import write_atomically

__all__ = ["Sheet", "policy_sheet", "sweep_sheet", "sweepable"]


@dataclass(frozen=True)
class Sheet:
    """A drawn sheet, how many images it shows, and the files that were passed over because they do not decode."""

    picture: Image.Image
    num_images: int
    bad: list[DecodeError]

    def save(self, path: Path) -> None:
        """Write a PNG, whole or not at all."""
        buffer = io.BytesIO()
        self.picture.save(buffer, "PNG", compress_level=6)
        write_atomically(path, buffer.getvalue())


def policy_sheet(
    source: str | Path,
    policy: str,
    *,
    size: str = "none",
    images: int = 4,
    samples: int = 6,
    seed: int = 0,
    epoch: int = 0,
    note: str = "",
) -> Sheet:
    """A row for every image: itself, then its augmented copies as ``augment`` with the same arguments writes them."""
    transform = build_transform(policy, parse_size(size))
    chosen, bad = choose_images(source, images)
    rows = sample_rows(chosen, transform, samples, seed, epoch)
    crop = "" if parse_size(size) is None else f", after RandomResizedCrop({size})"
    title = f"Policy {policy}{crop}"
    picture = draw_sheet(rows, title, [" ".join(part for part in (f"Seed {seed}, epoch {epoch}.", note) if part)])
    return Sheet(picture, len(chosen), bad)


def sweep_sheet(source: str | Path, operation: str, *, images: int = 4, steps: int = 6, seed: int = 0) -> Sheet:
    """A row for every image: itself, then one operation from one end of its range to the other."""
    sweep = sweep_of(operation, steps)
    chosen, bad = choose_images(source, images)
    rows = sweep_rows(chosen, sweep, seed)
    picture = draw_sheet(rows, f"Operation {sweep.name}", [f"Over {sweep.source}; the argument is under each picture."])
    return Sheet(picture, len(chosen), bad)
