"""A search's result beside no augmentation and flip-crop, on images that the search has not seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import torch

from variegate.apps.search.compare import Comparison, Trial, compare, verdicts
from variegate.apps.search.evaluate import FLIP_CROP, NO_AUGMENTATION, Evaluation, Subsets
from variegate.apps.search.run import SCHEDULE_NAME, SearchRun
from variegate.apps.train.images import BaselineAugmentation, LabelledImages
from variegate.formats.base import SourceError
from variegate.io.durable import AppendOnlyFile

COMPARISON_NAME = "comparison.jsonl"


class ResultComparison:
    """Trainings with the schedule in ``folder``, with none and with flip-crop, as many as ``repeats`` each.

    They train on parts of the images that the search used, as large as its own, and ``run.test`` scores them. Each that
    is over is on the disk, and is not trained again. Raises ValueError for a run without such images.
    """

    def __init__(
        self, run: SearchRun, folder: Path, repeats: int, devices: Sequence[str], *, capture: bool = True
    ) -> None:
        if run.test is None:
            raise ValueError("test: got None; accepted: images that the search has not seen")
        self._run, self._folder, self.repeats = run, folder, repeats
        around = {name: getattr(run.baseline, name) for name in ("padding", "flip", "cutout")}
        self.evaluation = Evaluation(
            Subsets(_joined(run.train, run.validation), len(run.train), run.test, run.settings.seed),
            run.model,
            run.recipe,
            partial(BaselineAugmentation.of, **around),
            [NO_AUGMENTATION, FLIP_CROP, str(folder / SCHEDULE_NAME)],
            repeats,
            run.settings.seed,
            devices,
            capture,
        )
        self.policies = self.evaluation.policies

    def run(self, on_trial: Callable[[Trial], None] | None = None, stop: Event | None = None) -> list[Trial]:
        """All trainings, those of an earlier life first; once ``stop`` is set, those that are over.

        Raises SourceError for a damaged file, WriteError, and what a training raises.
        """
        path, tell = self._folder / COMPARISON_NAME, on_trial or (lambda trial: None)
        with self._run.claimed(self._folder):
            done, end = self._read(path)
            for trial in done:
                tell(trial)
            with closing(AppendOnlyFile(path, str(path), end)) as file:

                def record(trial: Trial) -> None:
                    accuracy = trial.accuracy if math.isfinite(trial.accuracy) else None
                    described = {**trial._asdict(), "policy": Path(trial.policy).name, "accuracy": accuracy}
                    file.append(json.dumps(described).encode() + b"\n")
                    tell(trial)

                return self.evaluation.run(record, stop, done)

    def _read(self, path: Path) -> tuple[list[Trial], int]:
        """Those of these repeats that are over, and the end of the last whole line."""
        names = {Path(name).name: name for name in self.policies}
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        try:
            rows = [json.loads(line) for line in lines]
            trials = [
                Trial(names[row["policy"]], row["repeat"], np.nan if row["accuracy"] is None else row["accuracy"],
                      row["seconds"])
                for row in rows
            ]  # fmt: skip
        except (ValueError, LookupError, TypeError) as error:
            raise SourceError(f"{path}: is damaged ({error!r}); delete it to compare again") from error
        return [one for one in trials if one.repeat < self.repeats], sum(len(line) + 1 for line in lines)

    def compare(self, trials: Sequence[Trial]) -> Comparison:
        return compare(trials, self.policies, self.evaluation.subsets.scored)


def outcome(comparison: Comparison, scored: int) -> list[str]:
    """Sentences: the accuracies, the verdict, and what follows from it."""
    rows = ", ".join(f"{one.policy} {one.mean:.2%}" for one in comparison.summaries)
    told = [f"On {scored:,} images that the search has not seen: {rows}.", *verdicts(comparison)]
    found = comparison.differences.get(SCHEDULE_NAME)
    if found is not None and comparison.repeats > 1 and found.shown != "better":
        lost = "The search lost" if found.shown == "worse" else "The search is not shown to have gained anything"
        told.append(f"{lost}: {found.to} needs no search.")
    return told


def _joined(first: LabelledImages, second: LabelledImages) -> LabelledImages:
    pixels, labels = torch.cat([first.pixels, second.pixels]), torch.cat([first.labels, second.labels])
    return LabelledImages(
        pixels, labels, np.concatenate([first.ids, second.ids]), first.classes, (*first.names, *second.names)
    )
