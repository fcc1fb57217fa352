"""What a branch changes would be changed for every sample: refused at its line, however it is reached. What a function
makes for itself is its own."""

from __future__ import annotations

import array
import collections
import functools
import itertools
import logging
import queue
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.pipelines.oracle import assert_refused_here, plain, traced_amounts
from variegate.transforms import functional as F

LABELS = list(range(-2, 9))
of_module = [1]


class Box:
    count = 0

    def __init__(self) -> None:
        self.v = 1

    def up(self) -> None:
        self.v += 1

    def __call__(self, image: Any) -> Any:
        self.v += 1
        return F.translate_x(image, self.v)


class Slotted:
    __slots__ = ("v",)


class Own(list):  # type: ignore[type-arg]
    pass


def numbers() -> Iterator[int]:
    yield from range(9)


def helper(value: int) -> None:
    of_module.append(value)


def deep() -> None:
    helper(3)


@vg.pipeline
def other(image: Any) -> Any:
    of_module.append(1)
    return F.translate_x(image, len(of_module))


# What is made before a branch, and what the branch does to it.
CHANGES: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (lambda: [1, 2], lambda a: a.reverse()),
    (lambda: {"a": 1}, lambda a: a.__setitem__("a", 2)),
    (lambda: {1}, lambda a: a.add(2)),
    (lambda: Own(), lambda a: a.append(2)),
    (lambda: collections.deque([1, 2]), lambda a: a.rotate()),
    (lambda: collections.UserList([1]), lambda a: a.append(3)),
    (lambda: bytearray(), lambda a: a.extend(b"a")),
    (queue.Queue, lambda a: a.put(1)),
    (lambda: array.array("i", [1, 2]), lambda a: a.append(3)),
    (lambda: np.zeros((4, 4))[::2, 1], lambda a: a.__iadd__(9)),
    (lambda: np.zeros(3_000_000), lambda a: a.__iadd__(9)),
    (lambda: np.array([[1], None], dtype=object), lambda a: a[0].append(3)),
    (lambda: torch.zeros(3, dtype=torch.bfloat16), lambda a: a.add_(9)),
    (lambda: torch.zeros(3), lambda a: a.data.add_(9)),
    (Box, lambda a: a.up()),
    (Box, lambda a: delattr(a, "v")),
    (lambda: Box, lambda a: setattr(a, "count", a.count + 1)),
    (Slotted, lambda a: setattr(a, "v", 9)),
    (lambda: types.SimpleNamespace(v=1), lambda a: setattr(a, "v", 9)),
    (lambda: ([1], {"k": [[2]]}), lambda a: a[1]["k"][0].append(9)),
    (lambda: functools.partial(helper, [1]), lambda a: a.args[0].append(1)),
    (lambda: [1].append, lambda a: a(3)),
    (lambda: iter([1, 2]), next),
    (itertools.count, next),
    (lambda: zip([1, 2], [3, 4], strict=True), next),
    (numbers, next),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_whatever_is_changed(number: int) -> None:
    made, change = CHANGES[number]
    before, thing = list(of_module), made()

    def statement(image: Any) -> Any:
        a = thing
        if vg.coin():  # here
            change(a)
        return image

    def expression(image: Any) -> Any:
        change(thing) if vg.coin() else None  # here
        return image

    def conjunction(image: Any) -> Any:
        vg.coin() and change(thing)  # here
        return image

    def selection(image: Any) -> Any:
        return vg.select(vg.randint(2), [lambda x: (change(thing), x)[1], F.invert], image)  # here

    others = (expression, conjunction, selection) if number == 0 else ()
    for function in (statement, *others):
        thing = made()
        assert_refused_here(function, "a branch changes `.*` .*, which all samples share, by a condition", __file__)
    of_module[:] = before


def of_a_function_around(image: Any) -> Any:
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    if vg.coin():  # here
        count()
    return F.translate_x(image, calls)


def deep_helper(image: Any) -> Any:
    if vg.coin():  # here
        deep()
    return image


def called_object(image: Any) -> Any:
    box = Box()
    image = box(image) if vg.coin() else image  # here
    return box(image)


def attribute_of_a_function(image: Any) -> Any:
    if vg.coin():  # here
        helper.calls = 3  # type: ignore[attr-defined]
    return image


def other_pipeline(image: Any) -> Any:
    return other(image) if vg.coin() else image  # here


def behind_a_return(image: Any, x: Any) -> Any:
    box = Box()
    if x > 3:
        return image
    box.up()  # here
    return F.translate_x(image, box.v)


def nested(image: Any, x: Any) -> Any:
    box = Box()
    if x > 3:
        inner = Box()
        inner.up()
        if x > 5:  # here
            inner.up()
        image = F.translate_x(image, inner.v)
    return F.translate_x(image, box.v)


def loop_of_an_iterator(image: Any, x: Any) -> Any:
    left = iter([1, 2, 3])
    for value in left:  # here
        if value == x:
            break
    return F.translate_x(image, next(left, 0))


NAMED: list[tuple[Callable[..., Any], str]] = [
    (of_a_function_around, r"`calls` \(variable\)"),
    (deep_helper, r"`of_module` \(list\)"),
    (called_object, r"`box` \(Box\)"),
    (attribute_of_a_function, r"`helper` \(function\)"),
    (other_pipeline, r"`of_module` \(list\)"),
    (behind_a_return, r"`box` \(Box\)"),
    (nested, r"`inner` \(Box\)"),
    (loop_of_an_iterator, "a loop that some samples leave takes from an iterator"),
]


@pytest.mark.parametrize(("function", "message"), NAMED, ids=[function.__name__ for function, _ in NAMED])
def test_it_names_what_is_changed(function: Callable[..., Any], message: str) -> None:
    before = list(of_module)
    assert_refused_here(function, message, __file__)
    of_module[:] = before
    vars(helper).clear()


# -- what is allowed ---------------------------------------------------------------------------------------------

log = logging.getLogger("changes")
config = types.SimpleNamespace(amounts=[3, 4], table={"a": np.arange(3)}, box=Box())
rows = np.arange(12.0).reshape(3, 4)


def total(values: list[Any]) -> Any:
    sums, seen = [0], {}
    for number, value in enumerate(values):
        sums.append(sums[-1] + value)
        seen[number] = value
    return sums[-1] + len(seen)


@functools.lru_cache
def remembered(n: int) -> int:
    return n * 2


class Lazy:
    @functools.cached_property
    def amount(self) -> int:
        return 3


lazy = Lazy()


def own_state(image: Any, x: Any) -> Any:
    if x > 3:
        box, notes = Box(), [x]
        box.up()
        notes.append(total([x, 2]))
        data = np.zeros(2)
        data[0] = 3
        image = F.translate_x(image, box.v + notes[-1] + data[0])
    return F.translate_x(image, total([x, x, 1]) if x < 5 else next(iter([4, 5])))


def reading(image: Any, x: Any) -> Any:
    if x > 2:
        image = F.translate_x(image, config.amounts[1] + config.table["a"][2] + rows[1].sum() + len(of_module))
    return F.translate_x(image, (config.box.v if x < 4 else remembered(4)) + (lazy.amount if x > 5 else remembered(x)))


def changes_for_all(image: Any, x: Any) -> Any:
    box, left, notes = Box(), iter([4, 5, 6]), []
    for step in range(3):
        notes.append(step * x)
        box.up()
        if x > step:
            image = F.translate_x(image, notes[-1] + box.v)
        image = F.translate_x(image, next(left))
    for value in left:
        image = F.translate_x(image, value)
    return image


def loops_that_end(image: Any, x: Any) -> Any:
    for number, value in enumerate([4, 5, 6]):
        if value == x:
            break
        image = F.translate_x(image, number)
    return image


def telling(image: Any, x: Any) -> Any:
    if x > 3:
        print(f"here {x:.2f}", x)
        log.warning("x is %s", x)
        log.info("not said")
        image = F.translate_x(image, 3)
    return image


def same_again(image: Any, x: Any) -> Any:
    box = types.SimpleNamespace(v=1000)
    if x > 3:
        box.v = 10 * 100
    return F.translate_x(image, box.v)


def truth_values(image: Any, x: Any) -> Any:
    large = x > 3
    image = F.translate_x(image, 1 if large is True else 2)
    image = F.translate_x(image, 1 if large is not False else 2)
    image = F.translate_x(image, 1 if x is None or x is of_module else 2)
    pair = x if isinstance(x, (list, tuple)) else (x, x)
    return F.translate_x(image, pair[1] + (x in {1, 2}) + (x in {1: 2, 5: 6}) + (3 in (x, 4)) + isinstance(large, int))


ALLOWED = [own_state, reading, changes_for_all, loops_that_end, telling, same_again, truth_values]


@pytest.mark.parametrize("function", ALLOWED, ids=[function.__name__ for function in ALLOWED])
def test_what_leaves_others_alone_is_what_python_does(function: types.FunctionType) -> None:
    wanted = [plain(function)((), x) for x in LABELS]
    assert traced_amounts(vg.pipeline(function), LABELS) == wanted


def test_much_that_can_be_reached_is_read_within_bounds() -> None:
    many = [[n] for n in range(30_000)]
    large = np.zeros((1000, 1000, 10))

    def augment(image: Any, x: Any) -> Any:
        for number in range(5):
            if x == number:
                image = F.translate_x(image, len(many) + large[0, 0, 0])
        return image

    assert traced_amounts(vg.pipeline(augment), [1, 9]) == [(30_000.0,), ()]
