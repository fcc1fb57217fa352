"""Turns at compiling: one process at a time, and within it one thread.

Numba compiles under a lock of the process, which the thread that takes a turn holds. A turn begins with a call of a
kernel that has to be made ready, and covers the kernels that this one calls. The first that is not on disk takes the
lock between processes; when it is ours, the disk is asked again, because who held it may have made what we want.

On standard error it says when compiling begins to take long, and when it is over, and before that, where compiled code
is installed and does not fit, why. ``VARIEGATE_QUIET=1`` silences all of it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from numba.core.compiler_lock import global_compiler_lock

from variegate.compiling.stored import INSTALL_KERNELS, mismatch
from variegate.io.lock import FileLock

QUIET = "VARIEGATE_QUIET"
# Compiling that is over within this time is not worth a word.
PATIENCE_SECONDS = 1.0
# A mark this old says nothing: its process id may be that of another by now.
_MARK_SECONDS = 900.0


class Turn:
    """A context around making a kernel ready; contexts nest.

    ``lock``: between processes, or None where nothing can be kept. ``place``: where kernels are kept, to be shown.
    """

    def __init__(self, lock: FileLock | None, place: Callable[[], str | None]) -> None:
        self._lock, self._place = lock, place
        self._notice = Notice()
        self._depth = 0
        self._began = 0.0
        self._spent = 0.0  # in turns that had something to compile, or to wait for, since the last ``finish``
        self._has_missed = False
        self.failure: OSError | None = None
        """What kept this process from writing code, if anything did."""

    def __enter__(self) -> Turn:
        global_compiler_lock.acquire()
        if self._depth == 0:
            self._began, self._has_missed = time.monotonic(), False
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            if self._lock is not None:
                self._lock.release()
            if self._has_missed:
                self._spent += time.monotonic() - self._began
        global_compiler_lock.release()

    @property
    def is_nested(self) -> bool:
        """True while a kernel is made ready because of another, which calls it."""
        return self._depth > 1

    def take(self) -> bool:
        """Something is not on disk. Wait until this process may make it -> whether to look there again."""
        self._has_missed = True
        if self._lock is None or self._lock.is_held:
            return False
        # Nobody is kept out where a file cannot be made or locked: a folder that is read-only, a full disk.
        with suppress(OSError):
            self._lock.acquire(lambda _: self._notice.waiting(self._seconds, self._place()))
        return self._lock.is_held

    def compiling(self) -> None:
        """It is going to be made now."""
        mark = self._lock.read_mark() if self._lock is not None else ""
        left = self._notice.compiling(self._seconds, self._place(), mark)
        if left is not None and self._lock is not None:
            self._lock.write_mark(left)

    def not_kept(self, error: OSError) -> None:
        """It was made, and could not be written."""
        self.failure = error
        self._notice.not_kept(self._place(), error)

    def finish(self) -> None:
        """A batch is done, so that all it needed is there: say so, if it was said that it would take long."""
        # Batches ask every time; most do so with nothing spent. One that another thread compiles for will ask itself.
        if self._spent and self._depth == 0:
            seconds, self._spent = self._spent, 0.0
            self._notice.finish(seconds)

    @property
    def _seconds(self) -> float:
        return self._spent + time.monotonic() - self._began

    def survive_forks(self) -> None:
        """Let no fork happen while another thread compiles: the child would wait forever for what that thread holds,
        and keep the lock between processes for as long as it lives."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=global_compiler_lock.acquire,
                after_in_parent=global_compiler_lock.release,
                after_in_child=global_compiler_lock.release,
            )


class Notice:
    """A line at the beginning and one at the end of each spell of compiling, or of waiting for it.

    All but ``finish`` is called by one thread at a time, the one that compiles.
    """

    def __init__(self) -> None:
        self._is_announced = False
        self._has_compiled = False
        self._has_failed = False
        self._has_explained = False

    def compiling(self, seconds: float, place: str | None, mark: str) -> str | None:
        """A kernel is about to be compiled, ``seconds`` into this spell -> the mark to leave for other processes.

        ``place``: where kernels are kept; None: nowhere. ``mark``: what another process has left there.
        """
        self._has_compiled = True
        self._explain()
        if self._is_announced or seconds < PATIENCE_SECONDS:
            return None
        # Workers come in numbers: one of them speaks, unless their parent does or another process did.
        if _is_worker() and _is_of_another(mark):
            return None
        if place is None:
            kept = "in every process, as no cache folder is writable; set NUMBA_CACHE_DIR to one that is"
        else:
            kept = f"cached in {place}"
        self._announce(f"compiling kernels (takes one to two minutes), {kept}")
        return f"{os.getpid()} {time.time():.0f}"

    def waiting(self, seconds: float, place: str | None) -> None:
        """Another process compiles, ``seconds`` into this spell."""
        if not self._is_announced and seconds >= PATIENCE_SECONDS and not _is_worker():
            self._announce(f"waiting for another process to compile kernels into {place}")

    def not_kept(self, place: str | None, error: OSError) -> None:
        """Report, once, that compiled code could not be written."""
        if not self._has_failed:
            self._has_failed = True
            reason = error.strerror or str(error) or type(error).__name__
            _say(f"kernels cannot be cached in {place} ({reason}); every process compiles them again")

    def finish(self, seconds: float) -> None:
        """All that was needed is there, after ``seconds`` of compiling and waiting."""
        if self._is_announced:
            self._is_announced = False
            _say(f"kernels {'compiled' if self._has_compiled else 'ready'} after {seconds:.0f} s")
        self._has_compiled = False

    def _explain(self) -> None:
        """Report, once, that there is compiled code that cannot be used."""
        if not self._has_explained and not _is_worker() and (others := mismatch()):
            _say(f"the installed kernels wheel is not used: it needs {others}. To fix this, run: {INSTALL_KERNELS}")
        self._has_explained = True

    def _announce(self, text: str) -> None:
        self._is_announced = True
        _say(text)


def _say(text: str) -> None:
    if os.environ.get(QUIET, "0") not in ("", "0") or sys.stderr is None:
        return
    with suppress(OSError, ValueError):  # it may be closed
        print(f"variegate: {text}", file=sys.stderr, flush=True)


def _is_worker() -> bool:
    """True in one of many processes that do the same: a worker of multiprocessing, a rank of torchrun but the first."""
    return multiprocessing.parent_process() is not None or os.environ.get("LOCAL_RANK", "0") != "0"


def _is_of_another(mark: str) -> bool:
    """True if another process, which lives, left the mark a short while ago."""
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
