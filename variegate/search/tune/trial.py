"""A member as a trial of Ray Tune: one training iteration is one step of the population."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray
import torch
from ray import tune

from variegate.backends.devices import resolve
from variegate.data.sources.base import SourceError
from variegate.search.members import images_of, new_member, one_thread_each, train_member
from variegate.search.run import SearchRun
from variegate.training.classifier import Classifier
from variegate.training.images import DeviceImages

CHECKPOINT = "member.pt"
MISSING = (
    "a member's checkpoint is not to be found on a machine of the cluster; accepted: an output folder on a file system "
    "that all machines share, under the same path"
)


class MemberTrial(tune.Trainable):
    """Its config: ``number``, ``policy`` and ``start`` (a checkpoint's folder, or null) under the name "member".

    Tune says first who a process is (``setup``, or ``reset_config`` where it was another), then may load a checkpoint;
    the policy is read from the config only when a step begins, so that no checkpoint can bring back an older one.
    Nothing is made before that step: what is raised there is an error of the task, and not a process that died.
    """

    def setup(self, config: dict[str, Any], run: SearchRun | None = None, capture: bool = True) -> None:
        assert run is not None
        self._run, self._capture = run, capture
        self._device = resolve("cuda:0") if ray.get_gpu_ids() else "cpu"
        self._data: DeviceImages | None = None
        self.reset_config(config)

    def reset_config(self, config: dict[str, Any]) -> bool:
        self._member = config["member"]
        self._classifier: Classifier | None = None
        self._step = 0
        self._loaded: dict[str, Any] | None = None
        return True

    def step(self) -> dict[str, Any]:
        with one_thread_each(self._device):
            if self._data is None:
                self._data = images_of(self._run, self._device)
            classifier = self._at_start()
            self._step += 1
            score = train_member(self._run, classifier, self._data, tuple(self._member["policy"]), self._step)
        return {"score": score, "step": self._step}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        assert self._classifier is not None
        torch.save({"step": self._step, **self._classifier.state_dict()}, Path(checkpoint_dir) / CHECKPOINT)

    def load_checkpoint(self, checkpoint: Any) -> None:
        # Read at once: the folder may be a copy that Tune is about to remove.
        self._loaded = _read(Path(checkpoint))

    def _at_start(self) -> Classifier:
        """As it is before this step: from the checkpoint that Tune gave, else the one to start from, else new."""
        if self._classifier is None:
            # A trial takes one CPU.
            number = self._member["number"]
            self._classifier = new_member(self._run, number, self._device, capture=self._capture, num_threads=1)
            if self._loaded is None and self._member["start"] is not None:
                self._loaded = _read(Path(self._member["start"]))
        if self._loaded is not None:
            self._step = self._loaded.pop("step")
            self._classifier.load_state_dict(self._loaded)
            self._loaded = None
        return self._classifier


def _read(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(folder / CHECKPOINT, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise SourceError(f"{folder}: {MISSING}") from error
    return state
