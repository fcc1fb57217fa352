"""PBA: schedules, and algorithm 1."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.errors import PolicyError
from variegate.policies import PBA, Schedule, Segment
from variegate.policies.schedule import policy_from_numbers, published_schedule, schedule_from_dict
from variegate.program.ops import Op
from variegate.transforms import ArgumentError

# The last two lines of arcelien/pba schedules/rsvhn_16_wrn.txt, with the trial before them.
BEFORE = [0, 0, 10, 0, 1, 2, 10, 4, 5, 4, 0, 8, 2, 0, 0, 8, 3, 8, 3, 0, 6, 0, 4, 7, 2, 7, 10, 9, 10, 7]
BEFORE += [10, 1, 8, 0, 7, 0, 9, 6, 0, 0, 9, 6, 10, 9, 4, 1, 5, 6, 9, 6, 6, 3, 3, 8, 10, 1, 8, 3, 7, 4]
MIDDLE = [0, 3, 9, 0, 0, 5, 10, 7, 8, 4, 0, 9, 0, 5, 1, 6, 4, 8, 4, 0, 6, 0, 6, 6, 2, 5, 10, 9, 10, 8]
MIDDLE += [10, 0, 10, 0, 4, 0, 8, 6, 0, 0, 6, 9, 10, 9, 2, 2, 7, 6, 8, 5, 6, 6, 0, 8, 3, 1, 10, 8, 9, 2]
LAST = [8, 2, 9, 0, 0, 0, 7, 4, 5, 6, 9, 9, 0, 4, 3, 9, 10, 8, 8, 1, 6, 2, 4, 7, 1, 4, 9, 6, 9, 8]
LAST += [9, 1, 10, 1, 10, 0, 5, 3, 10, 0, 6, 8, 5, 8, 2, 5, 10, 9, 7, 3, 8, 7, 3, 9, 0, 0, 10, 7, 9, 2]


def steady(*policy) -> Schedule:
    return Schedule((Segment(1, tuple(policy)),))


def test_the_published_file_is_the_references_log() -> None:
    ends = published_schedule("pba-svhn").segments[-3:]
    assert [segment.policy for segment in ends] == [policy_from_numbers(p) for p in (BEFORE, MIDDLE, LAST)]
    assert [segment.epochs for segment in ends] == [6, 6, 1]


def test_sixty_numbers_are_two_copies_of_fifteen_pairs() -> None:
    policy = policy_from_numbers(LAST)
    assert policy[0] == ("Rotate", 0.8, 2)
    assert policy[14] == ("Contrast", 0.9, 8)
    assert policy[15] == ("Rotate", 0.9, 1)
    assert policy[29] == ("Contrast", 0.9, 2)
    with pytest.raises(ValueError, match="59 numbers; accepted: 60"):
        policy_from_numbers(LAST[:-1])


schedules = st.builds(
    lambda lengths: Schedule(tuple(Segment(n, (("Rotate", i / 20, 3),)) for i, n in enumerate(lengths))),
    st.lists(st.integers(1, 60), min_size=1, max_size=20),
)


def lengths_of(schedule: Schedule, scaled: Schedule) -> list[int]:
    """The epochs that each policy has got; 0 for one that is left out."""
    found = {segment.policy: segment.epochs for segment in scaled.segments}
    return [found.get(segment.policy, 0) for segment in schedule.segments]


@given(schedules, st.integers(1, 500))
def test_every_boundary_is_within_half_an_epoch_of_where_it_belongs(schedule: Schedule, epochs: int) -> None:
    scaled = schedule.scaled(epochs)
    assert scaled.epochs == epochs
    assert min(segment.epochs for segment in scaled.segments) > 0
    before = np.cumsum([segment.epochs for segment in schedule.segments])
    after = np.cumsum(lengths_of(schedule, scaled))
    # In integers, so that a boundary at exactly half an epoch is one.
    assert (abs(2 * after * schedule.epochs - 2 * before * epochs) <= schedule.epochs).all()


def test_a_short_training_ends_as_the_long_one() -> None:
    """The last policy of the published schedule has 5 of 200 epochs: one of 30, where flooring gave it eight."""
    schedule = published_schedule("pba-cifar10")
    assert schedule.scaled(30).segments[-1] == Segment(1, schedule.segments[-1].policy)
    assert schedule.scaled(30, "reference").segments[-1] == Segment(8, schedule.segments[-1].policy)
    assert [s.epochs for s in schedule.scaled(1800).segments][:3] == [108, 198, 180]
    for epochs in (0, True, 2.5):
        with pytest.raises(ValueError, match="; accepted: an integer from 1 on"):
            schedule.scaled(epochs)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rounding: got 'floor'; accepted: one of 'cumulative', 'reference'"):
        schedule.scaled(30, "floor")


def reference_list(schedule: Schedule, epochs: int) -> list[int]:
    """Which policy each epoch has, as ``parse_log_schedule`` of arcelien/pba lists them one by one."""
    multiplier, listed = float(epochs) / schedule.epochs, []
    for number, segment in enumerate(schedule.segments):
        listed += [number] * int(segment.epochs * multiplier)
    return listed + [len(schedule.segments) - 1] * (int(schedule.epochs * multiplier) - len(listed))


@given(schedules, st.integers(1, 500))
def test_the_references_way_is_the_references(schedule: Schedule, epochs: int) -> None:
    scaled = schedule.scaled(epochs, rounding="reference")
    policies = [segment.policy for segment in schedule.segments]
    listed = reference_list(schedule, epochs)
    got = [policies.index(scaled.segments[scaled.segment_at(epoch)].policy) for epoch in range(epochs)]
    assert scaled.epochs == epochs
    assert got[: len(listed)] == listed
    # Its list can come out an epoch short, since 200 * (29 / 200) is a little less than 29.
    assert epochs - len(listed) in (0, 1)


def test_a_schedule_brings_its_fill(draw) -> None:
    policy = (("Rotate", 1.0, 9),)
    own = Schedule((Segment(1, policy),), fill=(40, 50, 60))
    assert own.to_dict()["fill"] == [40, 50, 60]
    assert schedule_from_dict(own.to_dict()) == own
    assert own.scaled(7).fill == (40, 50, 60)

    def fills(transform: PBA) -> set[tuple[int, ...]]:
        program = draw(transform, 40)
        return {tuple(program.fill[row, 0].tolist()) for row in np.flatnonzero(program.length)}

    assert fills(PBA(own)) == fills(PBA(own, space="pba-relative")) == {(40, 50, 60)}
    assert fills(PBA(own, fill=7)) == {(7, 7, 7)}
    # A schedule from before there was a fill means what it meant.
    old = {name: value for name, value in own.to_dict().items() if name != "fill"}
    assert fills(PBA(old)) == {(125, 122, 113)}
    assert published_schedule("pba-cifar10").fill is None


def test_the_epoch_chooses_the_policy(draw) -> None:
    schedule = Schedule(
        (
            Segment(2, (("Invert", 1.0, 0),)),
            Segment(3, (("Equalize", 1.0, 0),)),
            Segment(1, (("AutoContrast", 1.0, 0),)),
        )
    )
    assert [schedule.segment_at(epoch) for epoch in range(8)] == [0, 0, 1, 1, 1, 2, 2, 2]
    for epoch, op in ((0, Op.INVERT), (1, Op.INVERT), (2, Op.EQUALIZE), (5, Op.AUTOCONTRAST), (99, Op.AUTOCONTRAST)):
        program = draw(PBA(schedule), 50, epoch=epoch)
        assert set(program.opcode[program.length > 0, 0]) == {op}
    assert draw(PBA("pba-cifar10"), 50, epoch=11).length.max() == 0
    assert draw(PBA("pba-cifar10"), 50, epoch=12).length.max() > 0


def test_counts_follow_the_paper(draw) -> None:
    """With every tuple certain to fire, the number of operations is the count: 0, 1, 2 with 0.2, 0.3, 0.5."""
    schedule = steady(*[("Invert", 1.0, 0)] * 30)
    counts = np.bincount(draw(PBA(schedule), 10_000).length, minlength=4) / 10_000
    assert counts == pytest.approx([0.2, 0.3, 0.5, 0.0], abs=4 * 0.005)


def test_algorithm_1_firing_rates(draw) -> None:
    """Against a plain walk of the shuffled list, as the paper writes it."""
    probabilities = [0.1, 0.9, 0.0, 0.5, 0.3, 1.0]
    names = ["Invert", "Equalize", "Solarize", "AutoContrast", "Posterize", "Color"]
    ops = [Op.INVERT, Op.EQUALIZE, Op.SOLARIZE, Op.AUTOCONTRAST, Op.POSTERIZE, Op.SATURATION]
    program = draw(PBA(steady(*((n, p, 3) for n, p in zip(names, probabilities, strict=True)))), 20_000)
    rng, expected = np.random.default_rng(0), Counter[tuple[Op, ...]]()
    for _ in range(20_000):
        left, fired = rng.choice(3, p=[0.2, 0.3, 0.5]), []
        for i in rng.permutation(6):
            if left and rng.random() < probabilities[i]:
                fired.append(ops[i])
                left -= 1
        expected[tuple(fired)] += 1
    found = Counter(tuple(op for op, _ in program.operations(row)) for row in range(20_000))
    assert program.length.max() == 2
    assert not (program.opcode == Op.SOLARIZE).any()
    for which in expected.keys() | found.keys():
        # Both sides are counts: the deviation of a difference is the square root of twice the mean.
        assert abs(found[which] - expected[which]) < 5 * np.sqrt(2 * max(expected[which], 5))


def test_signs_of_both_operations_are_even_and_independent(draw) -> None:
    schedule = steady(("Rotate", 1.0, 9), ("ShearX", 1.0, 9))
    program = draw(PBA(schedule), 8000)
    both = program.args[program.length == 2, :2, 0] < 0
    share = np.array([[(both[:, 0] == a) & (both[:, 1] == b) for a in (0, 1)] for b in (0, 1)]).mean(axis=2)
    assert share == pytest.approx(np.full((2, 2), 0.25), abs=0.03)


def test_cutout_is_a_clipped_square(draw) -> None:
    program = draw(PBA(steady(("Cutout", 1.0, 8))), 4000, size=(32, 32))
    rows = np.flatnonzero(program.length)
    assert set(program.opcode[rows, 0]) == {Op.ERASE}
    assert (program.args[rows, 0, 1] == 1).all()
    assert (program.fill[rows, 0] == (125, 122, 113)).all()
    rectangles = program.tables.rectangles[program.args[rows, 0, 0].astype(int)]
    end = rectangles[:, :2] + rectangles[:, 2:]
    assert rectangles[:, :2].min() == 0
    assert end.max() == 32
    inside = (rectangles[:, :2] > 0).all(axis=1) & (end < 32).all(axis=1)
    assert (rectangles[inside, 2:] == 16).all()
    # Half of it at the least is left in each direction: centres are pixels of the image.
    assert rectangles[:, 2:].min() >= 8
    starts = np.bincount(rectangles[:, 0], minlength=25)
    assert starts[0] / len(rows) == pytest.approx(9 / 32, abs=0.04)
    assert starts[1:24] / len(rows) == pytest.approx(np.full(23, 1 / 32), abs=0.015)


def test_relative_space_scales_with_the_image(draw) -> None:
    program = draw(PBA(steady(("TranslateX", 1.0, 9)), space="pba-relative"), 50, size=(64, 320))
    assert set(np.abs(program.args[program.length > 0, 0, 0])) == {90}
    program = draw(PBA(steady(("TranslateX", 1.0, 9))), 50, size=(64, 320))
    assert set(np.abs(program.args[program.length > 0, 0, 0])) == {9}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "2"}, "schedule.format: got '2'; accepted: 'variegate-schedule/1'"),
        ({"fill": 128}, "schedule.fill: got 128; accepted: three integers from 0 to 255"),
        ({"fill": [1, 2, 256]}, "schedule.fill: got [1, 2, 256]; accepted: three"),
        ({"fill": [0.5, 0, 0]}, "schedule.fill: got [0.5, 0, 0]; accepted: three"),
        ({"space": "dali"}, "schedule.space: got 'dali'"),
        ({"segments": []}, "schedule.segments: got []"),
        ({"extra": 1}, "schedule.extra: got 1"),
        ({"epochs": 7}, "schedule.epochs: got 7; accepted: 2"),
        ({"segments": [{"epochs": 0, "policy": []}]}, "schedule.segments[0].epochs: got 0; accepted: a positive"),
        ({"segments": [{"epochs": 2}]}, "schedule.segments[0].policy: got None"),
        ({"segments": [{"epochs": 2, "policy": [["Rotate", 0.1]]}]}, "schedule.segments[0].policy[0]: got"),
        ({"segments": [{"epochs": 2, "policy": [["Rot", 0.1, 1]]}]}, "schedule.segments[0].policy[0][0]: got 'Rot'"),
        ({"segments": [{"epochs": 2, "policy": [["Rotate", 3, 1]]}]}, "policy[0][1]: got 3; accepted: a probability"),
        ({"segments": [{"epochs": 2, "policy": [["Rotate", 1, 10]]}]}, "policy[0][2]: got 10; accepted: an integer"),
    ],
)
def test_bad_schedules_say_where(change, message) -> None:
    good = {"format": "variegate-schedule/1", "segments": [{"epochs": 2, "policy": [["Rotate", 0.5, 5]]}]}
    assert schedule_from_dict(good).epochs == 2
    with pytest.raises(PolicyError) as caught:
        schedule_from_dict({**good, **change})
    assert message in str(caught.value)
    with pytest.raises(ArgumentError):
        PBA({**good, **change})


def test_schedule_round_trip() -> None:
    schedule = published_schedule("pba-svhn")
    assert schedule_from_dict(schedule.to_dict()) == schedule
    assert schedule.to_dict()["operations"][:2] == ["Rotate", "TranslateX"]
