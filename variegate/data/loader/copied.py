"""What becomes of a Loader in another process: forked, or pickled there."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from variegate.data.loader.epochs import Epochs
from variegate.data.loader.failures import FailureLog
from variegate.pickling import CopiedByState, check_copied


class Copied(CopiedByState):
    """The part of ``Loader`` that copies it: as its arguments, and where it stands.

    Attributes:
        _arguments: of its construction, with the source opened and the rank found.
        _own: names of all attributes that construction sets; a class derived from it may have more.
    """

    _arguments: dict[str, Any]
    _own: frozenset[str]
    _epochs: Epochs
    _log: FailureLog
    _ranks_compared: bool

    def after_fork(self) -> None:
        self._ranks_compared = True  # the other ranks talk to the parent

    def __getstate__(self) -> dict[str, Any]:
        for name in ("source", "transform", "sampler", "weights"):
            check_copied(name, self._arguments[name], "accepted: what can be, or make the Loader in the other process")
        return self._portable()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._construct(**state["arguments"])
        self._epochs.at, self._epochs.next = state["epochs"]
        self._log = state["log"]
        self.__dict__.update(state["more"])

    def _construct(self, **arguments: Any) -> None:
        raise NotImplementedError

    def _portable(self) -> dict[str, Any]:
        places = self._epochs.at, self._epochs.next
        more = {name: value for name, value in self.__dict__.items() if name not in self._own}
        return {"arguments": self._arguments, "epochs": places, "log": deepcopy(self._log), "more": more}
