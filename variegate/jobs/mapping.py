"""A stream of images through an engine: tasks of a few images each, a bounded number of bytes ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.augmenter.augmenter import Augmenter
from variegate.checks import integer
from variegate.errors import try_each
from variegate.executors.runners.images import check_image
from variegate.executors.runners.runner import Dtype, Geometry, Layout
from variegate.ops.base import refuse_views
from variegate.transforms import Transform
from variegate.workers.protocol import EngineError, Job, Result, error_line, is_device_error
from variegate.workers.run import FailedItem, FinishedItems, Payload

# Images per task: enough that sending a task costs little, few enough that devices balance.
_TASK_IMAGES = 32
_TASK_BYTES = 16 << 20
# Images and results that are under way, per device.
_AHEAD_IMAGES = 8 * _TASK_IMAGES
_AHEAD_BYTES = 128 << 20


class ImageTask(NamedTuple):
    """An image to be sent to a worker."""

    image: Any
    id: int
    given: tuple[Any, ...]


@dataclass(frozen=True)
class MapSpec:
    """Arguments of an ``Augmenter`` and of its calls. ``names``: of the values in ``ImageTask.given``."""

    transform: Transform
    seed: int
    dtype: Dtype | torch.dtype
    layout: Layout
    geometry: Geometry
    epoch: int = 0
    copy: int = 0
    names: tuple[str, ...] = ()

    def augmenter(self, device: str = "cpu", num_threads: int | None = 1) -> Augmenter:
        """Raises ValueError or TypeError for invalid arguments."""
        return Augmenter(self.transform, device, self.seed, self.dtype, self.layout, num_threads, self.geometry)

    def check(self) -> None:
        """Raises ValueError or TypeError as the Augmenter does, for all but the images."""
        refuse_views(self.transform, "transform")
        none = dict.fromkeys(self.names, ())
        self.augmenter().program([], ids=[], epoch=self.epoch, copy=self.copy, conditions=none)

    def open(self, device: str, num_threads: int) -> MapJob:
        return MapJob(self, self.augmenter(device, num_threads))


class MapJob(Job):
    """Augments images on one device."""

    def __init__(self, work: MapSpec, augmenter: Augmenter) -> None:
        self._work = work
        self._augmenter = augmenter
        # Compile kernels, or load them, before there is a task that has to show that it gets on. The transform may well
        # take other images than this one; if it takes none, tasks will say so.
        image = np.zeros((64, 64, 3), np.uint8)
        with suppress(Exception):
            augmenter([image] * 2, ids=[0, 1], conditions={name: [0, 0] for name in work.names})

    def run(self, items: range, payload: Any, beat: Callable[[], None]) -> Result:
        beat()
        try:
            return Result(self._augment(payload), {})
        except Exception as error:
            if is_device_error(error):
                raise
        # An image that the transform does not take: which is it? A task that fails without a name counts against
        # the device, which a stretch of such images would cost its place.
        numbered = dict(zip(items, payload, strict=True))
        made: dict[int, Any] = {}
        alone = try_each(items, lambda item: self._augment([numbered[item]])[0], lambda e: not is_device_error(e))
        for item, result in alone:
            beat()
            made[item] = result
        failed = {item: error_line(result) for item, result in made.items() if isinstance(result, Exception)}
        return Result([None if item in failed else made[item] for item in items], failed)

    def _augment(self, images: list[ImageTask]) -> list[torch.Tensor]:
        given = {name: [one.given[n] for one in images] for n, name in enumerate(self._work.names)}
        ids = [one.id for one in images]
        made = self._augmenter([one.image for one in images], ids, self._work.epoch, self._work.copy, given)
        return list(made.cpu()) if isinstance(made, torch.Tensor) else [tensor.cpu() for tensor in made]


def map_images(
    run: Callable[..., Generator[FinishedItems | FailedItem, None, None]],
    images: Iterator[ImageTask],
    num_devices: int,
    ordered: bool,
    quarantined: list[tuple[int, str]] | None,
) -> Generator[Any, None, None]:
    """``run``: an engine's, for a ``MapSpec``; ``quarantined``: collects failed images; None: they are raised."""
    ahead = _Ahead(num_devices * _AHEAD_BYTES)
    results = run(ahead.tasks(images), max_items=num_devices * _AHEAD_IMAGES, has_room=ahead.has_room)
    try:
        for result in results:
            if isinstance(result, FailedItem):
                id = ahead.settle(result.item)
                if quarantined is None:
                    raise EngineError(f"images[{result.item}] (id {id}): {result.reason}")
                quarantined.append((id, result.reason))
                continue
            item = result.start
            outputs = deque(result.outputs)
            del result
            while outputs:
                tensor = outputs.popleft()
                id = ahead.settle(item, tensor.nbytes)
                item += 1
                yield tensor if ordered else (id, tensor)
                del tensor
    finally:
        results.close()


class _Ahead:
    """Images that were read and whose results are not handed out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[int, tuple[int, int]] = {}  # by number: (id, bytes)
        self._bytes = 0
        self._largest_result = 0

    def tasks(self, images: Iterator[ImageTask]) -> Iterator[tuple[int, int, Payload]]:
        task: list[ImageTask] = []
        start = task_bytes = 0
        for number, image in enumerate(images):
            nbytes = image.image.nbytes
            self._waiting[number] = image.id, nbytes
            self._bytes += nbytes
            task.append(image)
            task_bytes += nbytes
            if len(task) == _TASK_IMAGES or task_bytes >= _TASK_BYTES:
                yield start, number + 1, task
                task = []
                start = number + 1
                task_bytes = 0
        if task:
            yield start, start + len(task), task

    def settle(self, item: int, result_bytes: int = 0) -> int:
        """An image is out -> its id."""
        id, nbytes = self._waiting.pop(item)
        self._bytes -= nbytes
        self._largest_result = max(self._largest_result, result_bytes)
        return id

    def has_room(self) -> bool:
        return self._bytes + len(self._waiting) * self._largest_result < self._limit


def iter_images(images: Any, ids: Iterable[int] | None, given: Mapping[str, Iterable[Any]]) -> Iterator[ImageTask]:
    """Images with their targets. Raises TypeError or ValueError, later with the number of the first bad one."""
    if isinstance(images, (np.ndarray, torch.Tensor)) and images.ndim != 4:
        raise ValueError(f"images: got shape {tuple(images.shape)}; accepted: one [N, H, W, C], or images one by one")
    try:
        one_by_one = iter(images)
    except TypeError:
        accepted = "images one by one, or one array [N, H, W, C]"
        raise TypeError(f"images: got {type(images).__name__}; accepted: {accepted}") from None
    streams = {} if ids is None else {"ids": iter(ids)}
    streams |= {f"conditions[{name!r}]": iter(values) for name, values in given.items()}

    def checked() -> Iterator[ImageTask]:
        for number, image in enumerate(one_by_one):
            values = [_next(name, stream, number) for name, stream in streams.items()]
            id = number if ids is None else integer(f"ids[{number}]", values.pop(0), 0, 2**64 - 1)
            yield ImageTask(check_image(image, number), id, tuple(values))

    return checked()


def _next(name: str, values: Iterator[Any], number: int) -> Any:
    for value in values:
        return value
    raise ValueError(f"{name}: ended after {number}; accepted: one for each image")
