"""The search over a cluster: members are trials of Ray Tune. Importing this does not need Ray."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from variegate.apps.search.driver import PopulationSearch, Tell, new_member
from variegate.apps.search.run import SearchRun
from variegate.apps.search.tune.driver import TuneDriver
from variegate.io.addresses import shown_host
from variegate.jobs.workers.ray import INSTALL, connect

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
        capture: on GPUs, record training steps as CUDA graphs.

    Raises ValueError for arguments that are not accepted, ImportError without Ray. A member whose process or machine
    dies trains its step again. What ``run`` raises besides: SourceError for a folder that a machine of the cluster
    cannot reach, ValueError for GPUs that the cluster does not have, ConnectionError where no cluster answers,
    RuntimeError where a member's process dies again and again, and what a member raises.
    """

    backend = "ray"

    def __init__(
        self,
        run: SearchRun,
        folder: Path,
        address: str | None = None,
        gpus_per_member: float | None = None,
        *,
        capture: bool = True,
    ) -> None:
        if gpus_per_member is not None and not 0 <= gpus_per_member <= 1:
            raise ValueError(f"gpus_per_member: got {gpus_per_member!r}; accepted: 0 to 1")
        if address is not None and address.startswith("ray://"):
            raise ValueError(
                f"address: got {shown_host(address)!r}, which Tune's scheduler cannot work over; accepted: HOST:PORT "
                "or 'auto', on a machine of the cluster ('ray job submit' runs a command on one)"
            )
        _tune()
        # Refuses a wrong model here, and not on a machine far away.
        new_member(run, 0, "cpu")
        super().__init__(run, folder)
        self.address, self.gpus_per_member, self.capture = address, gpus_per_member, capture

    def _train(self, tell: Tell, stop: Event | None) -> bool:
        with closing(TuneDriver(self.run_settings, self.folder, tell, stop)) as driver:
            if not driver.is_over:
                with _connected(self.address), _quiet():
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
            tune.with_resources(tune.with_parameters(MemberTrial, run=self.run_settings, capture=self.capture), needs),
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
def _connected(address: str | None) -> Iterator[None]:
    """To a cluster, and no longer afterwards, unless we were before."""
    import ray

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
