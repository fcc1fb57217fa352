"""``--level``: our own code limited to a level of x86-64, in a process and with a cache of compiled code of its own.

The peers are never limited. One machine so shows what users of lesser processors get, beside what they have today.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.machine import best_level
from benchmarks.peers_env import ROOT

HOST = "host"
# What a user types -> what variegate/compiling/levels.py calls it.
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
    """One process of ours: ``key`` in records, ``title`` in tables, the ``environment`` that limits it; whether it has
    an entropy index of the files."""

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
    """Whether a record's row is Variegate, at whichever level."""
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


def environment_of(level: str, checkout: Path = ROOT) -> dict[str, str]:
    """Variables that limit the package of a checkout: Numba's, and the one of packages that are compiled before."""
    if level == HOST:
        return {}
    name = SHORT[level]
    return {
        "VARIEGATE_LEVEL": name,
        "NUMBA_CPU_NAME": name.removesuffix("-vbmi"),
        # Given even if there are none: otherwise Numba adds those of this processor.
        "NUMBA_CPU_FEATURES": "+avx512vbmi,+avx512vnni" if level == "vbmi" else "",
        # Compiled code of a level is kept from run to run; `make clean` removes it.
        "NUMBA_CACHE_DIR": str(checkout / "build" / "numba" / name),
    }


def check_limited(level: str | None) -> None:
    """In the limited process: raise unless kernels run at exactly that level."""
    from variegate.native.library import level as used_level

    if level not in (None, HOST) and used_level() != SHORT[str(level)]:
        raise RuntimeError(f"kernels run at {used_level()}, not at {SHORT[str(level)]}")
