"""Digests of the images of a search, so that one that was replaced under its old name is noticed and named.

Pixels are compared as they came into memory: a file that was only copied or touched is the same image, and so is one
in a shard or behind an address, which has neither a size nor a time of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from variegate.apps.train.images import LabelledImages
from variegate.formats.base import SourceError
from variegate.io.durable import write_atomically

ORIGINALS_NAME = "images.jsonl"
_TOGETHER = 1024
_NAMED = 3


def digests(*parts: LabelledImages) -> dict[str, str]:
    """name -> 16 hexadecimal digits of pixels and label, for every image of these parts, by its id."""
    found: list[tuple[int, str, str]] = []
    for part in parts:
        labels, names = part.labels.tolist(), part.names or [f"image {number}" for number in part.ids.tolist()]
        for first in range(0, len(part), _TOGETHER):
            pixels = part.pixels[first : first + _TOGETHER].cpu().numpy()
            for row, image in enumerate(pixels, start=first):
                digest = hashlib.blake2b(image.tobytes(), digest_size=8)
                digest.update(f"{image.shape} {labels[row]}".encode())
                found.append((int(part.ids[row]), names[row], digest.hexdigest()))
    # No two samples share an id; a name they may.
    images: dict[str, str] = {}
    for number, name, text in sorted(found):
        images[name if name not in images else f"{name} ({number})"] = text
    return images


def digest_of(images: Mapping[str, str]) -> str:
    """One for all of them."""
    return hashlib.blake2b(json.dumps(list(images.items())).encode(), digest_size=8).hexdigest()


def write(folder: Path, images: Mapping[str, str]) -> None:
    """A line ``[name, digest]`` for every image. Raises WriteError."""
    lines = "".join(json.dumps([name, digest]) + "\n" for name, digest in images.items())
    write_atomically(folder / ORIGINALS_NAME, lines.encode(), durable=True)


def check_same(folder: Path, images: Mapping[str, str], expected: str) -> None:
    """Raises SourceError naming images that have changed since they were written; also for a file that is damaged.

    ``expected``: the ``digest_of`` what was written.
    """
    before = _read(folder, expected)
    changed = [name for name, digest in images.items() if before.get(name, digest) != digest]
    if changed:
        began = f"holds a search that began with other pixels or another label in {_some(changed)}"
        raise SourceError(f"{folder}: {began}; put the old images back, or choose another folder")


def refuse(folder: Path, images: Mapping[str, str], expected: str) -> SourceError:
    """The error for other images where nothing else differs: it names those that only one side has."""
    before = _read(folder, expected)
    names = [*(name for name in before if name not in images), *(name for name in images if name not in before)]
    which = _some(names) if before else f"{ORIGINALS_NAME} is missing, which would name them"
    holds = f"holds a search of other images ({which})"
    return SourceError(f"{folder}: {holds}; put the old images back, or choose another folder")


def _read(folder: Path, expected: str) -> dict[str, str]:
    """Empty where there is none: a run that was killed as it began."""
    path = folder / ORIGINALS_NAME
    if not path.exists():
        return {}
    try:
        found = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    except (ValueError, TypeError):
        found = {}
    if digest_of(found) != expected:
        raise SourceError(f"{path}: is damaged; restore it, or choose another folder")
    return found


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
