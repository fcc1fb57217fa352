"""Samples of one batch write the same things the same way, since a mix joins them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from variegate.targets.samples import OfImage


def unlike_most(images: Sequence[OfImage]) -> dict[int, str]:
    """Which are written unlike most others, and an error for each. Where there are no key points they become
    none of the form that others have, in place."""
    errors = {}
    points = Counter(_of_points(of) for of in images if of.points is not None and of.points.size).most_common(1)
    masks = Counter(_of_masks(of) for of in images).most_common(1)
    for n, of in enumerate(images):
        if (written := _of_masks(of)) != masks[0][0]:
            errors[n] = f"got {written}, and most of its batch {masks[0][0]}; accepted: the same in all"
        elif points and of.points is not None and _of_points(of) != points[0][0]:
            if len(of.points):
                got, others = (f"[{', '.join(map(str, ('M', *form)))}]" for form in (_of_points(of), points[0][0]))
                errors[n] = f"got 'keypoints' {got}, and most of its batch {others}; accepted: the same in all"
            else:
                of.points = np.empty((0, *points[0][0]))
    return errors


def _of_points(of: OfImage) -> tuple[int, ...]:
    return () if of.points is None else of.points.shape[1:]


def _of_masks(of: OfImage) -> str:
    if of.has_mask_names:
        return f"{of.mask_key!r} with the names {sorted(map(str, of.masks))}"
    return "'mask' without names" if of.masks else "'masks' [M, H, W]" if of.instances is not None else "no masks"
