"""Ancestry of a member: the members whose weights it inherited, and the schedule that these weights lived through.

That schedule is what a search finds: no single policy, but the one that the best network had in each epoch.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from variegate.apps.search.history import History
from variegate.apps.search.policy import Numbers, SearchSpace
from variegate.policies import Schedule, Segment
from variegate.policies.schedule import parse_pba_log


@dataclass(frozen=True)
class LineageSpan:
    """Epochs ``start`` to ``end - 1``, in which ``member`` trained with ``policy``, and copied nobody."""

    member: int
    start: int
    end: int
    policy: Numbers


def lineage(history: History, member: int | None = None) -> list[LineageSpan]:
    """From epoch 0 to the weights that ``member`` (None: the best) has after the last step, without gaps.

    Raises ValueError for a history of no steps, and for no such member.
    """
    path = members_of(history, member)
    spans: list[LineageSpan] = []
    for rows, current in zip(history.steps, path, strict=True):
        row = rows[current]
        start = spans[-1].end if spans else 0
        if spans and spans[-1].member == current and history.steps[row.step - 2][current].copied_from is None:
            spans[-1] = replace(spans[-1], end=row.epoch)
        else:
            spans.append(LineageSpan(current, start, row.epoch, row.policy))
    return spans


def members_of(history: History, member: int | None = None) -> list[int]:
    """For every step, the member in which the later ``member`` (None: the best) then was."""
    current = history.best if member is None else member
    if not history.steps or not 0 <= current < history.settings.size:
        got = f"{member!r} of a history of {len(history.steps)} steps"
        raise ValueError(f"member: got {got}; accepted: 0 to {history.settings.size - 1} after at least one step")
    path = [current]
    for rows in reversed(history.steps[:-1]):
        donor = rows[current].copied_from
        current = current if donor is None else donor
        path.append(current)
    return path[::-1]


def schedule_of(history: History, member: int | None = None, source: str = "") -> Schedule:
    """The schedule that ``member`` (None: the best) has lived through, as long as the history; see ``lineage``."""
    return schedule_of_spans(lineage(history, member), history.settings.space, source)


def schedule_of_spans(spans: Sequence[LineageSpan], space: SearchSpace, source: str = "") -> Schedule:
    """Epochs with equal policies, one after another, are one segment (a perturbation may change nothing)."""
    segments: list[Segment] = []
    for span in spans:
        segment = Segment(span.end - span.start, space.from_numbers(span.policy))
        if segments and segments[-1].policy == segment.policy:
            segments[-1] = replace(segment, epochs=segments[-1].epochs + segment.epochs)
        else:
            segments.append(segment)
    return Schedule(tuple(segments), space=space.space, source=source, fill=space.fill)


def spans_of_schedule(schedule: Schedule, space: SearchSpace, member: int = 0) -> list[LineageSpan]:
    """A schedule as the life of one member. Raises PolicyError where ``space`` cannot express a policy."""
    ends = list(itertools.accumulate(segment.epochs for segment in schedule.segments))
    return [
        LineageSpan(member, end - segment.epochs, end, space.to_numbers(segment.policy))
        for end, segment in zip(ends, schedule.segments, strict=True)
    ]


def to_policy_log(spans: Sequence[LineageSpan]) -> str:
    """The text of a ``pbt_policy_<trial>.txt``, as arcelien/pba publishes and Ray writes it: a line for every copy.

    [target trial, clone trial, target epoch, clone epoch, the clone's policy, the target's new policy]. The format
    knows neither operations nor how long the training is. Without any copy, a line says that nothing changed at 0.
    """
    pairs = list(itertools.pairwise(spans)) or [(replace(spans[0], end=0), spans[0])]
    lines = [
        [str(after.member), str(before.member), before.end, before.end, list(before.policy), list(after.policy)]
        for before, after in pairs
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def from_policy_log(text: str, epochs: int, space: SearchSpace, source: str = "") -> Schedule:
    """The schedule in such a text, for a training of ``epochs``. Raises PolicyError with the line's number."""
    parsed = replace(parse_pba_log(text, epochs, source, space.tuples), space=space.space)
    return schedule_of_spans(spans_of_schedule(parsed, space), space, source)
