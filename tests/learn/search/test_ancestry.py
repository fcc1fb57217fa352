"""Lineages and the schedules they lived through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.learn.search.searches import SMALL, searches
from variegate.learn.history import History, Row, Settings, lineage, members_of, schedule_of

A, B, C = (0,) * 8, (1,) * 8, (2,) * 8


def history_of(*steps: list[tuple[float, tuple[int, ...], int | None]]) -> History:
    s = Settings(size=2, space=SMALL, interval=2, epochs=5)
    rows = [
        Row(number, s.end_of(number), member, score, policy, copied)
        for number, members in enumerate(steps, start=1)
        for member, (score, policy, copied) in enumerate(members)
    ]
    return History.of(s, rows)


def test_a_lineage_by_hand() -> None:
    history = history_of(
        [(0.2, A, None), (0.1, A, 0)],
        [(0.3, A, 1), (0.4, B, None)],
        [(0.6, C, None), (0.5, B, None)],
    )
    assert history.best == 0
    assert members_of(history) == [0, 1, 0]
    assert [(span.member, span.start, span.end, span.policy) for span in lineage(history)] == [
        (0, 0, 2, A),
        (1, 2, 4, B),
        (0, 4, 5, C),
    ]
    assert [(span.start, span.end, span.policy) for span in lineage(history, 1)] == [(0, 2, A), (2, 5, B)]


def test_a_copy_that_changes_nothing_is_no_new_segment() -> None:
    history = history_of([(0.2, A, None), (0.1, A, 0)], [(0.3, A, None), (0.4, A, None)])
    assert len(lineage(history, 1)) == 2
    assert [segment.epochs for segment in schedule_of(history, 1).segments] == [4]


@given(searches, st.data())
@settings(max_examples=60)
def test_every_epoch_is_lived_once(history: History, data: st.DataObject) -> None:
    s = history.settings
    member = data.draw(st.integers(0, s.size - 1))
    spans = lineage(history, member)
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == s.epochs
    assert spans[-1].member == member
    assert all(span.start < span.end for span in spans)
    # Epoch by epoch the policy is that of the member's row, and a change of member is a copy in the log.
    way = members_of(history, member)
    for rows, current in zip(history.steps, way, strict=True):
        row = rows[current]
        (span,) = [span for span in spans if span.start < row.epoch <= span.end]
        assert (span.member, span.policy) == (current, row.policy)
    schedule = schedule_of(history, member)
    assert schedule.epochs == s.epochs
    assert all(a.policy != b.policy for a, b in zip(schedule.segments[:-1], schedule.segments[1:], strict=True))


def test_no_such_member_is_said() -> None:
    history = history_of([(0.2, A, None), (0.1, A, 0)])
    with pytest.raises(ValueError, match="member: got 2 of a history of 1 steps; accepted: 0 to 1 after"):
        lineage(history, 2)
    with pytest.raises(ValueError, match="member: got 0 of a history of 0 steps"):
        lineage(History(history.settings, ()), 0)
