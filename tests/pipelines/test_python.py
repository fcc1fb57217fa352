"""Whatever Python a function is made of, a pipeline does to every sample what the function itself does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.pipelines.oracle import amounts_of, plain
from variegate.transforms import functional as F

LABELS = list(range(-3, 13))
LIMIT = 4


def assigned(image: Any, x: Any) -> Any:
    a = b = x
    (c, d), e = (x + 1, x + 2), [x]
    if x > LIMIT:
        a, (b, c) = c, (d, a)
        e = [x + 7]
        d -= x
    elif x == LIMIT:
        b: int = 12  # type: ignore[no-redef]
    c += a
    for value in (a, b, c, d, e[0]):
        image = F.translate_x(image, value)
    return image


def functions(image: Any, x: Any, extra: int = 3, *, more: int = 4) -> Any:
    def moved(image: Any, *amounts: Any, sign: int = 1, **named: Any) -> Any:
        for amount in (*amounts, *named.values()):
            if amount < 5:
                image = F.translate_x(image, sign * amount)
        return image

    calls = 0

    def count() -> None:
        nonlocal calls
        if x > 3:
            calls = calls + x
        else:
            calls += 1

    count()
    count()
    power = lambda y, n=2: y**n if y < 9 else n  # noqa: E731
    image = moved(image, x, extra, sign=-1, last=power(x))
    return moved(image, *[power(y) for y in (x, 2)], calls, more)


def fibonacci(n: int, x: Any) -> Any:
    if n < 2:
        return x if x > n else n
    return fibonacci(n - 1, x) + fibonacci(n - 2, x)


def recursion(image: Any, x: Any) -> Any:
    return F.translate_x(image, fibonacci(6, x))


@contextlib.contextmanager
def noted(notes: list[str]) -> Iterator[None]:
    notes.append("in")
    yield
    notes.append("out")


def contexts(image: Any, x: Any) -> Any:
    notes: list[str] = []
    with noted(notes):
        if x == 3:
            return F.translate_x(image, 33)
        image = F.translate_x(image, 1)
    try:
        if x < 0:
            image = F.translate_x(image, 2)
        missing = {}["key"]  # type: ignore[var-annotated]
    except KeyError as error:
        missing = len(error.args)
    finally:
        image = F.translate_x(image, len(notes))
    return F.translate_x(image, missing if x else 0)


def expressions(image: Any, x: Any) -> Any:
    table = {"low": [1, 2, 3], "high": (4, 5, 6)}
    kind = "low" if x < LIMIT else "high"
    first = table["low"][x % 3] if kind == "low" else table["high"][-1]
    nothing = None or 0
    values = [y * 2 for y in range(6) if y % 2 or y == 4]
    values += [sum(v for v in values), sum([x, 1, first]), max([*values, x]), -x if x is not None else 0]
    (last := x + 1)
    both = (x > 1 and x < 9 and first != 2) or (not (x == 5 or x < 0) and x <= 6 ^ (x > 8) | (x & 3))
    for value in (first, nothing, *values, last, 3 if both else 4, (x > 2) + (x > 5), x // 2 - x % 4, round(x / 3)):
        image = F.translate_x(image, value)
    return image


def matched(image: Any, x: Any) -> Any:
    for mode in ("a", "b"):
        match mode:
            case "a" if len(mode) == 1:
                image = F.translate_x(image, x)
            case other:
                if x == 5:
                    return image
                image = F.translate_x(image, len(other))
    return image


def steps_of(image: Any, x: Any) -> Any:
    def step(amount: Any) -> Callable[[Any], Any]:
        def moved(image: Any) -> Any:
            return F.translate_x(image, amount) if amount > 2 else image

        return moved

    for each in [step(x), step(2), step(x + 2)]:
        image = each(image)
    return image


class Box:
    def __init__(self) -> None:
        self.v = 1

    def up(self, by: int = 1) -> None:
        self.v += by


def loops(image: Any, x: Any) -> Any:
    left = x
    while left > 0:
        image = F.translate_x(image, left)
        left -= 2
    else:
        image = F.translate_x(image, 100)
    for number in range(max(0, x - 3)):
        if number == x - 5:
            break
        image = F.translate_x(image, number)
    return image


def mutation(image: Any, x: Any) -> Any:
    items, table, box, array = [1], {"a": 1}, Box(), np.zeros(3)
    left = iter(range(9))
    if x > 2:
        items.append(x)
        table["b"] = 2
        box.up(x)
        array[x % 3] += x
        next(left)
    if x % 2:
        del table["a"]
        items += [3]
        setattr(box, "v", box.v * 2)  # noqa: B010
    for value in (sum(items), sum(table.values()), box.v, array.sum(), next(left)):
        image = F.translate_x(image, value)
    return image


def sets_and_texts(image: Any, x: Any) -> Any:
    image = F.translate_x(image, len({x, 3, x % 3}))
    image = F.translate_x(image, {1: 3, 4: 5}.get(x, 2))
    image = F.translate_x(image, len(f"{x}") + hash(x) % 5)
    image = F.translate_x(image, 3 if type(x) is int and isinstance(x, int) else 4)
    return F.translate_x(image, sorted([x, 3, 7])[1])


def errors(image: Any, x: Any) -> Any:
    try:
        if x > 5:
            raise ValueError(x)
        image = F.translate_x(image, 10 // x)
    except ZeroDivisionError:
        return F.translate_x(image, 77)
    except ValueError as error:
        image = F.translate_x(image, error.args[0])
    else:
        image = F.translate_x(image, 1)
    finally:
        image = F.translate_x(image, 2)
    return image


def one_branch(image: Any, x: Any) -> Any:
    if x > 3:
        amount = x
    return F.translate_x(image, amount) if x > 3 else image


def images_are_values(image: Any, x: Any) -> Any:
    first = F.translate_x(image, 1)
    second = F.translate_x(image, 2)
    third = F.translate_x(first, 3)
    F.translate_x(third, 4)
    dropped = [F.translate_x(third, n) for n in range(3)]
    return {0: image, 1: first, 2: second, 3: third}.get(x, dropped[x % 3])


def generators(image: Any, x: Any) -> Any:
    def amounts() -> Any:
        number = 0
        while number < x:
            number += (yield number) or 0

    made = amounts()
    with contextlib.suppress(StopIteration):
        amount = next(made)
        while True:
            image = F.translate_x(image, amount)
            amount = made.send(2)
    return image


FUNCTIONS = [
    loops,
    mutation,
    sets_and_texts,
    errors,
    one_branch,
    images_are_values,
    generators,
    assigned,
    functions,
    recursion,
    contexts,
    expressions,
    matched,
    steps_of,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_does_what_the_function_does(function: Callable[..., Any]) -> None:
    wanted = [plain(function)((), x) for x in LABELS]
    assert amounts_of(vg.pipeline(function), LABELS) == wanted


def test_a_long_chain_of_elifs(tmp_path: Any) -> None:
    lines = [
        "from variegate.transforms import functional as F",
        "def chain(image, x):",
        "    if x == 0:",
        "        pass",
    ]
    for number in range(1, 60):
        lines += [f"    elif x == {number}:", f"        image = F.translate_x(image, {number})"]
    lines += ["    else:", "        image = F.translate_x(image, x * 2)", "    return image"]
    path = tmp_path / "chain.py"
    path.write_text("\n".join(lines))
    space: dict[str, Any] = {"__name__": "chain"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    labels = [0, 1, 30, 59, 60, 100]
    program = vg.Augmenter(vg.pipeline(space["chain"])).program([(9, 9)] * 6, ids=range(6), conditions={"x": labels})
    assert [program.args[row, 0, 0] for row in range(6)] == [0, 1, 30, 59, 120, 200]
