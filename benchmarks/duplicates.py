"""``python -m benchmarks.run duplicates FOLDER``: how many damaged copies of photos are found, and how many others.

Every other JPEG photo in FOLDER is copied with each kind of damage. Variegate and imagededup (in the environment of
``--imagededup-python``, if given) then read the same files. Recall of a kind: the share of copies found as copies of
their photo; precision: the share of all pairs found that are of one photo.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageEnhance, ImageOps

Picture = Image.Image
Pairs = set[tuple[str, str]]
# Distances of imagededup's hashes.
DISTANCES = (4, 6, 8, 10, 12, 14, 16, 20)


def with_logo(image: Picture) -> Picture:
    image, (width, height) = image.copy(), image.size
    draw = ImageDraw.Draw(image)
    draw.rectangle((width * 0.03, height * 0.04, width * 0.25, height * 0.12), fill=(20, 60, 160))
    draw.text((width * 0.05, height * 0.05), "photo agency", fill=(255, 255, 255))
    return image


def damages() -> dict[str, tuple[Callable[[Picture], Picture], int]]:
    """By kind, what is done, and the JPEG quality that the copy has. "turned, with EXIF" is stored turned."""
    same: Callable[[Picture], Picture] = lambda image: image  # noqa: E731
    made = {f"JPEG quality {quality}": (same, quality) for quality in (30, 50, 75)}
    sizes = {"size x 0.25": (0.25, 0.25), "size x 0.5": (0.5, 0.5), "size x 2": (2.0, 2.0)}
    sizes |= {"aspect + 10 %": (1.1, 1.0), "aspect - 10 %": (0.9, 1.0)}
    for name, (across, down) in sizes.items():
        made[name] = (_resized(across, down), 90)
    # Shares of the width and height that are cut off: left, top, right, bottom.
    half, side = 0.025, 0.05
    cuts = {"center": (half,) * 4, "left": (side, 0, 0, 0), "right": (0, 0, side, 0)}
    cuts |= {"top": (0, side, 0, 0), "bottom": (0, 0, 0, side)}
    for name, cut in cuts.items():
        made[f"crop 5 %, {name}"] = (_cropped(cut), 90)
    made |= {"mirrored": (ImageOps.mirror, 90), "upside down": (ImageOps.flip, 90)}
    for name, kind in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast)):
        for word, factor in (("+", 1.2), ("-", 0.8)):
            made[f"{name} {word} 20 %"] = (_enhanced(kind, factor), 90)
    return made | {"turned, with EXIF": (same, 90), "logo": (with_logo, 90), "gray": (ImageOps.grayscale, 90)}


def _resized(across: float, down: float) -> Callable[[Picture], Picture]:
    return lambda image: image.resize(
        (round(image.width * across), round(image.height * down)), Image.Resampling.LANCZOS
    )


def _cropped(cut: Sequence[float]) -> Callable[[Picture], Picture]:
    left, top, right, bottom = cut

    def crop(image: Picture) -> Picture:
        width, height = image.size
        first = (round(width * left), round(height * top))
        return image.crop((*first, round(width * (1 - right)), round(height * (1 - bottom))))

    return crop


def _enhanced(kind: type[Any], factor: float) -> Callable[[Picture], Picture]:
    return lambda image: kind(image).enhance(factor)


DAMAGES = damages()


def write(photos: list[Path], folder: Path) -> list[str]:
    """Write originals and copies as ``KIND.PHOTO.jpg`` (kind 0: the original) -> the names, in order."""
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


def score(pairs: Pairs, photos: int) -> dict[str, Any]:
    """``pairs`` of names. A copy counts as found with its original."""
    found: dict[str, int] = defaultdict(int)
    right = 0
    for one, other in pairs:
        (kind, photo, _), (kind_other, photo_other, _) = one.split("."), other.split(".")
        if photo != photo_other:
            continue
        right += 1
        if 0 in (int(kind), int(kind_other)):
            found[list(DAMAGES)[max(int(kind), int(kind_other)) - 1]] += 1
    recall = {kind: found[kind] / photos for kind in DAMAGES}
    mean = sum(recall.values()) / len(recall)
    return {
        "recall": recall,
        "mean_recall": mean,
        "precision": right / max(1, len(pairs)),
        "wrong_pairs": len(pairs) - right,
    }


def find_ours(folder: Path, names: list[str], photos: int) -> dict[str, Any]:
    import pyarrow as pa

    from variegate.apps.curate.duplicates import find_duplicates
    from variegate.apps.curate.findings import SCHEMA
    from variegate.apps.curate.fingerprint import fingerprint
    from variegate.decode import read_image

    def table_of(names: list[str]) -> pa.Table:
        rows = []
        for index, name in enumerate(names):
            row = dict.fromkeys(SCHEMA.names) | {"split": "train", "index": index, "file": name, "label": -1}
            rows.append(row | fingerprint(read_image(folder / name))._asdict())
        return pa.Table.from_pylist(rows, SCHEMA)

    find_duplicates(table_of(names[:2]))  # the first use compiles
    began = time.process_time()
    table = table_of(names)
    hashed = time.process_time()
    findings = find_duplicates(table)
    seconds = {"hash_s": hashed - began, "look_up_s": time.process_time() - hashed, "files": len(names)}
    groups = defaultdict(list)
    for finding in findings:
        groups[finding.group].append(str(finding.file))
    pairs = {(one, other) for group in groups.values() for one in group for other in group if one < other}
    return {"variegate": score(pairs, photos) | seconds}


def find_theirs(folder: Path, photos: int) -> dict[str, Any]:
    """In the peer's own environment, which lacks Variegate."""
    from imagededup.methods import DHash, PHash

    names = sorted(path.name for path in folder.iterdir())
    results: dict[str, Any] = {}
    for method in (PHash, DHash):
        hasher = method(verbose=False)
        began = time.process_time()
        hashes = {name: hasher.encode_image(image_file=str(folder / name)) for name in names}
        hash_s = time.process_time() - began
        for distance in DISTANCES:
            began = time.process_time()
            found = hasher.find_duplicates(encoding_map=hashes, max_distance_threshold=distance, num_dist_workers=0)
            seconds = {"hash_s": hash_s, "look_up_s": time.process_time() - began, "files": len(names)}
            pairs = {(one, other) for one, others in found.items() for other in others if one < other}
            results[f"imagededup {method.__name__} {distance}"] = score(pairs, photos) | seconds
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
            peer = [str(options.imagededup_python), "-m", "benchmarks.duplicates", str(folder), str(len(photos))]
            done = subprocess.run(peer, stdout=subprocess.PIPE, text=True, check=True)
            results |= json.loads(done.stdout.splitlines()[-1])
    text = json.dumps({"machine": describe(), "command": command, "photos": len(photos), "results": results}, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    print(json.dumps(find_theirs(Path(sys.argv[1]), int(sys.argv[2]))))
