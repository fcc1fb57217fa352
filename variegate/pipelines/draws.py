"""Random numbers of a pipeline's function: one for each sample, each site and each time that it is passed there."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from variegate.checks import as_integer, as_number, as_numbers
from variegate.errors import short_repr
from variegate.pipelines.image import refuse
from variegate.pipelines.run import run_for
from variegate.program.draws.values import cos, log

# Words of 32 bits become numbers in [0, 1) by it.
_UNIT = 2.0**-32


def coin(p: float = 0.5) -> bool:
    """Draw True with probability ``p``."""
    number = p if type(p) is float else as_number(p)
    if number is None or not 0 <= number <= 1:
        refuse(f"vg.coin: p={short_repr(p)}", "a number from 0 to 1")
    return run_for("vg.coin").draw(sys._getframe(1))[0] * _UNIT < number


def uniform(low: float = 0.0, high: float = 1.0) -> float:
    """Draw a number uniformly from [``low``, ``high``)."""
    first = as_number(low)
    end = as_number(high)
    if first is None or end is None or first > end:
        refuse(f"vg.uniform: low={short_repr(low)}, high={short_repr(high)}", "finite numbers low <= high")
    return first + (end - first) * (run_for("vg.uniform").draw(sys._getframe(1))[0] * _UNIT)


def randint(low: int, high: int | None = None) -> int:
    """Draw an integer from ``low`` to ``high`` - 1, uniformly; ``randint(n)`` draws from 0 .. n - 1."""
    first, end = (0, as_whole(low)) if high is None else (as_whole(low), as_whole(high))
    if first is None or end is None or first >= end:
        got = short_repr(low) if high is None else f"low={short_repr(low)}, high={short_repr(high)}"
        refuse(f"vg.randint: {got}", "whole numbers low < high")
    unit = run_for("vg.randint").draw(sys._getframe(1))[0] * _UNIT
    return first + math.floor((end - first) * unit)


def normal(mean: float = 0.0, std: float = 1.0) -> float:
    """Draw a normal number with ``mean`` and standard deviation ``std``."""
    center = as_number(mean)
    deviation = as_number(std)
    if center is None or deviation is None or deviation < 0:
        refuse(f"vg.normal: mean={short_repr(mean)}, std={short_repr(std)}", "finite numbers, std of 0 or more")
    first, second, *_ = (word * _UNIT for word in run_for("vg.normal").draw(sys._getframe(1)))
    radius = math.sqrt(-2.0 * log(first + 2.0**-32))  # by Box and Muller
    return float(center + deviation * (radius * cos(2.0 * math.pi * second)))


def choice(values: Sequence[Any], p: Sequence[float] | None = None) -> Any:
    """Draw one of ``values``, in proportion to ``p`` (None: uniformly)."""
    count = len(values)
    if not count:
        refuse(f"vg.choice: values={short_repr(values)}", "a list of at least one value")
    unit = run_for("vg.choice").draw(sys._getframe(1))[0] * _UNIT
    if p is None:
        return values[math.floor(count * unit)]
    weights = as_numbers(p)
    if weights is None or len(weights) != count or min(weights) < 0 or not sum(weights):
        refuse(f"vg.choice: p={short_repr(p)}", f"{count} numbers of 0 or more, not all 0")
    sums = list(accumulate(weights))
    return values[min(bisect_right(sums, unit * sums[-1]), sums.index(sums[-1]))]


def select(index: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
    """Call ``options[index]`` with ``args`` and ``kwargs``; without arguments, return the option.

    ``options`` are functions, transforms and pipelines. ``index`` is such as ``vg.randint(3)``; it may also come
    second, as in DALI's ``select``.
    """
    if isinstance(index, (list, tuple)):
        index, options = options, index
    number = as_integer(index)
    count = len(options)
    if number is None or not 0 <= number < count:
        refuse(f"vg.select: index={short_repr(index)}", f"integers from 0 to {count - 1}")
    chosen = options[number]
    return chosen(*args, **kwargs) if args or kwargs else chosen


def as_whole(value: Any) -> int | None:
    """An integer, also of a float without a fraction; None for anything else."""
    number = as_number(value)
    return int(number) if number is not None and number == int(number) else None
