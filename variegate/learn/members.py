"""Members of a population: models that the search trains on images, and training that users supply."""

from __future__ import annotations

import copy
import io
import math
from collections import OrderedDict
from threading import Event
from typing import Any, Protocol

import numpy as np
import torch

from variegate.learn.fit import Fit, FitData
from variegate.learn.history import Settings
from variegate.learn.images import BaselineAugmentation
from variegate.learn.objective import Step
from variegate.learn.policy import Numbers
from variegate.learn.population import SearchStream, draw


class PopulationMember(Protocol):
    """A training that runs in steps, and can copy another member's state."""

    def train(self, policy: Numbers, step: int, stop: Event | None = None) -> float | None:
        """Train the epochs of a step (from 1) -> the score; NaN if it diverged, None where ``stop`` was set."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def member_seed(seed: int, member: int) -> int:
    """The seed of a member's weights, order of images and augmentations; 63 bits."""
    words = draw(SearchStream.MEMBER, seed, 0, member, 1)[0]
    return (int(words[0]) << 32 | int(words[1])) >> 1


class ImageMember:
    """A model that trains on images, with a policy between ``baseline``'s steps; its score is the accuracy on
    ``scored``."""

    def __init__(
        self, settings: Settings, baseline: BaselineAugmentation, fit: Fit, train: FitData, scored: FitData
    ) -> None:
        self._settings, self._baseline, self._fit = settings, baseline, fit
        self._train, self._scored = train, scored.plain_loader()
        self.state_dict = fit.tensors

    def train(self, policy: Numbers, step: int, stop: Event | None = None) -> float | None:
        fit = self._fit
        transform = self._baseline.with_policy(self._settings.space.transform(policy))
        loader = self._train.loader(transform, fit.options, fit.seed, None)
        first = self._settings.end_of(step - 1)
        fit.steps = first * len(loader)
        losses = []
        for epoch in range(first, self._settings.end_of(step)):
            if stop is not None and stop.is_set():
                return None
            losses.append(fit.train_epoch(loader, epoch))
        # Read once all epochs are queued, so that a GPU never waits for the next to be prepared.
        if not all(map(math.isfinite, losses)):
            return math.nan
        return fit.score(self._scored)["top1"]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._fit.load(state, self._fit.steps)


class ObjectiveMember:
    """A user's training; between steps its checkpoint is bytes, so that steps share no objects."""

    def __init__(self, settings: Settings, step: Step, number: int) -> None:
        self._settings = settings
        self._step = step
        self._number = number
        self._saved = torch.empty(0, dtype=torch.uint8)

    def train(self, policy: Numbers, step: int, stop: Event | None = None) -> float | None:
        if stop is not None and stop.is_set():
            return None
        settings = self._settings
        before = settings.end_of(step - 1)
        after = settings.end_of(step)
        try:
            checkpoint = unpacked(self._saved) if len(self._saved) else None
            seed = member_seed(settings.seed, self._number)
            score, checkpoint = self._step(settings.space.transform(policy), after - before, checkpoint, seed)
            self._saved = packed(checkpoint)
        except Exception as error:
            where = f"member {self._number}, step {step} (after epoch {before})"
            raise RuntimeError(f"objective: {where}: {type(error).__name__}: {error}") from error
        return score

    def state_dict(self) -> dict[str, Any]:
        return {"checkpoint": self._saved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved = state["checkpoint"]


# As ``torch.load(weights_only=True)`` reads them.
_PLAIN = (type(None), bool, int, float, complex, str, torch.Tensor, torch.nn.Parameter)
_ARRAY = "variegate:array"


def packed(checkpoint: Any) -> torch.Tensor:
    """A user's checkpoint as bytes. Raises ValueError for objects that cannot be loaded without running code."""
    buffer = io.BytesIO()
    torch.save(_as_tensors(checkpoint, "checkpoint"), buffer)
    return torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)


def unpacked(data: torch.Tensor) -> Any:
    """Unpack the checkpoint; GPU tensors return to the CPU."""
    return _as_arrays(torch.load(io.BytesIO(data.numpy().tobytes()), map_location="cpu", weights_only=True))


def _as_tensors(value: Any, where: str) -> Any:
    """Replace each array, which ``torch.load`` would refuse, by a marked tensor."""
    if type(value) in _PLAIN:
        return value
    if type(value) is bytes:  # torch 2.5 reads no others without running code
        return {_ARRAY: torch.from_numpy(np.frombuffer(value, np.uint8).copy()), "type": "bytes"}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        array = np.array(value)  # as bytes, since torch 2.5 writes no uint16, uint32 and uint64
        return {
            _ARRAY: torch.from_numpy(array.reshape(-1).view(np.uint8)),
            "type": array.dtype.str,
            "shape": array.shape,
        }
    if type(value) is tuple:
        return tuple(_as_tensors(one, f"{where}[{i}]") for i, one in enumerate(value))
    if type(value) in (list, dict, OrderedDict):
        changed = copy.copy(value)  # with the attributes of a ``state_dict``
        for key in value if isinstance(value, dict) else range(len(value)):
            if type(key) not in (str, int, float, bool):
                raise ValueError(f"{where}: got a key of type {type(key).__name__}; accepted: text and numbers")
            changed[key] = _as_tensors(value[key], f"{where}[{key!r}]")
        return changed
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    kind += f" of {value.dtype}" if isinstance(value, np.ndarray) else ""
    accepted = "tensors, arrays, numbers, text, bytes, None, and lists, tuples and dicts of these"
    raise ValueError(f"{where}: got {kind}; accepted: {accepted}")


def _as_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if _ARRAY in value:
            if value["type"] == "bytes":
                return value[_ARRAY].numpy().tobytes()
            return value[_ARRAY].numpy().view(value["type"]).reshape(value["shape"])[()]
        for key, one in value.items():
            value[key] = _as_arrays(one)
    elif isinstance(value, list):
        value[:] = map(_as_arrays, value)
    return tuple(map(_as_arrays, value)) if type(value) is tuple else value
