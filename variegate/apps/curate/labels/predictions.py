"""Out-of-sample predictions: of every image by a model that was trained on the other folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from variegate.apps.train.airbench import Airbench
from variegate.apps.train.classifier import Classifier
from variegate.apps.train.images import BaselineAugmentation, LabelledImages, fitting_batch
from variegate.apps.train.step import in_channels_last
from variegate.augmenter.augmenter import Augmenter
from variegate.loader.shuffle import Permutation
from variegate.options.search import Hyperparameters
from variegate.threads import default_threads

MODEL = "airbench-94x0.25"
_LR = 0.5
# What trains a model: so many images in all, by epochs that are not too few to learn nor more than it needs.
_TRAINED, _LEAST_EPOCHS, _MOST_EPOCHS = 30_000, 6, 20
_EVALUATION_BATCH, _INITIALISED = 1024, 2048
Floats = npt.NDArray[np.float64]


def epochs_for(images: int) -> int:
    """Of a training on so many images."""
    return max(_LEAST_EPOCHS, min(_MOST_EPOCHS, round(_TRAINED / max(images, 1))))


def predicted(
    images: LabelledImages,
    folds: npt.NDArray[np.int64],
    seed: int,
    tell: Callable[[int, int], object],
    stop: Event | None = None,
) -> Floats:
    """float64 [N, classes]: probabilities. ``folds``: int64[N]. ``tell``: of epochs done, and of how many in all.

    The same on every machine without a GPU, whatever the number of its cores. Raises KeyboardInterrupt once ``stop``
    is set.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    numbers = np.unique(folds).tolist()
    epochs = epochs_for(len(images) - len(images) // len(numbers))
    result = np.zeros((len(images), images.num_classes))
    told, done = Lock(), 0

    def train(fold: int) -> None:
        nonlocal done
        inside = np.flatnonzero(folds != fold)
        baseline = baseline_of(part := images.take(inside))
        batch = fitting_batch(len(inside))
        recipe = Hyperparameters(epochs=epochs, batch_size=batch, lr=_LR)
        model = Classifier(MODEL, images.num_classes, recipe, device, seed + fold, 3, capture=False, num_threads=1)
        moved, transform = part.to(device), baseline.with_policy(None)
        _initialise(model, part, baseline, seed)
        for epoch in range(epochs):
            if stop is not None and stop.is_set():
                return
            model.train(moved, transform, epoch)
            with told:
                done += 1
                tell(done, epochs * len(numbers))
        outside = np.flatnonzero(folds == fold)
        result[outside] = _probabilities(model, images.take(outside), baseline, device)

    at_once = 1 if device == "cuda" else min(len(numbers), default_threads())
    with _one_thread_each(device), ThreadPoolExecutor(at_once, "variegate-labels") as pool:
        list(pool.map(train, numbers))
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt
    return result


def baseline_of(images: LabelledImages) -> BaselineAugmentation:
    """What is done to images that train: a crop. Mirrored, a digit or a hand may be of another class."""
    return BaselineAugmentation.of(images, max(1, min(images.pixels.shape[1:3]) // 8), flip=False, cutout=0)


def _initialise(classifier: Classifier, images: LabelledImages, baseline: BaselineAugmentation, seed: int) -> None:
    """Of a model whose first weights follow from images: from some that train."""
    some = np.sort(Permutation(len(images), seed, 0)(np.arange(min(len(images), _INITIALISED))))
    batch = Augmenter(baseline.plain, "cpu", layout="NHWC", num_threads=1)(images.take(some).pixels)
    assert isinstance(batch, torch.Tensor)
    cast(Airbench, classifier.model).initialise(in_channels_last(batch).to(classifier.device))


@torch.no_grad()
def _probabilities(
    classifier: Classifier, images: LabelledImages, baseline: BaselineAugmentation, device: str
) -> Floats:
    """NaN, of a training that came to nothing, is as if it knew nothing."""
    classifier.model.eval()
    augment = Augmenter(baseline.plain, device, layout="NHWC", num_threads=1)
    found = []
    for first in range(0, len(images), _EVALUATION_BATCH):
        batch = augment(images.pixels[first : first + _EVALUATION_BATCH].to(device))
        assert isinstance(batch, torch.Tensor)
        found.append(classifier.model(in_channels_last(batch)).double().softmax(1).cpu().numpy())
    probabilities = np.concatenate(found)
    probabilities[~np.isfinite(probabilities).all(axis=1)] = 1 / images.num_classes
    return probabilities


@contextmanager
def _one_thread_each(device: str) -> Iterator[None]:
    """Folds train beside each other; with one thread each, sums come out the same on every machine."""
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
