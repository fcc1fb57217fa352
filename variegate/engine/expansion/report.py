"""How an expansion stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from variegate.engine.snapshot import Snapshot


@dataclass
class Report:
    """Counts of outputs, if not said otherwise. ``written`` are on disk and in the journal: nothing undoes them."""

    files: int  # samples of the source
    total: int  # of a complete run
    written: int = 0  # by this run
    resumed: int = 0  # that an earlier run had written
    repaired: int = 0  # of those that an earlier run had written: not there any more, or not whole; to be made again
    remade: int = 0  # of those: of files that have changed since; to be made again
    missing: int = 0  # that cannot be made, as this run or an earlier one found
    skipped: list[tuple[str, str]] = field(default_factory=list)  # samples that were given up by this run, and why
    seconds: float = 0.0  # since the first worker was ready
    is_interrupted: bool = False
    snapshot: Snapshot | None = None  # of the devices, while it runs

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.written / self.seconds if self.seconds > 0 else 0.0
