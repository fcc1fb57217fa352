"""Planning: programs of a transform under a seed, before any pixel is read. Checks the per-image arguments of a call:
ids, copies, values for ``Cond``, partners and labels."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from variegate.checks import as_integer, integer
from variegate.errors import short_repr
from variegate.executors.runners.grouping import over_frames, shapes_of_clips
from variegate.ops.base import Transform, refuse_views
from variegate.pipelines.pipeline import Pipeline
from variegate.pipelines.run import Samples
from variegate.policies.views import MultiView
from variegate.program import rng
from variegate.program.boxes import SampledBoxes
from variegate.program.depth import Depth
from variegate.program.draws.record import Record, record_of
from variegate.program.plan import BatchPlan, LoweringOptions, ViewDraw
from variegate.program.program import Mixed, Output, Program
from variegate.program.sampling import Sampling
from variegate.program.scalar_draw import ScalarDraw
from variegate.threads import at_fork, check_running

Conditions = Mapping[str, npt.ArrayLike] | None
Copies = int | Sequence[int] | npt.ArrayLike
Ids = Sequence[int] | npt.ArrayLike | None
_LAST_EPOCH = 2**64 - 1
_FIRST_ROW = np.zeros(1, np.intp)


class Request(NamedTuple):
    """Arguments of a call that, with the seed and the sizes, determine the draws."""

    ids: Ids = None
    epoch: int = 0
    copy: Copies = 0
    conditions: Conditions = None
    partners: Any = None
    boxes: SampledBoxes | None = None
    depth: Depth = Depth.UINT8  # of the images


class Planner:
    """Samples programs; ``count`` gives ids to images that have none."""

    def __init__(self, transform: Transform, seed: int, output: Output, count: RunningCount) -> None:
        self.transform, self._seed, self._output, self._count = transform, seed, output, count
        self._record: Record | None = None
        views = transform if isinstance(transform, MultiView) else None
        self._grouping = None if views is None else views.grouping
        # Transforms, and which views of an image each makes.
        self._shares: Sequence[tuple[Transform, Sequence[int]]] = [(transform, [0])] if views is None else views.shares
        self._local = threading.local()

    def program(self, shapes: npt.NDArray[np.int32], call: Request, frames: list[int] | None = None) -> Program:
        """The program of a batch. ``shapes``: int32[N, 3]. For clips: the shapes of all frames, and ``frames`` is the
        number of frames per clip."""
        if frames is not None:
            shapes = shapes_of_clips(shapes, frames)
        sampling = self._sampling(shapes, call)
        if call.partners is not None:
            sampling.partners = check_partners(call.partners, len(shapes), num_partners(self.transform))
        program = self._finished(sampling).for_depth(call.depth)
        return program if frames is None else over_frames(program, frames)

    def lowered(
        self, shapes: npt.NDArray[np.int32], call: Request, frames: list[int] | None, rewriting: LoweringOptions | None
    ) -> Program:
        """``program``, for one run: lowered, and valid until this thread's next, if nothing is drawn in Python."""
        needs_program = frames is not None or call.partners is not None or call.boxes is not None
        plan = None
        if not needs_program and rewriting is not None:
            plan = self._plan(shapes, call.epoch, rewriting._replace(depth=call.depth))
        if plan is None:
            return self.program(shapes, call, frames)
        check_conditions(call.conditions, len(shapes))
        ids, keys = self._streams(call, len(shapes))
        return plan.program(shapes, ids, keys)

    def _plan(self, shapes: npt.NDArray[np.int32], epoch: int, rewriting: LoweringOptions) -> BatchPlan | None:
        """The plan of this thread; None if a part is drawn in Python."""
        shares, epoch = self._shares, integer("epoch", epoch, 0, _LAST_EPOCH)
        if not len(shapes) or not ((shapes[:, 2] == 1) | (shapes[:, 2] == 3)).all():
            return None
        records = tuple(record_of(each, self._output, 3, epoch, may_copy=each._makes_rows) for each, _ in shares)
        key = len(shapes), rewriting, records
        if self._local.__dict__.get("key") != key:
            formats = {(record.output, record.copies) for record in records}
            for record in records:
                record.check_levels(rewriting.depth)
            is_native = len(formats) == 1 and all(record.is_native for record in records)
            draws = [ViewDraw(record, views) for record, (_, views) in zip(records, shares, strict=True)]
            self._local.plan = BatchPlan(draws, len(shapes), self._grouping, rewriting) if is_native else None
            self._local.key = key
        plan: BatchPlan | None = self._local.plan
        return plan

    def program_in_tiles(self, shape: tuple[int, int, int], call: Request) -> Program:
        """The program of one image of any size."""
        refuse_views(self.transform, "transform")
        if self.transform._mixers:
            mixer = type(self.transform._mixers[0]).__name__
            raise ValueError(f"transform: got {mixer} for one image, which mixes several; accepted: others")
        sampling = self._sampling(np.array([shape], np.int32), call)
        sampling.max_side = 2**31 - 1
        program = self._finished(sampling).for_depth(call.depth)
        if program.output.steps:
            step = program.output.steps[0]
            raise ValueError(f"transform: {step} is done to a finished tensor, which tiles are not; leave it out")
        if sampling.channels[0] != shape[2]:
            raise ValueError(
                "transform: Grayscale(num_output_channels=3) of a gray image in tiles; accepted: an image of three "
                "channels, or Grayscale()"
            )
        return program

    def pipeline_of_one(self, pipeline: Pipeline, shape: tuple[int, int, int], call: Request) -> ScalarDraw | Program:
        """Run a pipeline for one image -> its instructions, if these are all; else its program."""
        epoch, sample_id, key, given = self._checked_one(call)
        ids, keys = np.array([sample_id], np.uint64), np.array([key], np.uint32)
        samples = Samples(ids, keys, [shape], epoch, self._output, _FIRST_ROW, _FIRST_ROW, given)

        def make_batch() -> Sampling:
            return self._sampling(np.array([shape], np.int32), call._replace(ids=[sample_id]))

        drawn = pipeline.draw_one(samples, make_batch)
        return drawn if isinstance(drawn, ScalarDraw) else drawn.finish(drawn.output)

    def draw_of_one(self, call: Request) -> tuple[Record, int, tuple[int, int]]:
        """The transform's record for a batch of one, and the image's id and key."""
        epoch, sample_id, key, _ = self._checked_one(call)
        # Read once: another thread may set the record of another epoch.
        record = self._record
        if record is None or record.uses_epoch:
            record = self._record = record_of(self.transform, self._output, 3, epoch)
        if call.depth.is_deep:
            record.check_levels(call.depth)
        return record, sample_id, key

    def _checked_one(self, call: Request) -> tuple[int, int, tuple[int, int], Mapping[str, Any]]:
        """Epoch, id, key and conditions of the only image of a call."""
        check_running("Augmenter")
        ids, epoch, copy, conditions = call[:4]
        given = check_conditions(conditions, 1)
        if not (type(epoch) is int and type(copy) is int and 0 <= epoch <= _LAST_EPOCH and 0 <= copy < 1 << 32):
            epoch, copy = integer("epoch", epoch, 0, _LAST_EPOCH), int(check_copies(copy, 1)[0])
        sample_id = int(self._count.take(1)[0]) if ids is None else check_id(ids)
        return epoch, sample_id, rng.stream_of(self._seed, epoch, copy), given

    def _sampling(self, shapes: npt.NDArray[np.int32], call: Request) -> Sampling:
        check_running("Augmenter")
        values = check_conditions(call.conditions, len(shapes))
        ids, keys = self._streams(call, len(shapes))
        epoch = int(call.epoch)
        first_keys = rng.stream_keys(self._seed, 0, check_copies(call.copy, len(shapes))) if epoch else keys
        sampling = Sampling(shapes, ids, keys, self.transform.num_slots, epoch, values, first_keys)
        sampling.output, sampling.boxes = self._output, call.boxes
        return sampling

    def _streams(self, call: Request, number: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Ids uint64[number], and keys uint32[number, 2], or [1, 2] for all."""
        copies = check_copies(call.copy, number)
        epoch = integer("epoch", call.epoch, 0, _LAST_EPOCH)
        keys = rng.stream_keys(self._seed, epoch, copies)
        # Last of all checks, so that a call that is refused takes no place of the running count.
        ids = self._count.take(number) if call.ids is None else check_ids(call.ids, number)
        return ids, keys

    def _finished(self, sampling: Sampling) -> Program:
        self.transform.sample(sampling, np.arange(len(sampling.shape)), 0)
        return sampling.finish(sampling.output)


class RunningCount:
    """Default ids: the count of images seen so far. A pickled copy resumes from the current count."""

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        with self._lock:
            first = self._next
            self._next += number
        return np.arange(first, first + number, dtype=np.uint64)

    def __reduce__(self) -> tuple[type[RunningCount], tuple[int]]:
        return RunningCount, (self._next,)


def check_ids(ids: Any, number: int) -> npt.NDArray[np.uint64]:
    array = _one_each("ids", ids, number, "one integer per image")
    if array.dtype.kind in "fO" and isinstance(ids, (list, tuple)) and None not in map(as_integer, ids):
        # Integers on both sides of 2**63 share no common type except float; integers of 2**64 and more share none.
        array = np.array([i if 0 <= i < 1 << 64 else -1 for i in ids], dtype=object)
        array = array.astype(np.int64 if (array < 0).any() else np.uint64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "i" and number and int(array.min()) < 0):
        raise ValueError(f"ids: got {short_repr(ids)}; accepted: integers from 0 to 2**64 - 1")
    return array.astype(np.uint64)


def check_id(ids: Any) -> int:
    """Check the id of a single image."""
    if type(ids) is list and len(ids) == 1 and type(ids[0]) is int and 0 <= ids[0] < 1 << 64:
        return ids[0]
    return int(check_ids(ids, 1)[0])


def check_conditions(conditions: Conditions, number: int) -> dict[str, npt.NDArray[Any]]:
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping) or not all(isinstance(name, str) for name in conditions):
        accepted = 'a dict from name to one value per image, such as {"label": labels}'
        raise TypeError(f"conditions: got {short_repr(conditions)}; accepted: {accepted}")
    return {
        name: _one_each(f"conditions[{name!r}]", values, number, "one value per image", scalar=False)
        for name, values in conditions.items()
    }


def single_conditions(conditions: Conditions, number: int) -> dict[str, npt.NDArray[Any]]:
    """The conditions of one sample, repeated for ``number`` equal images."""
    if isinstance(conditions, Mapping):
        conditions = {name: np.atleast_1d(np.asarray(value)) for name, value in conditions.items()}
    return {name: np.repeat(values, number) for name, values in check_conditions(conditions, 1).items()}


def with_labels(conditions: Conditions, labels: Any) -> Conditions:
    """The conditions, and the labels as ``label`` where they are classes and nothing else is."""
    if labels is None or (isinstance(conditions, Mapping) and "label" in conditions):
        return conditions
    array = labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
    return {**(conditions or {}), "label": array} if array.dtype.kind in "iu" and array.ndim == 1 else conditions


def check_copies(copy: Any, number: int) -> npt.NDArray[np.uint32]:
    """Returns one copy number for all, uint32[1], or one per image, uint32[number]."""
    if isinstance(copy, Integral):
        accepted = "an integer from 0 to 2**32 - 1, or one per image"
        return np.array([integer("copy", copy, 0, 2**32 - 1, accepted=accepted)], np.uint32)
    array = _one_each("copy", copy, number, "one integer, or one per image")
    if array.dtype.kind not in "iu" or (number and not 0 <= int(array.min()) <= int(array.max()) < 1 << 32):
        raise ValueError(f"copy: got {short_repr(copy)}; accepted: integers from 0 to 2**32 - 1")
    return array.astype(np.uint32)


def _one_each(name: str, values: Any, number: int, accepted: str, scalar: bool = True) -> npt.NDArray[Any]:
    """Convert ``number`` values, also tensors, to an array in host memory; all are numbers unless ``scalar`` is
    False."""
    accepted = f"accepted: {accepted}, {number} here"
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = values.float() if values.dtype == torch.bfloat16 else values  # which NumPy does not read
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:  # NumPy's word for lists of several lengths
        raise ValueError(f"{name}: got {short_repr(values)}; {accepted}") from error
    if (array.shape if scalar else array.shape[:1]) != (number,):
        raise ValueError(f"{name}: got shape {array.shape}; {accepted}")
    return array


NO_LABEL = -1


class MixedLabels(NamedTuple):
    """Labels of mixed images, returned by a mixing transform without ``num_classes``.

    The loss is ``(1 - weight) * loss(label) + weight * loss(partner)``. A transform that mixes more than two images
    (``Mosaic``) has ``partner`` and ``weight`` of shape [N, K].
    """

    label: torch.Tensor  # int64[N]: of the image itself
    partner: torch.Tensor  # int64[N]: of the one it is mixed with
    weight: torch.Tensor  # float32[N]: the partner's share; 0 where nothing is mixed


def num_partners(transform: Any) -> int:
    """Number of other images that a transform mixes an image with."""
    return max((mixer.num_partners for mixer in transform._mixers), default=0)


def check_partners(partners: Any, images: int, needed: int) -> npt.NDArray[np.int32] | None:
    """Partners of outputs, int32[outputs, needed], places in the batch; None where there is nothing to mix."""
    is_batch = isinstance(partners, str) and partners == "batch"
    if not needed and not is_batch:
        raise ValueError(f"partners: got {short_repr(partners)} with a transform that mixes nothing; accepted: 'batch'")
    if not needed or not images:
        return None
    if is_batch:
        places = np.arange(images)[:, None] - np.arange(1, needed + 1)
        return (places % images).astype(np.int32)
    accepted = f"'batch', or places in the batch, integers from 0 to {images - 1}: {needed} for each output"
    try:
        array = np.asarray(partners)
    except (ValueError, TypeError) as error:
        raise ValueError(f"partners: got {short_repr(partners)}; accepted: {accepted}") from error
    if array.ndim == 1 and needed == 1:
        array = array[:, None]
    is_fit = array.ndim == 2 and array.shape[1] == needed and 0 < len(array) <= images and array.dtype.kind in "iu"
    if not is_fit or array.min() < 0 or array.max() >= images:
        raise ValueError(f"partners: got {short_repr(partners)}; accepted: {accepted}")
    return array.astype(np.int32)


def mix_labels(labels: Any, mixture: Mixed, num_classes: int | None) -> torch.Tensor | MixedLabels:
    """Labels of outputs, float32[N, num_classes], of classes (-1: none) or floats; else ``MixedLabels``."""
    array = _as_array(labels)
    shares, places = mixture.shares, np.concatenate([np.arange(len(mixture.partners))[:, None], mixture.partners], 1)
    if array.dtype.kind == "f":
        flat = array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float32)
        mixed = np.einsum("nk,nkc->nc", shares, flat[places])
        return torch.from_numpy(mixed.reshape(len(places), *array.shape[1:]))
    if array.dtype.kind not in "iub" or array.ndim != 1:
        got = f"{array.dtype}{list(array.shape)}"
        raise ValueError(f"labels: got {got}; accepted where images are mixed: one class for each, or floats")
    classes = array.astype(np.int64)[places]
    if num_classes is None:
        one = (slice(None), 1) if shares.shape[1] == 2 else (slice(None), slice(1, None))
        parts = (classes[:, 0], classes[one], shares[one])
        return MixedLabels(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))
    wrong = (classes < NO_LABEL) | (classes >= num_classes)
    if wrong.any():
        accepted = f"0 to {num_classes - 1} (num_classes={num_classes}), or -1 for none"
        raise ValueError(f"labels: got class {int(classes[wrong][0])}; accepted: {accepted}")
    soft = np.zeros((len(places), num_classes + 1), np.float32)
    np.add.at(soft, (np.arange(len(places))[:, None], classes), shares)  # class -1 goes to the last column
    return torch.from_numpy(np.ascontiguousarray(soft[:, :num_classes]))


def label_of(mixed: torch.Tensor | MixedLabels, n: int) -> torch.Tensor | MixedLabels:
    """Select one output's label from the result of ``mix_labels``."""
    return MixedLabels(*(part[n] for part in mixed)) if isinstance(mixed, MixedLabels) else mixed[n]


def labels_of(program: Program, labels: Any, transform: Any) -> torch.Tensor | MixedLabels:
    """Labels of a program's outputs. Raises ValueError for labels that are not numbers."""
    if program.mixture is not None and transform._mixers:
        return mix_labels(labels, program.mixture, transform._mixers[0].num_classes)
    if isinstance(labels, torch.Tensor):
        return labels
    array = _as_array(labels)
    if array.dtype.kind not in "iubf":
        raise ValueError(f"labels: got {short_repr(labels)}; accepted: numbers, one or as many for each image")
    return torch.as_tensor(array)


def _as_array(labels: Any) -> npt.NDArray[Any]:
    if isinstance(labels, (list, tuple)) and labels and isinstance(labels[0], torch.Tensor):
        labels = torch.stack(list(labels))
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu()
        return (labels.float() if labels.is_floating_point() else labels).numpy()  # NumPy has no bfloat16
    return np.asarray(labels)
