"""Planning: programs of a transform under a seed, before a pixel is touched."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.augmenter import per_image
from variegate.augmenter.per_image import Conditions, Copies, Ids
from variegate.checks import integer
from variegate.executors.runners.grouping import over_frames, shapes_of_clips
from variegate.ops.base import Transform, refuse_views
from variegate.program import rng
from variegate.program.boxes import SampledBoxes
from variegate.program.one_image import OneImage
from variegate.program.program import Output, Program
from variegate.program.sampling import Sampling
from variegate.threads import check_running

_LAST_EPOCH = 2**64 - 1


class Request(NamedTuple):
    """Arguments of a call that, with the seed and the sizes, decide what happens to its images."""

    ids: Ids = None
    epoch: int = 0
    copy: Copies = 0
    conditions: Conditions = None
    partners: Any = None
    boxes: SampledBoxes | None = None


class Planner:
    """Samples programs; ``count`` gives ids to images that have none."""

    def __init__(self, transform: Transform, seed: int, output: Output, count: per_image.RunningCount) -> None:
        self.transform, self._seed, self._output, self._count = transform, seed, output, count

    def program(self, shapes: npt.NDArray[np.int32], call: Request, frames: list[int] | None = None) -> Program:
        """Of a batch. ``shapes``: int32[N, 3]; of clips those of all frames, and ``frames`` how many each clip has."""
        if frames is not None:
            shapes = shapes_of_clips(shapes, frames)
        sampling = self._sampling(shapes, call)
        if call.partners is not None:
            needed = per_image.num_partners(self.transform)
            sampling.partners = per_image.check_partners(call.partners, len(shapes), needed)
        program = self._finished(sampling)
        return program if frames is None else over_frames(program, frames)

    def program_in_tiles(self, shape: tuple[int, int, int], call: Request) -> Program:
        """Of one image of any sides."""
        refuse_views(self.transform, "transform")
        if self.transform._mixers:
            mixer = type(self.transform._mixers[0]).__name__
            raise ValueError(f"transform: got {mixer} for one image, which mixes several; accepted: others")
        sampling = self._sampling(np.array([shape], np.int32), call)
        # Areas of such sides need more than 32 bits.
        sampling.max_side, sampling.size = 2**31 - 1, sampling.size.astype(np.int64)
        program = self._finished(sampling)
        if program.output.steps:
            step = program.output.steps[0]
            raise ValueError(f"transform: {step} is done to a finished tensor, which tiles are not; leave it out")
        if sampling.channels[0] != shape[2]:
            raise ValueError(
                "transform: Grayscale(num_output_channels=3) of a gray image in tiles; accepted: an image of three "
                "channels, or Grayscale()"
            )
        return program

    def one_image(self, shape: tuple[int, ...], call: Request) -> OneImage:
        """An image of height, width and channels for the transform's ``draw``, of which nothing is sampled yet."""
        check_running("Augmenter")
        ids, epoch, copy, conditions, _, boxes = call
        values = None if conditions is None else per_image.check_conditions(conditions, 1)
        if not (type(epoch) is int and type(copy) is int and 0 <= epoch <= _LAST_EPOCH and 0 <= copy < 1 << 32):
            epoch, copy = integer("epoch", epoch, 0, _LAST_EPOCH), int(per_image.check_copies(copy, 1)[0])
        key = rng.stream_of(self._seed, epoch, copy)
        first_key = key if not epoch else rng.stream_of(self._seed, 0, copy)
        sample_id = int(self._count.take(1)[0]) if ids is None else per_image.check_id(ids)
        image = OneImage(shape, sample_id, key, self.transform.num_slots, epoch, values, first_key)  # type: ignore[arg-type]
        image.output, image.boxes = self._output, boxes
        return image

    def _sampling(self, shapes: npt.NDArray[np.int32], call: Request) -> Sampling:
        check_running("Augmenter")
        values = per_image.check_conditions(call.conditions, len(shapes))
        copies = per_image.check_copies(call.copy, len(shapes))
        epoch = integer("epoch", call.epoch, 0, _LAST_EPOCH)
        keys = rng.stream_keys(self._seed, epoch, copies)
        first_keys = rng.stream_keys(self._seed, 0, copies) if epoch else keys
        # Last of all checks, so that a call that is refused takes no place of the running count.
        ids = self._count.take(len(shapes)) if call.ids is None else per_image.check_ids(call.ids, len(shapes))
        sampling = Sampling(shapes, ids, keys, self.transform.num_slots, epoch, values, first_keys)
        sampling.output, sampling.boxes = self._output, call.boxes
        return sampling

    def _finished(self, sampling: Sampling) -> Program:
        self.transform.sample(sampling, np.arange(len(sampling.shape)), 0)
        return sampling.finish(sampling.output)
