"""A scenario in words, for tables and plots."""

from __future__ import annotations

from collections.abc import Sequence

from variegate.options.simulation import Scenario


def seconds(value: float) -> str:
    """Three digits or more: ``"0.123 s"``, ``"1.23 s"``, ``"12.3 s"``, ``"1,234 s"``."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f} s"


def describe(scenario: Scenario, speeds: Sequence[float], ideal: float) -> list[str]:
    """Two lines: what there is to do and by whom; how, what goes wrong, and how fast it could be."""
    devices = "1 device" if scenario.devices == 1 else f"{scenario.devices:,} devices"
    slowest, fastest = min(speeds), max(speeds)
    of = f"of speed {slowest:.3g}" if slowest == fastest else f"of speeds {slowest:.3g} to {fastest:.3g}"
    first = (
        f"{devices} {of}; {scenario.tasks:,} tasks of {scenario.task_items:,} items, "
        f"{scenario.task_seconds:g} s each at speed 1, varying by {scenario.variation:.0%}"
    )
    queue = "all waiting at once" if scenario.queue is None else f"{scenario.queue:,} waiting per device"
    wrong = "no failures"
    if scenario.failure_rate:
        wrong = f"a worker is lost {scenario.failure_rate:g} times an hour, back after {scenario.restart:g} s"
    second = f"{queue}, {scenario.in_flight} in flight; {wrong}; ideal {seconds(ideal)}"
    return [first, second]
