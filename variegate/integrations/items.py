"""Samples as torch's data sets give them: an image, its label, and its id, or the count that stands for one.

Objects with a count or an epoch are copied into the worker processes of a ``DataLoader``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate, get_worker_info

from variegate.augmenter.augmenter import Augmenter
from variegate.checks import as_integer, integer
from variegate.errors import shown
from variegate.formats.objects.targets import check_beside, check_entries
from variegate.integrations.one_sample import augment_inputs, is_image, is_sample, to_array
from variegate.program import rng
from variegate.targets.settings import Targets
from variegate.transforms import Transform

_MASK64 = (1 << 64) - 1
_ACCEPTED = (
    '(image, label), (image, label, id), or a dict with "image", "label" and, if there is one, "id"; '
    "targets=vg.Targets() for boxes and masks"
)
_ATTRIBUTE = "_alone"  # which a transform leaves out of what it tells of itself


class SharedEpoch:
    """The epoch, in memory that an object and its copies in worker processes look at together.

    Workers that live for several epochs (``persistent_workers=True``) hold the copy they were started with, and
    nothing that is set in the main process later would reach them otherwise. Copies made by torch's multiprocessing
    share the memory, whether workers are forked or spawned; a plain ``pickle`` gives a separate one.
    """

    def __init__(self, epoch: int = 0) -> None:
        self._cell = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.set(epoch)

    def get(self) -> int:
        return int(self._cell.item())

    def set(self, epoch: int) -> None:
        """Raises ValueError for anything but an integer from 0 to 2**63 - 1."""
        self._cell.fill_(integer("epoch", epoch, 0, 2**63 - 1))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._cell = state["_cell"]
        if not self._cell.is_shared():  # copied by value
            self._cell = self._cell.clone().share_memory_()


class RunningIds:
    """Ids for samples that have none: a count, which in a worker begins at a place of that worker's own.

    The place is a 64-bit hash of the worker's seed. The DataLoader makes that of a number drawn from torch's generator
    whenever it starts workers, and of the worker's place: so workers do not repeat one another, nor what they did in an
    earlier epoch, and ``torch.manual_seed`` makes a run repeat. Persistent workers keep their seed and count on.

    The seed goes into the ids and not into the epoch, whose value schedules and ``Cond(by="epoch")`` read.
    """

    def __init__(self) -> None:
        # One count per worker's seed (None: no worker), should several live in one process.
        self._counts: dict[int | None, Iterator[int]] = {}

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        """The next ``number`` ids."""
        # Taken one by one: of several threads none gets what another got.
        return np.array([self.take_one() for _ in range(number)], np.uint64)

    def take_one(self) -> int:
        """The next id."""
        worker = get_worker_info()
        seed = None if worker is None else int(worker.seed)
        count = self._counts.get(seed)
        if count is None:
            low, high = (0, 0) if seed is None else rng.stream_key(seed & _MASK64, 0)
            count = self._counts.setdefault(seed, itertools.count(int(low) | int(high) << 32))
        return next(count) & _MASK64

    def __reduce__(self) -> tuple[Any, ...]:
        return RunningIds, ()  # a copy is for a worker, and begins anew there


# One count for all transforms of a process: two that are called one after another, each with a count of its own, would
# draw the same numbers for every image.
_ids = RunningIds()


def take_apart(items: Sequence[Any]) -> tuple[list[npt.NDArray[np.uint8]], list[Any], list[int] | None]:
    """-> images as arrays [H, W, C], labels, and ids unless no item has one.

    Raises TypeError or ValueError naming the item: also for masks, boxes and the like, which augmenting the image alone
    would leave behind.
    """
    if len(items) == 0:
        raise ValueError("items: got none; accepted: at least one")
    parts = [_parts(item, f"items[{i}]") for i, item in enumerate(items)]
    images = [to_array(part[0], f"the image of items[{i}]") for i, part in enumerate(parts)]
    for i, (item, image) in enumerate(zip(items, images, strict=True)):
        size = (image.shape[0], image.shape[1])
        if isinstance(item, Mapping):
            check_entries(item, "image", f"items[{i}]", size)
        else:
            for n, value in enumerate(item[1:], 1):
                check_beside(value, f"items[{i}][{n}]", size)
    labels = [part[1] for part in parts]
    with_id = [len(part) == 3 for part in parts]
    if not any(with_id):
        return images, labels, None
    if not all(with_id):
        raise ValueError(f"items[{with_id.index(False)}]: got no id where others have one; accepted: all or none")
    return images, labels, [check_item_id(part[2], f"items[{i}]") for i, part in enumerate(parts)]


def _parts(item: Any, where: str) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        if "image" in item and "label" in item:
            return tuple(item[name] for name in ("image", "label", "id") if name in item)
        raise TypeError(f"{where}: got a dict with {', '.join(map(repr, item)) or 'nothing'}; accepted: {_ACCEPTED}")
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        return tuple(item)
    raise TypeError(f"{where}: got {form_of(item)}; accepted: {_ACCEPTED}")


def form_of(item: Any) -> str:
    """``"a dict"``, ``"a tuple of 4"``."""
    return f"a {type(item).__name__}" + (f" of {len(item)}" if isinstance(item, (tuple, list)) else "")


def check_item_id(value: Any, where: str) -> int:
    """Raises ValueError naming the item."""
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << 64:
        raise ValueError(f"{where}: got the id {shown(value)}; accepted: an integer from 0 to 2**64 - 1")
    return number


def stack_labels(labels: Sequence[Any]) -> Any:
    """Integers as int64[N], other numbers as float32[N], arrays and tensors stacked, the rest as a list.

    Raises ValueError for arrays of different shapes.
    """
    first = labels[0]
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return torch.tensor([bool(label) for label in labels])
    if all(isinstance(label, Integral) for label in labels):
        numbers = [int(label) for label in labels]
        large = next((i for i, number in enumerate(numbers) if not -(1 << 63) <= number < 1 << 63), None)
        if large is not None:
            raise ValueError(f"the label of items[{large}]: got {shown(numbers[large])}; accepted: integers of 64 bits")
        return torch.tensor(numbers, dtype=torch.int64)
    if all(isinstance(label, Real) for label in labels):
        return torch.tensor([float(label) for label in labels], dtype=torch.float32)
    if isinstance(first, (np.ndarray, torch.Tensor)):
        shapes = [tuple(label.shape) if hasattr(label, "shape") else type(label).__name__ for label in labels]
        different = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if different is not None:
            got = f"the label of items[{different}]: got {shapes[different]} where items[0] has {shapes[0]}"
            raise ValueError(f"{got}; accepted: labels of one shape")
        return torch.stack([torch.as_tensor(label) for label in labels])
    return default_collate(list(labels)) if isinstance(first, (Mapping, tuple, list)) else list(labels)


def augment_one(transform: Transform, image: Any, others: tuple[Any, ...] = (), targets: Targets | None = None) -> Any:
    """``image`` as for ``as_transform``, at the next place of the running count and epoch 0; a tensor [C, H, W]. Of a
    dict, or with ``others`` beside it, what ``augment_inputs`` gives; and of a list or a tuple of all that, another."""
    if isinstance(image, (list, tuple)) and image and not others and not any(map(is_image, image[1:])):
        first = augment_one(transform, image[0], tuple(image[1:]), targets)
        parts = first if len(image) > 1 else (first,)
        return type(image)(*parts) if hasattr(image, "_fields") else type(image)(parts)
    if others or targets is not None or is_sample(image):
        return augment_inputs(_augmenter_of(transform), (image, *others), targets, ids=_ids.take_one())
    accepted = "one image; vg.Augmenter(t)(images) takes a list or a batch"
    if isinstance(image, (list, tuple)):
        raise TypeError(f"image: got {form_of(image)}; accepted: {accepted}")
    if len(shape := getattr(image, "shape", ())) == 4:
        raise ValueError(f"image: got shape {tuple(shape)}; accepted: {accepted}")
    return _augmenter_of(transform).of_one(to_array(image, "image"), [_ids.take_one()])


def _augmenter_of(transform: Transform) -> Augmenter:
    augmenter: Augmenter | None = transform.__dict__.get(_ATTRIBUTE)
    if augmenter is None:
        augmenter = Augmenter(transform, num_threads=1)
        # Beside the fields, so that equality, hash and descriptions know nothing of it.
        object.__setattr__(transform, _ATTRIBUTE, augmenter)
    return augmenter
