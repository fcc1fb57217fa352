"""All work on disk goes one way: claim, compare, take back what is lost, restore, make what is left, finish."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from variegate.formats.base import Source, SourceError
from variegate.formats.stamps import Stamps, stamps_of
from variegate.io.addresses import shown
from variegate.io.location import Location, LocationLike
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.lost_outputs import Lost, Row, SpanOf, take_back_lost


class DiskRun:
    """``num_items`` items whose outputs are recorded in the journal of ``destination`` until all of them are there."""

    destination: str | os.PathLike[str]
    resume: bool
    stop: Event
    is_sharded = False
    num_items: int
    is_interrupted = False

    def settings(self) -> dict[str, Any]:
        """All that the outputs depend on, as JSON."""
        raise NotImplementedError

    def compare(self, destination: Destination, stamps: Stamps | None) -> Callable[[Row], bool]:
        """The source with what the run saw of it -> whether an output is to be made again though it is there."""
        return lambda row: False

    def spans(self, destination: Destination) -> SpanOf:
        """For ``take_back_lost``."""
        raise NotImplementedError

    def restore(self, destination: Destination, lost: Lost) -> None:
        """Put in order what is there, complete or not, after what is lost was taken back."""

    def make(self, destination: Destination) -> None:
        """Make and record what is left in the journal, or less where ``stop`` is set."""
        raise NotImplementedError

    def finish(self, destination: Destination) -> None:
        """Write what lies beside the outputs, now that all of them are there, and the manifest."""
        destination.finish(destination.journal.rows(self.num_items))

    def run_on(self, source: Source | None) -> None:
        """Go the whole way. ``is_interrupted``: it ended before all items were there."""
        settings = self.settings()
        stamps = None if source is None else stamps_of(source)
        self.refuse(settings, stamps)
        place = None if stamps is None else "source"
        with Destination(self.destination, settings, None, self.resume, place) as destination:
            is_unwanted = self.compare(destination, stamps)
            lost = take_back_lost(destination, self.spans(destination), self.is_sharded, is_unwanted)
            self.restore(destination, lost)
            if destination.is_complete:
                return
            self.make(destination)
            self.is_interrupted = destination.journal.covered != [(0, self.num_items)]
            if not self.is_interrupted:
                self.finish(destination)

    def refuse(self, settings: dict[str, Any], stamps: Stamps | None) -> None:
        """Raise SourceError for a destination of another source, before its settings are compared."""


def source_settings(source: Source, place: str) -> dict[str, Any]:
    """The settings that every run has of its source. ``place``: as it was given."""
    return {
        "source": shown(place),
        "samples": len(source),
        "fingerprint": source.fingerprint,
        "classes": list(source.classes),
    }


def check_apart(source: LocationLike, destination: str | os.PathLike[str]) -> None:
    """Raise SourceError where the destination is the source, lies in it, or is a file."""
    inner, outer = Location.parse(destination), Location.parse(source)
    if inner.is_url or outer.is_url:
        return
    below, above = Path(inner.address()).resolve(), Path(outer.address()).resolve()
    if below == above or above in below.parents:
        where = "is the source itself" if below == above else f"lies inside the source {above}"
        raise SourceError(f"{below}: {where}; choose a folder outside of it")
    if below.exists() and not below.is_dir():
        raise SourceError(f"{below}: is a file; expected a folder, or a name that is still free")
