"""One epoch after another: which comes next, how far the one in hand is, and when the next may be begun early."""

from __future__ import annotations

from collections.abc import Callable

from variegate.data.loader.ahead import Ahead
from variegate.data.loader.making import Made

# An epoch, and how many of its samples are done.
Place = tuple[int, int]


class EpochRun:
    """The rest of an epoch from ``start``, on its way."""

    def __init__(self, start: Place, ahead: Ahead[Made], stop_reading: Callable[[], None]) -> None:
        self.start, self.ahead, self._stop_reading = start, ahead, stop_reading

    def close(self) -> None:
        self.ahead.close()
        if not self.ahead.is_elsewhere:
            self._stop_reading()

    def __del__(self) -> None:
        self.close()


# The rest of an epoch from a place, nothing of it begun.
MakeRun = Callable[[Place], EpochRun]


class Epochs:
    """``depth``: batches to have in the making. ``is_early``: an epoch may be begun before the one before it is over.

    ``at`` is where the iteration begun last stands, in samples handed out; ``next``, where the following one begins.
    """

    def __init__(self, depth: int, is_early: bool = True) -> None:
        self._depth, self._is_early = depth, is_early
        self.at: Place = (0, 0)
        self.next: Place = (0, 0)
        self._latest: EpochRun | None = None
        self._early: EpochRun | None = None

    def go_to(self, place: Place) -> None:
        self.at = self.next = place

    def begin(self, make_run: MakeRun) -> EpochRun:
        """The next iteration. It is the one that ``at`` tells of from now on, whatever becomes of those before."""
        place, early = self.next, self._early
        self.at, self.next, self._early = place, (place[0] + 1, 0), None
        if early is not None and (early.start != place or early.ahead.is_closed or early.ahead.is_elsewhere):
            early.close()
            early = None
        self._latest = early or make_run(place)
        self._latest.ahead.begin(self._depth)
        return self._latest

    def handed_out(self, run: EpochRun, done: int, make_run: MakeRun) -> None:
        """So many samples of the run's epoch are done. Once all its batches are begun, those of the next epoch fill up
        the room, so that a short epoch's end does not leave threads idle."""
        if run is not self._latest:
            return
        self.at = (run.start[0], done)
        if self._is_early and run.ahead.room and self.next == (run.start[0] + 1, 0):
            self._early = self._early or make_run(self.next)
            self._early.ahead.begin(run.ahead.room)

    def finished(self, run: EpochRun) -> None:
        if run is self._latest:
            self.at = (run.start[0] + 1, 0)
