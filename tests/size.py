"""Size of the code as it is read: AST nodes, and nodes per code line, by package.

Nodes do not change when a line is split or a file is merged, so they reward neither density nor sprawl. Nothing fails
because of these numbers; continuous integration prints them::

    python -m tests.size                        the package, the studio, tests and benchmarks
    python -m tests.size --dense 12 variegate   files with more than 12 nodes per code line
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["variegate", "packages", "tests", "benchmarks"]

# Tokens that do not make a line a line of code.
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Shorter files have too few lines for the density to mean anything.
MIN_LINES = 30


@dataclass
class Size:
    files: int = 0
    lines: int = 0
    nodes: int = 0

    def __iadd__(self, other: Size) -> Size:
        self.files += other.files
        self.lines += other.lines
        self.nodes += other.nodes
        return self

    @property
    def density(self) -> float:
        """Nodes per code line."""
        return self.nodes / max(self.lines, 1)


def measure(source: str) -> Size:
    """Count the nodes and the code lines of a file; docstrings, comments and blank lines are not code lines."""
    nodes = list(ast.walk(ast.parse(source)))

    docstring_lines: set[int] = set()
    for node in nodes:
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            docstring_lines.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))

    code_lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            code_lines.update(range(token.start[0], token.end[0] + 1))

    return Size(files=1, lines=len(code_lines - docstring_lines), nodes=len(nodes))


def sizes(folder: Path) -> dict[Path, Size]:
    return {path: measure(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}


def print_table(folder: Path) -> None:
    """Print a row for each subfolder, largest first, and the sum."""
    by_room: dict[str, Size] = defaultdict(Size)
    total = Size()
    for path, size in sizes(folder).items():
        parts = path.relative_to(folder).parts
        room = parts[0] if len(parts) > 1 else "(files)"
        by_room[room] += size
        total += size

    print(f"{folder.name:24}{'files':>7}{'code lines':>12}{'nodes':>10}{'per line':>10}")
    rows = sorted(by_room.items(), key=lambda row: -row[1].nodes)
    for name, size in [*rows, ("all", total)]:
        print(f"  {name:22}{size.files:7d}{size.lines:12,}{size.nodes:10,}{size.density:10.1f}")


def print_dense(folder: Path, density: float) -> None:
    """Print the files with more nodes per code line than ``density``, densest first."""
    dense = [
        (size.density, size.lines, path)
        for path, size in sizes(folder).items()
        if size.lines > MIN_LINES and size.density > density
    ]
    for value, lines, path in sorted(dense, reverse=True):
        print(f"{value:6.1f} {lines:5d}  {path.relative_to(folder.parent)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="folders below the project's root")
    parser.add_argument("--dense", type=float, metavar="N", help="list files with more than N nodes per code line")
    options = parser.parse_args()
    for name in options.folders:
        folder = ROOT / name
        if not folder.is_dir():
            parser.error(f"{name} is not a folder of {ROOT}")
        if options.dense is None:
            print_table(folder)
        else:
            print_dense(folder, options.dense)


if __name__ == "__main__":
    main()
