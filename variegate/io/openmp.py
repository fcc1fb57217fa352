"""Waiting of OpenMP's threads for each other, where a process trains and makes data on the same cores."""

from __future__ import annotations

import os

# Either says what a user wants.
_KNOWN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
# Some 100 microseconds: more than threads wait for each other that all have a core.
_TURNS = "10000"


def wait_briefly() -> None:
    """Before torch is loaded: threads of GNU's OpenMP that wait sleep soon, and leave their core to others."""
    if not any(name in os.environ for name in _KNOWN):
        os.environ["GOMP_SPINCOUNT"] = _TURNS
