"""Samples that are dicts: images augmented together with the boxes, masks and key points that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from variegate.arrays import Int32Array
from variegate.augmenter.planner import Request, label_of, labels_of, single_conditions, with_labels
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.images import with_wanted_channels
from variegate.ops.base import refuse_views
from variegate.ops.finish import cuts_of
from variegate.program.program import Program

if TYPE_CHECKING:
    from variegate.augmenter.augmenter import Augmenter
    from variegate.augmenter.clips import Clips
    from variegate.targets.samples import ImageTargets
    from variegate.targets.settings import Targets


class AugmentedTargets(NamedTuple):
    """``labels``: None where nothing was mixed. ``belonging``: of each image, by key. ``program``: the program that
    ran."""

    images: Any
    labels: Any
    belonging: list[dict[str, Any]]
    program: Program


def augment_samples(
    augmenter: Augmenter, samples: Any, options: Targets | None, call: Request
) -> dict[str, Any] | list[dict[str, Any]]:
    """Augment samples that are dicts, or a single dict."""
    from variegate.augmenter.clips import Clips
    from variegate.targets.samples import NAMES, check_batch, image_like, of_images
    from variegate.targets.settings import Targets

    options = Targets() if options is None else options
    names = NAMES
    if is_one := isinstance(samples, Mapping):
        samples, names = [samples], "sample"
        ids = None if call.ids is None else np.atleast_1d(call.ids)
        call = call._replace(ids=ids, conditions=single_conditions(call.conditions, 1))
    check_batch(samples, options, names)
    if options.padded:
        raise ValueError("targets: got padded=True; accepted: False, as padding is for the batches of a vg.Loader")
    refuse_views(augmenter.transform, "samples with targets")
    if not samples:
        return []
    labels = [sample["label"] for sample in samples] if "label" in samples[0] else None
    clips = Clips(samples, options, names) if augmenter.consistent else None
    if clips is None:
        given, where = [sample["image"] for sample in samples], f"{names}['image']"
        is_encoded = bytes in map(type, given)
        images: Any = EncodedBatch(given, where.format) if is_encoded else augmenter._runner.take(given, where)
        check: Any = partial(of_images, samples, options=options, names=names)
    else:
        images, check = augmenter._runner.take(clips.images, "frames[{}]"), clips.check
    made, mixed, belonging, _ = follow(augmenter, images, check, options, labels, clips=clips, **call._asdict())
    belonging = belonging if clips is None else clips.results(belonging)
    results = []
    for n, (sample, result) in enumerate(zip(samples, belonging, strict=False)):
        image = made[n] if isinstance(made, list) else made.select(0, n)
        result["image"] = image_like(image, sample["image"], augmenter.layout)
        if labels is not None:
            result["label"] = labels[n] if mixed is None else label_of(mixed, n)
        results.append({key: result[key] for key in sample})
    return results[0] if is_one else results


def follow(
    augmenter: Augmenter,
    images: Any,
    check: Callable[[Int32Array], Sequence[ImageTargets]],
    options: Targets,
    labels: Any = None,
    classes: Sequence[str] = (),
    clips: Clips | None = None,
    **request: Any,
) -> AugmentedTargets:
    """Augment images or an ``EncodedBatch`` together with their targets. ``check``: shapes [N, 3] -> that, of each.

    ``clips``: those whose frames the images are.
    """
    from variegate.targets.classes import objects_of
    from variegate.targets.following import Follower, boxes_of

    runner, planner = augmenter._runner, augmenter._planner
    is_encoded = isinstance(images, EncodedBatch)
    batch: Any = augmenter._scaled(images) if is_encoded else runner.take(images)
    belonging = check(batch.shapes)
    of_samples = belonging if clips is None else clips.joined(belonging)
    request["conditions"] = with_labels(request.get("conditions"), labels)
    if wanted := augmenter.transform._object_labels:
        objects = objects_of(wanted, [of.lists.get("labels") for of in of_samples], classes)
        request["conditions"] = {**(request["conditions"] or {}), "objects": objects}
    call = Request(**{**request, "boxes": boxes_of(of_samples, options), "depth": batch.depth})
    program = planner.program(batch.shapes, call, None if clips is None else clips.counts)
    if clips is not None:
        program = clips.with_dropped(program, belonging)
    if (cut := cuts_of(program.output)) is not None:
        raise ValueError(f"transform: got {cut} for samples with targets; accepted: transforms that keep one image")
    # Before a batch is made: a decoder that reads a part of a picture puts its size into the program.
    follower = Follower(program, belonging, options, augmenter.num_threads, runner.mask_runner)
    follower.paste_objects()
    made: Any = (runner.decode_and_run if is_encoded else runner.run)(program, batch)
    mixed = None if labels is None or program.mixture is None else labels_of(program, labels, planner.transform)
    return AugmentedTargets(with_wanted_channels(made, program.output), mixed, follower.results(), program)
