"""The thresholds that images were judged by, as a report shows them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Limit(NamedTuple):
    """``column``: of ``charts.MEASURES``, whose values beyond ``value`` are the finding."""

    finding: str
    column: str
    value: float


def limits_of(thresholds: Any) -> list[Limit]:
    """None where images were not judged."""
    return []
