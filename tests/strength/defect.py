"""A defect to plant: what it is, where it goes, and which tests have to notice it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Segments = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Defect:
    """One small mistake, as an engineer could make it.

    ``anchor`` names the code without its file, so that a defect moves with it: a function, a method or a class
    ("Class.method"), or what a module assigns ("TABLE"); of C++, the file ("native/random.cpp"). ``search`` stands once
    in it, and ``replace`` comes instead.
    ``tests`` are the files or folders, from the root of the repository, whose task it is to notice.
    """

    name: str
    anchor: str
    search: str
    replace: str
    tests: tuple[str, ...]


class StaleDefect(Exception):
    """The code that a defect was written for is not there, or is there several times."""


def planted(defect: Defect, root: Path) -> tuple[Path, str]:
    """The file below ``root`` that ``defect`` changes, and all that it then holds."""
    if defect.anchor.endswith(".cpp"):
        return _planted_in_cpp(defect, root / defect.anchor)
    found: list[tuple[Path, str]] = []
    for path, text in _sources(root).items():
        if defect.search not in text or defect.anchor.rpartition(".")[2] not in text:
            continue
        for begin, end in _segments(text).get(defect.anchor, []):
            if text.count(defect.search, begin, end) == 1:
                place = text.index(defect.search, begin, end)
                found.append((path, text[:place] + defect.replace + text[place + len(defect.search) :]))
    if len(found) != 1:
        places = ", ".join(str(path.relative_to(root)) for path, _ in found) or "no file"
        raise StaleDefect(
            f"{defect.name}: {defect.search!r} has to stand once in {defect.anchor} of one file: {places}"
        )
    path, text = found[0]
    if _meaning(text, path) == _meaning(_sources(root)[path], path):
        raise StaleDefect(f"{defect.name}: {defect.replace!r} in {defect.anchor} means what {defect.search!r} does")
    return path, text


def _planted_in_cpp(defect: Defect, path: Path) -> tuple[Path, str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(defect.search) != 1:
        raise StaleDefect(f"{defect.name}: {defect.search!r} has to stand once in {defect.anchor}")
    return path, text.replace(defect.search, defect.replace)


@cache
def _sources(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((root / "variegate").rglob("*.py"))}


def _meaning(text: str, path: Path) -> str:
    return ast.dump(ast.parse(text, str(path)))


@cache
def _segments(text: str) -> Segments:
    """(first, last) position in the ``text`` of a module of everything in it that an anchor may name."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    segments: Segments = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            names: list[str] = []
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names = [node.name]
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                for inner in ast.iter_child_nodes(node):
                    if isinstance(inner, ast.stmt):
                        walk([inner], prefix)
            for name in names:
                first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
                last = node.end_lineno or node.lineno
                segments.setdefault(prefix + name, []).append((starts[first - 1], starts[last]))

    walk(ast.parse(text).body, "")
    return segments
