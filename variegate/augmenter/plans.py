"""What happens to images, before it does: the programs of a transform that is bound to a device and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.augmenter.bound_transform import BoundTransform
from variegate.augmenter.per_image import (
    Conditions,
    Copies,
    Ids,
    as_tensor_of_labels,
    check_conditions,
    check_copies,
    check_id,
    check_ids,
    check_partners,
    mix_labels,
    num_partners,
    of_one_sample,
)
from variegate.checks import integer, renamed
from variegate.errors import shown
from variegate.executors.runners.clips import frames_of, shapes_of_clips
from variegate.executors.runners.host import CpuRunner
from variegate.executors.runners.images import check_sizes, looks_like_sizes
from variegate.ops.base import refuse_views
from variegate.program import rng
from variegate.program.boxes import SampledBoxes
from variegate.program.clips import over_frames
from variegate.program.describe import explain_row
from variegate.program.one_image import OneImage
from variegate.program.program import Output, Program
from variegate.program.sampling import Sampling
from variegate.threads import check_running


class PlanningAugmenter(BoundTransform):
    """What of an ``Augmenter`` plans: samples programs and tells of them, without touching a pixel."""

    @renamed(given="conditions")
    def program(
        self,
        images_or_sizes: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        boxes: Sequence[Any] | None = None,
    ) -> Program:
        """The sampled Program of a batch, for those who want to look, without touching a pixel.

        ``images_or_sizes``: images as for a call, or (height, width) or (height, width, channels) per image; for a clip
        that is what happens to each of its frames. ``partners`` as for a call; what they mix is in ``Program.mixture``.
        ``boxes``: of each image, [M, 4] (left, top, right, bottom in pixels), for transforms that choose by them.
        """
        if looks_like_sizes(images_or_sizes):
            shapes, frames = check_sizes(images_or_sizes), None
        else:
            images, frames = self._frames(images_or_sizes)
            shapes = self._runner.shapes(images)
        known = None if boxes is None else self._known(boxes, shapes)
        return self._sample(shapes, ids, epoch, copy, conditions, frames, partners, known)

    @renamed(given="conditions")
    def explain(
        self,
        id: int,
        epoch: int = 0,
        copy: int = 0,
        size: tuple[int, ...] = (224, 224),
        conditions: Conditions = None,
        *,
        partners: Sequence[int] | None = None,
        boxes: Any = None,
    ) -> str:
        """What happens to one sample: its operations with their arguments, and the fused passes they run in.

        ``size``: (height, width[, channels]) of the image; some arguments and all boxes depend on it. ``partners``: the
        ids of those that the sample is mixed with, as ``Loader.partners`` tells them; taken to be of the same size.
        ``conditions``: values of this sample, as ``{"label": 9}``. ``boxes``: of the image, [M, 4] (left, top, right,
        bottom in pixels), for transforms that choose by them.
        """
        if not looks_like_sizes([size]):
            raise ValueError(f"size: got {size!r}; accepted: (height, width) or (height, width, channels)")
        needed = num_partners(self.transform)
        if partners is not None and len(partners) != needed:
            raise ValueError(f"partners: got {shown(partners)}; accepted: {needed} ids")
        ids = [id, *(() if partners is None else partners)]
        values = of_one_sample(conditions, len(ids))
        places = None if partners is None else [range(1, len(ids))]
        known = None if boxes is None else [boxes] * len(ids)
        sampled = self.program([size] * len(ids), ids, epoch, copy, values, partners=places, boxes=known)
        operations = explain_row(sampled, self._runner.lower(sampled))
        return f"sample {id}, epoch {epoch}, copy {copy}, seed {self.seed}, {size[0]}x{size[1]}\n{operations}"

    def plan_one(
        self, shape: tuple[int, int, int], id: int, epoch: int = 0, copy: int = 0, conditions: Conditions = None
    ) -> tuple[Program, Program]:
        """The program of one image of any sides, height, width and channels, which is made in tiles -> (as it was
        sampled, fused).

        Raises ValueError for a transform of several images or views, and one that goes on with the finished tensor.
        """
        refuse_views(self.transform, "transform")
        if self.transform._mixers:
            mixer = type(self.transform._mixers[0]).__name__
            raise ValueError(f"transform: got {mixer} for one image, which mixes several; accepted: others")
        values = check_conditions(conditions, 1)
        key = rng.stream_keys(self.seed, integer("epoch", epoch, 0, 2**64 - 1), check_copies(copy, 1))
        first_key = rng.stream_keys(self.seed, 0, check_copies(copy, 1))
        shapes = np.array([shape], np.int32)
        sampling = Sampling(shapes, check_ids([id], 1), key, self.transform.num_slots, int(epoch), values, first_key)
        # Areas of such sides need more than 32 bits.
        sampling.max_side, sampling.size = 2**31 - 1, sampling.size.astype(np.int64)
        sampling.output = self._output
        self.transform.sample(sampling, np.arange(1), 0)
        if sampling.output.steps:
            step = sampling.output.steps[0]
            raise ValueError(f"transform: {step} is done to a finished tensor, which tiles are not; leave it out")
        if sampling.channels[0] != shape[2]:
            raise ValueError(
                "transform: Grayscale(num_output_channels=3) of a gray image in tiles; accepted: an image of three "
                "channels, or Grayscale()"
            )
        sampled = sampling.finish(replace(sampling.output, layout=self.layout))
        return sampled, self._runner.lower(sampled)

    def _frames(self, images: Any) -> tuple[Any, list[int] | None]:
        """What clips consist of, and how many each has; None for images."""
        return frames_of(images) if self.consistent else (images, None)

    def _labels(self, program: Program, labels: Any) -> Any:
        mixers = self.transform._mixers
        if program.mixture is None or not mixers:
            return as_tensor_of_labels(labels)
        return mix_labels(labels, program.mixture, mixers[0].num_classes)

    def _sample(
        self,
        shapes: npt.NDArray[np.int32],
        ids: Any,
        epoch: int,
        copy: Copies = 0,
        conditions: Conditions = None,
        frames: list[int] | None = None,
        partners: Any = None,
        boxes: SampledBoxes | None = None,
    ) -> Program:
        check_running("Augmenter")
        if frames is not None:
            shapes = shapes_of_clips(shapes, frames)
        values = check_conditions(conditions, len(shapes))
        copies = check_copies(copy, len(shapes))
        keys = rng.stream_keys(self.seed, integer("epoch", epoch, 0, 2**64 - 1), copies)
        first_keys = rng.stream_keys(self.seed, 0, copies) if epoch else keys
        # Last of all checks, so that a call that is refused takes no place of the running count.
        identities = self._count.take(len(shapes)) if ids is None else check_ids(ids, len(shapes))
        sampling = Sampling(shapes, identities, keys, self.transform.num_slots, int(epoch), values, first_keys)
        sampling.output, sampling.boxes = self._output, boxes
        if partners is not None:
            sampling.partners = check_partners(partners, len(shapes), num_partners(self.transform))
        self.transform.sample(sampling, np.arange(len(shapes)), 0)
        program = sampling.finish(replace(sampling.output, layout=self.layout))
        return program if frames is None else over_frames(program, frames)

    def _one_image(
        self, shape: tuple[int, ...], ids: Ids, epoch: int, copy: Copies, conditions: Conditions
    ) -> OneImage:
        """What the transform's ``draw`` takes: an image of height, width and channels, of which nothing is
        sampled yet."""
        check_running("Augmenter")
        values = None if conditions is None else check_conditions(conditions, 1)
        is_plain = type(epoch) is int and type(copy) is int and 0 <= epoch < 1 << 64 and 0 <= copy < 1 << 32
        if not is_plain:
            epoch, copy = integer("epoch", epoch, 0, 2**64 - 1), int(check_copies(copy, 1)[0])
        key = rng.stream_of(self.seed, epoch, copy)  # type: ignore[arg-type]
        first_key = key if not epoch else rng.stream_of(self.seed, 0, copy)  # type: ignore[arg-type]
        sample_id = int(self._count.take(1)[0]) if ids is None else check_id(ids)
        image = OneImage(shape, sample_id, key, self.transform.num_slots, epoch, values, first_key)  # type: ignore[arg-type]
        image.output = self._output
        return image

    def _laid_out(self, output: Output) -> Output:
        return output if output.layout == self.layout else replace(output, layout=self.layout)

    @property
    def _takes_one(self) -> bool:
        """Whether one image alone has a shorter way."""
        is_plain = not (self.transform._is_alone or self.transform._mixers or self.consistent)
        return is_plain and isinstance(self._runner, CpuRunner)

    def _known(self, boxes: Sequence[Any], shapes: npt.NDArray[np.int32]) -> SampledBoxes | None:
        from variegate.targets.following import boxes_alone

        refuse_views(self.transform, "boxes")
        if self.consistent:
            raise ValueError("boxes: got some with consistent=True; accepted: clips alone, or boxes of single images")
        return boxes_alone(boxes, shapes)
