"""Images with boxes, labels and masks, as every library is given them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.targets.catalogue import Row


def make_samples(jpegs: list[bytes], row: Row, seed: int = 0) -> list[dict[str, Any]]:
    """``image`` uint8[S, S, 3], ``boxes`` float32[M, 4] as left, top, right, bottom, ``labels`` int64[M]; ``mask`` of
    box k's number k + 1, or of several by name; ``masks`` uint8[M, S, S]. Filled rectangles, so that a check knows
    where masks must be."""
    from PIL import Image

    rng, side = np.random.default_rng(seed), row.side
    samples = []
    for n in range(row.batch):
        photo = Image.open(io.BytesIO(jpegs[n % len(jpegs)]), formats=("JPEG",)).convert("RGB")
        boxes = _boxes(rng, row.boxes, side)
        sample: dict[str, Any] = {
            "image": np.asarray(photo.resize((side, side), Image.Resampling.BICUBIC)),
            "boxes": boxes.astype(np.float32),
            "labels": rng.integers(0, 80, row.boxes),
        }
        masks = [rectangles(boxes, side) for _ in range(row.masks)]
        if row.masks == 1:
            sample["mask"] = masks[0]
        elif row.masks:
            # The first is "mask", without which AlbumentationsX takes no others.
            sample["mask"] = {f"mask{k or ''}": mask for k, mask in enumerate(masks)}
        if row.has_instances:
            sample["masks"] = np.stack([rectangles(boxes[k : k + 1], side) for k in range(len(boxes))])
        samples.append(sample)
    return samples


def _boxes(rng: np.random.Generator, count: int, side: int) -> npt.NDArray[np.int64]:
    sides = rng.integers(max(side // 16, 2), side // 3, (count, 2))
    first = (rng.uniform(size=(count, 2)) * (side - sides)).astype(np.int64)
    return np.concatenate([first, first + sides], axis=1)


def rectangles(boxes: npt.NDArray[np.int64], side: int) -> npt.NDArray[np.uint8]:
    mask = np.zeros((side, side), np.uint8)
    for k, (left, top, right, bottom) in enumerate(boxes.tolist()):
        mask[top:bottom, left:right] = k + 1
    return mask
