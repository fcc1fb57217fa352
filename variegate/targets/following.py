"""Apply a batch's geometry to its masks, boxes and key points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from variegate.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, split
from variegate.program.boxes import SampledBoxes
from variegate.program.program import Program
from variegate.program.stages import stages_of
from variegate.targets.box_formats import edges_of, from_edges
from variegate.targets.boxes import Frames, keep_boxes
from variegate.targets.copying import Pasted, alpha_of, hide, planes_of
from variegate.targets.masks import DeviceMasks, HostMasks, geometry_of
from variegate.targets.pasting import JoinedTargets, OutputMasks, Part, parts_of, paste_masks
from variegate.targets.points import keep_points
from variegate.targets.regions import move_boxes
from variegate.targets.samples import ImageTargets, of_images
from variegate.targets.settings import Targets, wrap_results

if TYPE_CHECKING:
    from variegate.executors.runners.cuda import CudaRunner


def boxes_of(belonging: Sequence[ImageTargets], options: Targets) -> SampledBoxes | None:
    """None for samples without boxes."""
    corners = [of.corners for of in belonging if of.corners is not None]
    return SampledBoxes(corners, _moved, options.box_format == "cxcywhr") if corners else None


def boxes_alone(boxes: Sequence[object], shapes: Int32Array) -> SampledBoxes | None:
    """Boxes without other targets: per image of ``shapes`` [N, 3], numbers [M, 4]: left, top, right, bottom in pixels.
    Raises ValueError."""
    if len(boxes) != len(shapes):
        raise ValueError(f"boxes: got those of {len(boxes)} images; accepted: [M, 4] for each of {len(shapes)}")
    options = Targets()
    return boxes_of(of_images([{"boxes": of_one} for of_one in boxes], shapes, options), options)


def _moved(program: Program, row: Int64Array, corners: Float64Array) -> Float64Array:
    seen, _ = move_boxes(stages_of(program), row, corners, program.in_shape[row, :2])
    return np.ascontiguousarray(seen[:, 0])


class Follower:
    """Targets of one batch through its sampled ``program``. ``runner``: makes masks; None for the CPU."""

    def __init__(
        self,
        program: Program,
        images: Sequence[ImageTargets],
        options: Targets,
        num_threads: int | None,
        runner: CudaRunner | None = None,
    ) -> None:
        self._images, self._options, self._threads, self._runner = images, options, num_threads, runner
        are_torchvisions = any(type(kind).__name__ == "Mask" for of in images for kind in of.kinds.values())
        self._geometry = geometry_of(program, are_torchvisions)
        self._sizes = np.stack([program.in_shape[:, :2], program.final_sizes()], axis=1).astype(np.int64)
        self._frames = Frames(stages_of(program), self._sizes)
        self._outputs = parts_of(program)
        self._pasted: list[Pasted | None] = [None] * len(self._outputs)
        self._program = program
        self._dropped = program.dropped_boxes
        # A side and an area, of each output.
        self._least = np.broadcast_to((options.min_size, options.min_area), (len(self._outputs), 2))
        if program.min_box is not None:
            self._least = np.maximum(self._least, program.min_box[: len(self._outputs)])

    def paste_objects(self) -> None:
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
        """The targets of each output, by the keys of the samples, without "image" and "label"."""
        counts = [len(parts) for parts in self._outputs]
        every = [part for parts in self._outputs for part in parts]
        pasted = [on_top for on_top, count in zip(self._pasted, counts, strict=True) for _ in range(count)]
        outputs = split(self._join(every, pasted, np.repeat(self._least, counts, axis=0)), counts)
        masks = self._masks(outputs)
        if any(pasted is not None for pasted in self._pasted):
            outputs, masks = self._covered(outputs, masks)
        return [self._result(self._images[n], brought, masks[n]) for n, brought in enumerate(outputs)]

    def _masks(self, outputs: Sequence[Sequence[JoinedTargets]]) -> Sequence[OutputMasks]:
        if not any(of.masks or of.has_mask_names or of.instances is not None for of in self._images):
            return [OutputMasks({}, None)] * len(outputs)
        maker = HostMasks(self._threads) if self._runner is None else DeviceMasks(self._runner)
        return paste_masks(maker, self._geometry, self._sizes, outputs, self._options.mask_fill)

    # -- objects on top ----------------------------------------------------------------------------------------

    def _covered(
        self, outputs: Sequence[Sequence[JoinedTargets]], masks: Sequence[OutputMasks]
    ) -> tuple[list[list[JoinedTargets]], list[OutputMasks]]:
        """Parts and masks of outputs, without areas below pasted objects."""
        has_named = bool(outputs[0][0].of.masks)
        above = iter(self._masks_above(outputs) if has_named else [])
        parts_of_outputs = [list(joined) for joined in outputs]
        masks_of_outputs = list(masks)
        for n, pasted in enumerate(self._pasted):
            if pasted is None:
                continue
            if has_named:
                _paste_named(pasted, next(above), masks[n])
            parts_of_outputs[n], masks_of_outputs[n] = self._hidden(n, pasted, outputs[n], masks[n])
        return parts_of_outputs, masks_of_outputs

    def _masks_above(self, outputs: Sequence[Sequence[JoinedTargets]]) -> Sequence[OutputMasks]:
        """Masks by name of the partners of outputs that have one."""
        partners = [[each._replace(of=replace(each.of, instances=None)) for each in joined[1:]] for joined in outputs]
        return self._masks([of_output for of_output in partners if of_output])

    def _hidden(
        self, n: int, pasted: Pasted, joined: Sequence[JoinedTargets], masks: OutputMasks
    ) -> tuple[list[JoinedTargets], OutputMasks]:
        """Output ``n`` without objects hidden by its pasted objects, and with the edges of visible parts."""
        assert masks.instances is not None
        assert self._program.mixture is not None
        own, *above = joined
        instances = masks.instances
        number = len(own.kept)
        min_visibility = float(self._program.mixture.min_visibility[n])
        is_left, boxes = self._boxes_beside(pasted, own, instances[:number], min_visibility)
        left, top, right, bottom = pasted.box
        in_box = instances[number:, top:bottom, left:right]
        is_seen = in_box.any(2).any(1).cpu().numpy()
        is_kept = np.concatenate([is_left, is_seen]).astype(np.bool_)

        shown = [own._replace(boxes=boxes), *above]
        counts = [len(each.kept) for each in shown]
        found = [each.only(of_part) for each, of_part in zip(shown, split(is_kept, counts), strict=True)]
        if not is_kept.all():
            instances = instances[torch.from_numpy(np.flatnonzero(is_kept)).to(instances.device)]
        return found, masks._replace(instances=instances)

    def _boxes_beside(
        self, pasted: Pasted, own: JoinedTargets, instances: torch.Tensor, min_visibility: float
    ) -> tuple[BoolArray, Float32Array]:
        """Find the output's own objects that pasted ones do not hide -> their indices, and all boxes.

        ``instances``: their masks, from which the hidden parts are removed in place.
        """
        height, width = self._sizes[own.part.row, 1].tolist()
        box_format = self._options.box_format
        if box_format == "cxcywhr":  # whose edges are not along the axes, and stay
            whole = np.tile([0.0, 0.0, width, height], (len(own.kept), 1))
            is_left, _ = hide(pasted, instances, whole, min_visibility)
            return is_left, own.boxes
        scale = np.array([width, height] * 2, np.float64) if self._options.normalized else 1.0
        boxes = own.boxes.astype(np.float64)
        edges = edges_of(boxes, box_format) * scale
        is_left, new_edges = hide(pasted, instances, edges, min_visibility)
        is_moved = (new_edges != edges).any(axis=1)
        boxes[is_moved] = from_edges(new_edges[is_moved] / scale, box_format)
        return is_left, boxes.astype(np.float32)

    def _join(self, parts: Sequence[Part], pasted: Sequence[Pasted | None], least: Float64Array) -> list[JoinedTargets]:
        """``pasted``: on top of the output of each part; ``least``: as of ``keep_boxes``."""
        images = [self._images[part.source] for part in parts]
        found = keep_boxes(self._frames, self._options, parts, images, least, self._dropped)
        kept = [of_part.kept for of_part in found]
        points = keep_points(self._frames, self._options, parts, images, kept, pasted)
        joined = zip(parts, images, found, points, strict=True)
        return [JoinedTargets(part, image, boxes.kept, boxes.boxes, of_part) for part, image, boxes, of_part in joined]

    # -- one output --------------------------------------------------------------------------------------------

    def _result(self, own: ImageTargets, brought: Sequence[JoinedTargets], masks: OutputMasks) -> dict[str, Any]:
        height, width = self._sizes[brought[0].part.row, 1].tolist()
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


def _paste_named(pasted: Pasted, above: OutputMasks, below: OutputMasks) -> None:
    """Paste the visible part of a partner's masks over an output's own, in place."""
    left, top, right, bottom = pasted.box
    for name, mask in above.named.items():
        seen = torch.from_numpy(pasted.plane).to(mask.device)
        own = below.named[name][top:bottom, left:right]
        own[seen] = mask[top:bottom, left:right][seen].to(own.dtype)


def _join_lists(parts: Sequence[tuple[Any, JoinedTargets]]) -> Any:
    if len(parts) == 1:
        values, each = parts[0]
        if each.of.corners is None or len(each.kept) == len(values):
            return list(values) if isinstance(values, list) else torch.from_numpy(values.copy())
    kept = [each.kept if each.of.corners is not None else np.arange(len(values)) for values, each in parts]
    if all(isinstance(values, list) for values, _ in parts):
        return [values[n] for (values, _), at in zip(parts, kept, strict=True) for n in at.tolist()]
    arrays = [np.asarray(values)[at] for (values, _), at in zip(parts, kept, strict=True)]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(arrays)))
