"""The search over a cluster: members are trials of Ray Tune. Importing this does not need Ray."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from variegate.apps.search.driver import CheckpointError, PopulationSearch, SearchDriver, Tell
from variegate.apps.search.history import History
from variegate.apps.search.population import Step
from variegate.apps.search.run import CHECKPOINT_NAMES, PopulationRun
from variegate.io.addresses import shown_host
from variegate.io.durable import write_atomically
from variegate.jobs.ray_workers import INSTALL, connect

__all__ = ["TuneSearch"]

WANTED = "backend='ray'"
# Read by Tune while it runs: no tables, no loggers' files, signals are the caller's, errors are raised and not printed,
# and processes stay in their folder.
_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}
# Where each exploit is told, where the state for a ``Tuner.restore`` is, and that there are no loggers' files.
_CHATTY = ("ray.tune.schedulers.pbt", "ray.tune.tune", "ray.tune.analysis.experiment_analysis")


class TuneSearch(PopulationSearch):
    """As ``LocalSearch``, but each member is a trial of Ray Tune, wherever the cluster has room for it.

    On CPUs both come to the same files, byte for byte, however many trials run at a time.

    Args:
        run: what is searched.
        folder: of the results. The members' checkpoints go there too, so that all machines of a cluster need it, on a
            file system that they share and under the same path.
        address: of a cluster ("auto", "HOST:PORT"). Without one the cluster that this process is connected to already,
            or that was started on this machine; else a new one that ends with the search.
        gpus_per_member: a part of a GPU, for so many members that take turns on it, or 1; 0 trains on CPUs. Default: 1
            where the cluster has GPUs. A member takes one CPU besides.

    Raises ValueError for arguments that are not accepted, ImportError without Ray. A member whose process or machine
    dies trains its step again. What ``run`` raises besides: SourceError for a folder that a machine of the cluster
    cannot reach, ValueError for GPUs that the cluster does not have, ConnectionError where no cluster answers,
    RuntimeError where a member's process dies again and again, and what a member raises.
    """

    backend = "ray"

    def __init__(
        self,
        run: PopulationRun,
        folder: Path,
        address: str | None = None,
        gpus_per_member: float | None = None,
    ) -> None:
        if gpus_per_member is not None and not 0 <= gpus_per_member <= 1:
            raise ValueError(f"gpus_per_member: got {gpus_per_member!r}; accepted: 0 to 1")
        if address is not None and address.startswith("ray://"):
            raise ValueError(
                f"address: got {shown_host(address)!r}, which Tune's scheduler cannot work over; accepted: HOST:PORT "
                "or 'auto', on a machine of the cluster ('ray job submit' runs a command on one)"
            )
        _tune()
        # Refused here, and not on a machine far away.
        run.check_sent()
        super().__init__(run, folder)
        self.address, self.gpus_per_member = address, gpus_per_member

    def _train(self, tell: Tell, stop: Event | None) -> bool:
        with closing(TuneDriver(self.run_settings, self.folder, tell, stop)) as driver:
            if not driver.is_over:
                with connected(self.address), _quiet():
                    self._fit(driver)
            if driver.failure is not None:
                raise driver.failure
            return driver.population.is_done

    def _fit(self, driver: TuneDriver) -> None:
        from variegate.apps.search.tune.trials import (
            MemberTrial,
            PopulationScheduler,
            PopulationSearcher,
            PopulationStopper,
        )

        tune = _tune()
        needs = {"cpu": 1, "gpu": self._gpus()}
        members = [
            {"number": number, "policy": list(policy), "start": None if start is None else str(start)}
            for number, (policy, start) in enumerate(zip(driver.population.policies, driver.starts, strict=True))
        ]
        tuner = tune.Tuner(
            tune.with_resources(tune.with_parameters(MemberTrial, run=self.run_settings), needs),
            param_space={"member": tune.grid_search(members)},
            tune_config=tune.TuneConfig(
                scheduler=PopulationScheduler(driver),
                search_alg=PopulationSearcher(driver),
                reuse_actors=True,
                trial_name_creator=_name_of,
                trial_dirname_creator=_name_of,
            ),
            run_config=tune.RunConfig(
                name=driver.name,
                storage_path=str(driver.place.resolve()),
                stop=PopulationStopper(driver),
                # The driver decides how often is too often.
                failure_config=tune.FailureConfig(max_failures=-1),
                verbose=0,
            ),
        )
        tuner.fit()

    def _gpus(self) -> float:
        """For each member. Tune would wait for ever for what the cluster does not have."""
        import ray

        there = ray.cluster_resources()
        wanted = float(there.get("GPU", 0) >= 1) if self.gpus_per_member is None else self.gpus_per_member
        if wanted > there.get("GPU", 0):
            raise ValueError(
                f"gpus_per_member: got {wanted}, and the cluster has {there.get('GPU', 0):g} GPUs; accepted: no more "
                "than it has"
            )
        if there.get("CPU", 0) < 1:
            raise ValueError("address: the cluster has no CPU; accepted: one or more, as a member takes one")
        return wanted


def _name_of(trial: Any) -> str:
    return f"member-{trial.config['member']['number']}"


def _tune() -> Any:
    """The module, or an ImportError that says what to install."""
    try:
        from ray import tune
    except ImportError as error:
        raise ImportError(f"{WANTED} needs Ray Tune: {INSTALL}") from error
    return tune


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """To a cluster, and no longer afterwards, unless we were before."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(f"{WANTED} needs Ray: {INSTALL}") from error
    is_ours = not ray.is_initialized()
    connect(address, WANTED)
    try:
        yield
    finally:
        if is_ours:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Tune without its files, advice and signal handlers; the environment is as before afterwards."""
    before = {name: os.environ.pop(name) for name in _ENVIRONMENT if name in os.environ}
    has_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGUSR1")
    handler = signal.getsignal(signal.SIGUSR1) if has_signal else None
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in _CHATTY}
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for logger, level in loggers.items():
            logger.setLevel(level)
        for name in _ENVIRONMENT:
            os.environ.pop(name, None)
        os.environ.update(before)
        if has_signal:
            signal.signal(signal.SIGUSR1, handler)


FORMAT = "variegate-ray-search/1"
STATE_NAME = "state.json"
# How often a member may lose its process within a step. What kills it more often would kill it again.
RETRIES = 3


class TuneDriver(SearchDriver):
    """``starts``: the folders of the checkpoints that the members go on from; none at the beginning."""

    def __init__(self, run: PopulationRun, folder: Path, tell: Tell, stop: Event | None) -> None:
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
        self.scores.pop(member, None)
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

    def _load_state(self, history: History) -> int:
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
            raise CheckpointError(f"{missing[0]}: is missing; the search cannot resume without this checkpoint")
        self.starts = list(starts)
        return step
