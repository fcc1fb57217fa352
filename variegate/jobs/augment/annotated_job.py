"""What a worker does for a data set with boxes, masks or key points: what belongs to an image follows it.

Nothing in here depends on which items came together: groups, threads and devices change nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from variegate.augmenter.samples import follow
from variegate.formats.annotated.written import objects_of, record_of
from variegate.jobs.augment.annotated_plan import AnnotatedPlan
from variegate.jobs.augment.job import DecodedItem, ExpansionJob, ExpansionSpec, Image_HWC
from variegate.jobs.output.encode import encode_mask
from variegate.program.program import Program
from variegate.targets.samples import of_images

# What objects have beside boxes and classes.
_PER_BOX = ("ignored", "outline")


@dataclass
class Belonging:
    """What is known of an item beside images: targets of the copy that is made, and files of masks by copy."""

    targets: dict[str, Any] = field(default_factory=dict)
    masks: dict[int, bytes] = field(default_factory=dict)


class AnnotatedJob(ExpansionJob):
    """On one device, with no more threads than it was given."""

    _plan: AnnotatedPlan

    def __init__(self, spec: ExpansionSpec, device: str, num_threads: int) -> None:
        super().__init__(spec, device, num_threads)
        plan = self._plan
        per_box = tuple(plan.form.per_box) if plan.is_sharded else _PER_BOX
        self._options = replace(plan.targets, per_box=per_box)

    def warm_up(self) -> None:
        super().warm_up()
        image = np.zeros((64, 64, 3), np.uint8)
        targets = {"boxes": [[8, 8, 24, 24]], "labels": [0], "keypoints": [[9, 9, 2]], "mask": image[..., 0]}
        samples = [{"image": image, **targets}] * 8
        with suppress(Exception):  # it may take other images; if it takes none, tasks will say so
            self._augmenter(samples, ids=list(range(8)), partners="batch")

    def _targets(self, item: Any, index: int) -> Mapping[str, Any] | None:
        targets: Mapping[str, Any] = item.targets
        return {**targets, **self._plan.about_objects(index)}

    def _augment(self, group: list[DecodedItem], copy: int) -> tuple[Program, list[Image_HWC]]:
        samples = [one.sample for one in group]
        every = samples + [partner for sample in samples for partner in sample.partners]
        images = [sample.pixels for sample in every]
        given: dict[str, Any] = {"ids": [sample.id for sample in every], "epoch": self._plan.epoch, "copy": copy}
        if len(every) > len(samples):
            given["partners"] = np.arange(len(samples), len(every)).reshape(len(samples), -1)
        targets = [sample.targets or {} for sample in every]
        check = partial(of_images, targets, options=self._options)
        made, _, belonging, program = follow(self._augmenter, images, check, self._options, **given)
        for one, followed in zip(group, belonging, strict=False):
            one.beside = one.beside or Belonging()
            # Masks are where images are made.
            one.beside.targets = {k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in followed.items()}
        return program, [image.cpu().numpy() for image in made]

    def _encode_copy(
        self, group: list[DecodedItem], copy: int, program: Program | None, images: list[Image_HWC]
    ) -> None:
        super()._encode_copy(group, copy, program, images)
        good = [(one, image) for one, image in zip(group, images, strict=False) if not one.failure]
        self._map(self._describe, good)

    def _describe(self, both: tuple[DecodedItem, Image_HWC]) -> None:
        """Complete the row of the copy that was made last."""
        one, image = both
        row, _ = one.outputs[-1]
        row |= dict.fromkeys(("mask_file", "mask_bytes", "mask_sha256", "targets"))
        plan, targets = self._plan, one.beside.targets
        if plan.is_sharded and plan.has_objects:
            row["targets"] = _json(objects_of(targets, tuple(plan.form.per_box)))
        elif plan.has_objects:
            row["targets"] = _json(record_of(targets, image.shape[2], plan.about["format"] == "yolo"))
        if not plan.has_masks:
            return
        try:
            data = encode_mask(np.asarray(targets["mask"]))
        except ValueError as error:
            one.failure = str(error)
            return
        row["mask_file"] = None if plan.is_sharded else plan.mask_file(row["file"])
        row["mask_bytes"], row["mask_sha256"] = len(data), hashlib.sha256(data).hexdigest()
        one.beside.masks[row["copy"]] = data

    def _files(self, one: DecodedItem, row: dict[str, Any], data: bytes) -> list[tuple[str, bytes]]:
        files = super()._files(one, row, data)
        return files if row["mask_file"] is None else [*files, (row["mask_file"], one.beside.masks[row["copy"]])]

    def _beside(self, one: DecodedItem) -> list[bytes | None]:
        return [one.beside.masks.get(row["copy"]) for row, _ in one.outputs]


_json = json.JSONEncoder(separators=(",", ":")).encode
