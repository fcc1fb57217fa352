"""Driver of a search over a cluster, without Ray: scores and checkpoints' places in, decisions out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from variegate.apps.search.driver import CheckpointError, SearchDriver, Tell
from variegate.apps.search.population import Step
from variegate.apps.search.run import CHECKPOINT_NAMES, SearchRun
from variegate.io.durable import write_atomically

FORMAT = "variegate-ray-search/1"
STATE_NAME = "state.json"
# How often a member may lose its process within a step. What kills it more often would kill it again.
RETRIES = 3


class TuneDriver(SearchDriver):
    """``starts``: the folders of the checkpoints that the members go on from; none at the beginning."""

    def __init__(self, run: SearchRun, folder: Path, tell: Tell, stop: Event | None) -> None:
        self._run, self._stop = run, stop
        self.starts: list[Path | None] = [None] * run.settings.size
        self.place = folder / CHECKPOINT_NAMES["ray"]
        self._state_path = self.place / STATE_NAME
        super().__init__(run, folder, self._state_path, self._load_state, self._save_state, tell)
        self.failure: BaseException | None = None
        self._losses: dict[int, int] = {}
        # Tune writes under a name of its own for each driver: what a killed one left behind is in nobody's way.
        taken = [int(path.name.partition("-")[2]) for path in self.place.glob("run-*")]
        self.name = f"run-{max(taken, default=0) + 1}"

    def __getstate__(self) -> dict[str, Any]:
        """Tune pickles all that it is given, for a way to go on that is not ours: nothing of this."""
        return {}

    @property
    def is_over(self) -> bool:
        """True where there is nothing more to train: all is done, or this is to stop."""
        is_stopped = self._stop is not None and self._stop.is_set()
        return self.population.is_done or is_stopped or self.failure is not None

    @property
    def is_last_step(self) -> bool:
        return self.population.step + 1 == self.population.settings.steps

    @contextmanager
    def failing(self) -> Iterator[None]:
        """An error within ends the search: the driver raises it when Tune has let go of the cluster."""
        try:
            yield
        except BaseException as error:
            self.failure = self.failure or error

    def lose(self, member: int, reason: str) -> None:
        """A process died; the member trains this step again. Raises RuntimeError where that happens too often."""
        self._scores.pop(member, None)
        self._losses[member] = self._losses.get(member, 0) + 1
        if self._losses[member] > RETRIES:
            raise RuntimeError(
                f"member {member}: its process died {RETRIES + 1} times in step {self.population.step + 1}: {reason}"
            )

    def advance(self, checkpoints: Sequence[Path] = ()) -> Step:
        """Decide once all are scored. ``checkpoints``: folders, none after the last step. Raises
        LostPopulationError."""
        self._checkpoints, self._losses = checkpoints, {}
        return self.end_step()

    def _save_state(self, step: Step) -> None:
        donors = {copy.target: copy.donor for copy in step.copies}
        starts = [self._checkpoints[donors.get(row.member, row.member)] for row in step.rows]
        state = {
            "format": FORMAT,
            "run": self._run.describe(),
            "step": self.population.step,
            # So that the folder may be moved.
            "checkpoints": [path.relative_to(self.place.resolve()).as_posix() for path in starts],
        }
        write_atomically(self._state_path, (json.dumps(state) + "\n").encode(), durable=True)
        needed = {*starts, self.place / self.name}
        for path in (*self.place.resolve().glob("run-*/*/checkpoint_*"), *self.place.glob("run-*")):
            if path not in needed:
                shutil.rmtree(path, ignore_errors=True)

    def _load_state(self) -> int:
        if not self._state_path.exists():
            return 0
        try:
            state = json.loads(self._state_path.read_text(encoding="utf-8"))
            if (state["format"], state["run"]) != (FORMAT, self._run.describe()):
                raise ValueError("of another search")
            step, starts = int(state["step"]), [self.place.resolve() / name for name in state["checkpoints"]]
            if len(starts) != len(self.starts):
                raise ValueError(f"{len(starts)} checkpoints for {len(self.starts)} members")
        except (ValueError, LookupError, TypeError) as error:
            raise CheckpointError(f"{self._state_path}: is damaged, or no state of this search ({error})") from error
        missing = [start for start in starts if not start.is_dir()]
        if missing:
            raise CheckpointError(f"{missing[0]}: is gone, and the search cannot go on without this checkpoint")
        self.starts = list(starts)
        return step
