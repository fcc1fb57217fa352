"""A search's result beside no augmentation and flip-crop, on images that the search has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from variegate.apps.search.candidates import FLIP_CROP, NO_AUGMENTATION
from variegate.apps.search.compare import Comparison, compare, verdicts
from variegate.apps.search.evaluate import Evaluation, EvaluationFiles, Subsets
from variegate.apps.search.run import SCHEDULE_NAME, SearchRun
from variegate.apps.search.trainings import Training, TrainingJournal
from variegate.apps.train.images import BaselineAugmentation, LabelledImages


def compare_result(
    run: SearchRun,
    folder: Path,
    repeats: int,
    devices: Sequence[str],
    capture: bool,
    train: Callable[[Evaluation, TrainingJournal], list[Training]],
) -> list[str] | None:
    """Train with the schedule in ``folder``, with none and with flip-crop -> the outcome in sentences, also written.

    They train on parts of the images that the search used, as large as its own, and ``run.test`` scores them.
    ``train`` is given what the log does not have yet. Nothing without repeats or such images, None if it was
    interrupted. Raises SourceError for a damaged log, WriteError, and what training raises.
    """
    if not repeats or run.test is None:
        return []
    around = {name: getattr(run.baseline, name) for name in ("padding", "flip", "cutout")}
    evaluation = Evaluation(
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
    files = EvaluationFiles(folder / "comparison.png")
    with files.open(evaluation) as log:
        done = train(evaluation, log)
    if len(done) < len(evaluation.policies) * repeats:
        return None
    comparison = compare(done, evaluation.policies, evaluation.subsets.scored)
    files.write(comparison, evaluation, done)
    return outcome(comparison, evaluation.subsets.scored)


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
