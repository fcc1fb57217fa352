"""Training that users supply, for ``vg.race`` and ``vg.search``: any model, any task, any score."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

# (policy, epochs, checkpoint, seed) -> (score, checkpoint)
Step: TypeAlias = Callable[[Any, int, Any, int], tuple[float, Any]]
STEP = "step(policy, epochs, checkpoint) -> (score, checkpoint), as a function or a method"


def step_of(objective: Any) -> Step | None:
    """Return the step of an objective, whose results are checked; None if it trains whole: ``objective(policy, seed)``.

    A step trains ``epochs`` more epochs from ``checkpoint`` (None: from the beginning), and returns its score (higher
    is better; NaN: training diverged) and a new checkpoint. It gets ``seed`` by name if it has a parameter of that
    name. A class is instantiated without arguments at the first step. Raises ValueError for an objective that is
    neither.
    """
    is_class = inspect.isclass(objective)
    function = getattr(objective, "step", objective)
    if not callable(function) or (is_class and function is objective):
        raise ValueError(f"objective: got {objective!r}; accepted: {STEP}")
    if is_class and any(one.default is one.empty for one in _named(objective)):
        raise ValueError(
            f"objective: got {objective!r}, which takes arguments; accepted: a class without, or an instance"
        )
    parameters = inspect.signature(function).parameters
    if "checkpoint" not in parameters and function is objective:
        return None
    has_seed = takes_seed(objective)
    making = Lock()
    made = list[Any]() if is_class else [objective]

    def step(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        with making:
            if not made:
                made.append(objective())
        train = function if function is objective else made[0].step
        got = train(policy, epochs, checkpoint, **({"seed": seed} if has_seed else {}))
        if not isinstance(got, tuple) or len(got) != 2:
            raise ValueError(f"objective: step returned {type(got).__name__}; accepted: (score, checkpoint)")
        return checked_score(got[0]), got[1]

    return step


def takes_seed(objective: Any) -> bool:
    """True if the function or step has a parameter of the name "seed"."""
    parameters = inspect.signature(getattr(objective, "step", objective)).parameters
    return "seed" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def is_training(objective: Any) -> bool:
    """True for a function, class or object that trains; False for a source of images."""
    is_source = hasattr(objective, "__getitem__") and not inspect.isclass(objective)
    return hasattr(objective, "step") or (callable(objective) and not is_source)


def _named(objective: type) -> list[inspect.Parameter]:
    parameters = inspect.signature(objective).parameters.values()
    return [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def check_sent(objective: Any, name: str) -> None:
    """Raises ValueError for training that Ray cannot send to other processes."""
    from ray import cloudpickle

    try:
        cloudpickle.dumps(objective)
    except Exception as error:  # whatever its own pickling raises
        got = f"objective: got {name}, which cannot be pickled ({error})"
        raise ValueError(f"{got}; accepted: what cloudpickle can send to other processes") from error


def name_of(objective: Any) -> str:
    """The name of a function, a class, or an object's class."""
    return str(getattr(objective, "__qualname__", type(objective).__qualname__))


def checked_score(score: Any) -> float:
    """A score as a float. Raises ValueError for one that is infinite or no number."""
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = math.inf
    if math.isinf(value):
        raise ValueError(f"objective: got the score {score!r}; accepted: a finite number, or NaN if training diverged")
    return value
