"""Members as trials of Ray Tune, whose Population Based Training takes Variegate's decisions.

Tune's own synchronous mode decides while checkpoints of others are still being written; here all trials are paused
first.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
import torch
from ray import tune
from ray.exceptions import RayActorError
from ray.tune import Stopper
from ray.tune.experiment import Trial
from ray.tune.schedulers import PopulationBasedTraining, TrialScheduler
from ray.tune.search import BasicVariantGenerator

from variegate.apps.search.driver import one_thread_each
from variegate.apps.search.members import PopulationMember
from variegate.apps.search.population import Copy
from variegate.apps.search.run import PopulationRun
from variegate.executors.runners.devices import resolve
from variegate.formats.base import SourceError
from variegate.jobs.ray_workers import how_it_died

if TYPE_CHECKING:
    from variegate.apps.search.tune import TuneDriver

CHECKPOINT = "member.pt"
MISSING = (
    "a member's checkpoint is not to be found on a machine of the cluster; accepted: an output folder on a file system "
    "that all machines share, under the same path"
)


class MemberTrial(tune.Trainable):
    """A member. Its config "member": ``number``, ``policy`` and ``start`` (a checkpoint's folder, or null).

    The policy is read when a step begins, so that no checkpoint brings back an older one; nothing is made before that
    step, so that its errors are errors of the task, and not a process that died.
    """

    def setup(self, config: dict[str, Any], run: PopulationRun | None = None) -> None:
        assert run is not None
        self._run = run
        self._device = resolve("cuda:0") if ray.get_gpu_ids() else "cpu"
        self._new: Callable[[int], PopulationMember] | None = None
        self.reset_config(config)

    def reset_config(self, config: dict[str, Any]) -> bool:
        self._config = config["member"]
        self._member: PopulationMember | None = None
        self._step = 0
        self._loaded: dict[str, Any] | None = None
        return True

    def step(self) -> dict[str, Any]:
        with one_thread_each(*([self._device] if self._run.one_thread else [])):
            member = self._at_start()
            self._step += 1
            score = member.train(tuple(self._config["policy"]), self._step)
        return {"score": score, "step": self._step}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        assert self._member is not None
        torch.save({"step": self._step, **self._member.state_dict()}, Path(checkpoint_dir) / CHECKPOINT)

    def load_checkpoint(self, checkpoint: Any) -> None:
        # Read at once: the folder may be a copy that Tune is about to remove.
        self._loaded = _read(Path(checkpoint))

    def _at_start(self) -> PopulationMember:
        """As it is before this step: from the checkpoint that Tune gave, else the one to start from, else new."""
        if self._new is None:
            # A trial takes one CPU.
            self._new = self._run.on(self._device, num_threads=1)
        if self._member is None:
            self._member = self._new(self._config["number"])
            if self._loaded is None and self._config["start"] is not None:
                self._loaded = _read(Path(self._config["start"]))
        if self._loaded is not None:
            self._step = self._loaded.pop("step")
            self._member.load_state_dict(self._loaded)
            self._loaded = None
        return self._member


def _read(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(folder / CHECKPOINT, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise SourceError(f"{folder}: {MISSING}") from error
    return state


class PopulationScheduler(PopulationBasedTraining):
    """Tells the driver what the trials report, and the trials what the driver decides."""

    def __init__(self, driver: TuneDriver) -> None:
        always: Any = {"time_attr": "training_iteration", "metric": "score", "mode": "max", "perturbation_interval": 1}
        super().__init__(**always, custom_explore_fn=self._explored, log_config=False, synch=True)
        self._driver = driver
        self._copy: Copy | None = None

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        if trial in self._trial_state:  # It failed, and comes again.
            self._trial_state[trial].last_train_time = self._next_perturbation_sync - 1
            return
        super().on_trial_add(tune_controller, trial)
        # Tune ends the process of a trial that pauses while no other waits for one. With room for all it keeps them,
        # and nothing has to be loaded anew in each step.
        _inner(tune_controller)._actor_cache.increase_max(trial.placement_group_factory)

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        with self._driver.failing():
            self._save_trial_state(self._trial_state[trial], result["training_iteration"], result, trial)
            self._driver.score(_number(trial), result["step"], result["score"])
            if not self._driver.is_last_step:
                return str(TrialScheduler.PAUSE)
            if self._driver.is_scored:
                self._driver.advance()
        return str(TrialScheduler.STOP)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        # Where a process dies while it becomes another trial's, Tune would wait for that to happen for ever.
        _inner(tune_controller)._resetting_trials.discard(trial)
        with self._driver.failing():
            error = _error_of(trial)
            if not isinstance(error, RayActorError):
                raise explained(error, self._driver.place)
            self._driver.lose(_number(trial), how_it_died(error))

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        trials = sorted(tune_controller.get_trials(), key=_number)
        is_complete = self._driver.is_scored and len(trials) == self._driver.population.settings.size
        if is_complete and all(trial.status == Trial.PAUSED for trial in trials):
            with self._driver.failing():
                self._turn(tune_controller, trials)
        if self._driver.is_over:
            return None
        for trial in trials:
            if trial.status == Trial.ERROR:
                # Tune counts the death of a process that waited for its next trial twice, and gives that trial up.
                tune_controller._set_trial_status(trial, Trial.PENDING)
        waiting = [t for t in trials if self._trial_state[t].last_train_time < self._next_perturbation_sync]
        # Paused before pending: those already wait for a process.
        return next((t for status in (Trial.PAUSED, Trial.PENDING) for t in waiting if t.status == status), None)

    def _turn(self, tune_controller: Any, trials: list[Trial]) -> None:
        """From one step to the next."""
        for trial in trials:
            self._trial_state[trial].last_checkpoint = trial.checkpoint
        step = self._driver.advance([Path(trial.checkpoint.path) for trial in trials])
        for copy in step.copies:
            self._copy = copy
            self._exploit(tune_controller, trials[copy.target], trials[copy.donor])
        self._next_perturbation_sync += 1

    def _explored(self, config: dict[str, Any]) -> dict[str, Any]:
        """The donor's config -> the target's."""
        assert self._copy is not None
        member = {"number": self._copy.target, "policy": list(self._copy.policy), "start": None}
        return {**config, "member": member}


class PopulationSearcher(BasicVariantGenerator):
    """Hands out the trials and stays until the driver is over: without a searcher Tune keeps no idle process."""

    def __init__(self, driver: TuneDriver) -> None:
        super().__init__()
        self._driver = driver

    def is_finished(self) -> bool:
        return bool(super().is_finished()) and self._driver.is_over


class PopulationStopper(Stopper):
    def __init__(self, driver: TuneDriver) -> None:
        self._driver = driver

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._driver.is_over


def _number(trial: Trial) -> int:
    return int(trial.config["member"]["number"])


def _inner(tune_controller: Any) -> Any:
    """Schedulers are given a wrapper at some times, and what is wrapped at others."""
    return getattr(tune_controller, "_tune_controller", tune_controller)


def _error_of(trial: Trial) -> BaseException:
    """The last error of the trial; Tune hands it over in a file only."""
    path = trial.pickled_error_file
    error = pickle.loads(Path(path).read_bytes()) if path and Path(path).exists() else None
    return error if isinstance(error, BaseException) else RuntimeError(f"{trial} failed")


def explained(error: BaseException, place: Path) -> BaseException:
    """The error that a member raised; where Tune found no checkpoint, in words for those who know no Tune."""
    cause = getattr(error, "cause", None) or error
    if "does not exist on storage" in str(cause) or "Unable to set up cluster storage" in str(cause):
        return SourceError(f"{place}: {MISSING}")
    return cause
