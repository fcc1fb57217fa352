"""What is said on standard error while kernels are compiled: one line when it begins to take long, one when it is over.

``VARIEGATE_QUIET=1`` silences both.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from contextlib import suppress

QUIET = "VARIEGATE_QUIET"
# Compiling that is over within this time is not worth a word.
PATIENCE_SECONDS = 1.0
# A mark this old says nothing: its process id may be that of another by now.
_MARK_SECONDS = 900.0


class Notice:
    """A line at the beginning and one at the end of each spell of compiling, or of waiting for it.

    All but ``finish`` is called by one thread at a time, the one that compiles.
    """

    def __init__(self) -> None:
        self._is_announced = False
        self._has_compiled = False
        self._has_failed = False

    def compiling(self, seconds: float, place: str | None, mark: str) -> str | None:
        """A kernel is about to be compiled, ``seconds`` into this spell -> the mark to leave for other processes.

        ``place``: where kernels are kept; None: nowhere. ``mark``: what another process has left there.
        """
        self._has_compiled = True
        if self._is_announced or seconds < PATIENCE_SECONDS:
            return None
        # Workers come in numbers: one of them speaks, unless their parent does or another process did.
        if _is_worker() and _is_of_another(mark):
            return None
        if place is None:
            kept = "anew in every process: no folder can be written, set NUMBA_CACHE_DIR to one that can"
        else:
            kept = f"once: they are kept in {place}"
        self._announce(f"compiling kernels (one to two minutes, more on a busy machine), {kept}")
        return f"{os.getpid()} {time.time():.0f}"

    def waiting(self, seconds: float, place: str | None) -> None:
        """Another process compiles, ``seconds`` into this spell."""
        if not self._is_announced and seconds >= PATIENCE_SECONDS and not _is_worker():
            self._announce(f"waiting for another process, which compiles kernels and keeps them in {place}")

    def not_kept(self, place: str | None, error: OSError) -> None:
        """What was compiled could not be written; said once."""
        if not self._has_failed:
            self._has_failed = True
            reason = error.strerror or str(error) or type(error).__name__
            _say(f"kernels cannot be kept in {place} ({reason}), and are compiled anew in every process")

    def finish(self, seconds: float) -> None:
        """All that was needed is there, after ``seconds`` of compiling and waiting."""
        if self._is_announced:
            self._is_announced = False
            _say(f"kernels {'compiled' if self._has_compiled else 'ready'} after {seconds:.0f} s")
        self._has_compiled = False

    def _announce(self, text: str) -> None:
        self._is_announced = True
        _say(text)


def _say(text: str) -> None:
    if os.environ.get(QUIET, "0") not in ("", "0") or sys.stderr is None:
        return
    with suppress(OSError, ValueError):  # it may be closed
        print(f"variegate: {text}", file=sys.stderr, flush=True)


def _is_worker() -> bool:
    """Whether this is one of many that do the same: a worker of multiprocessing, a rank of torchrun but the first."""
    return multiprocessing.parent_process() is not None or os.environ.get("LOCAL_RANK", "0") != "0"


def _is_of_another(mark: str) -> bool:
    """Whether the mark was left a short while ago by another process, which lives."""
    try:
        process, left = map(int, mark.split())
    except ValueError:
        return False
    if process == os.getpid() or abs(time.time() - left) >= _MARK_SECONDS:
        return False
    if os.name == "posix":
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except OSError:  # somebody else's: it lives
            return True
    return True
