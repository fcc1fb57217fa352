"""How far a search has come: the log tells what was decided, the checkpoint holds the weights at the end of a step.

The log is written first, so that it may be a step ahead of the checkpoint, and is then cut back to it; it is never
behind. Once the log is whole, the search is over, and the weights no longer matter.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from variegate.outside.durable import write_atomically
from variegate.search.history import History, best_score
from variegate.search.log import LogError, read_log
from variegate.search.population import Population
from variegate.search.run import CHECKPOINT_NAMES, LOG_NAME, SearchRun
from variegate.training.classifier import Classifier

CHECKPOINT_NAME = CHECKPOINT_NAMES["local"]


class CheckpointError(ValueError):
    """A checkpoint that this search cannot go on from; the line says which, why, and what to do."""


def save(folder: Path, run: SearchRun, step: int, members: Sequence[Classifier]) -> None:
    """It lasts when this returns; until then the one before does. Raises WriteError."""
    buffer = io.BytesIO()
    states = [member.state_dict() for member in members]
    torch.save({"run": run.describe(), "step": step, "members": states}, buffer)
    write_atomically(folder / CHECKPOINT_NAME, buffer.getvalue(), durable=True)


def resume(folder: Path, run: SearchRun, members: Sequence[Classifier]) -> tuple[Population, float]:
    """As ``resume_from``; the members get their weights."""
    return resume_from(folder, run, CHECKPOINT_NAME, lambda: _load(folder / CHECKPOINT_NAME, run, members))


def resume_from(folder: Path, run: SearchRun, name: str, load: Callable[[], int]) -> tuple[Population, float]:
    """-> the population after the last step that can be gone on from, and the best accuracy of that (NaN before the
    first).

    ``load``: reads the checkpoint ``name``, and says of which step it is; 0 where there is none.

    Raises CheckpointError and LogError for files that are damaged, or of another search; OSError.
    """
    try:
        history = _history(folder / LOG_NAME, run)
        step = run.settings.steps if len(history.steps) == run.settings.steps else load()
        if step == 0 and len(history.steps) > 1:
            raise CheckpointError(f"{folder / name}: is missing, but {LOG_NAME} has {len(history.steps)} steps")
        if step > len(history.steps):
            raise LogError(f"{folder / LOG_NAME}: has {len(history.steps)} steps, but {name} is of step {step}")
        population = replay(history, step, folder / LOG_NAME)
    except (CheckpointError, LogError) as error:
        raise type(error)(f"{error}; restore the file, or remove {folder} to begin anew") from error
    return population, best_score(history.steps[step - 1] if step else ())


def replay(history: History, steps: int, path: Path) -> Population:
    """The population after so many steps. Raises LogError where its scores lead to other policies than the log has."""
    population = Population(history.settings)
    for number, logged in enumerate(history.steps[:steps], start=1):
        try:
            rows = population.advance([row.score for row in logged]).rows
        except RuntimeError:  # no member has a score
            rows = ()
        # As JSON: NaN is not equal to itself.
        if [row.to_dict() for row in rows] != [row.to_dict() for row in logged]:
            raise LogError(f"{path}: step {number} does not follow from the steps before it and its scores")
    return population


def remove(folder: Path) -> None:
    """When the search is over."""
    (folder / CHECKPOINT_NAME).unlink(missing_ok=True)


def _history(path: Path, run: SearchRun) -> History:
    # A run that was killed while it wrote the first line has logged nothing.
    if not path.exists() or b"\n" not in path.read_bytes():
        return History(run.settings, ())
    history = read_log(path)
    if history.settings != run.settings:
        raise LogError(f"{path}: is the log of a search with other settings")
    return history


def _load(path: Path, run: SearchRun, members: Sequence[Classifier]) -> int:
    """-> the step; 0 without a checkpoint: the search has not come to the end of its first step."""
    if not path.exists():
        return 0
    with open(path, "rb") as file:
        try:
            # Its files' checksums, which torch writes and does not read.
            if (damaged := zipfile.ZipFile(file).testzip()) is not None:
                raise ValueError(f"the checksum of {damaged} is another")
            file.seek(0)
            saved: Any = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # of a damaged file: any
            raise CheckpointError(f"{path}: is damaged, or no checkpoint ({_first_line(error)})") from error
    try:
        is_ours = saved["run"] == run.describe() and len(saved["members"]) == len(members)
        step = saved["step"]
    except (TypeError, LookupError) as error:
        raise CheckpointError(f"{path}: is no checkpoint of a search") from error
    if not is_ours or not isinstance(step, int) or not 0 < step < run.settings.steps:
        raise CheckpointError(f"{path}: is the checkpoint of another search")
    try:
        for member, state in zip(members, saved["members"], strict=True):
            member.load_state_dict(state)
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise CheckpointError(f"{path}: its weights are not those of {run.model} ({_first_line(error)})") from error
    return step


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(":. ") if lines else type(error).__name__
