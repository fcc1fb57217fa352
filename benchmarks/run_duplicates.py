"""How many damaged copies of photos are found, and how many others are taken for copies, beside imagededup.

    python -m benchmarks.run_duplicates FOLDER --imagededup-python PYTHON --out result.json

Of the JPEG photos in FOLDER every other one is copied with each kind of damage. Variegate and imagededup (in the
environment of PYTHON, or not at all) then read the same files. Recall of a kind: how many copies are found as copies of
their photo; precision: how many of all pairs found are of one photo.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageEnhance, ImageOps

Picture = Image.Image
_THRESHOLDS = (4, 6, 8, 10, 12, 14, 16, 20)


def resized(across: float, down: float) -> Callable[[Picture], Picture]:
    return lambda image: image.resize(
        (round(image.width * across), round(image.height * down)), Image.Resampling.LANCZOS
    )


def cropped(left: float, top: float, right: float, bottom: float) -> Callable[[Picture], Picture]:
    def crop(image: Picture) -> Picture:
        width, height = image.size
        return image.crop(
            (round(width * left), round(height * top), round(width * (1 - right)), round(height * (1 - bottom)))
        )

    return crop


def changed(kind: type[Any], factor: float) -> Callable[[Picture], Picture]:
    return lambda image: kind(image).enhance(factor)


def with_logo(image: Picture) -> Picture:
    image, (width, height) = image.copy(), image.size
    draw = ImageDraw.Draw(image)
    draw.rectangle((width * 0.03, height * 0.04, width * 0.25, height * 0.12), fill=(20, 60, 160))
    draw.text((width * 0.05, height * 0.05), "photo agency", fill=(255, 255, 255))
    return image


def unchanged(image: Picture) -> Picture:
    return image


# What is done, and the JPEG quality that it is saved at. ``turned`` is stored turned, with the EXIF tag that undoes it.
DAMAGES: dict[str, tuple[Callable[[Picture], Picture], int]] = {
    "JPEG quality 30": (unchanged, 30),
    "JPEG quality 50": (unchanged, 50),
    "JPEG quality 75": (unchanged, 75),
    "size x 0.25": (resized(0.25, 0.25), 90),
    "size x 0.5": (resized(0.5, 0.5), 90),
    "size x 2": (resized(2, 2), 90),
    "aspect + 10 %": (resized(1.1, 1), 90),
    "aspect - 10 %": (resized(0.9, 1), 90),
    "crop 5 %, center": (cropped(0.025, 0.025, 0.025, 0.025), 90),
    "crop 5 %, left": (cropped(0.05, 0, 0, 0), 90),
    "crop 5 %, right": (cropped(0, 0, 0.05, 0), 90),
    "crop 5 %, top": (cropped(0, 0.05, 0, 0), 90),
    "crop 5 %, bottom": (cropped(0, 0, 0, 0.05), 90),
    "mirrored": (ImageOps.mirror, 90),
    "upside down": (ImageOps.flip, 90),
    "brightness + 20 %": (changed(ImageEnhance.Brightness, 1.2), 90),
    "brightness - 20 %": (changed(ImageEnhance.Brightness, 0.8), 90),
    "contrast + 20 %": (changed(ImageEnhance.Contrast, 1.2), 90),
    "contrast - 20 %": (changed(ImageEnhance.Contrast, 0.8), 90),
    "turned, with EXIF": (unchanged, 90),
    "logo": (with_logo, 90),
    "gray": (lambda image: image.convert("L"), 90),
}


def damage(photos: list[Path], folder: Path) -> list[str]:
    """Write originals and copies, files of names ``kind.photo.jpg`` (kind 0: the original) -> the names, in order."""
    names = []
    for number, photo in enumerate(photos):
        with Image.open(photo, formats=["JPEG"]) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
        names.append(f"00.{number:04d}.jpg")
        image.save(folder / names[-1], quality=95)
        for kind, (name, (change, quality)) in enumerate(DAMAGES.items(), 1):
            exif, made = Image.Exif(), change(image)
            if name == "turned, with EXIF":
                made, exif[0x0112] = made.transpose(Image.Transpose.ROTATE_90), 6
            names.append(f"{kind:02d}.{number:04d}.jpg")
            made.save(folder / names[-1], quality=quality, exif=exif)
    return sorted(names)


def scores(pairs: set[tuple[str, str]], photos: int) -> dict[str, Any]:
    """``pairs`` of names; a copy is found with its original."""
    found: dict[str, int] = defaultdict(int)
    right = 0
    for one, other in pairs:
        (kind, photo, _), (kind_other, photo_other, _) = one.split("."), other.split(".")
        right += photo == photo_other
        if photo == photo_other and 0 in (int(kind), int(kind_other)):
            found[list(DAMAGES)[max(int(kind), int(kind_other)) - 1]] += 1
    recall = {kind: found[kind] / photos for kind in DAMAGES}
    return {
        "recall": recall,
        "mean_recall": sum(recall.values()) / len(recall),
        "precision": right / max(1, len(pairs)),
        "wrong_pairs": len(pairs) - right,
    }


def by_variegate(folder: Path, names: list[str], photos: int) -> dict[str, Any]:
    import pyarrow as pa

    from variegate.apps.curate.duplicates import find_duplicates
    from variegate.apps.curate.findings import SCHEMA
    from variegate.apps.curate.fingerprint import fingerprint
    from variegate.decode import read_image

    def prints(names: list[str]) -> list[dict[str, Any]]:
        found = []
        for index, name in enumerate(names):
            row = dict.fromkeys(SCHEMA.names) | {"split": "train", "index": index, "file": name, "label": -1}
            found.append(row | fingerprint(read_image(folder / name))._asdict())
        return found

    # Compiled, or loaded, by a first use.
    find_duplicates(pa.Table.from_pylist(prints(names[:2]), SCHEMA))
    begin = time.process_time()
    table = pa.Table.from_pylist(prints(names), SCHEMA)
    hashed = time.process_time()
    findings = find_duplicates(table)
    looked_up = time.process_time()
    groups = defaultdict(list)
    for each in findings:
        groups[each.group].append(str(each.file))
    pairs = {(one, other) for group in groups.values() for one in group for other in group if one < other}
    seconds = {"hash_s": hashed - begin, "look_up_s": looked_up - hashed}
    return {"variegate": scores(pairs, photos) | seconds | {"files": len(names)}}


def by_imagededup(folder: Path, names: list[str], photos: int) -> dict[str, Any]:
    """In the peer's own environment, which lacks Variegate."""
    from imagededup.methods import DHash, PHash

    results: dict[str, Any] = {}
    for method in (PHash, DHash):
        hasher = method(verbose=False)
        begin = time.process_time()
        hashes = {name: hasher.encode_image(image_file=str(folder / name)) for name in names}
        hash_s = time.process_time() - begin
        for threshold in _THRESHOLDS:
            begin = time.process_time()
            found = hasher.find_duplicates(encoding_map=hashes, max_distance_threshold=threshold, num_dist_workers=0)
            look_up_s = time.process_time() - begin
            pairs = {(one, other) for one, others in found.items() for other in others if one < other}
            seconds = {"hash_s": hash_s, "look_up_s": look_up_s, "files": len(names)}
            results[f"imagededup {method.__name__} {threshold}"] = scores(pairs, photos) | seconds
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--imagededup-python", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--photos", type=int, default=250)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_peer:
        names = sorted(path.name for path in arguments.folder.iterdir())
        print(json.dumps(by_imagededup(arguments.folder, names, arguments.photos)))
        return
    photos = sorted(path for path in arguments.folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[1::2]
    photos = photos[: arguments.photos]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = damage(photos, folder)
        results = by_variegate(folder, names, len(photos))
        if arguments.imagededup_python:
            command = [str(arguments.imagededup_python), "-m", "benchmarks.run_duplicates", str(folder), "--as-peer"]
            command += ["--photos", str(len(photos))]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            results |= json.loads(run.stdout.splitlines()[-1])
    from benchmarks.machine import describe

    text = json.dumps({"machine": describe(), "photos": len(photos), "results": results}, indent=1)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
