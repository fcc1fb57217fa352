"""What the driver of a search over a cluster keeps. It knows nothing of Ray: scores and places of checkpoints come in,
decisions go out, and every step is on the disk before the next begins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from variegate.outside.durable import write_atomically
from variegate.search.checkpoint import CheckpointError, resume_from
from variegate.search.history import best_score
from variegate.search.local import Progress
from variegate.search.log import PopulationLog
from variegate.search.population import Step
from variegate.search.run import CHECKPOINT_NAMES, LOG_NAME, SearchRun

FORMAT = "variegate-ray-search/1"
STATE_NAME = "state.json"
# How often a member may lose its process within a step. What kills it more often would kill it again.
RETRIES = 3


class SearchDriver:
    """A search on its way, from the last whole step that ``folder`` has. Usable as a context manager.

    ``starts``: the folders of the checkpoints that the members go on from; none at the beginning.
    """

    def __init__(self, run: SearchRun, folder: Path, tell: Callable[[Progress], None], stop: Event | None) -> None:
        self._run = run
        self.starts: list[Path | None] = [None] * run.settings.size
        self.place = folder / CHECKPOINT_NAMES["ray"]
        self.population, self.best = resume_from(folder, run, f"{self.place.name}/{STATE_NAME}", self._load)
        self.failure: BaseException | None = None
        self._tell, self._stop = tell, stop
        self._scores: dict[int, float] = {}
        self._losses: dict[int, int] = {}
        # Tune writes under a name of its own for each driver: what a killed one left behind is in nobody's way.
        taken = [int(path.name.partition("-")[2]) for path in self.place.glob("run-*")]
        self.name = f"run-{max(taken, default=0) + 1}"
        self._log = PopulationLog(folder / LOG_NAME, run.settings, self.population.step)

    def __getstate__(self) -> dict[str, Any]:
        """Tune pickles all that it is given, for a way to go on that is not ours: nothing of this."""
        return {}

    def __enter__(self) -> SearchDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to train: all is done, or this is to stop."""
        is_stopped = self._stop is not None and self._stop.is_set()
        return self.population.is_done or is_stopped or self.failure is not None

    @property
    def is_last_step(self) -> bool:
        return self.population.step + 1 == self.population.settings.steps

    @property
    def is_scored(self) -> bool:
        """Whether all members have a score for this step."""
        return len(self._scores) == self.population.settings.size

    @contextmanager
    def failing(self) -> Iterator[None]:
        """What is raised ends the search: the driver raises it when Tune has let go of the cluster."""
        try:
            yield
        except BaseException as error:
            self.failure = self.failure or error

    def score(self, member: int, step: int, score: float) -> None:
        """``step``: as the member counts, to be sure that it went on from the right checkpoint."""
        if step != self.population.step + 1:
            raise RuntimeError(f"member {member} has trained step {step}, not {self.population.step + 1}")
        self._scores[member] = score
        self._tell(Progress(self.population.step, self.population.settings.steps, len(self._scores), self.best))

    def lose(self, member: int, reason: str) -> None:
        """A process died; the member trains this step again. Raises RuntimeError where that happens too often."""
        self._scores.pop(member, None)
        self._losses[member] = self._losses.get(member, 0) + 1
        if self._losses[member] > RETRIES:
            raise RuntimeError(
                f"member {member}: its process died {RETRIES + 1} times in step {self.population.step + 1}: {reason}"
            )

    def advance(self, checkpoints: Sequence[Path]) -> Step:
        """All are scored, and each has its checkpoint (folders; none are needed after the last step) -> what follows.

        Raises LostPopulationError.
        """
        scores = [self._scores[member] for member in range(self.population.settings.size)]
        step = self.population.advance(scores)
        self._log.append(step.rows)
        self.best = best_score(step.rows)
        self._scores, self._losses = {}, {}
        if not self.population.is_done:
            donors = {copy.target: copy.donor for copy in step.copies}
            self._save([checkpoints[donors.get(member, member)] for member in range(len(scores))])
        steps = self.population.settings.steps
        self._tell(Progress(self.population.step, steps, len(scores), self.best, step.rows, step.is_flat))
        return step

    def _save(self, starts: list[Path]) -> None:
        state = {
            "format": FORMAT,
            "run": self._run.describe(),
            "step": self.population.step,
            # So that the folder may be moved.
            "checkpoints": [path.relative_to(self.place.resolve()).as_posix() for path in starts],
        }
        write_atomically(self.place / STATE_NAME, (json.dumps(state) + "\n").encode(), durable=True)
        needed = set(starts)
        for path in self.place.resolve().glob("run-*/*/checkpoint_*"):
            if path not in needed:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.place.glob("run-*"):
            if path.name != self.name:
                shutil.rmtree(path, ignore_errors=True)

    def _load(self) -> int:
        """Which step can be gone on from; 0 where the first is not over. Raises CheckpointError."""
        path = self.place / STATE_NAME
        if not path.exists():
            return 0
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if (state["format"], state["run"]) != (FORMAT, self._run.describe()):
                raise ValueError("of another search")
            step, starts = int(state["step"]), [self.place.resolve() / name for name in state["checkpoints"]]
            if len(starts) != len(self.starts):
                raise ValueError(f"{len(starts)} checkpoints for {len(self.starts)} members")
        except (ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{path}: is damaged, or no state of this search ({error})") from error
        missing = [start for start in starts if not start.is_dir()]
        if missing:
            raise CheckpointError(f"{missing[0]}: is gone, and the search cannot go on without this checkpoint")
        self.starts = list(starts)
        return step
