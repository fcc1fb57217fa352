"""The search over a cluster, by Ray Tune's Population Based Training. Importing this does not need Ray."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import torch

from variegate.events import OnEvent
from variegate.executors.runners.devices import resolve
from variegate.io.addresses import redact_host
from variegate.learn.driver import PopulationSearch
from variegate.learn.events import SearchProgress
from variegate.learn.fit import one_thread_each
from variegate.learn.history import PopulationLog, Row, Settings, best_score
from variegate.learn.policy import SearchSpace
from variegate.learn.population import LostPopulationError, explore
from variegate.learn.run import LOG_NAME, PopulationRun
from variegate.workers.ray_actors import INSTALL, connect

__all__ = ["TuneSearch"]

WANTED = "backend='ray'"
CHECKPOINT = "member.pt"
EXPERIMENT = "members"
ROWS_NAME = "rows.jsonl"
# Number of restarts by Tune of a member whose process died or raised.
RETRIES = 3
# Read by Tune: no loggers' files, signals are the caller's, and processes stay in their folder.
_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    # Seconds between snapshots, from which a search resumes.
    "TUNE_GLOBAL_CHECKPOINT_S": "1",
}


class TuneSearch(PopulationSearch):
    """A search whose members are trials of Ray Tune, wherever the cluster has room for them.

    Tune's ``PopulationBasedTraining`` decides who copies whom, in its synchronous mode; ``explore`` changes the policy
    of a copy. Tune draws from Python's global ``random``: two searches differ.

    Args:
        run: the search to execute.
        folder: of the results and the members' checkpoints, on a file system that all machines share.
        address: of a cluster ("auto", "HOST:PORT"). By default the cluster of this process or machine, or a new one
            that ends with the search.
        gpus_per_member: share of a GPU, or 1; 0 trains on CPUs. Default: 1 if the cluster has GPUs. A member takes one
            CPU besides.

    Raises ValueError for arguments that are not accepted, ImportError without Ray. ``run`` also raises ValueError for
    GPUs that the cluster does not have, ConnectionError if no cluster answers, and errors of members.
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
                f"address: got {redact_host(address)!r}, which Tune's scheduler cannot work over; accepted: HOST:PORT "
                "or 'auto', on a machine of the cluster ('ray job submit' runs a command on one)"
            )
        _tune()
        # Refused here, and not on a machine far away.
        run.check_sent()
        # Tune restores callbacks with the path that they had, whatever the working directory is then.
        super().__init__(run, folder.resolve())
        self.address = address
        self.gpus_per_member = gpus_per_member

    def _train(self, on_event: OnEvent, stop: Event | None) -> bool:
        settings = self.run_settings.settings
        self.path.mkdir(exist_ok=True)
        with connected(self.address):
            _listeners[str(self.path)] = on_event, stop or Event()
            try:
                results = self._tuner().fit()
            except (Stopped, _tune().TuneError):
                # Tune wraps a callback's errors in its own error.
                if stop is None or not stop.is_set():
                    raise
                return False
            finally:
                del _listeners[str(self.path)]
        for error in results.errors:
            raise getattr(error, "cause", None) or error
        steps = _steps(self.path, settings)
        if len(steps) < settings.steps:
            raise RuntimeError(
                f"{self.path}: Tune ended after {len(steps)} of {settings.steps} steps; delete {self.folder} to start "
                "over"
            )
        if not math.isfinite(best_score(steps[-1])):
            raise LostPopulationError(f"epoch {settings.epochs}: none of {settings.size} members has a score (all NaN)")
        with PopulationLog(self.folder / LOG_NAME, settings) as log:
            for rows in steps:
                log.append(rows)
        return True

    def _tuner(self) -> Any:
        """The unfinished experiment in the folder, or a new one."""
        tune = _tune()
        settings = self.run_settings.settings
        needs = {"cpu": 1, "gpu": self._gpus()}
        trainable = tune.with_parameters(train_member, run=self.run_settings)
        trainable = tune.with_resources(trainable, needs)
        experiment = str(self.path / EXPERIMENT)
        if tune.Tuner.can_restore(experiment):
            return tune.Tuner.restore(experiment, trainable, resume_errored=True)
        (self.path / ROWS_NAME).unlink(missing_ok=True)
        scheduler = _scheduler(settings)
        members = [{"number": number, "policy": list(settings.space.zeros())} for number in range(settings.size)]
        return tune.Tuner(
            trainable,
            param_space={"member": tune.grid_search(members)},
            tune_config=tune.TuneConfig(
                scheduler=scheduler,
                reuse_actors=True,
                trial_name_creator=_name_of,
                trial_dirname_creator=_name_of,
            ),
            run_config=tune.RunConfig(
                name=EXPERIMENT,
                storage_path=str(self.path),
                stop=partial(_is_over, settings.steps),
                callbacks=[_row_writer(self.path, settings)],
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                verbose=0,
            ),
        )

    def _gpus(self) -> float:
        """GPUs of each member. Tune would wait for ever for GPUs that the cluster does not have."""
        import ray

        available = ray.cluster_resources()
        gpus = available.get("GPU", 0)
        requested = float(gpus >= 1) if self.gpus_per_member is None else self.gpus_per_member
        if requested > gpus:
            raise ValueError(
                f"gpus_per_member: got {requested}, and the cluster has {gpus:g} GPUs; accepted: no more than it has"
            )
        if available.get("CPU", 0) < 1:
            raise ValueError("address: the cluster has no CPU; accepted: one or more, as a member takes one")
        return requested


def train_member(config: dict[str, Any], run: PopulationRun) -> None:
    """A trial: train from the checkpoint that Tune gives, its own or another member's, and report each step."""
    import ray
    from ray import tune

    number = int(tune.get_context().get_trial_name().removeprefix("member-"))
    policy = tuple(config["member"]["policy"])
    device = resolve("cuda:0") if ray.get_gpu_ids() else "cpu"
    member = run.on(device, num_threads=1)(number)
    step = 0
    parent = number
    if (checkpoint := tune.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            saved: Any = torch.load(Path(folder) / CHECKPOINT, map_location="cpu", weights_only=True)
        member.load_state_dict(saved["state"])
        step = saved["step"]
        parent = saved["member"]
    while step < run.settings.steps:
        step += 1
        with one_thread_each(*([device] if run.one_thread else [])):
            score = member.train(policy, step)
        assert score is not None  # nothing stops it
        # NaN has no rank.
        row = {"score": score if math.isfinite(score) else -math.inf, "step": step, "member": number}
        with TemporaryDirectory() as folder:
            torch.save({"step": step, "member": number, "state": member.state_dict()}, Path(folder) / CHECKPOINT)
            kept = tune.Checkpoint.from_directory(folder)
            tune.report({**row, "parent": parent, "policy": list(policy)}, checkpoint=kept)
        parent = number


def explored(space: SearchSpace, config: dict[str, Any]) -> dict[str, Any]:
    """Change the policy of a member that copied another: Tune's ``custom_explore_fn``."""
    member = config["member"]
    policy = explore(space, member["policy"], seed=random.getrandbits(63), step=0, member=0)
    return {**config, "member": {**member, "policy": list(policy)}}


def _scheduler(settings: Settings) -> Any:
    """Tune's Population Based Training. Its class is pickled by value, as that of ``_row_writer``."""
    from ray.tune.schedulers import PopulationBasedTraining

    class ResumablePopulation(PopulationBasedTraining):
        _burn_in_period: int
        _next_perturbation_sync: int

        def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
            """In a resumed search, compare members only after all have trained a further step.

            Their last checkpoints may be of different steps. A member that copied another which is ahead would skip a
            step, and the search could not be completed.
            """
            super().on_trial_add(tune_controller, trial)
            trained = trial.last_result.get("step", 0)
            self._next_perturbation_sync = max(self._next_perturbation_sync, trained + 1)
            # Members that are behind go on, and are not compared, until then.
            self._burn_in_period = self._next_perturbation_sync

    return ResumablePopulation(
        time_attr="step",
        metric="score",
        mode="max",
        perturbation_interval=1,
        quantile_fraction=settings.fraction,
        custom_explore_fn=partial(explored, settings.space),
        log_config=False,
        synch=True,
    )


class Stopped(Exception):
    """Ends Tune's loop, which leaves the trials unfinished, to be restored."""


# Running searches, by folder: Tune pickles its callbacks, which look their search up here.
_listeners: dict[str, tuple[OnEvent, Event]] = {}


def _is_over(steps: int, trial_id: str, result: dict[str, Any]) -> bool:
    """True after the last step, when Tune would otherwise copy again."""
    return bool(result["step"] >= steps)


def _row_writer(folder: Path, settings: Settings) -> Any:
    """A callback of Tune. Its class is pickled by value, so that it refers to nothing but a function of this module."""
    from ray import tune

    class RowWriter(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
        ) -> None:
            note_result(folder, settings, result)

    return RowWriter()


def note_result(folder: Path, settings: Settings, result: dict[str, Any]) -> None:
    """Append a member's result to a file, and report progress."""
    row = {name: result[name] for name in ("step", "member", "score", "policy", "parent")}
    with (folder / ROWS_NAME).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    if str(folder) not in _listeners:
        return
    on_event, stop = _listeners[str(folder)]
    complete = _steps(folder, settings)
    best = best_score(complete[-1]) if complete else math.nan
    if len(complete) == row["step"]:
        on_event(SearchProgress(len(complete), settings.steps, settings.size, settings.size, best, complete[-1]))
    else:
        done = sum(entry["step"] == len(complete) + 1 for entry in _read_rows(folder).values())
        on_event(SearchProgress(len(complete), settings.steps, settings.size, done, best))
    if stop.is_set():
        raise Stopped


def _read_rows(folder: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """Results by (step, member); of a step that was trained again after a failure, the last."""
    lines = (folder / ROWS_NAME).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return {(row["step"], row["member"]): row for row in rows}


def _steps(folder: Path, settings: Settings) -> list[tuple[Row, ...]]:
    """Rows of the steps that all members have trained."""
    found = _read_rows(folder)
    steps: list[tuple[Row, ...]] = []
    while all((len(steps) + 1, member) in found for member in range(settings.size)):
        step = len(steps) + 1
        rows: list[Row] = []
        for member in range(settings.size):
            entry = found[step, member]
            after = found.get((step + 1, member))
            donor = None if after is None or after["parent"] == member else after["parent"]
            score = entry["score"] if math.isfinite(entry["score"]) else math.nan
            rows.append(Row(step, settings.end_of(step), member, score, tuple(entry["policy"]), donor))
        steps.append(tuple(rows))
    return steps


def _name_of(trial: Any) -> str:
    return f"member-{trial.config['member']['number']}"


def _tune() -> Any:
    """Import Tune, or raise ImportError with the package to install."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from ray import tune
    except ImportError as error:
        raise ImportError(f"{WANTED} needs Ray Tune: {INSTALL}") from error
    return tune


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Context manager: connect to a cluster, and disconnect afterwards unless already connected."""
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
