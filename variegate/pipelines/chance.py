"""Other people's chance, and the clock: drawn or read while a function is traced, they would be one for all samples."""

from __future__ import annotations

import datetime
import random
import sys
from typing import Any

import numpy as np

from variegate.pipelines.refusals import refuse

_DRAWS = "vg.coin, vg.uniform, vg.randint, vg.normal and vg.choice, which draw for every sample"
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
# Functions by name, the module that they are known in, and how many arguments make them read no clock.
_TORCH = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")
_SECRETS = ("token_bytes", "token_hex", "token_urlsafe", "randbelow")
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_NEVER = 99
_SOURCES: dict[str, tuple[str, int]] = {
    **dict.fromkeys(_TORCH, ("torch", _NEVER)),
    **dict.fromkeys(_SECRETS, ("secrets", _NEVER)),
    **dict.fromkeys(("urandom", "getrandom"), ("os", _NEVER)),
    **dict.fromkeys(("uuid1", "uuid4"), ("uuid", _NEVER)),
    **{name: ("time", _NEVER) for each in _CLOCKS for name in (each, f"{each}_ns")},
    **dict.fromkeys(("localtime", "gmtime", "ctime", "asctime"), ("time", 1)),
    "strftime": ("time", 2),
}
_NOW = ("now", "utcnow", "today")


def refuse_chance(function: Any, args: tuple[Any, ...]) -> None:
    """Raises PipelineError where ``function`` draws a number, or reads the clock."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    module, enough = _SOURCES.get(name, ("", 0))
    is_source = len(args) < enough and function is getattr(sys.modules.get(module), name, None)
    if (is_source and module == "time") or (name in _NOW and _is_date(owner)):
        refuse(
            "this reads the clock once, while the function is traced, for all samples", "a value given with the batch"
        )
    if is_source or isinstance(owner, _GENERATORS):
        refuse("this draws one number, while the function is traced, for all samples", _DRAWS)


def call_untraced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)``. Raises PipelineError where it draws from a generator that all code shares."""
    for value in args:
        if callable(value):
            refuse_chance(value, ())
    before = _states()
    result = function(*args, **kwargs)
    if _states() != before:
        refuse("this draws numbers, while the function is traced, for all samples", _DRAWS)
    return result


def _is_date(owner: Any) -> bool:
    return isinstance(owner, type) and issubclass(owner, datetime.date)


def _states() -> tuple[Any, ...]:
    of_numpy: Any = np.random.get_state(legacy=False)
    torch = sys.modules.get("torch")
    of_torch = b"" if torch is None else torch.random.default_generator.get_state().numpy().tobytes()
    return random.getstate(), of_numpy["state"]["key"].tobytes(), of_numpy["state"]["pos"], of_torch
