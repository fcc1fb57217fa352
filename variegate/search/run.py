"""What a search runs with, and where its results go: the same for every back end."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from variegate.data.sources.base import SourceError
from variegate.policies.schedule import Schedule
from variegate.search.ancestry import schedule_of
from variegate.search.history import History
from variegate.search.settings import Settings
from variegate.sinks.atomic import write_atomically
from variegate.training.around import Around
from variegate.training.images import LabelledImages
from variegate.training.recipe import Recipe

SETTINGS_NAME, LOG_NAME, SCHEDULE_NAME = "search.json", "population.jsonl", "schedule.json"
# What a search that is not finished goes on from, by back end.
CHECKPOINT_NAMES = {"local": "checkpoint.pt", "ray": "ray"}


@dataclass(frozen=True)
class SearchRun:
    """A population of ``model``s, trained by ``recipe`` on ``train`` and scored by their accuracy on ``validation``.

    ``place`` and ``fingerprint`` tell whose images these are.
    """

    settings: Settings
    recipe: Recipe
    model: str
    around: Around
    train: LabelledImages
    validation: LabelledImages
    place: str = ""
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if self.recipe.epochs != self.settings.epochs:
            raise ValueError(f"epochs: got {self.recipe.epochs} and {self.settings.epochs}; accepted: the same")

    def describe(self) -> dict[str, Any]:
        """All that decides what is found, as JSON."""
        return {
            "source": self.place,
            "fingerprint": self.fingerprint,
            "train": len(self.train),
            "validation": len(self.validation),
            "model": self.model,
            "recipe": asdict(self.recipe),
            "around": self.around.to_dict(),
            "population": self.settings.to_dict(),
        }

    def claim(self, folder: Path, backend: str = "local") -> None:
        """Make the folder this run's. Raises SourceError where it is another's, or another back end's."""
        path = folder / SETTINGS_NAME
        mine = json.loads(json.dumps(self.describe()))
        if path.exists():
            theirs = json.loads(path.read_text(encoding="utf-8"))
            for name in mine:
                if theirs.get(name) != mine[name]:
                    raise SourceError(
                        f"{folder}: holds a search with {name} {_short(theirs.get(name))}, this one has "
                        f"{_short(mine[name])}; choose another folder"
                    )
            for other, name in CHECKPOINT_NAMES.items():
                if other != backend and (folder / name).exists():
                    raise SourceError(
                        f"{folder}: holds a search with the back end {other!r} that is not finished; go on with that, "
                        "or choose another folder"
                    )
        elif folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise SourceError(f"{folder}: holds files of something else; choose an empty folder or a new name")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, (json.dumps(mine, indent=2) + "\n").encode())

    def finish(self, folder: Path, history: History) -> Schedule:
        """Write the schedule that the best member lived through."""
        row = history.steps[-1][history.best]
        source = (
            f"variegate search, {Path(self.place).name or 'images'}: {self.settings.size} members, {self.model}, "
            f"{len(self.train):,} images, validation accuracy {row.score:.4f}"
        )
        schedule = schedule_of(history, source=source)
        write_atomically(folder / SCHEDULE_NAME, (json.dumps(schedule.to_dict(), indent=1) + "\n").encode())
        return schedule


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "..."
