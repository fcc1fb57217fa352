"""The Python of README.md and docs/**/*.md as modules, for type checkers: ``python -m tests.pages FOLDER``.

A module for each page, with its lines where the page has them, so that what a checker says names the page's line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)


def name_of(page: Path) -> str:
    """A name that no module of Python's or of anybody's has: page_loader, page_tutorials_photos."""
    parts = page.relative_to(ROOT).with_suffix("").parts
    words = "_".join(parts[1:] if parts[0] == "docs" else parts)
    return "page_" + re.sub(r"\W", "_", words.lower())


def module_of(page: str) -> str:
    lines = [""] * (page.count("\n") + 1)
    for block in _BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1))
        body = block[1].splitlines()
        lines[first : first + len(body)] = body
    return "\n".join(lines) + "\n"


def write_modules(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = page.read_text(encoding="utf-8")
        (folder / f"{name_of(page)}.py").write_text(module_of(text), encoding="utf-8")


if __name__ == "__main__":
    write_modules(Path(sys.argv[1]))
