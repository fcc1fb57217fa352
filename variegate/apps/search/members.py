"""Members of a population in training, for every back end: their devices, and their part of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any

import torch

from variegate.apps.search.policy import Numbers
from variegate.apps.search.population import SearchStream, draw
from variegate.apps.search.run import SearchRun
from variegate.apps.train.classifier import Classifier
from variegate.apps.train.images import TrainingImages
from variegate.jobs.device_names import choose_devices, cores_each, kind_of
from variegate.threads import default_threads


def search_devices(devices: str | Sequence[str] = "auto", members: int = 1) -> list[str]:
    """Full names, no more than ``members``: of "auto" all GPUs, without one a CPU for each core.

    Raises ValueError for a list that is not accepted.
    """
    if devices != "auto":
        names = choose_devices(devices)
        if kind_of(names[0]) not in ("cpu", "cuda"):
            raise ValueError(f"devices: got {names[0]!r}, which trains nothing; accepted: CPUs and GPUs")
    elif torch.cuda.is_available():
        names = choose_devices([f"cuda:{number}" for number in range(torch.cuda.device_count())])
    else:
        names = tuple(f"cpu:{number}" for number in range(default_threads()))
    return list(names[:members])


def threads_each(devices: Sequence[str]) -> int | None:
    """That augment for each of so many trainings at a time; None: all cores, for a single one."""
    return None if len(devices) == 1 else cores_each(len(devices))


@contextmanager
def one_thread_each(*devices: str) -> Iterator[None]:
    """On a CPU a training uses one thread: sums come out the same whatever the machine, and small models faster."""
    before = torch.get_num_threads()
    if "cpu" in devices:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def images_of(run: SearchRun, device: str) -> TrainingImages:
    """What members train on and are scored by, on a device."""
    return TrainingImages(run.train, run.validation, run.baseline.plain, device)


def new_member(run: SearchRun, member: int, device: str, **options: Any) -> Classifier:
    """As it is before the first step; ``options`` as of ``Classifier``. Raises ValueError for a wrong model."""
    seed, channels = member_seed(run.settings.seed, member), run.train.pixels.shape[3]
    return Classifier(run.model, run.train.num_classes, run.recipe, device, seed, channels, **options)


def train_member(
    run: SearchRun, classifier: Classifier, data: TrainingImages, policy: Numbers, step: int, stop: Event | None = None
) -> float | None:
    """A member's epochs of a step (from 1) -> its accuracy at the end; NaN where it diverged, None where ``stop`` was
    set between two epochs."""
    transform = run.baseline.with_policy(run.settings.space.transform(policy))
    losses = []
    for epoch in range(run.settings.end_of(step - 1), run.settings.end_of(step)):
        if stop is not None and stop.is_set():
            return None
        losses.append(classifier.train(data.train, transform, epoch))
    # Read once all epochs are queued, so that a GPU never waits for the next to be prepared.
    if not all(map(math.isfinite, losses)):
        return math.nan
    return classifier.accuracy(data.scored, data.labels)


def member_seed(seed: int, member: int) -> int:
    """What a member's weights, order of images and augmentations follow from; 63 bits."""
    words = draw(SearchStream.MEMBER, seed, 0, member, 1)[0]
    return (int(words[0]) << 32 | int(words[1])) >> 1
