"""Lineages and the schedules they lived through, also in the reference's file format."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apps.search.searches import SMALL, policies, searches
from variegate.apps.search import (
    History,
    Row,
    SearchSpace,
    Settings,
    from_policy_log,
    lineage,
    schedule_of,
    to_policy_log,
)
from variegate.apps.search.history import members_of, schedule_of_spans, spans_of_schedule
from variegate.apps.search.plots import family_tree
from variegate.errors import PolicyError
from variegate.policies.schedule import PUBLISHED_SCHEDULES, parse_pba_log, published_schedule

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
    assert to_policy_log(lineage(history)).splitlines() == [
        f'["1", "0", 2, 2, {list(A)}, {list(B)}]',
        f'["0", "1", 4, 4, {list(B)}, {list(C)}]',
    ]
    # Member 0 copies 1, having been copied by it: no edge goes straight on from its second step.
    assert [(edge.step, edge.source, edge.target) for edge in family_tree(history)] == [
        (1, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 1)
    ]  # fmt: skip


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
    edges = {(edge.step, edge.source, edge.target) for edge in family_tree(history)}
    assert edges >= {(i + 1, a, b) for i, (a, b) in enumerate(itertools.pairwise(way))}
    assert len(edges) == s.size * (s.steps - 1)
    schedule = schedule_of(history, member)
    assert schedule.epochs == s.epochs
    assert all(a.policy != b.policy for a, b in zip(schedule.segments[:-1], schedule.segments[1:], strict=True))
    assert from_policy_log(to_policy_log(spans), s.epochs, s.space) == schedule


@given(searches)
@settings(max_examples=20)
def test_an_earlier_history_is_a_beginning(history: History) -> None:
    """Whatever a lineage was when it ended, it is the same in the whole."""
    for step in range(1, len(history.steps)):
        part = History(history.settings, history.steps[:step])
        way = members_of(history)
        assert members_of(part, way[step - 1]) == way[:step]
        assert schedule_of(part, way[step - 1]).epochs == part.epochs


@pytest.mark.parametrize("name", PUBLISHED_SCHEDULES)
def test_published_schedules_survive_the_format(name: str) -> None:
    schedule, space = published_schedule(name), SearchSpace()
    text = to_policy_log(spans_of_schedule(schedule, space))
    assert text.count("\n") == len(schedule.segments) - 1
    assert from_policy_log(text, schedule.epochs, space, schedule.source) == schedule
    assert parse_pba_log(text, schedule.epochs, schedule.source) == schedule


@given(st.lists(st.tuples(st.integers(1, 9), policies(SMALL)), min_size=1, max_size=6))
def test_any_schedule_survives_the_format(segments: list[tuple[int, tuple[int, ...]]]) -> None:
    history = schedule_of_spans(
        [span for epochs, numbers in segments for span in spans_of_schedule(SMALL.schedule(numbers, epochs), SMALL)],
        SMALL,
    )
    assert history.epochs == sum(epochs for epochs, _ in segments)
    text = to_policy_log(spans_of_schedule(history, SMALL))
    assert from_policy_log(text, history.epochs, SMALL) == history


def test_the_space_is_kept() -> None:
    space = SearchSpace(("Cutout",), copies=1, space="pba-relative")
    schedule = space.schedule((3, 4), epochs=7)
    assert from_policy_log(to_policy_log(spans_of_schedule(schedule, space)), 7, space) == schedule


def test_text_of_another_space_is_refused() -> None:
    text = to_policy_log(spans_of_schedule(published_schedule("pba-svhn"), SearchSpace()))
    with pytest.raises(PolicyError, match=r"line 1: .* with 8 integers per policy"):
        from_policy_log(text, 160, SMALL)
    with pytest.raises(PolicyError, match=r"policy\[1\]: got 12; accepted: an integer from 0 to 9"):
        from_policy_log(f'["0", "0", 1, 1, {list(A)}, {[0, 12, *A[2:]]}]', 4, SMALL)


def test_no_such_member_is_said() -> None:
    history = history_of([(0.2, A, None), (0.1, A, 0)])
    with pytest.raises(ValueError, match="member: got 2 of a history of 1 steps; accepted: 0 to 1 after"):
        lineage(history, 2)
    with pytest.raises(ValueError, match="member: got 0 of a history of 0 steps"):
        lineage(History(history.settings, ()), 0)
