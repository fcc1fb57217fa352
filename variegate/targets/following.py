"""What belongs to the images of a batch, as it belongs to what a program made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from variegate.program.program import Program
from variegate.targets.box_formats import from_corners, from_edges
from variegate.targets.masks import Indices, read_places, shown
from variegate.targets.parts import Part, parts_of
from variegate.targets.points import ERASED, LEFT_IMAGE, move_points
from variegate.targets.regions import move_boxes
from variegate.targets.samples import OfImage
from variegate.targets.settings import Targets
from variegate.targets.stages import Stages, stages_of
from variegate.targets.wrapping import wrap_results

Array = npt.NDArray[Any]


class _Joined(NamedTuple):
    """What one part brings to an output."""

    part: Part
    of: OfImage
    kept: npt.NDArray[np.intp]  # which of its boxes
    boxes: Array
    points: Array | None


class Follower:
    """One batch. ``program``: as it was sampled; ``images``: what belongs to each image of the batch."""

    def __init__(self, program: Program, images: Sequence[OfImage], options: Targets, num_threads: int | None) -> None:
        self._images, self._options, self._threads = images, options, num_threads
        self._stages: Stages = stages_of(program)
        self._sizes = np.stack([program.in_shape[:, :2], program.final_sizes()], axis=1).astype(np.int64)
        self._outputs = parts_of(program)

    def results(self) -> list[dict[str, Any]]:
        """For each output what belongs to it, by the keys of the samples, without "image" and "label"."""
        every = [part for parts in self._outputs for part in parts]
        joined = iter(self._join(every))
        places = self._mask_places(every)
        results = []
        for n, parts in enumerate(self._outputs):
            brought = [next(joined) for _ in parts]
            results.append(self._result(self._images[n], brought, places))
        return results

    def _mask_places(self, parts: Sequence[Part]) -> dict[int, Indices]:
        if not any(of.masks or of.has_mask_names or of.instances is not None for of in self._images):
            return {}
        rows = np.array(sorted({part.row for part in parts}), np.int64)
        return dict(zip(rows.tolist(), read_places(self._stages, rows, self._sizes[rows], self._threads), strict=True))

    def _join(self, parts: Sequence[Part]) -> list[_Joined]:
        of = [self._images[part.source] for part in parts]
        boxes, kept = self._boxes(parts, of)
        points = self._points(parts, of, kept)
        return [_Joined(*each) for each in zip(parts, of, kept, boxes, points, strict=True)]

    # -- boxes -------------------------------------------------------------------------------------------------

    def _boxes(self, parts: Sequence[Part], of: Sequence[OfImage]) -> tuple[list[Array], list[Array]]:
        """Of each part the boxes that are left, in pixels, upright ones as left, top, right, bottom, and which."""
        counts = [0 if each.corners is None else len(each.corners) for each in of]
        corners = np.concatenate([np.empty((0, 4, 2)), *(each.corners for each in of if each.corners is not None)])
        number = np.repeat(np.arange(len(parts)), counts)
        row = np.array([part.row for part in parts], np.int64)[number]
        seen, share = move_boxes(self._stages, row, corners, self._sizes[row, 0])
        if self._options.box_format == "cxcywhr":
            moved, _ = move_points(self._stages, np.repeat(row, 4), corners.reshape(-1, 2))
            told = from_corners(moved.astype(np.float64).reshape(-1, 4, 2))
        else:
            told = np.zeros((len(corners), 4))
        keep = np.zeros(len(corners), np.bool_)
        for n in range(len(corners)):
            left = _within(seen[n, 0], parts[number[n]].boxes)
            area, whole = left[4], max(_area(seen[n, 1]), 1e-12)
            visible = min(share[n] * area / whole, 1.0)
            # Rounding must not drop a box that has just the wanted share.
            keep[n] = area > 0.0 and area >= self._options.min_area - 1e-9
            keep[n] &= visible >= self._options.min_visibility - 1e-9 and bool(np.isfinite(told[n]).all())
            if self._options.box_format != "cxcywhr":
                told[n] = left[:4]
                keep[n] &= bool(np.isfinite(left).all())
        ends = np.cumsum(counts)[:-1]
        each_kept = [np.flatnonzero(part) for part in np.split(keep, ends)]
        return [part[at] for part, at in zip(np.split(told, ends), each_kept, strict=True)], each_kept

    # -- points ------------------------------------------------------------------------------------------------

    def _points(self, parts: Sequence[Part], of: Sequence[OfImage], kept: Sequence[Array]) -> list[Array | None]:
        given = [each.points for each in of]
        if all(points is None for points in given):
            return [None] * len(parts)
        flat = [np.empty((0, 3)) if p is None else p.reshape(-1, p.shape[-1]) for p in given]
        xy = np.concatenate([each[:, :2] for each in flat])
        number = np.repeat(np.arange(len(parts)), [len(each) for each in flat])
        row = np.array([part.row for part in parts], np.int64)[number]
        moved, state = move_points(self._stages, row, xy)
        height, width = self._sizes[row, 0].T
        state[((xy < 0) | (xy > np.stack([width, height], axis=1))).any(axis=1)] = LEFT_IMAGE
        made: list[Array | None] = []
        begin = 0
        for part, points, at, each in zip(parts, given, kept, flat, strict=True):
            end = begin + len(each)
            made.append(None if points is None else self._told(part, points, moved[begin:end], state[begin:end], at))
            begin = end
        return made

    def _told(self, part: Part, points: Array, moved: Array, state: Array, kept: Array) -> Array:
        shape, columns = points.shape, points.shape[-1]
        inside = (moved[:, None, :] >= part.boxes[:, :2]) & (moved[:, None, :] <= part.boxes[:, 2:])
        height, width = self._sizes[part.row, 1].tolist()
        is_cut = part.boxes.tolist() != [[0, 0, width, height]]
        hidden = ~np.any(inside.all(axis=2), axis=1)
        state = np.where(hidden & is_cut, LEFT_IMAGE, state)
        told: Array = np.empty((len(moved), columns), np.float32)
        told[:, :2] = moved
        if columns == 3:
            visibility = points.reshape(-1, 3)[:, 2]
            visibility = np.where(state == ERASED, np.minimum(visibility, 1.0), visibility)
            told[:, 2] = np.where(state == LEFT_IMAGE, 0.0, visibility)
        if points.ndim == 3:
            told = told.reshape(shape)
            return told[kept] if self._images[part.source].corners is not None else told
        return told[state != LEFT_IMAGE] if is_cut and columns == 2 else told

    # -- one output --------------------------------------------------------------------------------------------

    def _result(self, own: OfImage, brought: Sequence[_Joined], places: dict[int, Indices]) -> dict[str, Any]:
        height, width = self._sizes[brought[0].part.row, 1].tolist()
        result: dict[str, Any] = {}
        options, scale = self._options, np.array([width, height], np.float64)
        if own.corners is not None:
            boxes = np.concatenate([each.boxes for each in brought])
            if options.box_format != "cxcywhr":
                boxes = from_edges(boxes / np.tile(scale, 2) if options.normalized else boxes, options.box_format)
            result["boxes"] = torch.from_numpy(np.ascontiguousarray(boxes, np.float32))
        if own.points is not None:
            points = np.concatenate([each.points for each in brought if each.points is not None])
            if options.point_origin == "centre":
                points[..., :2] -= 0.5
            if options.normalized:
                points[..., :2] /= scale
            result["keypoints"] = torch.from_numpy(np.ascontiguousarray(points, np.float32))
        for key in own.lists:
            result[key] = _join_lists([(each.of.lists[key], each) for each in brought])
        if own.masks or own.has_mask_names:
            made = {name: self._paste(name, brought, places, (height, width)) for name in own.masks}
            result[own.mask_key] = made if own.has_mask_names else made[""]
        if own.instances is not None:
            result["masks"] = self._instances(brought, places, (height, width))
        wrap_results(result, own.kinds, (height, width))
        return {**result, **own.passed}

    def _paste(
        self, name: str, brought: Sequence[_Joined], places: dict[int, Indices], size: tuple[int, int]
    ) -> torch.Tensor:
        """One mask of an output; where images are blended it is that of the greatest weight."""
        masks = [each.of.masks[name] for each in brought]
        out = np.full(size, self._fill(np.result_type(*masks)), np.result_type(*masks))
        # Own ones last among equals, so that they lie on top.
        for n in sorted(range(len(brought)), key=lambda n: (brought[n].part.weight, -n)):
            part = brought[n].part
            for left, top, right, bottom in part.boxes.tolist():
                read = places[part.row][top:bottom, left:right]
                out[top:bottom, left:right] = shown(masks[n], read, self._fill(masks[n].dtype))
        return torch.from_numpy(out)

    def _instances(self, brought: Sequence[_Joined], places: dict[int, Indices], size: tuple[int, int]) -> torch.Tensor:
        every = []
        for each in brought:
            masks = each.of.instances
            assert masks is not None
            kept = each.kept if each.of.corners is not None else np.arange(len(masks))
            out = np.full((len(kept), *size), self._fill(masks.dtype), masks.dtype)
            for left, top, right, bottom in each.part.boxes.tolist():
                read = places[each.part.row][top:bottom, left:right]
                for n, at in enumerate(kept.tolist()):
                    out[n, top:bottom, left:right] = shown(masks[at], read, self._fill(masks.dtype))
            every.append(out)
        return torch.from_numpy(np.concatenate(every))

    def _fill(self, dtype: np.dtype[Any]) -> int:
        low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if not low <= self._options.mask_fill <= high:
            raise ValueError(f"mask_fill: got {self._options.mask_fill}; accepted for {dtype} masks: {low} to {high}")
        return self._options.mask_fill


def _area(edges: Array) -> float:
    return float(max(edges[2] - edges[0], 0.0) * max(edges[3] - edges[1], 0.0))


def _within(edges: Array, boxes: Array) -> Array:
    """What is left of left, top, right, bottom within boxes that do not overlap -> its bounds, and its area."""
    first, last = np.maximum(edges[:2], boxes[:, :2]), np.minimum(edges[2:], boxes[:, 2:])
    sides = np.maximum(last - first, 0.0)
    areas = sides.prod(axis=1)
    seen = areas > 0.0
    if not seen.any():
        return np.zeros(5)
    return np.concatenate([first[seen].min(axis=0), last[seen].max(axis=0), [areas.sum()]])


def _join_lists(parts: Sequence[tuple[Any, _Joined]]) -> Any:
    kept = [each.kept if each.of.corners is not None else np.arange(len(values)) for values, each in parts]
    if all(isinstance(values, list) for values, _ in parts):
        return [values[n] for (values, _), at in zip(parts, kept, strict=True) for n in at.tolist()]
    arrays = [np.asarray(values)[at] for (values, _), at in zip(parts, kept, strict=True)]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(arrays)))
