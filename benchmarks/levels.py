"""``--level``: our own code limited to a level of x86-64, in a process of its own.

The peers are never limited. Users of older processors see such results from each library.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from benchmarks.machine import best_level

HOST = "host"
# Typed level -> its name in variegate/native/library.py.
SHORT = {
    "v2": "x86-64-v2",
    "v3": "x86-64-v3",
    "v4": "x86-64-v4",
    "vbmi": "x86-64-v4-vbmi",
}
CHOICES = (*SHORT, HOST)
OURS = "ours"
INDEX = "index"


@dataclass(frozen=True)
class Limited:
    """A process of ours: ``key`` in records, ``title`` in tables, the ``environment`` that limits it; whether it has an
    entropy index of the files."""

    level: str | None
    key: str
    title: str
    environment: dict[str, str]
    is_indexed: bool = False

    def indexed(self) -> Limited:
        key = f"{self.key}, {INDEX}" if self.level else f"{OURS}:{INDEX}"
        return replace(self, key=key, title=f"{self.title}, with an index", is_indexed=True)


UNLIMITED = Limited(None, OURS, "Variegate", {})


def is_ours(module: str) -> bool:
    """True if a record's row is Variegate, at any level."""
    return module.partition(":")[0] == OURS


def level_of(module: str) -> str | None:
    return module.partition(":")[2] or None


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--level",
        nargs="+",
        choices=CHOICES,
        default=[],
        help="limit Variegate, not its peers, to each of these levels of x86-64 (all that this processor has)",
    )


def chosen(names: list[str]) -> tuple[list[Limited], list[str]]:
    """A process for each level that this processor can run, and a line for each that it cannot."""
    from variegate.native.library import LEVELS, compiled_levels, host_level

    if not names:
        return [UNLIMITED], []
    found = []
    left_out = []
    runnable = list(LEVELS)[: list(LEVELS).index(host_level()) + 1]
    for name in dict.fromkeys(names):
        if name == HOST:
            found.append(Limited(HOST, f"{OURS}:{HOST}", f"Variegate, all of {best_level()}", {}))
        elif SHORT[name] not in runnable:
            left_out.append(f"{SHORT[name]} is left out: this processor lacks it")
        elif SHORT[name] not in compiled_levels():
            left_out.append(f"{SHORT[name]} is left out: `python native/build.py --levels all` compiles it")
        else:
            found.append(Limited(name, f"{OURS}:{name}", f"Variegate, {SHORT[name]}", environment_of(name)))
    return found, left_out


def environment_of(level: str) -> dict[str, str]:
    """Variables that limit the native library to a level."""
    return {} if level == HOST else {"VARIEGATE_LEVEL": SHORT[level]}


def check_limited(level: str | None) -> None:
    """Runs in the limited process: raise unless kernels run at exactly that level."""
    from variegate.native.library import level as used_level

    if level not in (None, HOST) and used_level() != SHORT[str(level)]:
        raise RuntimeError(f"kernels run at {used_level()}, not at {SHORT[str(level)]}")
