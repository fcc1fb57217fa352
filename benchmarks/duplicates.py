"""``python -m benchmarks.run duplicates FOLDER``: recall and false positives for damaged copies of photos.

Every other JPEG photo in FOLDER is copied with each kind of damage. Variegate and imagededup (in the environment of
``--imagededup-python``, if given) then read the same files. Recall of a kind: the share of copies found as copies of
their photo; precision: the share of all pairs found that are of one photo.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageEnhance, ImageOps

from benchmarks.peers_env import run_child, write_result

Picture = Image.Image
# Distances of imagededup's hashes.
DISTANCES = (4, 6, 8, 10, 12, 14, 16, 20)


def resized(x: float, y: float, image: Picture) -> Picture:
    size = round(image.width * x), round(image.height * y)
    return image.resize(size, Image.Resampling.LANCZOS)


def cropped(left: float, top: float, right: float, bottom: float, image: Picture) -> Picture:
    """``left`` to ``bottom``: shares of the sides that are cut off."""
    width, height = image.size
    box = (
        round(width * left),
        round(height * top),
        round(width * (1 - right)),
        round(height * (1 - bottom)),
    )
    return image.crop(box)


def turned(image: Picture) -> Picture:
    return image.transpose(Image.Transpose.ROTATE_90)


def with_logo(image: Picture) -> Picture:
    image = image.copy()
    width, height = image.size
    draw = ImageDraw.Draw(image)
    draw.rectangle((width * 0.03, height * 0.04, width * 0.25, height * 0.12), fill=(20, 60, 160))
    draw.text((width * 0.05, height * 0.05), "photo agency", fill=(255, 255, 255))
    return image


# The kinds of damage, besides files of these qualities.
QUALITIES = {"JPEG quality 30": 30, "JPEG quality 50": 50, "JPEG quality 75": 75}
DAMAGES: dict[str, Callable[[Picture], Picture]] = {
    **dict.fromkeys(QUALITIES, Image.Image.copy),
    "size x 0.25": partial(resized, 0.25, 0.25),
    "size x 0.5": partial(resized, 0.5, 0.5),
    "size x 2": partial(resized, 2, 2),
    "aspect + 10 %": partial(resized, 1.1, 1),
    "aspect - 10 %": partial(resized, 0.9, 1),
    "crop 5 %, center": partial(cropped, 0.025, 0.025, 0.025, 0.025),
    "crop 5 %, left": partial(cropped, 0.05, 0, 0, 0),
    "crop 5 %, right": partial(cropped, 0, 0, 0.05, 0),
    "crop 5 %, top": partial(cropped, 0, 0.05, 0, 0),
    "crop 5 %, bottom": partial(cropped, 0, 0, 0, 0.05),
    "mirrored": ImageOps.mirror,
    "upside down": ImageOps.flip,
    "brightness + 20 %": lambda image: ImageEnhance.Brightness(image).enhance(1.2),
    "brightness - 20 %": lambda image: ImageEnhance.Brightness(image).enhance(0.8),
    "contrast + 20 %": lambda image: ImageEnhance.Contrast(image).enhance(1.2),
    "contrast - 20 %": lambda image: ImageEnhance.Contrast(image).enhance(0.8),
    "turned, with EXIF": turned,
    "logo": with_logo,
    "gray": ImageOps.grayscale,
}


def write(photos: list[Path], folder: Path) -> list[str]:
    """Write originals and copies as ``KIND.PHOTO.jpg`` (kind 0: the original) -> the names, in order."""
    names = []
    for number, photo in enumerate(photos):
        with Image.open(photo, formats=["JPEG"]) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
        names.append(f"00.{number:04d}.jpg")
        image.save(folder / names[-1], quality=95)
        for kind, (name, damage) in enumerate(DAMAGES.items(), 1):
            exif = Image.Exif()
            if damage is turned:
                exif[0x0112] = 6  # which undoes the turn
            names.append(f"{kind:02d}.{number:04d}.jpg")
            damage(image).save(folder / names[-1], quality=QUALITIES.get(name, 90), exif=exif)
    return sorted(names)


def score(groups: Sequence[Sequence[str]], photos: int) -> dict[str, Any]:
    """``groups`` of names that look alike. A copy counts as found with its original."""
    pairs = {(one, other) for group in groups for one in group for other in group if one < other}
    kinds = list(DAMAGES)
    found: dict[str, int] = defaultdict(int)
    right = 0
    for one, other in pairs:
        kind, photo = one.split(".")[:2]
        kind_other, photo_other = other.split(".")[:2]
        if photo != photo_other:
            continue
        right += 1
        if kind == "00":
            found[kinds[int(kind_other) - 1]] += 1
    recall = {kind: found[kind] / photos for kind in kinds}
    precision = right / max(1, len(pairs))
    mean = sum(recall.values()) / len(recall)
    return {
        "recall": recall,
        "mean_recall": mean,
        "precision": precision,
        "wrong_pairs": len(pairs) - right,
    }


def find_ours(folder: Path, names: list[str], photos: int) -> dict[str, Any]:
    import pyarrow as pa

    from variegate.apps.check.duplicates import find_duplicates
    from variegate.apps.check.findings import SCHEMA
    from variegate.apps.check.fingerprint import fingerprint
    from variegate.decode import read_image

    def table_of(names: list[str]) -> pa.Table:
        rows = []
        for index, name in enumerate(names):
            row = dict.fromkeys(SCHEMA.names) | {
                "split": "train",
                "index": index,
                "file": name,
                "label": -1,
            }
            rows.append(row | fingerprint(read_image(folder / name))._asdict())
        return pa.Table.from_pylist(rows, SCHEMA)

    find_duplicates(table_of(names[:2]))  # the first use compiles
    began = time.process_time()
    table = table_of(names)
    hashed = time.process_time()
    findings = find_duplicates(table)
    ended = time.process_time()
    groups: dict[Any, list[str]] = defaultdict(list)
    for finding in findings:
        groups[finding.group].append(str(finding.file))
    seconds = {
        "hash_s": hashed - began,
        "look_up_s": ended - hashed,
        "files": len(names),
    }
    return {"variegate": score(list(groups.values()), photos) | seconds}


def find_theirs(folder: Path, photos: int) -> dict[str, Any]:
    """Runs in the peer's own environment, which lacks Variegate."""
    from imagededup.methods import DHash, PHash

    names = sorted(path.name for path in folder.iterdir())
    results: dict[str, Any] = {}
    for method in (PHash, DHash):
        hasher = method(verbose=False)
        began = time.process_time()
        hashes = {name: hasher.encode_image(image_file=str(folder / name)) for name in names}
        hashed = time.process_time()
        for distance in DISTANCES:
            began_look_up = time.process_time()
            found = hasher.find_duplicates(encoding_map=hashes, max_distance_threshold=distance, num_dist_workers=0)
            look_up = time.process_time() - began_look_up
            groups = [[one, other] for one, others in found.items() for other in others]
            seconds = {
                "hash_s": hashed - began,
                "look_up_s": look_up,
                "files": len(names),
            }
            results[f"imagededup {method.__name__} {distance}"] = score(groups, photos) | seconds
    return results


def main(name: str, arguments: Sequence[str], command: str) -> int:
    from benchmarks.machine import describe

    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--imagededup-python", type=Path)
    parser.add_argument("--photos", type=int, default=250)
    parser.add_argument("--out", type=Path, help="a JSON file")
    options = parser.parse_args(arguments)
    photos = sorted(path for path in options.folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[1::2]
    photos = photos[: options.photos]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results = find_ours(folder, write(photos, folder), len(photos))
        if options.imagededup_python:
            results |= run_child(options.imagededup_python, "benchmarks.duplicates", [temporary, str(len(photos))])
    record = {
        "machine": describe(),
        "command": command,
        "photos": len(photos),
        "results": results,
    }
    text = json.dumps(record, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text)
    return 0


if __name__ == "__main__":
    _, _, out, photos_of_peer, count = sys.argv
    write_result(Path(out), find_theirs(Path(photos_of_peer), int(count)))
