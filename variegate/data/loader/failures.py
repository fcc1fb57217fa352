"""What became of samples that could not be read or decoded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from variegate.checks import number, refused
from variegate.data.sources.base import SampleName
from variegate.outside.addresses import speakable


@dataclass(frozen=True)
class Failure:
    """A sample that gave no picture. ``epoch`` is the first in which that happened, ``times`` how often it did."""

    file: str
    member: str | None
    reason: str
    id: int
    epoch: int
    times: int = 1

    def __str__(self) -> str:
        return speakable(f"{SampleName(self.file, self.member)}: {self.reason}")


class TooManyErrors(RuntimeError):
    """More samples failed than ``max_errors`` allows."""


class FailureLog:
    """Failures by sample; as long as there are bad samples, however many epochs meet them.

    ``limit``: None, a number of samples, or a share (a float below 1) of those that this rank is to read in an epoch.
    """

    def __init__(self, limit: int | float | None) -> None:
        if limit is not None:
            accepted = (
                "a number of samples (an integer), a share of the data set (a float from 0 to below 1), or None for any"
            )
            limit = number("max_errors", limit, 0, accepted=accepted)
            if isinstance(limit, float) and limit >= 1.0:
                raise refused("max_errors", limit, accepted)
        self._limit = limit
        self._by_id: dict[int, Failure] = {}
        self._seen = 0

    def add(self, failures: Iterable[Failure], seen: int) -> None:
        """Raises TooManyErrors where these are more than the limit; ``seen``: samples that a share is taken of."""
        self._seen = max(self._seen, seen)
        for failure in failures:
            known = self._by_id.get(failure.id)
            self._by_id[failure.id] = failure if known is None else replace(known, times=known.times + 1)
        if self._limit is None or not self._by_id:
            return
        allowed = self._limit if isinstance(self._limit, int) else int(self._limit * self._seen)
        if len(self._by_id) > allowed:
            latest = self.list()[-1]
            raise TooManyErrors(
                f"{len(self._by_id):,} samples could not be read, max_errors={self._limit!r} allows {allowed:,}; the "
                f"last: {latest} (all: loader.errors)"
            )

    def list(self) -> list[Failure]:
        """In the order in which they were met."""
        return list(self._by_id.values())
