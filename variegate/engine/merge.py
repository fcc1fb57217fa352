"""Results in the order of the items, or as they come: everything once."""

from __future__ import annotations

from collections import deque

from variegate.engine.messages import Forget, Instruction, Quarantine, Release


class Merge:
    """Takes pieces of results in any order; gives instructions to hand them out, each item once.

    In order, an item waits here until all that were submitted before it are out.
    """

    def __init__(self, is_ordered: bool) -> None:
        self.outstanding = 0  # items that were submitted and are not out
        self._is_ordered = is_ordered
        self._submitted: deque[tuple[int, int]] = deque()  # ranges that are not out yet; the first one in part
        self._waiting: dict[int, tuple[int, int] | str] = {}  # by first item: (stop, task), or why there is none
        self._pieces: dict[int, int] = {}  # by task: how many pieces of its result are not out

    def submit(self, start: int, stop: int) -> None:
        self.outstanding += stop - start
        if self._is_ordered:
            self._submitted.append((start, stop))

    def add(self, task: int, pieces: list[tuple[int, int]]) -> list[Instruction]:
        """The result of a task is here, and good for these ranges of items."""
        if not pieces:
            return [Forget(task)]
        if not self._is_ordered:
            out: list[Instruction] = []
            for start, stop in pieces:
                self.outstanding -= stop - start
                out.append(Release(task, start, stop))
            return [*out, Forget(task)]
        self._pieces[task] = len(pieces)
        for start, stop in pieces:
            self._waiting[start] = stop, task
        return self._advance()

    def give_up(self, item: int, reason: str) -> list[Instruction]:
        """There will be no result for this item."""
        if not self._is_ordered:
            self.outstanding -= 1
            return [Quarantine(item, reason)]
        self._waiting[item] = reason
        return self._advance()

    def _advance(self) -> list[Instruction]:
        out: list[Instruction] = []
        submitted, waiting, pieces = self._submitted, self._waiting, self._pieces
        while submitted:
            start, last = submitted[0]
            found = waiting.pop(start, None)
            if found is None:
                break
            if isinstance(found, str):
                stop = start + 1
                out.append(Quarantine(start, found))
            else:
                stop, task = found
                out.append(Release(task, start, stop))
                pieces[task] -= 1
                if pieces[task] == 0:
                    del pieces[task]
                    out.append(Forget(task))
            self.outstanding -= stop - start
            if stop == last:
                submitted.popleft()
            else:
                submitted[0] = stop, last
        return out
