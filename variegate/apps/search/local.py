"""The search on one machine: members take turns on each device, and all wait for each other at every step."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.apps.search.driver import (
    CheckpointError,
    PopulationSearch,
    SearchDriver,
    Tell,
    images_of,
    new_member,
    one_thread_each,
    threads_each,
    train_member,
)
from variegate.apps.search.population import Step
from variegate.apps.search.run import SearchRun
from variegate.apps.train.classifier import GraphMemory
from variegate.executors.runners.devices import resolve
from variegate.io.durable import write_atomically


class LocalSearch(PopulationSearch):
    """A search on one machine: on CPUs the same run gives the same schedule, whatever the interruptions.

    ``devices``: dealt out to the members in turn. ``capture``: on GPUs, record training steps as CUDA graphs.
    """

    backend = "local"

    def __init__(
        self, run: SearchRun, folder: Path, devices: Sequence[str] = ("auto",), *, capture: bool = True
    ) -> None:
        super().__init__(run, folder)
        self.devices = [resolve(name) for name in devices]
        self._data = {device: images_of(run, device) for device in self.devices}
        # The steps of members on one GPU are replayed one at a time, so all may work in the same memory.
        shared = {name: GraphMemory(name) if capture and name != "cpu" else None for name in self._data}
        threads = threads_each(self.devices)
        self._members = [
            new_member(run, member, device, capture=capture, graph_memory=shared[device], num_threads=threads)
            for member, device in zip(range(run.settings.size), itertools.cycle(self.devices), strict=False)
        ]

    def _train(self, tell: Tell, stop: Event | None) -> bool:
        driver = SearchDriver(self.run_settings, self.folder, self.path, self._load, self._save, tell)
        turns, number = partial(self._take_turns, driver, stop), len(self.devices)
        with closing(driver), one_thread_each(*self.devices), ThreadPoolExecutor(number, "variegate-search") as pool:
            while not driver.population.is_done:
                list(map(turns, range(number)) if number == 1 else pool.map(turns, range(number)))
                if not driver.is_scored:
                    return False
                driver.end_step()
        return True

    def _take_turns(self, driver: SearchDriver, stop: Event | None, device: int) -> None:
        """The members on a device, each its part of this step."""
        step = driver.population.step + 1
        for number in range(device, len(self._members), len(self.devices)):
            member, policy = self._members[number], driver.population.policies[number]
            score = train_member(self.run_settings, member, self._data[member.device], policy, step, stop)
            if score is None:
                return
            driver.score(number, step, score)

    def _save(self, step: Step) -> None:
        for copy in step.copies:
            self._members[copy.target].load_state_dict(self._members[copy.donor].state_dict())
        buffer = io.BytesIO()
        states = [member.state_dict() for member in self._members]
        torch.save({"run": self.run_settings.describe(), "step": step.rows[0].step, "members": states}, buffer)
        write_atomically(self.path, buffer.getvalue(), durable=True)

    def _load(self) -> int:
        """The members get their weights -> the step; 0 without a checkpoint: the first step has not come to its end."""
        path, run = self.path, self.run_settings
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
            is_ours = saved["run"] == run.describe() and len(saved["members"]) == len(self._members)
            step = saved["step"]
        except (TypeError, LookupError) as error:
            raise CheckpointError(f"{path}: is no checkpoint of a search") from error
        if not is_ours or not isinstance(step, int) or not 0 < step < run.settings.steps:
            raise CheckpointError(f"{path}: is the checkpoint of another search")
        try:
            for member, state in zip(self._members, saved["members"], strict=True):
                member.load_state_dict(state)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise CheckpointError(f"{path}: its weights are not those of {run.model} ({_first_line(error)})") from error
        return step


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(":. ") if lines else type(error).__name__
