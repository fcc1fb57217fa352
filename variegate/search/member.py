"""A member of a population, and its part of a step. For every back end."""

from __future__ import annotations

import math
from threading import Event
from typing import Any

from variegate.search.draws import Purpose, draw
from variegate.search.policy import Numbers
from variegate.search.run import SearchRun
from variegate.training.classifier import Classifier
from variegate.training.placed import PlacedImages


def images_of(run: SearchRun, device: str) -> PlacedImages:
    """What members train on and are scored by, on a device."""
    return PlacedImages(run.train, run.validation, run.around, device)


def new_member(run: SearchRun, member: int, device: str, **options: Any) -> Classifier:
    """As it is before the first step; ``options`` as of ``Classifier``. Raises ValueError for a wrong model."""
    seed, channels = member_seed(run.settings.seed, member), run.train.pixels.shape[3]
    return Classifier(run.model, run.train.num_classes, run.recipe, device, seed, channels, **options)


def train_member(
    run: SearchRun, classifier: Classifier, data: PlacedImages, policy: Numbers, step: int, stop: Event | None = None
) -> float | None:
    """A member's epochs of a step (from 1) -> its accuracy at the end; NaN where it diverged, None where ``stop`` was
    set between two epochs."""
    transform = run.around.with_policy(run.settings.space.transform(policy))
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
    words = draw(Purpose.MEMBER, seed, 0, member, 1)[0]
    return (int(words[0]) << 32 | int(words[1])) >> 1
