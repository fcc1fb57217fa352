"""Random functions that change things in and out of branches do to every sample what Python does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import variegate as vg
from tests.pipelines.oracle import amounts_of, plain

LABELS = list(range(-2, 7))
HEAD = """
import collections, dataclasses, functools, itertools
import numpy as np
import torch
from variegate.transforms import functional as F

@dataclasses.dataclass
class Data:
    n: int = 0

class Box:
    def __init__(self):
        self.v = 1
    def up(self, by=1):
        self.v += by

def total(values):
    kept = []
    for value in values:
        kept.append(value)
    return sum(kept)

@functools.lru_cache
def doubled(n):
    return 2 * n

def function(image, x):
    a, b, c, i = 0, 1, 2, 0
    calls = 0
    items, table, array, tensor, box, data = [1, 2], {"a": 1}, np.zeros(3), torch.zeros(2), Box(), Data()
    nest, queue, raw, left = {"k": ([1], [2])}, collections.deque([1]), bytearray(3), iter(range(40))
    made = (n for n in range(40))
    def count():
        nonlocal calls
        calls += 1
    def add(n):
        items.append(n)
"""
TAIL = """
    state = [len(items), sum(items), sum(table.values()), array[0], array[1], tensor[0].item(), tensor[1].item()]
    state += [box.v, data.n, sum(nest["k"][0]), len(nest["k"][1]), queue[0], len(queue), raw[0], calls]
    for value in (a, b, c, *state, next(left), next(made)):
        image = F.translate_x(image, value)
    return image
"""
CHANGES = [
    "items.append({n})",
    "items[0] = {n}",
    "table['a'] += {n}",
    "table[{n}] = {n}",
    "array[{n} % 3] += {n}",
    "array += {n}",
    "array = array + {n}",
    "tensor[{n} % 2] = {n}",
    "tensor.mul_(2)",
    "box.v = {n}",
    "box.up({n})",
    "setattr(box, 'v', {n})",
    "box = Box()",
    "data.n += {n}",
    "nest['k'][0].append({n})",
    "nest['k'][1][:] = [{n}]",
    "queue.appendleft({n})",
    "raw[0] = {n}",
    "count()",
    "add({n})",
    "a = a + next(left)",
    "next(made)",
    "items.append(x)",
]
ALLOWED = [
    "b = b + {n}",
    "c = c + x",
    "a = total([b, x, {n}])",
    "b = doubled({n}) + items[0] + table['a'] + box.v",
    "image = F.translate_x(image, c + {n})",
    "c = 3 if x > {n} else b",
    "own = Box(); own.up({n}); a = a + own.v",
    "kept = [a]; kept.append(x); b = kept[-1] + len(kept)",
    "a = a + sum([n for n in range({n})])",
]
CONDITIONAL = ["add({n}) if x > {n} else None", "x > {n} and box.up()", "c = next(left) if x > {n} else 0"]


def written(seed: int) -> str:
    rng = random.Random(seed)
    lines: list[str] = []

    def block(indent: int, depth: int) -> None:
        for _ in range(rng.randint(1, 3)):
            kind = rng.random()
            if kind < 0.35 and depth < 3:
                where = "    " * indent
                lines.append(f"{where}if x {rng.choice(['>', '<', '=='])} {rng.randrange(5)}:")
                block(indent + 1, depth + 1)
                if rng.random() < 0.5:
                    lines.append(f"{where}else:")
                    block(indent + 1, depth + 1)
            elif kind < 0.42 and not depth:
                lines.append("    " * indent + f"for i in range({rng.randrange(3)}):")
                block(indent + 1, depth)
            else:
                pool = rng.choice([CHANGES, ALLOWED, CONDITIONAL])
                lines.append("    " * indent + rng.choice(pool).format(n=rng.randrange(1, 6)))

    block(1, 0)
    block(1, 0)
    return HEAD + "\n".join(lines) + TAIL


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 2000), marks=pytest.mark.slow)])
def test_they_do_what_they_do(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        source, path = written(seed), tmp_path / f"changes{seed}.py"
        path.write_text(source)
        space: dict[str, Any] = {"__name__": "written"}
        exec(compile(source, str(path), "exec", dont_inherit=True), space)
        wanted = [plain(space["function"])((), x) for x in LABELS]
        assert amounts_of(vg.pipeline(space["function"]), LABELS) == wanted, source
