"""What a work is: inputs, a check of our pixels, and the peers to stand beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.inputs import Inputs

# Programs -> their images by the golden library, or None where it takes no part in this run.
Replay = Callable[[list[dict[str, Any]]], list[Any] | None]


@dataclass(frozen=True)
class Check:
    """One property of our pixels, with what was found in words."""

    name: str
    passed: bool
    found: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Work:
    """``target``: how many times the best peer's speed is asked for; ``level_targets``: with our code limited to a
    level, or with an index, for which ``target`` stands otherwise. ``peers``: modules of benchmarks.peers.
    ``is_indexed``: ours runs without and with an entropy index of the files."""

    name: str
    title: str
    target: float | None
    peers: tuple[str, ...]
    make_inputs: Callable[[Path | None], tuple[Inputs, str]]
    check: Callable[[Inputs, Replay], Iterable[Check]]
    level_targets: Mapping[str, float] = field(default_factory=dict)
    is_indexed: bool = False
