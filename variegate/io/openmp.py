"""How the threads of a process wait for each other, where it trains and makes data on the same cores."""

from __future__ import annotations

import os

# Either says what a user wants.
_KNOWN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
# Some 100 microseconds: more than threads wait for each other that all have a core.
_TURNS = "10000"


def wait_briefly() -> None:
    """Before torch is loaded: threads of GNU's OpenMP go to sleep soon where they wait for one that has no core.

    By default they go round for milliseconds first, and keep the core that the late one needs, or a loader's thread.
    Does nothing where the environment says otherwise.
    """
    if not any(name in os.environ for name in _KNOWN):
        os.environ["GOMP_SPINCOUNT"] = _TURNS
