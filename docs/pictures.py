"""The pictures of pages that are not made with the site, docs/images/*.webp: ``python -m docs.pictures [NAME ...]``."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import variegate as vg
from docs.gallery import photos
from variegate import transforms as T
from variegate.apps.demo import write_photos
from variegate.cli import main as variegate

DOCS = Path(__file__).resolve().parent
IMAGES, TUTORIALS = DOCS / "images", DOCS / "tutorials"
GAP, CAPTION, QUALITY = 6, 22, 82


def grid(rows: Sequence[tuple[str, Sequence[Any]]], side: int, left: int) -> Image.Image:
    """Rows of square pictures, with a caption at the left of each, ``left`` pixels wide."""
    columns = max(len(pictures) for _, pictures in rows)
    size = left + columns * (side + GAP), len(rows) * (side + GAP) - GAP
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    for number, (caption, pictures) in enumerate(rows):
        top = number * (side + GAP)
        draw.multiline_text((0, top + side // 2), caption, "#1f2328", ImageFont.load_default(15), anchor="lm")
        for column, picture in enumerate(pictures):
            scaled = Image.fromarray(picture).resize((side, side), Image.Resampling.NEAREST)
            sheet.paste(scaled, (left + column * (side + GAP), top))
    return sheet


def policies() -> Image.Image:
    """Five draws of each of six policies."""
    shown = {
        "crop, flip": T.Compose([T.RandomResizedCrop(112, scale=(0.3, 1)), T.RandomHorizontalFlip()]),
        "randaugment-1-5": vg.load_policy("randaugment-1-5"),
        "randaugment-2-9": vg.load_policy("randaugment-2-9"),
        "trivialaugment": vg.load_policy("trivialaugment"),
        "augmix": vg.load_policy("augmix"),
        "3-augment": vg.load_policy("3-augment"),
    }
    photo = np.asarray(Image.fromarray(photos("cat")[0]).resize((112, 112)))
    rows: list[tuple[str, list[Any]]] = []
    for name, policy in shown.items():
        augment = vg.Augmenter(policy, "cpu", seed=1, layout="NHWC")
        rows.append((name, [np.asarray(augment([photo], ids=[draw])[0]) for draw in range(5)]))
    return grid(rows, 112, 150)


def preview(policy: str, *shape: str) -> Image.Image:
    """The sheet of ``variegate preview`` for the photos of ``variegate demo``."""
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder) / "photos")
        out = str(Path(folder) / "preview.png")
        options = ["--policy", policy, "--images", "3", "--samples", "4", *shape]
        assert variegate(["preview", f"{folder}/photos", *options, "--out", out]) == 0
        return Image.open(out).convert("RGB")


def detection() -> Image.Image:
    """The sheet that the tutorial's ``variegate preview`` writes of the tutorial's data set."""
    block = re.search(r"^```python\n(.*?)^```\n", (TUTORIALS / "detection.md").read_text(encoding="utf-8"), re.M | re.S)
    assert block is not None
    annotations = ["--annotations", "coco/instances.json,mask=each", "--policy", "trivialaugment"]
    shape = ["--images", "2", "--samples", "4", "--size", "160", "--out", "boxes.png"]
    started_in = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(block[1], {})
            assert variegate(["preview", "coco/images", *annotations, *shape]) == 0
            return Image.open("boxes.png").convert("RGB")
        finally:
            os.chdir(started_in)


def expand_overnight() -> Image.Image:
    """The contact sheet of ``variegate demo``, smaller."""
    with tempfile.TemporaryDirectory() as folder:
        assert variegate(["demo", f"{folder}/demo"]) == 0
        sheet = Image.open(f"{folder}/demo/contact-sheet.png").convert("RGB")
    return sheet.resize((1000, round(sheet.height * 1000 / sheet.width)), Image.Resampling.LANCZOS)


def cluster() -> Image.Image:
    """The samples of each step: of two ranks for two steps, then of one rank that resumes."""
    source = (np.zeros((20, 8, 8, 3), np.uint8), list(range(20)))

    def loader(batch_size: int, rank: int, world_size: int) -> vg.Loader:
        return vg.Loader(source, None, batch_size, "cpu", seed=1, rank=rank, world_size=world_size)

    first = loader(2, 0, 2)
    state: dict[str, Any] = {}
    rows: list[list[list[int]]] = [[], []]
    for step, batch in enumerate(first):
        rows[0].append(batch.ids.tolist())
        if step == 1:
            state = first.state_dict()
            break
    rows[1] = [batch.ids.tolist() for batch, _ in zip(loader(2, 1, 2), range(2), strict=False)]
    alone = loader(4, 0, 1)
    alone.load_state_dict(state)
    rest = [batch.ids.tolist() for batch in alone]

    box, top = 34, 34
    sheet = Image.new("RGB", (720, 124), "#f6f8fa")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(14)

    def write_ids(ids: list[int], left: int, row: int, color: str) -> None:
        for number, sample in enumerate(ids):
            x, y = left + number * box, top + row * (box + 8)
            draw.rectangle((x, y, x + box - 4, y + box - 4), fill=color)
            draw.text((x + box / 2 - 2, y + box / 2 - 2), str(sample), "#1f2328", font, anchor="mm")

    draw.text((16, 8), "two ranks", "#1f2328", font)
    draw.text((300, 8), "stopped, and resumed on one", "#1f2328", font)
    for rank, color in enumerate(("#54aeff", "#4ac26b")):
        draw.text((16, top + rank * (box + 8) + 8), f"rank {rank}", "#57606a", font)
        for step, ids in enumerate(rows[rank]):
            write_ids(ids, 80 + step * (2 * box + 12), rank, color)
    draw.line((272, 8, 272, 116), "#8c959f", 2)
    for step, ids in enumerate(rest):
        write_ids(ids, 300 + (step % 2) * (4 * box + 12), step // 2, "#fb8f44")
    return sheet


def simclr() -> Image.Image:
    """Digits, and two views of each by the tutorial's recipe."""
    from sklearn.datasets import load_digits

    values, _ = load_digits(return_X_y=True)
    digits = np.round(values[:8] * 255 / 16).astype(np.uint8).reshape(-1, 8, 8, 1)
    view = T.Compose([
        T.RandomAffine(20, translate=(0.1, 0.1), shear=15, interpolation="bilinear"),
        T.RandomResizedCrop(16, scale=(0.5, 1.0), ratio=(0.8, 1.25)),
        T.ColorJitter(brightness=0.4, contrast=0.4),
    ])  # fmt: skip
    views = np.asarray(vg.Augmenter(T.MultiView([view, view]), "cpu", layout="NHWC")(digits, ids=range(8)))
    rows = [("digit", digits), ("first view", views[0]), ("second view", views[1])]
    return grid([(name, [image[..., 0] for image in images]) for name, images in rows], 72, 100)


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "policies": policies,
    "quickstart": partial(preview, "randaugment"),
    "photos-to-classifier": partial(preview, "trivialaugment", "--size", "128"),
    "simclr": simclr,
    "detection": detection,
    "expand-overnight": expand_overnight,
    "cluster": cluster,
}


def main(names: Sequence[str]) -> None:
    for name in names or PICTURES:
        PICTURES[name]().save(IMAGES / f"{name}.webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
