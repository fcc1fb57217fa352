"""Random functions of branches, loops and jumps do to every sample what they do to its label."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import variegate as vg
from tests.pipelines.oracle import amounts_of, plain

LABELS = list(range(-2, 9))
HEAD = """
from variegate.transforms import functional as F

def function(image, x):
    a, b, c = 0, 1, 2
    i = j = 0
"""
TAIL = "    return F.translate_x(image, a + 10 * b + 100 * c)"


class Writer:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.lines: list[str] = []

    def _number(self, end: int) -> int:
        return self._rng.randrange(end)

    def _variable(self) -> str:
        return self._rng.choice("abc")

    def _condition(self, depth: int = 0) -> str:
        inner = [self._condition(depth + 1) for _ in range(2)] if depth < 2 else ["x > 3", "a < x"]
        choices = [
            *(f"x == {self._number(11) - 2}", f"x < {self._number(9)}", f"{self._variable()} > {self._number(6)}"),
            *(f"({inner[0]} and {inner[1]})", f"({inner[0]} or {inner[1]})", f"not {inner[0]}"),
            *(f"i == {self._number(3)}", f"x in ({self._number(8)}, {self._number(8)})"),
        ]
        return self._rng.choice(choices)

    def block(self, indent: int, depth: int, loops: int) -> None:
        for _ in range(1 + self._number(3)):
            self._statement(indent, depth, loops)

    def _statement(self, indent: int, depth: int, loops: int) -> None:
        kind = self._number(10)
        if kind < 3 and depth < 3:
            self._write(indent, f"if {self._condition()}:", depth, loops)
            if self._number(5) < 2:
                self._write(indent, f"elif {self._condition()}:", depth, loops)
            if self._number(2):
                self._write(indent, "else:", depth, loops)
        elif kind == 3 and depth < 3:
            self._write(indent, f"for {'ij'[min(loops, 1)]} in range({1 + self._number(3)}):", depth, loops + 1)
            if self._number(3) == 0:
                self._write(indent, "else:", depth, loops)
        else:
            moved = f"F.translate_x(image, {self._variable()} + {self._number(5)})"
            jump = self._rng.choice(["break", "continue"]) if loops else f"return {moved}"
            lines = {
                4: f"{self._variable()} = {self._variable()} + {self._number(3)}",
                5: f"{self._variable()} += x * {self._number(3)}",
                6: jump if depth else "pass",
                7: "return image" if depth and self._number(2) else "pass",
                8: f"{self._variable()} = {self._variable()} if {self._condition()} else x - 1",
            }
            self.lines.append("    " * indent + lines.get(kind, f"image = {moved}"))

    def _write(self, indent: int, line: str, depth: int, loops: int) -> None:
        self.lines.append("    " * indent + line)
        self.block(indent + 1, depth + 1, loops)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_they_do_what_they_do(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        writer = Writer(seed)
        writer.block(1, 0, 0)
        source = HEAD + "\n".join(writer.lines) + "\n" + TAIL
        path = tmp_path / f"function{seed}.py"
        path.write_text(source)
        space: dict[str, Any] = {"__name__": "written"}
        exec(compile(source, str(path), "exec"), space)
        wanted = [plain(space["function"])((), x) for x in LABELS]
        assert amounts_of(vg.pipeline(space["function"]), LABELS) == wanted, source
