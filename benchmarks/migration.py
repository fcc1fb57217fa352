"""Run both code blocks of every pair in docs/migration and compare their results: ``python -m benchmarks.migration``.

A pair stands below a comment, ``<!-- compare NAME ...: RULE -->``: a ``py`` block, which runs in the peers'
environment, and a ``python`` block, which runs here. Both define the names. Rules: ``equal``, ``within X`` and
``shape`` (with the dtype). ``<!-- not run: REASON -->`` stands above a ``py`` block whose library cannot be installed.
Blocks run in order, each page in an empty folder; its ``python`` blocks before the first pair write the common inputs.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers_env import ROOT, peers_python, run_child, write_result

PAGES = ROOT / "docs" / "migration"
_PIECES = re.compile(r"^<!-- (compare|not run)(.*?) -->\n|^```(py|python)\n(.*?)^```\n", re.M | re.S)


class Pair(NamedTuple):
    names: tuple[str, ...]
    rule: str
    before: str
    after: str


class Page(NamedTuple):
    """``setup``: Python before the first pair. ``unpaired``: why some blocks of the page are not run."""

    setup: list[str]
    pairs: list[Pair]
    unpaired: list[str]


def read_page(text: str) -> Page:
    """Raises ValueError where a page's pieces are not in that order."""
    page = Page([], [], [])
    comment = None
    before = None
    for piece in _PIECES.finditer(text):
        kind, said, language, code = piece.groups()
        if kind == "not run":
            page.unpaired.append(said.strip(": "))
            comment = None
        elif kind == "compare":
            comment = said
            before = None
        elif language == "py":
            if comment is None and not page.unpaired:
                raise ValueError(f"a py block without a comment above it: {code[:60]!r}")
            before = code
        elif comment is not None and before is not None:
            names, _, rule = comment.partition(":")
            page.pairs.append(Pair(tuple(names.split()), rule.strip(), before, code))
            comment = before = None
        elif comment is not None:
            raise ValueError(f"compare{comment}: no py block before the python block")
        elif not page.pairs:
            page.setup.append(code)
    return page


def differs(rule: str, before: Any, after: Any) -> str | None:
    """The difference in words, or None. Both may be lists of arrays."""
    if isinstance(before, list) or isinstance(after, list):
        if not (isinstance(before, list) and isinstance(after, list) and len(before) == len(after)):
            return f"{_kind(before)} before, {_kind(after)} after"
        found = (differs(rule, *both) for both in zip(before, after, strict=True))
        return next((one for one in found if one), None)
    if (before.shape, before.dtype) != (after.shape, after.dtype):
        return f"{_kind(before)} before, {_kind(after)} after"
    if rule == "shape":
        return None
    most = 0.0 if rule == "equal" else float(rule.removeprefix("within "))
    if before.dtype.kind in "US":
        return None if (before == after).all() else f"{before.tolist()} before, {after.tolist()} after"
    distance = float(np.abs(before.astype(np.float64) - after.astype(np.float64)).max(initial=0))
    return f"they differ by {distance:g}, accepted: {most:g}" if distance > most else None


def _kind(value: Any) -> str:
    return f"{len(value)} arrays" if isinstance(value, list) else f"{value.dtype} {list(value.shape)}"


def _array(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(getattr(one, "shape", ()) for one in value):
        return [_array(one) for one in value]
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _run_side(page: str, side: str) -> list[dict[str, Any]]:
    """Run one side of a page in the present folder -> the values of each pair."""
    if side == "before":
        from benchmarks.libraries.torchvision import import_v2

        import_v2()
    read = read_page((PAGES / page).read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found: list[dict[str, Any]] = []
    if side == "after":
        for code in read.setup:
            exec(compile(code, f"{page} (setup)", "exec"), namespace)
    for pair in read.pairs:
        code = pair.before if side == "before" else pair.after
        exec(compile(code, f"{page} ({side})", "exec"), namespace)
        found.append({name: _array(namespace[name]) for name in pair.names})
    return found


def check_page(path: Path, peers: Path) -> list[str]:
    """A line for every compared name; lines that begin with FAIL describe a difference."""
    page = read_page(path.read_text(encoding="utf-8"))
    lines = [f"{path.name}: not run: {reason}" for reason in page.unpaired]
    sides: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for side, python in (("after", Path(sys.executable)), ("before", peers)):
            try:
                sides[side] = run_child(python, "benchmarks.migration", [path.name, side], Path(folder))
            except RuntimeError as error:
                return [*lines, f"FAIL {path.name}: {side}:\n{error}"]
    for number, pair in enumerate(page.pairs):
        for name in pair.names:
            before = sides["before"][number][name]
            after = sides["after"][number][name]
            wrong = differs(pair.rule, before, after)
            said = f"{path.name}: {name}: {pair.rule}: {_kind(after)}"
            lines.append(f"FAIL {said}: {wrong}" if wrong else said)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="names of pages, as torchvision.md; all of them")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        page, side = given.pages
        write_result(given.child, _run_side(page, side))
        return 0
    peers = peers_python()
    failures = 0
    for path in sorted(PAGES.glob("*.md")):
        if path.name == "index.md" or (given.pages and path.name not in given.pages):
            continue
        for line in check_page(path, peers):
            print(line, flush=True)
            failures += line.startswith("FAIL")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
