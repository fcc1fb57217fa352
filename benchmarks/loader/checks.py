"""What is asked of every loader's epoch, and of ours beyond that."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.loader import photos
from benchmarks.worker import check_batch

MEAN_LABEL_TOLERANCE = 0.15  # of the number of classes; an epoch without its last, incomplete batch is off by less


class CheckError(ValueError):
    """FAILED: a loader's batches are not what was asked for, so it has no speed."""


def check_epoch(batches: Iterable[Any], batch: int, labels: Sequence[int]) -> str:
    """What one epoch looked like, in words; CheckError unless every batch of it is right.

    ``labels``: of all files. Libraries that shuffle by a buffer may show a file twice, so labels are held to their mean
    and their spread here.
    """
    seen: list[int] = []
    count = 0
    for images, given in batches:
        try:
            check_batch(images, batch)
        except ValueError as error:
            raise CheckError(str(error)) from error
        array = np.asarray(given)
        if array.shape != (batch,) or array.dtype.kind not in "iu":
            raise CheckError(f"labels are {array.dtype}{array.shape}; {batch} integers are asked for")
        seen += array.tolist()
        count += 1
    if not len(labels) // batch <= count <= -(-len(labels) // batch):
        raise CheckError(f"an epoch has {count} batches of {batch}; there are {len(labels)} files")
    if min(seen) < 0 or max(seen) > max(labels):
        raise CheckError(f"labels {min(seen)}..{max(seen)}; accepted: 0..{max(labels)}")
    classes, expected, found = max(labels) + 1, float(np.mean(labels)), float(np.mean(seen))
    if abs(found - expected) > MEAN_LABEL_TOLERANCE * classes or len(set(seen)) < min(classes, len(seen)) / 2:
        raise CheckError(f"labels average {found:.1f} over {len(set(seen))} classes; {expected:.1f} over {classes}")
    if seen == sorted(seen):
        raise CheckError("labels come in order; a shuffled epoch is asked for")
    return f"{count} batches as asked for, labels {min(seen)}..{max(seen)}, {found:.1f} on average"


def shuffled_epoch(loader: Any) -> list[tuple[bytes, int]]:
    """Picture and label of every row, in order."""
    found: list[tuple[bytes, int]] = []
    for images, labels in loader:
        found += zip(_digests(images), np.asarray(labels).tolist(), strict=True)
    return found


def expected_epoch(augmenter: Any, folder: Path, epoch: int, batch: int) -> Counter[tuple[bytes, int]]:
    """How often each is to come, from the files themselves, by ``Augmenter.decode_and_run``."""
    files, labels = photos.listing(folder)
    expected: Counter[tuple[bytes, int]] = Counter()
    for start in range(0, len(files), batch):
        part = range(start, min(start + batch, len(files)))
        images = augmenter.decode_and_run([files[i].read_bytes() for i in part], ids=list(part), epoch=epoch)
        expected.update(zip(_digests(images), [labels[i] for i in part], strict=True))
    return expected


def _digests(images: Any) -> list[bytes]:
    arrays: npt.NDArray[np.float32] = np.ascontiguousarray(np.asarray(images))
    return [hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in arrays]
