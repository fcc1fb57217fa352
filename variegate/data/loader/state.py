"""What a loader's ``state_dict`` holds: where the order stands, and what the order depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.checks import integer

VERSION = 1

# What must be the same for the rest of the epoch to be the rest.
_FIXED = ("seed", "shuffle", "source", "samples", "buffer")
# The same, and there only where the loader has such.
_PICKING = ("weights", "sampler")


def make_state(epoch: int, done: int, fixed: Mapping[str, Any], order: str | None) -> dict[str, Any]:
    """``done``: samples of the epoch that all ranks together have been handed. ``order``: a digest of the epoch's,
    where nothing else tells it."""
    state = {"version": VERSION, "epoch": epoch, "done": done, **fixed}
    return state if order is None else {**state, "order": order}


def read_state(state: Mapping[str, Any], fixed: Mapping[str, Any]) -> tuple[int, int, str | None]:
    """-> (epoch, done, order). Raises ValueError where the state is of another kind, data set or order."""
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        got = state.get("version") if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(f"state_dict: got version {got!r}; accepted: what Loader.state_dict gave, version {VERSION}")
    missing = {"epoch", "done", *_FIXED} - set(state)
    if missing:
        raise ValueError(f"state_dict: {', '.join(sorted(missing))} missing; accepted: what Loader.state_dict gave")
    for name in (*_FIXED, *_PICKING):
        if state.get(name) != fixed.get(name):
            raise ValueError(
                f"state_dict: {name} is {state.get(name)!r}, this loader's is {fixed.get(name)!r}; the rest of the "
                f"epoch would be another one. {_ADVICE[name]}"
            )
    epoch, done = (integer(f"state_dict: {name}", state[name], 0) for name in ("epoch", "done"))
    return epoch, done, state.get("order")


def check_done(done: int, length: int | None) -> None:
    """Raises ValueError for more samples than an epoch has."""
    if length is not None and done > length:
        raise ValueError(f"state_dict: done is {done}; accepted: 0 to {length}, the samples of an epoch")


_ADVICE = {
    "seed": "Make the loader with the seed of the state.",
    "shuffle": "Make the loader with the same shuffle.",
    "source": "The data set is not the one that the state was taken with: files, labels or classes differ.",
    "samples": "The data set has another number of samples than the one that the state was taken with.",
    "weights": "Make the loader with the same weights and num_samples.",
    "sampler": "Make the loader with the same sampler.",
    "buffer": "Make the loader with the same shuffle_buffer and shuffle_bytes.",
}
