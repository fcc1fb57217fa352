"""Clips that are dicts: each frame with its own masks, boxes and key points, all of a clip by one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from variegate.arrays import Int32Array, split
from variegate.executors.runners.grouping import frames_of
from variegate.program.program import Program
from variegate.targets.samples import ImageTargets, of_images
from variegate.targets.settings import Targets

# Targets that a clip has once.
_OF_CLIPS = ("image", "label")


class Clips:
    """``samples``: dicts of clips. ``images``: all frames, clip after clip; ``counts``: frames per clip."""

    def __init__(self, samples: Sequence[Mapping[str, Any]], options: Targets, names: str) -> None:
        self._samples, self._options, self._names = samples, options, names
        self.images, self.counts = frames_of([sample["image"] for sample in samples])

    def check(self, shapes: Int32Array) -> list[ImageTargets]:
        """Check all frames. Raises ValueError for a key that has not one entry for each frame."""
        found = []
        once = (*_OF_CLIPS, *self._options.passed)
        for n, (sample, of_clip) in enumerate(zip(self._samples, split(shapes, self.counts), strict=True)):
            name = self._names.format(n)
            targets = {key: value for key, value in sample.items() if key not in once}
            frames = _by_frame(name, targets, len(of_clip))
            found += of_images(frames, of_clip, self._options, f"{name}, frame {{}}")
        return found

    def joined(self, frames: Sequence[ImageTargets]) -> list[ImageTargets]:
        """Boxes and labels of all frames, per clip, for transforms that choose by boxes."""
        return list(map(self._joined, split(frames, self.counts)))

    def _joined(self, frames: Sequence[ImageTargets]) -> ImageTargets:
        corners = [of.corners for of in frames if of.corners is not None]
        labels = [label for of in frames for label in of.lists.get("labels", ())]
        lists = {"labels": labels} if "labels" in frames[0].lists else {}
        return replace(frames[0], corners=np.concatenate(corners) if corners else None, lists=lists)

    def with_dropped(self, program: Program, frames: Sequence[ImageTargets]) -> Program:
        """Split the boxes that a clip's program drops into boxes of its frames."""
        if program.dropped_boxes is None:
            return program
        counts = np.array([0 if of.corners is None else len(of.corners) for of in frames])
        starts = np.concatenate([np.cumsum(of_clip) - of_clip for of_clip in split(counts, self.counts)])
        at = starts[program.source][:, None] + np.arange(int(counts.max(initial=0)))
        dropped = np.take_along_axis(
            program.dropped_boxes, np.minimum(at, max(program.dropped_boxes.shape[1] - 1, 0)), axis=1
        )
        return program.replace(dropped_boxes=dropped)

    def results(self, frames: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Results per clip: one mask, [T, h, w], and a list with an entry per frame of every other target."""
        found = []
        for sample, of_clip in zip(self._samples, split(frames, self.counts), strict=True):
            result = {k: _joined_frames(k, [each[k] for each in of_clip]) for k in of_clip[0]}
            found.append(result | {key: sample[key] for key in self._options.passed if key in sample})
        return found


def _by_frame(name: str, value: Any, count: int) -> Any:
    if isinstance(value, Mapping):
        parted = {key: _by_frame(f"{name}[{key!r}]", values, count) for key, values in value.items()}
        return [{key: values[t] for key, values in parted.items()} for t in range(count)]
    number = len(value) if hasattr(value, "__len__") and not isinstance(value, str) else 0
    if number != count:
        raise ValueError(f"{name}: got {number} entries for a clip of {count} frames; accepted: one for each frame")
    return value


def _joined_frames(key: str, values: list[Any]) -> Any:
    if isinstance(values[0], Mapping):
        return {name: torch.stack([value[name] for value in values]) for name in values[0]}
    return torch.stack(values) if key == "mask" else values
