"""The Python of README.md and docs/*.md as modules, for type checkers: ``python -m tests.pages FOLDER``.

A module for each page, with its lines where the page has them, so that what a checker says names the page's line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)


def module_of(page: str) -> str:
    lines = [""] * (page.count("\n") + 1)
    for block in _BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1))
        body = block[1].splitlines()
        lines[first : first + len(body)] = body
    return "\n".join(lines) + "\n"


def write_modules(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        # A name that no module of Python's or of anybody's has.
        name = f"page_{page.stem.lower()}.py"
        (folder / name).write_text(module_of(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_modules(Path(sys.argv[1]))
