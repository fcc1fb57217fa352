"""Small races and evaluations of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from variegate.learn.candidates import candidates_of
from variegate.learn.events import Training
from variegate.learn.image_race import Evaluated, ImageRace, Subsets, TrainingPlan
from variegate.learn.images import BaselineAugmentation, LabelledImages, load_images
from variegate.learn.rounds import RaceFiles, RaceRules
from variegate.learn.standings import RaceResult
from variegate.options.fit import FitOptions

MODEL = "tests.learn.search.crashing:linear"
POLICIES = ("none", "flip+crop", "randaugment-1-5+flip+crop")


def stripes(number: int = 60) -> LabelledImages:
    """Of two classes, which a mirrored or shifted image belongs to as well."""
    rng = np.random.default_rng(0)
    labels = np.arange(number) % 2
    pixels = rng.integers(60, 120, (number, 8, 8, 3)).astype(np.uint8)
    pixels[labels == 0, ::2] += 20
    return load_images((pixels, labels.tolist()), device="cpu")


def plan(**settings: Any) -> TrainingPlan:
    baseline = partial(BaselineAugmentation.of, padding=1, flip=True, cutout=4)
    options: dict[str, Any] = {"model": MODEL, "lr": 0.01, "epochs": 1, "devices": ["cpu"]} | settings
    subsets = options.pop("subsets", None) or Subsets(stripes(), 40)
    recipe = FitOptions(epochs=options.pop("epochs"), batch_size=20, lr=options.pop("lr"))
    return TrainingPlan(subsets, options.pop("model"), recipe, baseline, **options)


def image_race(*policies: Any, rounds: int = 2, **settings: Any) -> ImageRace:
    rules = RaceRules(rounds, settings.pop("budget", None), margin=settings.pop("margin", 0.01))
    return ImageRace(plan(**settings), candidates_of(policies or POLICIES), rules)


def evaluation(*policies: str, repeats: int = 2, **settings: Any) -> ImageRace:
    return ImageRace(plan(**settings), candidates_of(policies), RaceRules(repeats, drops=False))


def trainings_of(race: ImageRace, stop: Event | None = None, stop_after: int = 0) -> list[Training]:
    """The trainings of an evaluation without files."""
    return list(evaluated(race, stop, stop_after).trainings)


def evaluated(race: ImageRace, stop: Event | None = None, stop_after: int = 0, files: Any = None) -> Evaluated:
    seen: list[Training] = []
    stop = stop or Event()

    def note(event: Any) -> None:
        seen.extend([event] if isinstance(event, Training) else [])
        if len(seen) == stop_after:
            stop.set()

    return race.evaluate(files, note, stop)


def run_race(place: Path, **settings: Any) -> tuple[RaceResult, list[Training]]:
    """-> the result, and the trainings of this life."""
    events: list[Any] = []
    result = image_race(**settings).run(place, events.append)
    return result, [one for one in events if isinstance(one, Training)]


def run_evaluation(place: Path, **settings: Any) -> list[Training]:
    """-> the trainings of this life."""
    events: list[Any] = []
    files = RaceFiles.beside(place / "e.png")
    place.mkdir(parents=True, exist_ok=True)
    evaluation("none", "flip", **settings).evaluate(files, events.append).write(files)
    return [one for one in events if isinstance(one, Training)]
