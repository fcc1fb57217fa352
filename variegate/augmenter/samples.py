"""Calls with dicts: images together with the boxes, masks and key points that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.augmenter.per_image import Conditions, Copies, Ids, label_of, of_one_sample, with_labels
from variegate.augmenter.plans import PlanningAugmenter
from variegate.executors.runners.decode_plan import SCALES
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.host import CpuRunner
from variegate.executors.runners.images import with_wanted_channels
from variegate.ops.base import refuse_views
from variegate.ops.finish import cuts_of
from variegate.program.program import Output, Program

if TYPE_CHECKING:
    from variegate.targets.samples import OfImage
    from variegate.targets.settings import Targets


class Followed(NamedTuple):
    """``labels``: None where nothing was mixed. ``belonging``: of each image, by key. ``program``: what was done."""

    images: Any
    labels: Any
    belonging: list[dict[str, Any]]
    program: Program


class SamplesAugmenter(PlanningAugmenter):
    """What of an ``Augmenter`` deals with samples that are dicts."""

    def _of_samples(
        self,
        samples: Any,
        options: Targets | None,
        ids: Ids,
        epoch: int,
        copy: Copies,
        conditions: Conditions,
        partners: Any,
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """A call with dicts, or one of them."""
        from variegate.targets.samples import NAMES, check_batch, image_like, of_images
        from variegate.targets.settings import Targets

        options = Targets() if options is None else options
        names = NAMES
        if is_one := isinstance(samples, Mapping):
            samples, names = [samples], "sample"
            ids, conditions = None if ids is None else np.atleast_1d(ids), of_one_sample(conditions, 1)
        check_batch(samples, options, names)
        if options.padded:
            raise ValueError("targets: got padded=True; accepted: False, as padding is for the batches of a vg.Loader")
        refuse_views(self.transform, "samples with targets")
        if self.consistent:
            raise ValueError(
                "samples: got dicts with consistent=True; accepted: clips alone, or dicts of single images"
            )
        if not samples:
            return []
        images = self._runner.take([sample["image"] for sample in samples], f"{names}['image']")
        check = partial(of_images, samples, options=options, names=names)
        labels = [sample["label"] for sample in samples] if "label" in samples[0] else None
        followed = self.follow(images, check, options, labels, ids, epoch, copy, conditions, partners)
        made, mixed, belonging, _ = followed
        results = []
        for n, result in enumerate(belonging):
            image = made[n] if isinstance(made, list) else made.select(0, n)
            result["image"] = image_like(image, samples[n]["image"], self.layout)
            if labels is not None:
                result["label"] = labels[n] if mixed is None else label_of(mixed, n)
            results.append({key: result[key] for key in samples[n]})
        return results[0] if is_one else results

    def follow(
        self,
        images: Any,
        check: Callable[[npt.NDArray[np.int32]], Sequence[OfImage]],
        options: Targets,
        labels: Any = None,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        partners: Any = None,
    ) -> Followed:
        """Augment images, or an ``EncodedBatch``, as a call does, with what belongs to them.

        ``check``: int32[N, 3], the images' shapes -> what belongs to each, checked against it.
        """
        from variegate.targets.following import Follower, boxes_of

        is_encoded = isinstance(images, EncodedBatch)
        batch = images if is_encoded else self._runner.take(images)
        if is_encoded:
            batch.scales = SCALES if self.fast_decode else ()
        belonging = check(batch.shapes)
        conditions = with_labels(conditions, labels)
        boxes = boxes_of(belonging, options)
        if not is_encoded and len(batch.shapes) == 1 and partners is None and self._takes_one:
            assert isinstance(self._runner, CpuRunner)
            one = self._one_image(tuple(batch.shapes[0].tolist()), ids, epoch, copy, conditions)
            one.boxes = boxes
            self.transform.draw(one, 0)
            _check_keeps_one(one.sampling.output)
            output = self._laid_out(one.sampling.output)
            alone: Any = self._runner.run_one(one, batch.images[0], output)
            made = with_wanted_channels(alone[None], output)
            program = one.finish(output)
            follower = Follower(program, belonging, options, self.num_threads, self._runner.mask_executor)
        else:
            program = self._sample(batch.shapes, ids, epoch, copy, conditions, None, partners, boxes)
            _check_keeps_one(program.output)
            # Before the images are made: a decoder that reads a part of a picture puts its size into the program.
            follower = Follower(program, belonging, options, self.num_threads, self._runner.mask_executor)
            run = self._runner.decode_and_run if is_encoded else self._runner.run
            made = with_wanted_channels(run(program, batch), program.output)
        mixed = None if labels is None or program.mixture is None else self._labels(program, labels)
        return Followed(made, mixed, follower.results(), program)


def _check_keeps_one(output: Output) -> None:
    if (cut := cuts_of(output)) is not None:
        raise ValueError(f"transform: got {cut} for samples with targets; accepted: transforms that keep one image")
