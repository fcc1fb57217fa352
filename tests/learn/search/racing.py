"""Small races and evaluations of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from variegate.learn.candidates import candidates_of
from variegate.learn.compare import compare
from variegate.learn.evaluate import Evaluation, EvaluationFiles, Subsets
from variegate.learn.image_race import ImageRace
from variegate.learn.images import BaselineAugmentation, LabelledImages, load_images
from variegate.learn.rounds import RaceRules
from variegate.learn.standings import RaceResult
from variegate.learn.trainings import Training
from variegate.options.search import Hyperparameters

MODEL = "tests.learn.search.crashing:linear"
POLICIES = ("none", "flip+crop", "randaugment-1-5+flip+crop")


def stripes(number: int = 60) -> LabelledImages:
    """Of two classes, which a mirrored or shifted image belongs to as well."""
    rng = np.random.default_rng(0)
    labels = np.arange(number) % 2
    pixels = rng.integers(60, 120, (number, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 20
    return load_images((pixels, labels.tolist()), device="cpu")


def evaluation(*policies: str, **settings: Any) -> Evaluation:
    baseline = partial(BaselineAugmentation.of, padding=1, flip=True, cutout=4)
    options: dict[str, Any] = {"repeats": 2, "devices": ["cpu"]} | settings
    subsets = options.pop("subsets", None) or Subsets(stripes(), 40)
    recipe = Hyperparameters(options.pop("epochs", 1), batch_size=20, lr=0.01)
    return Evaluation(subsets, MODEL, recipe, baseline, policies, **options)


def image_race(*policies: Any, rounds: int = 2, **settings: Any) -> ImageRace:
    rules = RaceRules(rounds, settings.pop("budget", None), margin=settings.pop("margin", 0.01))
    plan = evaluation("none", **settings)
    return ImageRace(plan, candidates_of(policies or POLICIES), rules)


def run_race(place: Path, **settings: Any) -> tuple[RaceResult, list[Training]]:
    """-> the result, and the trainings of this life."""
    new: list[Training] = []
    return image_race(**settings).run(place, new.append), new


def run_evaluation(place: Path, **settings: Any) -> list[Training]:
    """-> the trainings of this life."""
    new: list[Training] = []
    made, files = evaluation("none", "flip", **settings), EvaluationFiles(place / "e.png")
    place.mkdir(parents=True, exist_ok=True)
    with files.open(made) as journal:
        done = made.run(new.append, None, journal)
    files.write(compare(done, made.policies, made.subsets.scored), made, done)
    return new
