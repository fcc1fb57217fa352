"""Objects pasted by their masks (``T.CopyPaste``): their layers, and the hidden parts of other objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from variegate.arrays import AnyArray, BoolArray, Float64Array, Int64Array, UInt8Array
from variegate.program.program import Program
from variegate.targets.masks import Box, HostMasks, on_host
from variegate.targets.pasting import Part
from variegate.targets.samples import ImageTargets

Plane = BoolArray


class Pasted(NamedTuple):
    """Objects on top of an output's own image: ``plane`` bool[h, w] within ``box`` (left, top, right, bottom)."""

    box: tuple[int, int, int, int]
    plane: Plane

    def covers(self, places: AnyArray) -> BoolArray:
        """bool[P] of x and y [P, 2]."""
        left, top, right, bottom = self.box
        x, y = np.floor(np.nan_to_num(places, nan=-1.0, posinf=-1.0, neginf=-1.0)).astype(np.int64).T
        inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        found = np.zeros(len(places), np.bool_)
        found[inside] = self.plane[y[inside] - top, x[inside] - left]
        return found


def planes_of(
    program: Program,
    geometry: Program,
    outputs: Sequence[Sequence[Part]],
    images: Sequence[ImageTargets],
    threads: int | None,
) -> list[Pasted | None]:
    """Objects pasted onto each output. Raises TypeError for a sample without masks of its objects."""
    assert program.dropped_boxes is not None
    found: list[Pasted | None] = [None] * len(outputs)
    pasted: list[tuple[int, int, Box, AnyArray]] = []
    for n, parts in enumerate(outputs):
        for part in (part for part in parts if part.is_pasted):
            of = images[part.source]
            if of.instances is None or of.corners is None:
                accepted = "'boxes', and 'masks' [M, H, W], one for each; or annotations with mask=each"
                raise TypeError(f"{of.name}: got no masks of objects, by which CopyPaste pastes; accepted: {accepted}")
            masks = on_host(of.instances)[~program.dropped_boxes[part.row, : len(of.corners)]]
            union = np.ascontiguousarray(np.bitwise_or.reduce(masks, axis=0) != 0)
            pasted.append((n, part.row, tuple(part.boxes[0].tolist()), union))
    if pasted:
        outputs_of, rows, boxes, unions = zip(*pasted, strict=True)
        planes = HostMasks(threads).move(geometry, np.array(rows), boxes, unions, 0)
        for n, box, plane in zip(outputs_of, boxes, planes, strict=True):
            found[n] = Pasted(box, plane.numpy())
    return found


def alpha_of(plane: Plane, feather: int) -> UInt8Array:
    """255 where the mask shows all of a square of ``2 * feather + 1`` pixels, in shares of it else; edges repeat."""
    side = 2 * feather + 1
    counts = np.pad(plane.view(np.uint8), feather, mode="edge") if feather else plane.view(np.uint8)
    for _ in range(2):  # lines, then columns
        counts = np.ascontiguousarray(counts.T)
        kept = len(counts) - 2 * feather
        total = counts[:kept].copy()
        for shift in range(1, side):
            total += counts[shift : shift + kept]
        counts = total
    levels = (255 * np.arange(side * side + 1) + side * side // 2) // (side * side)
    return levels.astype(np.uint8)[counts]


def hide(
    pasted: Pasted, instances: torch.Tensor, edges: Float64Array, min_visibility: float
) -> tuple[BoolArray, Float64Array]:
    """Remove hidden pixels from masks [M, h, w], in place -> kept objects, bool[M], and their edges.

    ``edges``: left, top, right, bottom of each. A side moves only if the mask ends elsewhere than before.
    """
    height, width = instances.shape[1:]
    plane, edges, is_left = torch.from_numpy(pasted.plane).to(instances.device), edges.copy(), np.ones(len(edges), bool)
    begin = np.floor(edges[:, :2]).astype(np.int64) - 1
    end = np.ceil(edges[:, 2:]).astype(np.int64) + 1
    begin = np.maximum(begin, 0)
    end = np.minimum(end, [width, height])
    low = np.maximum(begin, pasted.box[:2])
    high = np.minimum(end, pasted.box[2:])
    for n in np.flatnonzero((low < high).all(axis=1)).tolist():
        (left, top), (right, bottom) = low[n].tolist(), high[n].tolist()
        common = instances[n, top:bottom, left:right]
        first_x, first_y = pasted.box[:2]
        hidden = plane[top - first_y : bottom - first_y, left - first_x : right - first_x] & (common != 0)
        number = int(hidden.count_nonzero())
        if not number:
            continue
        whole = instances[n, begin[n, 1] : end[n, 1], begin[n, 0] : end[n, 0]]
        before = _bounds(whole)
        share = 1.0 - number / int(whole.count_nonzero())
        common.masked_fill_(hidden, 0)
        is_left[n] = share > 0.0 and share >= min_visibility
        if is_left[n]:
            after = _bounds(whole)
            moved = np.clip(np.tile(begin[n], 2) + after, edges[n, [0, 1, 0, 1]], edges[n, [2, 3, 2, 3]])
            edges[n] = np.where(after != before, moved, edges[n])
    return is_left, edges


def _bounds(mask: torch.Tensor) -> Int64Array:
    """Left, top, right, bottom of the set pixels of a nonempty mask."""
    is_set = mask != 0
    lines, columns = (is_set.any(dim).nonzero().flatten().cpu().numpy() for dim in (1, 0))
    return np.array([columns[0], lines[0], columns[-1] + 1, lines[-1] + 1])
