"""The main job on photos that come along: class folders, expanded with RandAugment, and a contact sheet of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from variegate.apps.preview import policy_sheet
from variegate.data.folder import open_folder
from variegate.data.sample_photos import sample_photo
from variegate.decode import read_image
from variegate.io.durable import write_atomically
from variegate.jobs.arguments import build_transform, parse_size
from variegate.jobs.augment import Expansion, Plan, Report
from variegate.jobs.engine import Engine
from variegate.jobs.output.files import encode_image
from variegate.jobs.output.run_record import SETTINGS_NAME

PHOTOS = ("astronaut", "cameraman", "cat", "coffee", "rocket", "space")
# Views of a photo: top, left, height and width as shares of it.
VIEWS = [
    (0.0, 0.0, 1.0, 1.0),
    (0.0, 0.0, 0.75, 0.75),
    (0.0, 0.25, 0.75, 0.75),
    (0.25, 0.0, 0.75, 0.75),
    (0.25, 0.25, 0.75, 0.75),
    (0.1, 0.1, 0.8, 0.8),
]
POLICY = "randaugment"
SIZE = "224"
SHEET_SAMPLES = 6


@dataclass(frozen=True)
class Demo:
    """Places of the demo, and the report of its run."""

    photos: Path
    augmented: Path
    sheet: Path
    num_photos: int
    report: Report


def run_demo(
    root: Path,
    copies: int = 8,
    seed: int = 0,
    threads: int | None = None,
    run: Callable[[Expansion], object] = Expansion.run,
) -> Demo:
    """Write photos to ``root``, expand them by ``run`` (which may show progress), and draw the sheet."""
    photos = root / "photos"
    augmented = root / "augmented"
    sheet = root / "contact-sheet.png"
    if root.is_dir() and {path.name for path in root.iterdir()} - {photos.name, augmented.name, sheet.name}:
        raise ValueError(f"{root}: holds files that no demo wrote; accepted: a new folder, an empty one, or a demo's")
    write_photos(photos)
    source = open_folder(photos)
    transform = build_transform(POLICY, parse_size(SIZE))
    if (augmented / SETTINGS_NAME).exists():  # of an earlier demo, perhaps with other settings
        shutil.rmtree(augmented)
    plan = Plan(source, transform, copies, seed, place=str(photos.absolute()))
    engine = Engine(["cpu:0"], "thread", num_threads=threads)
    expansion = Expansion(plan, augmented, engine, on_error="raise")
    run(expansion)
    samples = min(copies, SHEET_SAMPLES)
    policy_sheet(photos, POLICY, size=SIZE, images=len(PHOTOS), samples=samples, seed=seed).save(sheet)
    return Demo(photos, augmented, sheet, len(source), expansion.report)


def write_photos(root: Path) -> None:
    """Write the views as JPEG files, ``root/<class>/view<n>.jpg``."""
    for name in PHOTOS:
        img_HWC = read_image(sample_photo(name))
        for number, view in enumerate(VIEWS):
            sides = img_HWC.shape[:2] * 2
            top, left, height, width = (round(share * side) for share, side in zip(view, sides, strict=True))
            pixels = img_HWC[top : top + height, left : left + width]
            write_atomically(root / name / f"view{number}.jpg", encode_image(pixels, "jpg", 92))
