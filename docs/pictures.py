"""The pictures of pages that are not made with the site, docs/images/*.webp: ``python -m docs.pictures [NAME ...]``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import variegate as vg
from docs.gallery import photos
from variegate import transforms as T
from variegate.apps.demo import write_photos
from variegate.cli import main as variegate

IMAGES = Path(__file__).resolve().parent / "images"
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


def photos_to_classifier() -> Image.Image:
    """The sheet that the tutorial's ``variegate preview`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder) / "photos")
        out = str(Path(folder) / "preview.png")
        shape = ["--size", "128", "--images", "3", "--samples", "4"]
        assert variegate(["preview", f"{folder}/photos", "--policy", "trivialaugment", *shape, "--out", out]) == 0
        return Image.open(out).convert("RGB")


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
    "photos-to-classifier": photos_to_classifier,
    "simclr": simclr,
}


def main(names: Sequence[str]) -> None:
    for name in names or PICTURES:
        PICTURES[name]().save(IMAGES / f"{name}.webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    main(sys.argv[1:])
