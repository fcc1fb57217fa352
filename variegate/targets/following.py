"""Targets of a batch's images, led through a program to those of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from variegate.arrays import AnyArray, Float64Array, Int32Array, Int64Array, split
from variegate.program.boxes import SampledBoxes
from variegate.program.program import Program
from variegate.program.stages import Stages, stages_of
from variegate.targets.box_formats import edges_of, from_corners, from_edges
from variegate.targets.copying import Pasted, alpha_of, hide, planes_of
from variegate.targets.masks import DeviceMasks, HostMasks, nearest_geometry
from variegate.targets.pasting import Joined, OutputMasks, Part, parts_of, paste_masks
from variegate.targets.regions import ERASED, LEFT_IMAGE, SEEN, move_boxes, move_points, where_mirrored
from variegate.targets.samples import OfImage, of_images
from variegate.targets.settings import Targets, wrap_results

if TYPE_CHECKING:
    from variegate.executors.runners.cuda import CudaRunner


def boxes_of(belonging: Sequence[OfImage], options: Targets) -> SampledBoxes | None:
    """None for samples without boxes."""
    corners = [of.corners for of in belonging if of.corners is not None]
    return SampledBoxes(corners, _moved, options.box_format == "cxcywhr") if corners else None


def boxes_alone(boxes: Sequence[object], shapes: Int32Array) -> SampledBoxes | None:
    """Of images of ``shapes`` [N, 3], each numbers [M, 4]: left, top, right, bottom in pixels. Raises ValueError."""
    if len(boxes) != len(shapes):
        raise ValueError(f"boxes: got those of {len(boxes)} images; accepted: [M, 4] for each of {len(shapes)}")
    options = Targets()
    return boxes_of(of_images([{"boxes": of_one} for of_one in boxes], shapes, options), options)


def _moved(program: Program, row: Int64Array, corners: Float64Array) -> Float64Array:
    seen, _ = move_boxes(stages_of(program), row, corners, program.in_shape[row, :2])
    return np.ascontiguousarray(seen[:, 0])


NO_BOXES = np.empty((0, 4, 2))
# What is thinner, in pixels, is a box by rounding alone: as float32 its sides may be equal.
_LEAST_SIDE = 1e-3


class Follower:
    """Targets of one batch through its sampled ``program``. ``runner``: makes masks; None for the CPU."""

    def __init__(
        self,
        program: Program,
        images: Sequence[OfImage],
        options: Targets,
        num_threads: int | None,
        runner: CudaRunner | None = None,
    ) -> None:
        self._images, self._options, self._threads, self._runner = images, options, num_threads, runner
        self._stages: Stages = stages_of(program)
        are_torchvisions = any(type(kind).__name__ == "Mask" for of in images for kind in of.kinds.values())
        self._geometry = nearest_geometry(program, are_torchvisions)
        self._sizes = np.stack([program.in_shape[:, :2], program.final_sizes()], axis=1).astype(np.int64)
        self._final: list[tuple[int, int]] = [(height, width) for height, width in self._sizes[:, 1].tolist()]
        self._outputs = parts_of(program)
        self._pasted: list[Pasted | None] = [None] * len(self._outputs)
        self._program = program
        self._dropped = program.dropped
        # A side and an area, of each output.
        self._least = np.broadcast_to((options.min_size, options.min_area), (len(self._outputs), 2))
        if program.least is not None:
            self._least = np.maximum(self._least, program.least[: len(self._outputs)])

    def lay_objects(self) -> None:
        """Give the program's blend the alpha of objects that are pasted by their masks."""
        blend = self._program.blend
        if blend is None or blend.feather is None or not blend.lacks_alpha:
            return
        self._pasted = planes_of(self._program, self._geometry, self._outputs, self._images, self._threads)
        laid = zip(blend.target.tolist(), blend.feather.tolist(), strict=True)
        found = [(self._pasted[n], feather) for n, feather in laid if feather >= 0]
        planes = [alpha_of(pasted.plane, feather).ravel() for pasted, feather in found if pasted is not None]
        blend.alpha = np.concatenate(planes)

    def results(self) -> list[dict[str, Any]]:
        """For each output what belongs to it, by the keys of the samples, without "image" and "label"."""
        counts = list(map(len, self._outputs))
        joined = self._join([part for parts in self._outputs for part in parts], np.repeat(self._least, counts, axis=0))
        outputs = split(joined, counts)
        masks = self._masks(outputs)
        if any(pasted is not None for pasted in self._pasted):
            outputs, masks = self._covered(outputs, masks)
        return [self._result(self._images[n], brought, masks[n]) for n, brought in enumerate(outputs)]

    def _masks(self, outputs: Sequence[Sequence[Joined]]) -> Sequence[OutputMasks]:
        if not any(of.masks or of.has_mask_names or of.instances is not None for of in self._images):
            return [OutputMasks({}, None)] * len(outputs)
        maker = HostMasks(self._threads) if self._runner is None else DeviceMasks(self._runner)
        return paste_masks(maker, self._geometry, self._sizes, outputs, self._options.mask_fill)

    # -- objects on top ----------------------------------------------------------------------------------------

    def _covered(
        self, outputs: Sequence[Sequence[Joined]], masks: Sequence[OutputMasks]
    ) -> tuple[list[list[Joined]], list[OutputMasks]]:
        """Parts and masks of outputs, less what lies below pasted objects."""
        tops = [[each._replace(of=replace(each.of, instances=None)) for each in joined[1:]] for joined in outputs]
        named = iter(self._masks([top for top in tops if top]) if outputs[0][0].of.masks else [])
        made = [list(joined) for joined in outputs], list(masks)
        for n, pasted in enumerate(self._pasted):
            if pasted is None:
                continue
            left, top, right, bottom = pasted.box
            for name, above in next(named, OutputMasks({}, None)).named.items():
                below = masks[n].named[name]
                seen = torch.from_numpy(pasted.plane).to(above.device)
                below[top:bottom, left:right][seen] = above[top:bottom, left:right][seen].to(below.dtype)
            made[0][n], made[1][n] = self._hidden(n, pasted, outputs[n], masks[n])
        return made

    def _hidden(
        self, n: int, pasted: Pasted, joined: Sequence[Joined], masks: OutputMasks
    ) -> tuple[list[Joined], OutputMasks]:
        assert masks.instances is not None
        assert self._program.mixture is not None
        (own, *above), options, instances = joined, self._options, masks.instances
        number = len(own.kept)
        size = np.tile(self._sizes[own.part.row, 1, ::-1], 2).astype(np.float64)
        is_turned = options.box_format == "cxcywhr"
        scale = size if options.normalized else 1.0
        boxes = own.boxes.astype(np.float64)
        whole = np.tile([0.0, 0.0, *size[:2]], (number, 1))
        edges = whole if is_turned else edges_of(boxes, options.box_format) * scale
        least = float(self._program.mixture.min_visibility[n])
        is_left, new = hide(pasted, instances[:number], edges, least)
        if not is_turned:
            moved = (new != edges).any(axis=1)
            boxes[moved] = from_edges(new[moved] / scale, options.box_format)
        left, top, right, bottom = pasted.box
        seen = instances[number:, top:bottom, left:right].any(2).any(1).cpu().numpy()
        kept = np.concatenate([is_left, seen]) != 0
        shown = [own._replace(boxes=boxes.astype(np.float32)), *above]
        found = []
        for each, is_kept in zip(shown, split(kept, [len(each.kept) for each in shown]), strict=True):
            points = each.points
            if points is not None and points.ndim == 3:
                points = points[is_kept]
            found.append(each._replace(kept=each.kept[is_kept], boxes=each.boxes[is_kept], points=points))
        if not kept.all():
            instances = instances[torch.from_numpy(np.flatnonzero(kept)).to(instances.device)]
        return found, masks._replace(instances=instances)

    def _join(self, parts: Sequence[Part], least: AnyArray) -> list[Joined]:
        """``least``: float64[parts, 2], the side and the area that boxes need to be kept."""
        of = [self._images[part.source] for part in parts]
        boxes, kept = self._boxes(parts, of, least)
        points = self._points(parts, of, kept)
        return [Joined(*each) for each in zip(parts, of, kept, boxes, points, strict=True)]

    # -- boxes -------------------------------------------------------------------------------------------------

    def _boxes(
        self, parts: Sequence[Part], of: Sequence[OfImage], least: AnyArray
    ) -> tuple[list[AnyArray], list[AnyArray]]:
        """Of each part the boxes that are left, float32 as results write them, and which of its image's these are."""
        corners = [NO_BOXES if each.corners is None else each.corners for each in of]
        counts = list(map(len, corners))
        every = np.concatenate([NO_BOXES, *corners])
        number = np.repeat(np.arange(len(parts)), counts)
        row = np.repeat(_rows(parts), counts)
        seen, share = move_boxes(self._stages, row, every, self._sizes[row, 0])
        left, area = _within(seen[:, 0], [part.boxes for part in parts], number)
        visible = np.minimum(share * area / np.maximum(_areas(seen[:, 1]), 1e-12), 1.0)
        side, least_area = least[number].T
        # Rounding must not drop a box that has just the wanted share.
        keep = (area > 0.0) & (area >= least_area - 1e-9)
        keep &= (left[:, 2:] - left[:, :2]).min(axis=1) >= side - 1e-9
        keep &= visible >= self._options.min_visibility - 1e-9
        written = self._as_written(row, every, left)
        keep &= np.isfinite(written).all(axis=1)
        if self._dropped is not None and len(every):
            keep &= ~self._dropped[row, np.concatenate(list(map(np.arange, counts)))]
        kept = [np.flatnonzero(of_part) for of_part in split(keep, counts)]
        return split(written[keep], map(len, kept)), kept

    def _as_written(self, row: AnyArray, corners: AnyArray, left: AnyArray) -> AnyArray:
        """Boxes as results write them, float32. ``left``: the edges of what is left of them."""
        options = self._options
        if options.box_format == "cxcywhr":
            moved, _ = move_points(self._stages, np.repeat(row, 4), corners.reshape(-1, 2))
            return from_corners(moved.astype(np.float64).reshape(-1, 4, 2)).astype(np.float32)
        if options.normalized:
            left = left / self._sizes[row, 1][:, [1, 0, 1, 0]]
        return from_edges(left, options.box_format).astype(np.float32)

    # -- points ------------------------------------------------------------------------------------------------

    def _points(self, parts: Sequence[Part], of: Sequence[OfImage], kept: Sequence[AnyArray]) -> list[AnyArray | None]:
        given = [each.points for each in of]
        known = [points for points in given if points is not None]
        if not known:
            return [None] * len(parts)
        columns = known[0].shape[-1]
        flat = [np.empty((0, columns)) if points is None else points.reshape(-1, columns) for points in given]
        counts = list(map(len, flat))
        numbers = np.concatenate(flat)
        row = np.repeat(_rows(parts), counts)
        moved, state = move_points(self._stages, row, numbers[:, :2])
        is_outside = (numbers[:, :2] < 0) | (numbers[:, :2] > self._sizes[row, 0, ::-1])
        state[is_outside.any(axis=1)] = LEFT_IMAGE
        over = [pasted for pasted, of_one in zip(self._pasted, self._outputs, strict=True) for _ in of_one]
        for part, pasted, *of_part in zip(parts, over, given, split(moved, counts), split(state, counts), strict=True):
            _hide_points(part, pasted, *of_part)
        if columns == 3:
            visibility = np.where(state == ERASED, np.minimum(numbers[:, 2], 1.0), numbers[:, 2])
            moved = np.column_stack([moved, np.where(state == LEFT_IMAGE, 0.0, visibility).astype(np.float32)])
        if self._options.point_origin == "centre":
            moved[:, :2] -= np.float32(0.5)
        if self._options.normalized:
            moved[:, :2] /= self._sizes[row, 1, ::-1].astype(np.float32)
        if order := self._options.mirrored_points:
            place = where_mirrored(self._stages, _rows(parts), np.array(counts, np.int64), tuple(order))
            moved = moved[place]
            state = state[place]
        of_parts = zip(parts, given, split(moved, counts), split(state, counts), kept, strict=True)
        return [None if points is None else self._points_of(part, points, *rest) for part, points, *rest in of_parts]

    def _points_of(self, part: Part, points: AnyArray, moved: AnyArray, state: AnyArray, kept: AnyArray) -> AnyArray:
        if points.ndim == 3:
            written = moved.reshape(points.shape)
            has_boxes = self._images[part.source].corners is not None
            return written[kept] if has_boxes and len(kept) < len(written) else written
        return moved[state != LEFT_IMAGE] if points.shape[1] == 2 and not part.is_whole else moved

    # -- one output --------------------------------------------------------------------------------------------

    def _result(self, own: OfImage, brought: Sequence[Joined], masks: OutputMasks) -> dict[str, Any]:
        height, width = self._final[brought[0].part.row]
        result: dict[str, Any] = {}
        if own.corners is not None:
            boxes = brought[0].boxes if len(brought) == 1 else np.concatenate([each.boxes for each in brought])
            result["boxes"] = torch.from_numpy(boxes)
        if own.points is not None:
            points = [each.points for each in brought if each.points is not None]
            result["keypoints"] = torch.from_numpy(points[0] if len(points) == 1 else np.concatenate(points))
        for key in own.lists:
            result[key] = _join_lists([(each.of.lists[key], each) for each in brought])
        if own.masks or own.has_mask_names:
            result[own.mask_key] = masks.named if own.has_mask_names else masks.named[""]
        if masks.instances is not None:
            result["masks"] = masks.instances
        if own.kinds:
            wrap_results(result, own.kinds, (height, width))
        return {**result, **own.passed}


def _rows(parts: Sequence[Part]) -> Int64Array:
    return np.array([part.row for part in parts], np.int64)


def _hide_points(part: Part, pasted: Pasted | None, points: AnyArray | None, places: AnyArray, state: AnyArray) -> None:
    """Change the ``state`` of points at ``places`` that the part does not show, or that pasted objects hide."""
    if not part.is_whole:
        at = places[:, None, :]
        inside: AnyArray = np.all((at >= part.boxes[:, :2]) & (at <= part.boxes[:, 2:]), axis=2)
        state[~inside.any(axis=1)] = LEFT_IMAGE
    if pasted is not None and points is not None:
        # Own ones below, and those beside what is seen of the partner.
        is_hidden = pasted.covers(places) != part.is_pasted
        is_gone = part.is_pasted and points.ndim == 2
        state[is_hidden & (state == SEEN)] = LEFT_IMAGE if is_gone else ERASED


def _areas(edges: AnyArray) -> AnyArray:
    """Of left, top, right, bottom [B, 4], which may be inverted: 0 then."""
    return np.asarray(np.maximum(edges[:, 2:] - edges[:, :2], 0.0).prod(axis=1))


def _within(edges: AnyArray, boxes: Sequence[AnyArray], number: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Bounds [B, 4] and area [B] of what is left of edges within the ``boxes`` of their ``number``, which do not
    overlap."""
    counts = np.array([len(each) for each in boxes], np.int64)[number]
    first = np.cumsum(counts) - counts
    of = np.repeat(np.arange(len(edges)), counts)
    if not len(of):
        return np.zeros((0, 4)), np.zeros(0)
    begin = np.cumsum([0, *(len(each) for each in boxes[:-1])])[number]
    within = np.concatenate(boxes)[begin[of] + np.arange(len(of)) - first[of]]
    cut = np.concatenate([np.maximum(edges[of, :2], within[:, :2]), np.minimum(edges[of, 2:], within[:, 2:])], axis=1)
    areas = _areas(cut)
    is_seen = (cut[:, 2:] - cut[:, :2] > _LEAST_SIDE).all(axis=1)
    low = np.minimum.reduceat(np.where(is_seen[:, None], cut[:, :2], np.inf), first)
    high = np.maximum.reduceat(np.where(is_seen[:, None], cut[:, 2:], -np.inf), first)
    bounds = np.concatenate([low, high], axis=1)
    area = np.add.reduceat(areas, first)
    unseen = ~np.logical_or.reduceat(is_seen, first)
    bounds[unseen], area[unseen] = 0.0, 0.0
    return bounds, area


def _join_lists(parts: Sequence[tuple[Any, Joined]]) -> Any:
    if len(parts) == 1:
        values, each = parts[0]
        if each.of.corners is None or len(each.kept) == len(values):
            return list(values) if isinstance(values, list) else torch.from_numpy(values.copy())
    kept = [each.kept if each.of.corners is not None else np.arange(len(values)) for values, each in parts]
    if all(isinstance(values, list) for values, _ in parts):
        return [values[n] for (values, _), at in zip(parts, kept, strict=True) for n in at.tolist()]
    arrays = [np.asarray(values)[at] for (values, _), at in zip(parts, kept, strict=True)]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(arrays)))
