"""Small races and evaluations of images; in a process of their own, killed at each of their system calls."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.jobs.output.crashing import KILLED, in_a_child, killed_at
from variegate.apps.search.candidates import candidates_of
from variegate.apps.search.compare import compare
from variegate.apps.search.evaluate import Evaluation, EvaluationFiles, Subsets
from variegate.apps.search.image_race import ImageRace
from variegate.apps.search.rounds import RaceRules
from variegate.apps.search.standings import RaceResult
from variegate.apps.search.trainings import Training
from variegate.apps.train.images import BaselineAugmentation, LabelledImages, load_images
from variegate.options.search import Hyperparameters

MODEL = "tests.apps.search.crashing:linear"
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


RUNS = {"race": (run_race, "race.jsonl"), "evaluation": (run_evaluation, "e.jsonl")}


def without_times(place: Path) -> dict[str, Any]:
    """The files, but for the seconds in them."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            timed = ("seconds", "elapsed", "cost", "verdict")
            return {name: plain(one) for name, one in value.items() if name not in timed}
        return [plain(one) for one in value] if isinstance(value, list) else value

    found: dict[str, Any] = {}
    for path in place.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        found[path.name] = [plain(json.loads(line)) for line in lines]
    return found


def main(root: Path, every: int) -> None:
    """``every``: 1 for each system call, 5 for every fifth."""
    torch.set_num_threads(1)
    wrong, kills = list[str](), 0
    for what, (run, journal) in RUNS.items():
        whole = root / f"{what}-whole"
        run(whole)
        total = len((whole / journal).read_text().splitlines()) - 1
        place, step, code = root / what, 0, KILLED
        while code == KILLED:
            step += every
            shutil.rmtree(place, ignore_errors=True)

            def killed(place: Path = place, step: int = step, run: Any = run) -> None:
                killed_at(step)
                run(place)

            code = in_a_child(killed)
            log = place / journal
            lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
            again = run(place)
            trained = again[1] if what == "race" else again
            if len(trained) != total - max(0, len(lines) - 1):
                wrong.append(f"{what} killed at {step}: {len(trained)} trainings after {len(lines)} lines")
            if log.read_bytes().split(b"\n")[: len(lines)] != lines:
                wrong.append(f"{what} killed at {step}: its log has changed")
            if without_times(place) != without_times(whole):
                wrong.append(f"{what} killed at {step}, it ended with {sorted(one.name for one in place.iterdir())}")
            kills += code == KILLED
        if code != 0:
            wrong.append(f"{what}, not killed, ended with {code}")
    print(json.dumps({"kills": kills, "wrong": wrong}))
